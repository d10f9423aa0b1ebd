"""What the real CLIs do by themselves, as far as our adapters rely on it.

A failure here after an update of a CLI names the habit that changed.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.model_server import (
    Answer,
    HttpError,
    ModelServer,
    Rule,
    Shell,
    SkillCall,
    Text,
    Usage,
    WriteFile,
    by_rules,
)
from tests.support.raw_cli import RawClaude, RawCodex

pytestmark = pytest.mark.e2e

Serve = Callable[..., ModelServer]
Claude = Callable[[str], RawClaude]
Codex = Callable[[str], RawCodex]

TWO_TURNS = [
    ("user", "My word is walrus."),
    ("assistant", "Turn 1: My word is walrus."),
    ("user", "Which word?"),
]


def test_claude_resumes_a_session_of_a_chosen_id_with_its_history(
    raw_claude: Claude, model_server: Serve
) -> None:
    server = model_server()
    claude = raw_claude(server.url)
    session = str(uuid4())

    first = claude.first("My word is walrus.", session)
    second = claude.resume("Which word?", session)

    assert first.one("result")["session_id"] == session
    assert second.one("result")["session_id"] == session
    assert second.one("result")["result"] == "Turn 2: Which word?"
    assert [request.conversation for request in server.requests] == [TWO_TURNS[:1], TWO_TURNS]
    assert {request.session_id for request in server.requests} == {session}
    assert len(list(claude.state.glob(f"projects/*/{session}.jsonl"))) == 1


def test_claude_reports_usage_of_the_process_not_of_the_session(
    raw_claude: Claude, model_server: Serve
) -> None:
    usage = Usage(input=11, cached=3, output=5)
    server = model_server(lambda request: Answer(Text("ok"), usage=usage))
    claude = raw_claude(server.url)
    session = str(uuid4())

    runs = [claude.first("one", session), claude.resume("two", session)]

    for run in runs:
        reported = run.one("result")["usage"]
        assert reported["input_tokens"] == 11
        assert reported["cache_read_input_tokens"] == 3
        assert reported["output_tokens"] == 5


def test_claude_runs_the_tools_that_the_model_calls(
    raw_claude: Claude, model_server: Serve
) -> None:
    server = model_server(
        by_rules(
            Rule(
                "^work$",
                [
                    (Text("First."), Shell("echo one"), Shell("echo two")),
                    WriteFile("notes.txt", "kept\n"),
                    lambda request: Text(" and ".join(request.tool_results[:2])),
                ],
            )
        )
    )
    claude = raw_claude(server.url)

    run = claude.first("work", str(uuid4()), "--permission-mode", "bypassPermissions")

    assert run.one("result")["result"] == "one and two"
    assert (claude.workspace / "notes.txt").read_text() == "kept\n"
    assert [request.tool_round for request in server.requests] == [0, 1, 2]


def test_claude_answers_an_unknown_slash_command_without_the_model(
    raw_claude: Claude, model_server: Serve
) -> None:
    server = model_server()
    claude = raw_claude(server.url)

    trapped = claude.first("/nosuch thing", str(uuid4()))
    escaped = claude.first("\n/nosuch thing", str(uuid4()))

    assert trapped.returncode == 0
    assert trapped.one("result")["is_error"] is False
    assert trapped.one("result")["num_turns"] == 0
    assert escaped.one("result")["num_turns"] == 1
    assert [request.latest.strip() for request in server.requests] == ["/nosuch thing"]


def test_claude_calls_a_refused_login_a_success_but_for_is_error(
    raw_claude: Claude, model_server: Serve
) -> None:
    server = model_server(lambda request: HttpError(401, "invalid x-api-key"))

    run = raw_claude(server.url).first("hello", str(uuid4()))

    assert run.returncode == 1
    result = run.one("result")
    assert (result["subtype"], result["is_error"]) == ("success", True)
    assert result["api_error_status"] == 401
    assert run.one("assistant")["error"] == "authentication_failed"
    assert len(server.requests) == 1


def test_claude_finds_and_uses_skills_of_the_workspace(
    raw_claude: Claude, model_server: Serve
) -> None:
    server = model_server(by_rules(Rule("greet", [SkillCall("greeter"), Text("Greeted.")])))
    claude = raw_claude(server.url)
    write_skill(claude.workspace / ".claude" / "skills")
    write_skill(claude.workspace / ".agents" / "skills", name="elsewhere")

    run = claude.first("please greet", str(uuid4()))

    init = run.of_type("system")[0]
    assert "greeter" in init["skills"]
    assert "elsewhere" not in init["skills"]
    before, after = server.requests
    assert "Says hello politely" in before.system
    assert "Always bow first." not in before.system
    assert "Always bow first." in after.system
    assert after.user_texts == ["please greet"]


def test_codex_resumes_a_thread_with_its_history(raw_codex: Codex, model_server: Serve) -> None:
    server = model_server()
    codex = raw_codex(server.url)

    first = codex.first("My word is walrus.")
    thread = first.one("thread.started")["thread_id"]
    second = codex.resume("Which word?", thread)

    assert second.one("thread.started")["thread_id"] == thread
    assert second.items("agent_message")[-1]["text"] == "Turn 2: Which word?"
    assert [request.conversation for request in server.requests] == [TWO_TURNS[:1], TWO_TURNS]
    assert {request.session_id for request in server.requests} == {thread}
    assert len(list(codex.state.glob(f"sessions/*/*/*/rollout-*-{thread}.jsonl"))) == 1


def test_codex_reports_the_running_total_of_the_thread_as_usage(
    raw_codex: Codex, model_server: Serve
) -> None:
    usage = Usage(input=20, cached=3, output=5, reasoning=2)
    server = model_server(lambda request: Answer(Text("ok"), usage=usage))
    codex = raw_codex(server.url)

    first = codex.first("one")
    second = codex.resume("two", first.one("thread.started")["thread_id"])

    for factor, run in [(1, first), (2, second)]:
        reported = run.one("turn.completed")["usage"]
        assert reported["input_tokens"] == 20 * factor
        assert reported["cached_input_tokens"] == 3 * factor
        assert reported["output_tokens"] == 5 * factor
        assert reported["reasoning_output_tokens"] == 2 * factor


def test_codex_runs_the_tools_that_the_model_calls(raw_codex: Codex, model_server: Serve) -> None:
    server = model_server(
        by_rules(
            Rule(
                "^work$",
                [
                    (Text("First."), Shell("echo one"), Shell("echo two")),
                    WriteFile("notes.txt", "kept\n"),
                    Text("Finished."),
                ],
            )
        )
    )
    codex = raw_codex(server.url)

    run = codex.first("work")

    commands = run.items("command_execution")
    assert sorted(item["aggregated_output"] for item in commands) == ["one\n", "two\n"]
    assert [change["kind"] for change in run.items("file_change")[0]["changes"]] == ["add"]
    assert (codex.workspace / "notes.txt").read_text() == "kept\n"
    assert [request.tool_round for request in server.requests] == [0, 1, 2]
    assert run.items("agent_message")[-1]["text"] == "Finished."


def test_codex_starts_a_new_thread_when_the_id_to_resume_is_no_uuid(
    raw_codex: Codex, model_server: Serve
) -> None:
    server = model_server()

    run = raw_codex(server.url).resume("hello", "not-a-thread")

    assert run.returncode == 0
    assert run.one("thread.started")["thread_id"] != "not-a-thread"
    assert run.one("turn.completed")
    assert server.requests[0].user_texts == ["hello"]


def test_codex_gives_up_on_a_refused_connection_when_told_to(raw_codex: Codex) -> None:
    with socket.socket() as reserved:
        # Bound but not listening: nobody else can get the port, and connecting is refused.
        reserved.bind(("127.0.0.1", 0))
        codex = raw_codex(f"http://127.0.0.1:{reserved.getsockname()[1]}")
        run = codex.first("hello", "--disable", "unbounded_connection_retries")

    assert run.returncode == 1
    assert run.one("turn.failed")["error"]["message"]


def test_codex_fails_the_turn_when_the_login_is_refused(
    raw_codex: Codex, model_server: Serve
) -> None:
    server = model_server(lambda request: HttpError(401, "wrong key"))

    run = raw_codex(server.url).first("hello")

    assert run.returncode == 1
    assert "401" in json.dumps(run.one("turn.failed"))
    assert len(server.requests) == 1


def test_codex_finds_and_uses_skills_of_the_workspace(
    raw_codex: Codex, model_server: Serve
) -> None:
    server = model_server(by_rules(Rule("greet", [SkillCall("greeter"), Text("Greeted.")])))
    codex = raw_codex(server.url)
    write_skill(codex.workspace / ".agents" / "skills")
    write_skill(codex.workspace / ".claude" / "skills", name="elsewhere")

    run = codex.first("please greet")

    before, after = server.requests
    assert "greeter" in before.system
    assert "elsewhere" not in before.raw_text
    assert "Always bow first." in after.tool_results[0]
    assert "SKILL.md" in run.items("command_execution")[0]["command"]


def write_skill(folder: Path, name: str = "greeter") -> None:
    """A skill whose body holds the sentence "Always bow first."."""
    front = f"---\nname: {name}\ndescription: Says hello politely\n---\n"
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(front + "Always bow first.\n")
