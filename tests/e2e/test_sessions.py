"""Sessions that the real CLIs wrote are listed, and read whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from skillup.sessions.index import (
    newest_heads,
    session_files,
    session_homes,
)
from tests.support.model_server import Answer, ModelServer, Rule, Shell, Text, WriteFile, by_rules
from tests.support.raw_cli import RawClaude, RawCodex, RawRun
from tests.support.session_files import read, told

pytestmark = pytest.mark.e2e

SCRIPT = by_rules(
    Rule(
        "do it",
        [
            Answer((Text("I look."), Shell("echo hi"), Shell("false"))),
            WriteFile("notes.md", "x\n"),
            Text("All done."),
        ],
    )
)
SAID = [
    (1, "user", "do it"),
    (1, "assistant", "I look."),
    (1, "assistant", "All done."),
    (2, "user", "and now?"),
    (2, "assistant", "Turn 2: and now?"),
]


def _read_only_session(environment: Mapping[str, str], engine: str, cwd: Path) -> Path:
    files = session_files(session_homes(environment))
    [(file, head)] = newest_heads(files, cwd, 10)
    assert file.engine == engine
    assert head.summary.first_words == "do it"
    return file.path


def _check(path: Path, session_id: str, cwd: Path, tools: list[tuple[str, str]]) -> None:
    entries, summary = read(path)
    assert [
        (entry.turn, *told(entry)) for entry in entries if entry.role in ("user", "assistant")
    ] == SAID
    calls = [entry.tool_call for entry in entries if entry.tool_call is not None]
    results = [entry.tool_result for entry in entries if entry.tool_result is not None]
    assert [(call.name, call.kind) for call in calls] == tools
    status = {result.call_id: result.status for result in results}
    assert [status[call.id] for call in calls] == ["success", "error", "success"]
    assert len(results) == len(calls)
    assert (summary.session_id, summary.turns, summary.unknown_lines) == (session_id, 2, 0)
    assert Path(summary.cwd or "").resolve() == cwd.resolve()
    assert not any(entry.left for entry in entries)
    assert not summary.truncated


def _check_recording(path: Path, *runs: RawRun) -> None:
    """The same of what the CLI printed; it may not tell the prompts."""
    path.write_text("".join(run.stdout for run in runs), "utf-8")
    entries, summary = read(path)
    said = [(entry.turn, *told(entry)) for entry in entries if entry.role == "assistant"]
    assert said == [words for words in SAID if words[1] == "assistant"]
    results = [entry.tool_result for entry in entries if entry.tool_result is not None]
    assert sorted(result.status for result in results) == ["error", "success", "success"]
    assert (summary.turns, summary.unknown_lines) == (2, 0)


def test_a_session_of_claude(
    raw_claude: Callable[[str], RawClaude],
    model_server: Callable[..., ModelServer],
    tmp_path: Path,
) -> None:
    claude = raw_claude(model_server(SCRIPT).url)
    session = str(uuid4())
    first = claude.first("do it", session, "--permission-mode", "bypassPermissions")
    second = claude.resume("and now?", session)

    environment = {"CLAUDE_CONFIG_DIR": str(claude.state), "CODEX_HOME": str(claude.base / "no")}
    path = _read_only_session(environment, "claude_code", claude.workspace)
    tools = [("Bash", "shell"), ("Bash", "shell"), ("Write", "write")]
    _check(path, session, claude.workspace, tools)
    _check_recording(tmp_path / "recording.jsonl", first, second)


def test_a_session_of_codex(
    raw_codex: Callable[[str], RawCodex],
    model_server: Callable[..., ModelServer],
    tmp_path: Path,
) -> None:
    codex = raw_codex(model_server(SCRIPT).url)
    first = codex.first("do it")
    thread = str(first.one("thread.started")["thread_id"])
    second = codex.resume("and now?", thread)

    environment = {"CLAUDE_CONFIG_DIR": str(codex.base / "no"), "CODEX_HOME": str(codex.state)}
    path = _read_only_session(environment, "codex", codex.workspace)
    command = ("command_execution", "shell")
    _check(path, thread, codex.workspace, [command, command, ("file_change", "write")])
    _check_recording(tmp_path / "recording.jsonl", first, second)
