"""The command line and the input of one `claude -p` turn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from skillup.engines.base import TrialContext, TurnRequest
from skillup.schema.profile import Permission

_PERMISSION_MODES: dict[Permission, str] = {
    "full": "bypassPermissions",
    "edits": "acceptEdits",
    # Reading and harmless shell commands run; whatever would need to be asked for is refused.
    "read_only": "default",
}
_GLOB_CHARACTERS = re.compile(r"([\\*?\[\]{}()!+@|])")


def arguments(
    turn: TurnRequest, trial: TrialContext, session_id: str, *, resumed: bool
) -> list[str]:
    """What follows the command; the same on every turn but for the session's option."""
    profile = trial.profile
    given = ["-p", "--output-format", "stream-json", "--verbose"]
    if _must_be_literal(turn):
        given += ["--input-format", "stream-json"]
    if profile.model:
        given += ["--model", profile.model]
    given += ["--permission-mode", _PERMISSION_MODES[profile.permission]]
    limit = turn.max_steps or profile.max_turns
    if limit:
        given += ["--max-turns", str(limit)]
    if turn.system:
        given += ["--append-system-prompt", turn.system]
    if profile.isolation == "clean":
        given += _isolation(trial.workspace)
    return [*given, *profile.args, "--resume" if resumed else "--session-id", session_id]


def input_bytes(turn: TurnRequest) -> bytes:
    """The prompt as it goes into stdin.

    As plain text, claude answers `/word` itself and attaches the file that `@path` names. It looks
    for both in the last text block of a message only, and drops an empty one before it asks the
    model: a message of two blocks, the second empty, reaches the model exactly as written.
    """
    if not _must_be_literal(turn):
        return turn.prompt.encode()
    blocks = [{"type": "text", "text": turn.prompt}, {"type": "text", "text": ""}]
    message = {"type": "user", "message": {"role": "user", "content": blocks}}
    return json.dumps(message).encode() + b"\n"


def isolation_notices(trial: TrialContext) -> list[str]:
    """What `clean` cannot keep out: skills, agents and commands of directories above the workspace.

    Claude looks for them up to the git root; without one, up to the file system's root.
    """
    if trial.profile.isolation != "clean":
        return []
    leaking = [str(path) for path in _customs_above(trial.workspace) if path.is_dir()]
    if not leaking:
        return []
    return [f"the agent also sees what is in {', '.join(leaking)}: place the workspace elsewhere"]


def _must_be_literal(turn: TurnRequest) -> bool:
    return not turn.slash_command and (turn.prompt.startswith("/") or "@" in turn.prompt)


def _isolation(workspace: Path) -> list[str]:
    """Project settings and skills stay, the user's own go.

    Instructions of directories above the workspace would come in, too, and MCP servers of their
    `.mcp.json`; the workspace's own are named, so that they still work.
    """
    instructions = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/**")
    excluded = [
        f"{_as_pattern(parent)}/{name}" for parent in workspace.parents for name in instructions
    ]
    servers = workspace / ".mcp.json"
    own_servers = ["--mcp-config", str(servers)] if servers.is_file() else []
    settings = json.dumps({"claudeMdExcludes": excluded})
    project_only = ["--setting-sources", "project", "--strict-mcp-config"]
    return [*own_servers, *project_only, "--settings", settings]


def _as_pattern(directory: Path) -> str:
    return _GLOB_CHARACTERS.sub(r"\\\1", directory.as_posix().rstrip("/"))


def _customs_above(workspace: Path) -> Iterator[Path]:
    directory = workspace
    while not (directory / ".git").exists() and directory != directory.parent:
        directory = directory.parent
        for name in ("skills", "agents", "commands"):
            yield directory / ".claude" / name
