"""What all adapters share: environments, homes, prices, advice, and how they are found."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from skillup.adapters import ADAPTERS
from skillup.engines.base import SessionResumer
from skillup.engines.cli_runner import cost_usd
from skillup.engines.environment import EngineHome, trial_environment
from skillup.engines.failures import parse_retry_after, turn_error
from skillup.engines.login import login_secrets
from skillup.engines.registry import get_engine, remove_logins
from skillup.errors import UsageError
from skillup.schema.profile import Price, Profile
from skillup.schema.record import Usage
from tests.support.engine_turns import make_trial, write_files

HOME = EngineHome("LAB_HOME", ".lab", "login.json", marks=frozenset({"CLAUDECODE"}))
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


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached for x. Please try again in 1.898s.", 1.898),
        ("try again in 20ms", 0.02),
        ("try again in 2 days 17 hours 14 minutes", 2 * 86400 + 17 * 3600 + 14 * 60),
        ("please wait for 30 seconds", 30),
        ("429, retry-after: 12", 12),
        ("try again later", None),
        ("You've hit your limit · resets 8pm", None),
    ],
)
def test_how_long_a_provider_asks_to_wait(message: str, seconds: float | None) -> None:
    assert parse_retry_after(message) == (None if seconds is None else pytest.approx(seconds))


def test_only_the_engines_own_error_says_how_long_to_wait() -> None:
    """F4: `Retry-After: 86400` in a tool's output, before a 429, is no wish of the provider's."""
    printed = "last lines of stdout:\nHTTP/1.1 429\nRetry-After: 86400\n"
    long = "429: slow down. " * 40 + "Please try again in 7s."

    assert turn_error("claude", "rate_limit", "429: no", printed).retry_after_seconds is None
    assert turn_error("claude", "rate_limit", long, printed).retry_after_seconds == 7


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_every_adapter_is_there_and_can_resume(name: str) -> None:
    engine = get_engine(name)

    assert engine.name == name
    assert isinstance(engine, SessionResumer)
    assert engine.skill_directories()


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(UsageError) as raised:
        get_engine("claude-code")

    assert raised.value.hint == "did you mean `claude_code`?"


def test_the_registry_names_the_home_that_each_adapter_has() -> None:
    for name, adapter in ADAPTERS.items():
        home = get_engine(name).spec.home  # type: ignore[attr-defined]
        assert (home and home.variable) == adapter.home_variable


def test_the_logins_of_all_clis_are_removed(tmp_path: Path) -> None:
    logins = {"home/.claude/.credentials.json": "{}", "home/.codex/auth.json": "{}"}
    write_files(tmp_path, {**logins, "home/.codex/config.toml": ""})

    remove_logins(tmp_path)

    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["config.toml"]


USAGE = Usage(input_tokens=1000, cached_input_tokens=200, cache_write_tokens=100, output_tokens=50)


def profile(prices: Price | dict[str, Price] | None, model: str | None = None) -> Profile:
    return Profile(engine="codex", model=model, prices=prices)


def test_cached_and_written_tokens_have_their_own_prices() -> None:
    prices = Price(input=1.0, cached_input=0.1, cache_write=2.0, output=10.0)

    cost = cost_usd(profile(prices), None, USAGE)

    assert cost == pytest.approx((700 * 1.0 + 200 * 0.1 + 100 * 2.0 + 50 * 10.0) / 1e6)


def test_prices_are_looked_up_by_the_reported_model_then_by_the_profiles() -> None:
    prices = {
        "alias": Price(input=1.0, output=1.0),
        "full-name": Price(input=2.0, output=2.0),
    }

    assert cost_usd(profile(prices, "alias"), "full-name", USAGE) == pytest.approx(1050 * 2 / 1e6)
    assert cost_usd(profile(prices, "alias"), "other", USAGE) == pytest.approx(1050 / 1e6)
    assert cost_usd(profile(prices), "other", USAGE) is None


def test_what_is_not_known_has_no_cost() -> None:
    prices = Price(input=1.0, output=1.0)

    assert cost_usd(profile(None), "x", USAGE) is None
    assert cost_usd(profile(prices), "x", None) is None
    assert cost_usd(profile(prices), "x", Usage(input_tokens=5)) is None
