"""Which variables an agent gets, and where its home is."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

from skillup.engines.environment import EngineHome, login_secrets, trial_environment
from skillup.schema.profile import Profile
from tests.support.held_turns import make_trial, write_files

HOME = EngineHome("LAB_HOME", ".lab", "login.json")
USERS_OWN = {
    "PATH": "/usr/bin",
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "https_proxy": "http://proxy:1",
    "SSL_CERT_FILE": "/certs.pem",
    "EDITOR": "ed",
    "GITHUB_TOKEN": "secret-0123",
    "CLAUDECODE": "1",
    "XDG_CONFIG_HOME": "/somewhere",
}


def test_clean_passes_on_a_short_list_and_makes_a_home(tmp_path: Path) -> None:
    trial = make_trial(tmp_path, Profile(engine="lab"), environment=USERS_OWN)
    trial = replace(trial, extra_env={"EXTRA": "1"})

    env = trial_environment(trial, HOME, {"LAB_KEY": "k"})

    own = tmp_path / "trial-home" / "home"
    assert env == {
        **{name: USERS_OWN[name] for name in ("PATH", "LANG", "LC_ALL", "https_proxy")},
        "SSL_CERT_FILE": "/certs.pem",
        "TMPDIR": str(tmp_path / "trial-home" / "tmp"),
        "HOME": str(own),
        "LAB_HOME": str(own / ".lab"),
        "LAB_KEY": "k",
        "EXTRA": "1",
    }
    assert list((own / ".lab").iterdir()) == []
    assert HOME.of(env) == own / ".lab"
    assert "EXTRA" not in os.environ


def test_shared_passes_on_all_but_the_marks_of_an_outer_agent(tmp_path: Path) -> None:
    profile = Profile(engine="lab", isolation="shared")
    environment = {**USERS_OWN, "HOME": "/home/user"}
    trial = make_trial(tmp_path, profile, environment=environment)

    env = trial_environment(trial, HOME, {})

    theirs = {name: value for name, value in environment.items() if name != "CLAUDECODE"}
    assert env == {**theirs, "TMPDIR": str(trial.home / "tmp")}
    assert HOME.of(env) == Path("/home/user/.lab")
    assert [path.name for path in trial.home.iterdir()] == ["tmp"]


def test_the_login_file_is_copied_once_and_only_without_a_key(tmp_path: Path) -> None:
    trial = make_trial(tmp_path, Profile(engine="lab"))
    write_files(tmp_path / "user-home" / ".lab", {"login.json": "{}", "config": "private"})
    copy = tmp_path / "trial-home" / "home" / ".lab" / "login.json"

    trial_environment(trial, HOME, {"LAB_KEY": "k"})
    assert not copy.exists()

    trial_environment(trial, HOME, {})
    assert copy.read_text() == "{}"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [path.name for path in copy.parent.iterdir()] == ["login.json"]

    copy.write_text('{"renewed": true}')
    trial_environment(trial, HOME, {})
    assert copy.read_text() == '{"renewed": true}'


def test_the_users_own_engine_home_may_be_elsewhere(tmp_path: Path) -> None:
    trial = make_trial(tmp_path, Profile(engine="lab"))
    write_files(tmp_path / "elsewhere", {"login.json": "{}"})
    environment = {**trial.environment, "LAB_HOME": str(tmp_path / "elsewhere")}
    trial = replace(trial, environment=environment)

    env = trial_environment(trial, HOME, {})

    assert HOME.login_of(env) == tmp_path / "trial-home" / "home" / ".lab" / "login.json"


def test_tokens_of_a_login_file_are_secrets(tmp_path: Path) -> None:
    token = "t" * 40
    write_files(tmp_path, {"login.json": json.dumps({"a": [{"token": token}], "plan": "pro"})})
    write_files(tmp_path, {"broken.json": "{", "deep.json": '{"a":' + "[" * 100_000})

    assert list(login_secrets(tmp_path / "login.json").values()) == [token]
    assert login_secrets(tmp_path / "broken.json") == {}
    assert login_secrets(tmp_path / "deep.json") == {}
    assert login_secrets(None) == {}
