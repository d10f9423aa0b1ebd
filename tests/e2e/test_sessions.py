"""Sessions that the real CLIs wrote: listed, read whole, made into cases, and judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.sessions.index import newest_heads, session_files, session_homes
from tests.e2e.conftest import Begin, Serve, state_of
from tests.support.engine_turns import Conversation
from tests.support.model_server import Answer, Reply, Rule, Shell, Text, WriteFile, by_rules
from tests.support.project import Project
from tests.support.session_files import read, told

pytestmark = pytest.mark.e2e
WORK: list[Reply] = [
    Answer((Text("I look."), Shell("echo hi"), Shell("false"))),
    WriteFile("notes.md", "x\n"),
    Text("Wrote notes.md with 12 lines."),
]
SAID = [
    (1, "user", "do it"),
    (1, "assistant", "I look."),
    (1, "assistant", "Wrote notes.md with 12 lines."),
    (2, "user", "and now?"),
    (2, "assistant", "Turn 2: and now?"),
]
TOOLS = {
    "claude": [("Bash", "shell"), ("Bash", "shell"), ("Write", "write")],
    "codex": [("command_execution", "shell")] * 2 + [("file_change", "write")],
}


@pytest.fixture
def conversation(begin: Begin, model_server: Serve) -> Conversation:
    """Two turns, the first with tools."""
    conversation = begin(model_server(by_rules(Rule("do it", WORK))).url)
    for message in ("do it", "and now?"):
        assert conversation.say(message).error is None
    return conversation


def _homes(conversation: Conversation, engine: str) -> dict[str, str]:
    """The variables that say where the CLIs keep their sessions."""
    nowhere = str(conversation.trial.home / "nowhere")
    homes = {"CLAUDE_CONFIG_DIR": nowhere, "CODEX_HOME": nowhere}
    own = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}[engine]
    return homes | {own: str(state_of(conversation))}


def test_a_session_is_listed_and_read_whole(conversation: Conversation, engine: str) -> None:
    workspace = conversation.trial.workspace
    files = session_files(session_homes(_homes(conversation, engine)))
    [(file, head)] = newest_heads(files, workspace, 10)
    assert (file.engine, head.first_words) == (conversation.engine.name, "do it")

    entries, summary = read(file.path)
    said = [(e.turn, *told(e)) for e in entries if e.role in ("user", "assistant")]
    assert said == SAID
    calls = [entry.item.tool_call for entry in entries if entry.item.tool_call is not None]
    results = [entry.item.tool_result for entry in entries if entry.item.tool_result is not None]
    assert [(call.name, call.kind) for call in calls] == TOOLS[engine]
    status = {result.call_id: result.status for result in results}
    assert [status[call.id] for call in calls] == ["success", "error", "success"]
    assert len(results) == len(calls)
    session = conversation.outcomes[-1].session
    assert session is not None
    assert (summary.session_id, summary.turns, summary.unknown_lines) == (session, 2, 0)
    assert Path(summary.cwd or "").resolve() == workspace
    assert not summary.truncated


def test_a_session_becomes_a_case_that_it_passes(
    conversation: Conversation, engine: str, tmp_path: Path
) -> None:
    homes = _homes(conversation, engine)
    session = conversation.outcomes[-1].session
    assert session is not None
    project = Project(tmp_path)

    made = project.run("session", "to-case", session, "--out", "cases/made.yaml", env=homes)
    assert made.exit_code == 0, made.stderr
    text = (project.root / "cases/made.yaml").read_text("utf-8")
    for part in ("do it", "and now?", "kind: shell", "notes.md"):
        assert part in text
    judged = project.run("judge", session, "--cases", "cases", "--json", env=homes)
    [case] = judged.data["cases"]
    assert (case["grade"]["status"], case["grade"]["score"]) == ("PASS", 1.0), judged.stderr
    assert case["grade"]["usage"]["output_tokens"] > 0
    changed = text.replace("contains: notes.md", "contains: others.md")
    (project.root / "cases/made.yaml").write_text(changed, "utf-8")
    assert project.run("judge", session, "--cases", "cases", env=homes).exit_code == 1
