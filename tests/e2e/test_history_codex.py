"""Threads of the real `codex` that hold a past which never ran.

With the tests of forks, these are the proof for `SEEDED_VERSIONS`: run them with a version's
command in the variable SKILLUP_TEST_CODEX before adding it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from skillup.engines.codex.engine import Codex
from skillup.sessions.readers import SessionTranscript
from tests.support.held_turns import Conversation, calls, error_kind
from tests.support.lab_engines import file_of, state_of
from tests.support.model_server import ModelServer
from tests.support.pasts import assistant, call, result, user
from tests.support.placed_threads import (
    AS_SENT,
    HISTORY,
    USAGE,
    answer,
    begin_with_version,
    seeded,
)
from tests.support.session_files import format_named

pytestmark = pytest.mark.e2e
Serve = Callable[..., ModelServer]
Begin = Callable[..., Conversation]


@pytest.fixture
def begin(codex_cli: Path, tmp_path: Path) -> Begin:
    """`begin(url, **profile keys)`: a conversation with codex."""
    return partial(begin_with_version, codex_cli, tmp_path / "parent")


def test_the_model_sees_the_history_on_every_turn_and_was_not_asked_before(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server(answer)
    conversation = begin(server.url)

    placed = seeded(conversation)

    assert server.requests == []
    assert placed.session is not None
    assert placed.session.id == conversation.trial.session_id
    assert placed.fingerprint is not None
    assert placed.fingerprint.messages == 2

    outcomes = [conversation.say(text) for text in ("one", "two", "three")]

    assert [error_kind(outcome) for outcome in outcomes] == [None, None, None]
    assert [outcome.session_verified for outcome in outcomes] == [True, True, True]
    assert [outcome.session for outcome in outcomes] == [placed.session] * 3
    assert [o.fingerprint.messages for o in outcomes if o.fingerprint] == [3, 4, 5]
    live = [
        ("user", "one"),
        ("assistant", "Turn 3: one"),
        ("user", "two"),
        ("assistant", "Turn 4: two"),
        ("user", "three"),
    ]
    sent = [request.conversation for request in server.requests]
    assert sent == [AS_SENT + live[:1], AS_SENT + live[:3], AS_SENT + live]
    # No summary of the history, nor anything else that would cost something.
    assert server.background == []
    assert {request.model for request in server.requests} == {"gpt-5.5"}


def test_a_turn_after_a_history_has_its_own_calls_and_tokens(
    begin: Begin, model_server: Serve
) -> None:
    conversation = begin(model_server(answer).url)
    seeded(conversation)

    first, second = conversation.say("one"), conversation.say("work")

    assert first.usage is not None
    assert first.usage.model_dump(exclude={"requests"}) == USAGE
    assert calls(first) == []
    assert second.usage is not None
    assert second.usage.input_tokens == 200
    assert [call.kind for call in calls(second)] == ["shell", "write"]
    assert second.unknown_events == 0


def test_a_seeded_thread_reads_like_one_that_ran(begin: Begin, model_server: Serve) -> None:
    conversation = begin(model_server(answer).url)
    seeded(conversation)
    conversation.say("one")

    transcript = SessionTranscript(file_of(conversation), format_named("codex_rollout"))
    entries = [entry for entry in transcript if entry.role != "notice"]

    assert transcript.summary.unknown_lines == 0
    assert transcript.summary.turns == 3
    assert transcript.summary.first_words == "the codeword is walrus"
    said = [entry.text for entry in entries if entry.role in ("user", "assistant")]
    assert said == [text for role, text in AS_SENT if role in ("user", "assistant")] + [
        "one",
        "Turn 3: one",
    ]
    results = {e.tool_result.call_id: e.tool_result.status for e in entries if e.tool_result}
    assert results == {"c1": "error", "c2": "success", "c3": "unknown", "c4": "unknown"}


def test_a_history_that_somebody_changes_is_not_believed(begin: Begin, model_server: Serve) -> None:
    server = model_server(answer)
    conversation = begin(server.url)
    seeded(conversation)
    path = file_of(conversation)
    path.write_bytes(path.read_bytes().replace(b"walrus", b"badger"))

    outcome = conversation.say("one")

    assert error_kind(outcome) == "session_lost"
    assert server.requests == []


def test_a_history_of_the_assistant_alone_can_be_gone_on_with(
    begin: Begin, model_server: Serve
) -> None:
    server = model_server(answer)
    conversation = begin(server.url)

    greeting = assistant("How can I help?", call("c1", "shell", command="ls"))
    placed = seeded(conversation, (greeting, result("c1", "a.txt")))
    outcomes = [conversation.say("one"), conversation.say("two")]

    assert placed.fingerprint is not None
    assert [error_kind(outcome) for outcome in outcomes] == [None, None]
    assert [outcome.session_verified for outcome in outcomes] == [True, True]
    assert [calls(outcome) for outcome in outcomes] == [[], []]
    assert server.requests[-1].conversation[:4] == [
        ("assistant", "How can I help?"),
        ("call", 'exec_command {"cmd": "ls"}'),
        ("result", "Process exited with code 0\nOutput:\na.txt"),
        ("user", "one"),
    ]


def test_a_long_history_arrives_whole(begin: Begin, model_server: Serve) -> None:
    server = model_server(answer)
    conversation = begin(server.url)
    pairs = [(f"question {n} \u00fc\U0001f600 \u2028", f'answer {n}\n"\\') for n in range(150)]
    history = [said for pair in pairs for said in (user(pair[0]), assistant(pair[1]))]

    seeded(conversation, tuple(history))
    outcome = conversation.say("one")

    assert error_kind(outcome) is None
    sent = server.requests[0].conversation
    assert sent == [*((item.role, item.content) for item in history), ("user", "one")]


def test_a_history_is_refused_where_the_format_is_not_known(
    begin: Begin, model_server: Serve
) -> None:
    conversation = begin(model_server(answer).url)
    trial = replace(conversation.trial, version=None)

    placed = anyio.run(Codex().seed, HISTORY, trial)

    assert placed.session is None
    assert placed.error is not None
    assert placed.error.kind == "unsupported"
    assert not (state_of(conversation) / "sessions").exists()


def test_the_built_in_provider_resumes_a_seeded_thread(begin: Begin, model_server: Serve) -> None:
    server = model_server(answer)
    address = {"base_url": None, "args": ["-c", f'openai_base_url="{server.url}/v1"']}
    conversation = begin(server.url, **address)
    seeded(conversation)

    outcomes = [conversation.say("one"), conversation.say("two")]

    assert [error_kind(outcome) for outcome in outcomes] == [None, None]
    assert server.requests[0].conversation == [*AS_SENT, ("user", "one")]
