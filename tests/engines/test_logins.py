"""One login by file serves all trials: it is renewed once, and the new one is the user's (F5).

The real claude takes no other token endpoint than its own: a program that renews its login by
claude's rule stands for it. The real codex is in tests/e2e/test_logins.py.
"""

from __future__ import annotations

import json
import shutil
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.engines.base import Engine, EngineTurn, TurnRequest
from skillup.engines.claude_code.engine import HOME, ClaudeCode
from skillup.engines.environment import renewed_once
from skillup.redaction.secrets import Secrets
from skillup.schema.profile import Profile
from tests.support.engine_turns import error_kind, make_trial
from tests.support.token_server import TokenServer, claude_login

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
    engine: Engine, base: Path, profile: Profile, secrets: Secrets, **env: str
) -> list[EngineTurn]:
    """The first turns of eight trials of one user, whose home is in `base`, in one run."""
    outcomes: list[EngineTurn] = []

    async def hold(number: int) -> None:
        trial = make_trial(base / str(number), profile, extra_env=env, secrets=secrets)
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

    secrets = Secrets({})
    with TokenServer("first") as tokens:
        outcomes = all_at_once(ClaudeCode(), tmp_path, profile, secrets, TOKENS=tokens.url)

    assert [error_kind(outcome) for outcome in outcomes] == [None] * 8
    assert tokens.used == ["first"]
    assert json.loads(file.read_text())["claudeAiOauth"]["refreshToken"] == "renewed-1"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    renewed = json.loads(file.read_text())["claudeAiOauth"]["accessToken"]
    assert secrets.mask(f"it is {renewed}") != f"it is {renewed}"
    assert not any(renewed in outcome.response for outcome in outcomes)
    raw = [path.read_text() for path in tmp_path.glob("*/raw/*.stdout.jsonl")]
    assert len(raw) == 8
    assert not any(renewed in text for text in raw)


def test_a_turn_that_cannot_begin_leaves_the_login_to_others(tmp_path: Path) -> None:
    """F5: the lock was held for good if a turn failed after it had waited for it."""
    profile = Profile(name="claude", engine="claude_code")
    trial = replace(make_trial(tmp_path, profile), environment={"HOME": str(tmp_path / "user")})
    due = time.time()
    file = tmp_path / "user" / ".claude" / ".credentials.json"
    write_login(file, claude_login("first", due + 60))
    own = write_login(tmp_path / "own" / file.name, claude_login("first", due + 60))
    env = {"CLAUDE_CONFIG_DIR": str(own.parent)}

    async def fail() -> None:
        with pytest.raises(FileNotFoundError):
            async with renewed_once(trial, HOME, env, 60, by_file=True):
                pytest.fail("its own copy could not be renewed")

    async def one_after_the_other() -> None:
        with anyio.fail_after(30):
            async with (
                anyio.create_task_group() as group,
                renewed_once(trial, HOME, env, 60, by_file=True),
            ):
                group.start_soon(fail)
                await anyio.sleep(0.3)  # it waits now
                file.write_text(json.dumps(claude_login("second", due + 90)))
                shutil.rmtree(own.parent)
            own.parent.mkdir()
            async with renewed_once(trial, HOME, env, 60, by_file=True):
                pass

    anyio.run(one_after_the_other)
