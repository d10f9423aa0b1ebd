"""What all adapters share: environments, homes, logins, prices, advice, and how they are found.

One login by file serves all trials: it is renewed once, and the new one is the user's (F5). The
real claude takes no other token endpoint than its own: a program that renews its login by claude's
rule stands for it. The real codex is in tests/e2e/test_logins.py.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.adapters import ADAPTERS
from skillup.engines.base import Engine, EngineTurn, SessionResumer, TurnRequest, cost_usd
from skillup.engines.claude_code.engine import ClaudeCode
from skillup.engines.claude_code.events import ClaudeEvents
from skillup.engines.environment import EngineHome, login_secrets, renewed_once, trial_environment
from skillup.engines.events import parse_retry_after
from skillup.engines.registry import get_engine, remove_logins
from skillup.errors import UsageError
from skillup.redaction.secrets import Secrets
from skillup.sandbox.bubblewrap import BubblewrapBox
from skillup.schema.profile import Price, Profile
from skillup.schema.record import TurnError, Usage
from skillup.trial.session import call_engine
from tests.support.engine_turns import KeptStreams, error_kind, make_trial
from tests.support.token_server import claude_login, codex_login, token_server
from tests.support.trees import make_tree

ROOT = Path(__file__).parents[2]
HOME = EngineHome("LAB_HOME", ".lab", "login.json", marks=frozenset({"CLAUDECODE"}))
KEPT = {"PATH": "/usr/bin", "LANG": "C.UTF-8", "LC_ALL": "C", "https_proxy": "http://proxy:1"}
KEPT["SSL_CERT_FILE"] = "/certs.pem"
OTHERS = {"EDITOR": "ed", "GITHUB_TOKEN": "secret-0123", "XDG_CONFIG_HOME": "/somewhere"}
USERS_OWN = {**KEPT, **OTHERS, "CLAUDECODE": "1"}


def test_clean_passes_on_a_short_list_and_makes_a_home(tmp_path: Path) -> None:
    trial = make_trial(tmp_path, Profile(engine="lab"), environment=USERS_OWN)
    trial = replace(trial, extra_env={"EXTRA": "1"})
    env = trial_environment(trial, HOME, {"LAB_KEY": "k"})
    own = tmp_path / "trial-home" / "home"
    homes = {"HOME": str(own), "LAB_HOME": str(own / ".lab")}
    temporary = str(tmp_path / "tmp")
    assert env == {**KEPT, **homes, "TMPDIR": temporary, "LAB_KEY": "k", "EXTRA": "1"}
    assert list((own / ".lab").iterdir()) == []
    assert HOME.of(env) == own / ".lab"
    assert "EXTRA" not in os.environ


def test_shared_passes_on_all_but_the_marks_of_an_outer_agent(tmp_path: Path) -> None:
    environment = {**USERS_OWN, "HOME": "/home/user"}
    profile = Profile(engine="lab", isolation="shared")
    trial = make_trial(tmp_path, profile, environment=environment)
    env = trial_environment(trial, HOME, {})
    theirs = {name: value for name, value in environment.items() if name != "CLAUDECODE"}
    assert env == {**theirs, "TMPDIR": str(trial.temporary)}
    assert HOME.of(env) == Path("/home/user/.lab")
    assert not trial.home.exists()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_login_file_is_copied_once_and_only_with_no_key(tmp_path: Path, elsewhere: bool) -> None:
    trial = make_trial(tmp_path, Profile(engine="lab"))
    folder = tmp_path / ("elsewhere" if elsewhere else "user-home/.lab")
    make_tree(folder, {"login.json": "{}", "config": "private"})
    if elsewhere:
        trial = replace(trial, environment={**trial.environment, "LAB_HOME": str(folder)})
    copy = tmp_path / "trial-home" / "home" / ".lab" / "login.json"

    trial_environment(trial, HOME, {"LAB_KEY": "k"})
    assert not copy.exists()
    assert HOME.login_of(trial_environment(trial, HOME, {})) == copy
    assert copy.read_text() == "{}"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [path.name for path in copy.parent.iterdir()] == ["login.json"]
    copy.write_text('{"renewed": true}')
    trial_environment(trial, HOME, {})
    assert copy.read_text() == '{"renewed": true}'
    # A sandbox gets it without what renews it, whatever was made of it inside.
    make_tree(folder, {"login.json": json.dumps(codex_login("serves-once", 9))})
    trial_environment(replace(trial, box=BubblewrapBox()), HOME, {})
    assert json.loads(copy.read_text()) == codex_login("", 9)


def test_tokens_of_a_login_file_are_secrets_and_are_removed_with_it(tmp_path: Path) -> None:
    token = "t" * 40
    make_tree(tmp_path, {"login.json": json.dumps({"a": [{"token": token}], "plan": "pro"})})
    make_tree(tmp_path, {"broken.json": "{", "deep.json": '{"a":' + "[" * 100_000})
    assert list(login_secrets(tmp_path / "login.json").values()) == [token]
    for other in (tmp_path / "broken.json", tmp_path / "deep.json", None):
        assert login_secrets(other) == {}
    logins = {"home/.claude/.credentials.json": "{}", "home/.codex/auth.json": "{}"}
    make_tree(tmp_path / "trial", {**logins, "home/.codex/config.toml": ""})
    remove_logins(tmp_path / "trial")
    kept = [path.name for path in (tmp_path / "trial").rglob("*") if path.is_file()]
    assert kept == ["config.toml"]
    make_tree(tmp_path / "user", logins)
    (tmp_path / "trial/home/.claude").rmdir()
    (tmp_path / "trial/home/.claude").symlink_to(tmp_path / "user/home/.claude")
    remove_logins(tmp_path / "trial")
    assert (tmp_path / "user/home/.claude/.credentials.json").exists()


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached for x. Please try again in 1.898s.", 1.898),
        ("try again in 20ms", 0.02),
        ("try again in 2 days 17 hours 14 minutes", 2 * 86400 + 17 * 3600 + 14 * 60),
        ("429, retry-after: 12", 12),
        ("You've hit your limit · resets 8pm", None),
    ],
)
def test_how_long_a_provider_asks_to_wait(message: str, seconds: float | None) -> None:
    assert parse_retry_after(message) == (None if seconds is None else pytest.approx(seconds))


def test_only_the_engines_own_error_says_how_long_to_wait() -> None:
    """F4: `Retry-After: 86400` in a tool's output, before a 429, is no wish of the provider's."""
    printed = "last lines of stdout:\nHTTP/1.1 429\nRetry-After: 86400\n"
    long = "429: slow down. " * 40 + "Please try again in 7s."
    error = ClaudeCode().error
    assert error("rate_limit", "429: no", printed).retry_after_seconds is None
    assert error("rate_limit", long, printed).retry_after_seconds == 7


def test_the_registry_and_what_each_adapter_says_agree() -> None:
    for name, adapter in ADAPTERS.items():
        engine = get_engine(name)
        assert engine.name == name
        assert isinstance(engine, SessionResumer)
        assert engine.skill_directories()
        home = engine.spec.home  # type: ignore[attr-defined]
        assert ((home and home.variable) or None) == adapter.home_variable
        assert (ROOT / "engines" / f"{name}.yaml").is_file()
    with pytest.raises(UsageError) as raised:
        get_engine("claude-code")
    assert raised.value.hint == "did you mean `claude_code`?"


def test_a_defect_of_an_adapter_names_its_module() -> None:
    async def defective() -> None:
        ClaudeEvents().take(None)  # type: ignore[arg-type]

    error = anyio.run(call_engine, defective, "it")
    assert isinstance(error, TurnError)
    assert error.kind == "internal"
    assert "itself failed in skillup.engines.claude_code.events: " in error.message


USAGE = Usage(input_tokens=1000, cached_input_tokens=200, cache_write_tokens=100, output_tokens=50)
FULL = Price(input=1.0, cached_input=0.1, cache_write=2.0, output=10.0)
PLAIN = Price(input=1.0, output=1.0)
BY_NAME = {"alias": PLAIN, "full-name": Price(input=2.0, output=2.0)}


@pytest.mark.parametrize(
    ("prices", "model", "reported", "usage", "micros"),
    [
        ({"": FULL}, None, None, USAGE, 700 * 1.0 + 200 * 0.1 + 100 * 2.0 + 50 * 10.0),
        # By the reported model, then by the profile's.
        (BY_NAME, "alias", "full-name", USAGE, 1050 * 2),
        (BY_NAME, "alias", "other", USAGE, 1050),
        (BY_NAME, None, "other", USAGE, None),
        ({}, None, "x", USAGE, None),
        ({"": PLAIN}, None, "x", None, None),
        ({"": PLAIN}, None, "x", Usage(input_tokens=5), None),
    ],
)
def test_the_cost_of_a_turn(
    prices: Any, model: str | None, reported: str | None, usage: Usage | None, micros: float | None
) -> None:
    cost = cost_usd(Profile(engine="codex", model=model, prices=prices), reported, usage)
    assert cost == (None if micros is None else pytest.approx(micros / 1e6))


CLAUDE = """
import json, os, pathlib, sys, time, urllib.error, urllib.request
session = sys.argv[-1]
home = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.environ["HOME"], ".claude")
home = pathlib.Path(home)
file = home / ".credentials.json"
login = json.loads(file.read_text())
oauth, failed = login["claudeAiOauth"], False
if time.time() * 1000 + 300_000 >= oauth["expiresAt"]:
    body = json.dumps({"refresh_token": oauth["refreshToken"]}).encode()
    try:
        with urllib.request.urlopen(os.environ["TOKENS"], body) as answer:
            new = json.load(answer)
    except urllib.error.HTTPError:
        failed, new = True, {"access_token": "", "refresh_token": ""}
    oauth["accessToken"], oauth["refreshToken"] = new["access_token"], new["refresh_token"]
    oauth["expiresAt"] = 0 if failed else int((time.time() + 86400) * 1000)
    file.write_text(json.dumps(login))
(home / "projects" / "w").mkdir(parents=True, exist_ok=True)
(home / "projects" / "w" / f"{session}.jsonl").write_text('{"type": "user", "message": {}}\\n')
print(json.dumps({"type": "system", "subtype": "init", "session_id": session}))
print(json.dumps({"type": "result", "subtype": "success", "is_error": failed,
    "api_error_status": 401 if failed else None, "session_id": session,
    "result": oauth["accessToken"]}))
sys.exit(int(failed))
"""


def all_at_once(
    engine: Engine, base: Path, profile: Profile, secrets: Secrets, streams: Any = None, **env: str
) -> list[EngineTurn]:
    """The first turns of eight trials of one user, whose home is in `base`, in one run."""
    outcomes: list[EngineTurn] = []
    streams = streams or KeptStreams()

    async def hold(number: int) -> None:
        own = {"extra_env": env, "secrets": secrets, "streams": streams.below(str(number))}
        trial = make_trial(base / str(number), profile, **own)
        environment = {**trial.environment, "HOME": str(base / "user-home")}
        trial = replace(trial, environment=environment)
        outcomes.append(await engine.start(TurnRequest(1, "hello", timeout_seconds=60), trial))

    async def run_all() -> None:
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(hold, number)

    anyio.run(run_all)
    return outcomes


def write_login(file: Path, login: dict[str, Any]) -> Path:
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(login))
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("isolation", ["clean", "shared"])
def test_eight_trials_renew_one_login_of_claude_once(tmp_path: Path, isolation: str) -> None:
    """F5: its refresh tokens serve once; all but one of the trials used to end in `auth`."""
    (tmp_path / "claude.py").write_text(CLAUDE)
    command = [sys.executable, str(tmp_path / "claude.py")]
    profile = Profile.model_validate(
        {"engine": "claude_code", "command": command, "isolation": isolation}
    )
    file = tmp_path / "user-home" / ".claude" / ".credentials.json"
    write_login(file, claude_login("first", time.time() + 60))

    secrets, streams = Secrets({}), KeptStreams()
    with token_server("first") as (url, used):
        outcomes = all_at_once(ClaudeCode(), tmp_path, profile, secrets, streams, TOKENS=url)

    assert [error_kind(outcome) for outcome in outcomes] == [None] * 8
    assert used == ["first"]
    assert json.loads(file.read_text())["claudeAiOauth"]["refreshToken"] == "renewed-1"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    renewed = json.loads(file.read_text())["claudeAiOauth"]["accessToken"]
    assert secrets.mask(f"it is {renewed}") != f"it is {renewed}"
    assert not any(renewed in outcome.response for outcome in outcomes)
    raw = [text.decode() for name, text in streams.contents.items() if name.endswith(".jsonl")]
    assert len(raw) == 8
    assert not any(renewed in text for text in raw)


def test_a_turn_that_cannot_begin_leaves_the_login_to_others(tmp_path: Path) -> None:
    """F5: the lock was held for good if a turn failed after it had waited for it."""
    profile = Profile(name="claude", engine="claude_code")
    trial = replace(make_trial(tmp_path, profile), environment={"HOME": str(tmp_path / "user")})
    due = time.time()
    file = tmp_path / "user" / ".claude" / ".credentials.json"
    write_login(file, claude_login("first", due + 60))
    own = write_login(trial.home / "own" / file.name, claude_login("first", due + 60))
    env = {"CLAUDE_CONFIG_DIR": str(own.parent)}

    async def fail() -> None:
        with pytest.raises(FileNotFoundError):
            async with renewed_once(trial, ClaudeCode.spec.home, env, 60):
                pytest.fail("its own copy could not be renewed")

    async def one_after_the_other() -> None:
        with anyio.fail_after(30):
            async with (
                anyio.create_task_group() as group,
                renewed_once(trial, ClaudeCode.spec.home, env, 60),
            ):
                group.start_soon(fail)
                await anyio.sleep(0.3)  # it waits now
                file.write_text(json.dumps(claude_login("second", due + 90)))
                shutil.rmtree(own.parent)
            own.parent.mkdir()
            async with renewed_once(trial, ClaudeCode.spec.home, env, 60):
                pass

    anyio.run(one_after_the_other)
