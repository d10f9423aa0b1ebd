"""`session: live`: the same conversations as with a process a turn, and the same records."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from difflib import unified_diff
from itertools import groupby
from typing import Any

import anyio
import pytest

from skillup.process.tree import read_row, running_trees
from skillup.schema.case import UserAnswer
from tests.e2e.conftest import (
    KEYS,
    QUESTION,
    Begin,
    Lab,
    Serve,
    agents_of,
    file_of,
    state_of,
    with_variables,
)
from tests.support.engine_turns import Conversation, calls, error_kind, raw_streams
from tests.support.model_server import (
    Hang,
    HttpError,
    ModelRequest,
    ReadFile,
    Reply,
    Script,
    Shell,
    Text,
    ToolCall,
    WriteFile,
)

pytestmark = pytest.mark.e2e
LEAVES = "setsid sleep 300 > /dev/null 2>&1 & sleep 0.2"
TURNS: dict[str, list[Reply]] = {
    "run": [Shell("echo hi; exit 3"), Text("Ran it.")],
    "write": [(Text("First."), WriteFile("notes.txt", "kept\n")), Text("Wrote 3 files.")],
    "read": [ReadFile("notes.txt"), Text("Read 3 files.")],
    "leave": [Shell(LEAVES), Text("It sleeps.")],
    "fail": [HttpError(400)],
    "stick": [Shell(f"{LEAVES}; sleep 300"), Hang()],
}
CASES = {
    "talk": ["hello", "run it", "/nosuch @x", "write", "read <<n>> files", "thanks"],
    "leftovers": ["hello", "leave one", "and now?", "bye"],
    "failing": ["hello", "fail now", "never sent"],
    "stuck": ["hello", "stick to it", "never sent"],
    "refused": ["hello", "refuse once", "run it"],
}


def model() -> Script:
    refused = set[str]()

    def script(request: ModelRequest) -> Reply:
        word, session = request.latest.split()[0], request.session_id
        if word == "refuse" and session not in refused:
            refused.add(session)
            return HttpError(429, "try again in 1 s")
        told = Text("Told: " + " | ".join(request.user_texts))
        return TURNS[word][request.tool_round] if word in TURNS else told

    return script


def case(messages: list[str], more: str = "") -> str:
    lines = [f"    - content: {message!r}\n" for message in messages]
    for number, message in enumerate(messages):
        if message == "write":
            lines[number] += "      capture: [{variable: n, pattern: '(\\d+) files'}]\n"
        if message == "stick to it":
            lines[number] += "      timeout_seconds: 8\n"
    checks = "assertions: [{tool_not_called: {kind: web}}]\n"
    return "input:\n  turns:\n" + "".join(lines) + checks + more


# What two runs of a conversation never have in common, and what a live process is known by.
OF_THE_RUN = {"run_id", "profile", "started_at", "duration_ms", "session_id", "prefix_sha256"}
OF_THE_PROCESS = {"argv", "exit_code", "signal", "ended_by", "prefix_bytes", "evidence", "sha256"}


def comparable(record: Any, ids: dict[str, str]) -> Any:
    """`record` without the fields named, with ids and directories by their order."""
    if isinstance(record, dict):
        named = OF_THE_RUN | OF_THE_PROCESS
        return {k: comparable(v, ids) for k, v in record.items() if k not in named}
    if isinstance(record, list):
        return [comparable(one, ids) for one in record]
    if isinstance(record, str):
        own = re.compile(
            r"(?:toolu|call)_\w+|/[^ \"']*/(?=workspace|home)|[0-9a-f-]{36}|after \d+ s"
        )
        return own.sub(lambda found: ids.setdefault(found[0], f"<{len(ids)}>"), record)
    return round(record, 9) if isinstance(record, float) else record


@pytest.mark.parametrize("name", CASES)
def test_a_conversation_has_the_same_record_as_with_a_process_a_turn(
    lab: Lab, engine: str, name: str
) -> None:
    project, server = lab(model(), {"cases/one.yaml": case(CASES[name])})
    profile = (project.root / f"engines/{engine}.yaml").read_text()
    # Without a model, claude calls the default one differently on a first turn.
    profile += "model: claude-sonnet-4-5\n" * (engine == "claude")
    project.write({f"engines/{engine}.yaml": profile})
    project.write({"engines/live.yaml": profile + "session: live\n"})

    result = project.run_json("cases", "-e", engine, "-e", "live", env=KEYS)

    assert len(result["cases"]) == 2
    records = [project.record(f"one/{one}/with_skill/1") for one in (engine, "live")]
    for turn in (record["turns"][1] for record in records if name == "stuck"):
        # What a CLI still writes while it is ended with its command depends on the moment.
        turn["transcript"] = [item for item in turn["transcript"] if item["tool_call"]]
        del turn["usage"], turn["cost_usd"], turn["traffic"]["requests"], turn["traffic"]["usage"]
        del turn["process"]["leftover_processes"]  # so does which of the two ends first
    resumed, live = (json.dumps(comparable(one, {}), indent=1).splitlines() for one in records)
    assert not (differences := "\n".join(unified_diff(resumed, live))), differences
    sent = [[r.user_texts for r in server.requests_of(one["session_id"])] for one in records]
    if name == "stuck":  # and it may still send what came of its command, or not
        sent = [[texts for texts, _ in groupby(one)] for one in sent]
    assert sent[0] == sent[1]
    endings = [turn["process"]["ended_by"] for turn in records[1]["turns"] if turn["process"]]
    assert endings.count("kept") >= len(endings) - 1
    assert not agents_of(project)


@pytest.fixture
def live(begin: Begin, model_server: Serve) -> Iterator[Conversation]:
    conversation = begin(model_server(model()).url, session="live")
    yield conversation
    assert conversation.trial.live is not None
    anyio.run(conversation.trial.live.end)
    assert not running_trees


ASKS = {"claude": "AskUserQuestion", "codex": "request_user_input"}


def test_a_question_in_the_middle_of_a_turn_is_answered_by_the_case(
    begin: Begin, model_server: Serve, engine: str
) -> None:
    def script(request: ModelRequest) -> Reply:
        told = Text("Told: " + " ".join(request.tool_results))
        return told if request.tool_round else ToolCall(ASKS[engine], {"questions": [QUESTION]})

    conversation = begin(model_server(script).url, session="live", permission="read_only")
    rules = [UserAnswer(question="colour", answer="blue")]
    outcome = conversation.say("choose", answers=rules)
    assert conversation.trial.live is not None
    anyio.run(conversation.trial.live.end)
    assert "Blue" in outcome.response, outcome
    (asked,) = [item.question for item in outcome.items if item.question]
    assert (asked.options, asked.answer, outcome.notices) == (["Red", "Blue"], ["Blue"], [])


def _pid() -> int:
    [tree] = running_trees
    assert tree.main is not None
    return tree.main


def test_one_process_holds_the_turns_and_where_it_died_the_session_is_resumed(
    live: Conversation, engine: str
) -> None:
    pids = []
    for message in ("hello", "run it", "and now?"):
        assert error_kind(live.say(message)) is None
        pids.append(_pid())
    assert len(set(pids)) == 1
    os.kill(pids[0], signal.SIGKILL)
    while (row := read_row(pids[0])) is not None and not row.zombie:
        pass

    after = live.say("still there?")

    assert (error_kind(after), after.session_verified) == (None, True)
    assert after.response == "Told: hello | run it | and now? | still there?"
    assert _pid() != pids[0]
    assert [len(calls(outcome)) for outcome in live.outcomes] == [0, 1, 0, 0]


def test_a_session_that_something_else_wrote_to_is_not_gone_on_with(
    live: Conversation, engine: str
) -> None:
    live.say("hello")
    file = file_of(live)
    lines = file.read_bytes()
    file.write_bytes(lines + lines)

    assert error_kind(live.say("and now?")) == "session_mismatch"


@pytest.mark.parametrize("engine", ["codex"])
def test_a_key_goes_into_the_memory_of_the_process_only(
    begin: Begin, model_server: Serve, engine: str
) -> None:
    """Of its commands only `codex exec` reads a key from a variable."""
    server = model_server(model())
    address = {"base_url": None, "args": ["-c", f'openai_base_url="{server.url}/v1"']}
    conversation = begin(server.url, api_key_env=None, session="live", **address)
    with_variables(conversation, OPENAI_API_KEY="sk-other-0123456789", LAB_KEY="")

    outcomes = [conversation.say("hello"), conversation.say("and now?")]

    assert conversation.trial.live is not None
    anyio.run(conversation.trial.live.end)
    assert [error_kind(outcome) for outcome in outcomes] == [None, None]
    keys = {request.headers.get("authorization") for request in server.requests}
    assert keys == {"Bearer sk-other-0123456789"}
    written = [path for path in state_of(conversation).rglob("*") if path.is_file()]
    assert not [path for path in written if b"sk-other-0123456789" in path.read_bytes()]
    assert "sk-other-0123456789" not in "".join(raw_streams(conversation.trial).values())
