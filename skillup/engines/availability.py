"""Whether a CLI can be run here: is it found, which version is it, how would it log in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from skillup.engines.base import Availability
from skillup.engines.environment import clean_variables
from skillup.engines.failures import Cli, turn_error
from skillup.engines.turns import is_there
from skillup.process import run_quiet
from skillup.schema.record import TurnError

_VERSION = re.compile(r"\d+\.\d+(\.\d+)?[\w.+-]*")
_VERSION_SECONDS = 60.0


async def check_cli(
    cli: Cli,
    command: tuple[str, ...],
    environment: Mapping[str, str],
    login: str | None,
    login_problem: str | None,
) -> Availability:
    """Runs `--version`; asks no model anything."""
    # HOME stays the user's: version managers look their programs up below it.
    env = {**clean_variables(environment), "HOME": environment.get("HOME", str(Path.home()))}
    here = Path.cwd()
    if not is_there(command[0], env, here):
        problem = turn_error(cli, "engine_not_found", f"there is no program `{command[0]}`")
        return Availability(False, command, login=login, problem=problem)
    said = await run_quiet(
        (*command, "--version"), cwd=here, env=env, timeout_seconds=_VERSION_SECONDS
    )
    if said.exit_code != 0:
        why = said.start_error or said.stderr.strip() or f"exit code {said.exit_code}"
        why = "no answer" if said.timed_out else why
        problem = turn_error(cli, "engine_not_usable", f"`--version` does not work: {why}")
        return Availability(False, command, login=login, problem=problem)
    version = _VERSION.search(said.stdout)
    return Availability(
        True,
        command,
        version=version[0] if version else None,
        login=login,
        problem=_login_error(cli, login_problem),
        notes=()
        if login or login_problem
        else (f"no login was found: {cli.login}; --probe tells whether it works",),
    )


def _login_error(cli: Cli, problem: str | None) -> TurnError | None:
    return turn_error(cli, "auth", problem) if problem else None
