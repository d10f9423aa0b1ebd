"""The `acp` engine, with a small agent that also does what real ones cannot be made to do."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.engines.base import TurnRequest
from skillup.engines.registry import get_engine
from skillup.process.tree import read_row, running_trees
from skillup.schema.case import UserAnswer
from skillup.schema.profile import Profile
from tests.support.engine_turns import Conversation, calls, error_kind, make_trial, raw_streams
from tests.support.model_server import (
    Drop,
    HttpError,
    ModelRequest,
    ModelServer,
    Reply,
    Script,
    Text,
)
from tests.support.project import Project

Begin = Callable[..., Conversation]
AGENT = Path(__file__).parents[1] / "support" / "acp_agent.py"
both_sessions = pytest.mark.parametrize("session", ["resume", "live"])


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    conversations: list[Conversation] = []

    def start(quirks: str = "", **keys: Any) -> Conversation:
        env = {"QUIRKS": quirks, **keys.pop("env", {})}
        given = {"engine": "acp", "command": [sys.executable, str(AGENT)], "env": env, **keys}
        profile = Profile.model_validate(given)
        trial = make_trial(tmp_path, profile, extra_env=profile.env)
        conversations.append(Conversation(get_engine("acp"), trial))
        return conversations[-1]

    yield start
    for conversation in conversations:
        if conversation.trial.live is not None:
            anyio.run(conversation.trial.live.end)
    assert not running_trees


def pid_in(response: str) -> int:
    return int(response.split()[0])


@both_sessions
def test_turns_are_of_one_session_by_a_process_each_or_by_one(begin: Begin, session: str) -> None:
    conversation = begin(session=session)

    one, two, three = map(conversation.say, ("one", "call edit new.txt", "/three"))

    assert [error_kind(outcome) for outcome in conversation.outcomes] == [None] * 3
    assert three.response.endswith("was told: one | call edit new.txt |  /three")
    assert (pid_in(one.response) == pid_in(three.response)) is (session == "live")
    assert [outcome.session_verified for outcome in conversation.outcomes] == [None, True, True]
    kinds = [(item.type, item.text) for item in two.items if item.text]
    assert kinds == [
        ("reasoning", "Hmm."),
        ("message", "mode bypassPermissions"),
        ("message", "Well, by allow_once"),
    ]
    assert [(c.name, c.kind, c.arguments) for c in calls(two)] == [
        ("edit", "write", {"path": "new.txt"})
    ]
    (result,) = (item.tool_result for item in two.items if item.tool_result)
    assert (result.status, result.content) == ("success", "done")
    # Of several requests, agents tell different things; so does a process of several turns.
    told = [outcome.usage and outcome.usage.input_tokens for outcome in conversation.outcomes]
    assert told == ([100, None, 100] if session == "resume" else [100, None, None])
    assert not any(o.unknown_events or o.unread_lines or o.notices for o in conversation.outcomes)
    assert '"session/prompt"' not in raw_streams(conversation.trial)["turn-01.stdout.jsonl"]


def test_it_need_not_end_by_itself_and_what_it_left_running_is_ended(begin: Begin) -> None:
    outcome = begin("lingering").say("leave one")
    assert (error_kind(outcome), outcome.notices) == (None, [])
    assert outcome.process is not None
    assert outcome.process.ended_by == "answered"
    noisy = begin().say("garbage")
    assert (error_kind(noisy), noisy.unread_lines, noisy.unknown_events) == (None, 1, 1)


@pytest.mark.parametrize(
    ("quirks", "kind", "words"),
    [
        ("forgetful", "session_lost", "no longer holds its earlier turns"),
        ("resume-only", "session_lost", "no longer holds its earlier turns"),
        ("no-load", "no_resume", "Small agent cannot load"),
        ("late", "protocol", "it replayed earlier turns after it had loaded"),
        ("locked", "auth", "Authentication required"),
    ],
)
def test_a_session_that_is_not_all_there_is_an_error(
    begin: Begin, quirks: str, kind: str, words: str
) -> None:
    conversation = begin()
    conversation.say("one")
    changed = {**conversation.trial.extra_env, "QUIRKS": quirks}
    conversation.trial = replace(conversation.trial, extra_env=changed)

    outcome = conversation.say("two")

    assert error_kind(outcome) == kind
    assert outcome.error is not None
    assert words in outcome.error.message
    assert outcome.session_verified is False


def test_a_process_that_died_between_turns_is_replaced_if_the_agent_can_load(begin: Begin) -> None:
    for quirks, kind in (("", None), ("no-load", "no_resume")):
        conversation = begin(quirks, session="live")
        pid = pid_in(conversation.say("one").response)
        assert conversation.say("two").response == f"{pid} was told: one | two"
        os.kill(pid, signal.SIGKILL)
        while (row := read_row(pid)) is not None and not row.zombie:
            pass
        after = conversation.say("three")
        assert error_kind(after) == kind
        assert after.response.endswith("was told: one | two | three" if kind is None else "")


MODES = {"full": "bypassPermissions", "edits": "acceptEdits", "read_only": "default"}
NOTICES = {
    "question": "the agent asked, and nobody was there to answer: Which colour?",
    "qwen": "the agent asked, and nobody was there to answer: Which colour?",
    "unasked": "the agent did not ask before `execute`: "
    "what `permission: read_only` lets it do is its own matter",
}


@pytest.mark.parametrize(
    ("permission", "prompt", "kind", "words"),
    [
        ("full", "call execute ls", None, "by allow_once"),
        ("edits", "call execute ls", None, "by reject_once"),
        ("edits", "call edit a/b.txt", None, "by allow_once"),
        ("edits", "call edit a/../../b.txt", None, "by reject_once"),
        ("edits", "call edit /etc/passwd", None, "by reject_once"),
        ("read_only", "call edit a.txt", None, "by reject_once"),
        ("read_only", "unasked: call execute ls", None, "not asked"),
        ("full", "file", None, "-32601"),
        ("full", "question", None, "decline"),
        ("full", "qwen", None, "by reject_once"),
        ("full", "die", "crash", "exit code 3"),
        ("full", "stop max_tokens", "model_error", "ran out of tokens"),
        ("full", "stop max_turn_requests", "max_turns", "its own limit"),
        ("full", "stop cancelled", "crash", "nobody had asked for"),
        ("full", "stop sulking", "protocol", "'sulking'"),
        ("full", "silent: /tmp is a directory", "protocol", "with a slash, for a command"),
        ("full", "silent: hello", "protocol", "without an answer or a tool call"),
        ("full", "nameless: goose", "overloaded", "Ran into this error"),
        ("full", "error -32603 401 wrong key", "auth", "401 wrong key"),
        ("full", "error -32603 the 401 things", "model_error", "401 things"),
        ("full", "error -32603 unexpected status 401 Unauthorized", "auth", "401"),
        ("full", "error -32603 Request rejected (429): try again in 9 s", "rate_limit", "429"),
        ("full", "error -32000 log in", "auth", "log in"),
        ("full", "error -32603 fetch failed", "network", "fetch failed"),
    ],
)
def test_what_comes_of_a_turn(
    begin: Begin, permission: str, prompt: str, kind: str | None, words: str
) -> None:
    """What the agent asks is answered by the permission, and failures have their kinds."""
    quirks, _, prompt = prompt.rpartition(": ") if prompt[:5] != "error" else ("", "", prompt)
    outcome = begin(quirks, permission=permission).say(prompt)

    assert error_kind(outcome) == kind
    if outcome.error is not None:
        assert words in outcome.error.message
        assert outcome.error.retry_after_seconds == (9 if "429" in prompt else None)
        return
    assert outcome.response.removeprefix("Well, ") == words
    assert f"mode {MODES[permission]}" in [item.text for item in outcome.items]
    assert outcome.notices == [NOTICES[key] for key in (quirks, prompt) if key in NOTICES]
    results = [item.tool_result.status for item in outcome.items if item.tool_result]
    assert results == ["error" if "reject" in words else "success"] * (
        "y " in words or "not" in words
    )


COLOUR = {"oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#00f"}]}
DAYS = {"type": "array", "items": {"enum": ["mon", "tue"]}, "maxItems": 1}
COUNT = {"type": "integer", "minimum": 2}


@pytest.mark.parametrize(
    ("field", "answer", "wanted"),
    [
        (COLOUR, "red", "#f00"),
        (COLOUR, "green", "no: does not fit ('green' is none of Red, #00f)"),
        (COLOUR, ["red", "#00f"], "no: does not fit (it takes one, not 2)"),
        (DAYS, ["TUE"], ["tue"]),
        (DAYS, ["mon", "tue"], "no: does not keep to maxItems, 1"),
        (COUNT, "3", 3),
        (COUNT, "three", "no: does not fit ('three' is no integer)"),
        (COUNT, "1", "no: does not fit (1 does not keep to minimum, 2)"),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "string"}, "Ann", "Ann"),
        ({"title": "Other"}, "x", "no: nobody was there to answer: Please choose."),
    ],
)
def test_a_form_is_answered_by_the_case_or_declined_with_the_reason(
    begin: Begin, field: dict[str, Any], answer: Any, wanted: Any
) -> None:
    """What nobody answers, `b`, is left out where it may be."""
    form = {"properties": {"a": {"title": "A", **field}, "b": {"title": "B"}}, "required": ["a"]}
    rules = [UserAnswer(question="A$", answer=answer)]
    outcome = begin().say(f"form {json.dumps(form)}", answers=rules)
    done, why = json.loads(outcome.response), str(wanted).removeprefix("no: ")
    a, b = (item.question for item in outcome.items if item.question)
    if why == str(wanted):
        assert done == {"action": "accept", "content": {"a": wanted}}
        assert a.answer == (wanted if field is DAYS else [str(wanted).replace("T", "t")])
    else:
        assert (done, a.answer) == ({"action": "decline"}, None)
        assert why in outcome.notices[0]
    assert b.answer is None
    assert outcome.notices[-1].endswith("Please choose.\nB")


def run_of(project: Project, case: str, *more: str, key: str = "", **keys: Any) -> Any:
    profile = {"engine": "acp", "command": [sys.executable, str(AGENT)], **keys}
    project.write({"engines/a.yaml": json.dumps(profile), "case.yaml": case})
    project.write({"eval.yaml": "name: lab\ncases: {files: [case.yaml]}\n"})
    return project.run_json("eval.yaml", "-e", "a", *more, env={"LAB_KEY": key})["cases"]


ASKING = """
    vars: {colour: "Blu(e"}
    input:
      answers: [{question: "^Which <<colour>>", answer: no}, {question: col, answer: "<<colour>>"}]
      turns: [qwen, question]
    assertions: [{contains: accept, turn: 2}]
    """


def test_what_was_asked_and_answered_is_in_the_record_and_shown(project: Project) -> None:
    run_of(project, ASKING)
    turns = project.record("case/a/with_skill/1")["turns"]
    assert turns[0]["response"] == "Well, by allow_once Blu(e"
    asked = [i for turn in turns for i in turn["transcript"] if i["type"] == "question"]
    assert [(i["text"], i["question"]["answer"]) for i in asked] == [
        ("Which colour?", ["Blu(e"]),
        ("Which colour?", None),
    ]
    assert "does not fit ('Blu(e' is no boolean)" in turns[1]["notes"][0]
    shown = project.run("show").stdout
    assert all(text in shown for text in ("agent asks", "answered: Blu(e", "not answered"))


BRANCHES = """
    input:
      turns:
        - content: where are you?
          branches: [{name: else, turns: [call edit a.txt]}]
        - and there?
    assertions: [{max_duration_seconds: 60}]
    """


@both_sessions
@pytest.mark.parametrize("quirks", ["forks", ""])
def test_a_session_is_forked_by_an_agent_that_offers_it(
    project: Project, quirks: str, session: str
) -> None:
    cases = run_of(project, BRANCHES, session=session, env={"QUIRKS": quirks})
    if not quirks:
        assert [case["error"]["kind"] for case in cases] == ["unsupported"] * 2
        assert "acp cannot fork a session" in cases[0]["error"]["message"]
        assert not project.record("case/else/a/with_skill/1")["turns"], "before anything is asked"
        return
    assert [case["status"] for case in cases] == ["PASS"] * 2
    records = [project.record(f"{name}/a/with_skill/1") for name in ("case", "case/else")]
    assert [record["turns"][1]["session_verified"] for record in records] == [True, True]
    assert records[0]["turns"][1]["response"].endswith("was told: where are you? | and there?")
    sessions = {turn["session_id"] for record in records for turn in record["turns"]}
    assert len(sessions) == 3


@both_sessions
def test_a_time_limit_and_a_cancellation_end_it_after_a_word(begin: Begin, session: str) -> None:
    conversation = begin(session=session)
    workspace = conversation.trial.workspace
    assert error_kind(begin("mute").say("one", timeout_seconds=0.5)) == "timeout"
    assert error_kind(conversation.say("hang", timeout_seconds=1)) == "timeout"
    told = workspace / "told.txt"
    assert told.read_text() == "session/cancel"
    told.unlink()

    async def cancelled() -> bool:
        turn = TurnRequest(1, "hang", timeout_seconds=60)
        with anyio.move_on_after(1) as scope:
            await conversation.engine.start(turn, conversation.trial)
        return scope.cancelled_caught

    assert anyio.run(cancelled)
    assert told.read_text() == "session/cancel"
    assert not running_trees


def test_profiles_that_cannot_work_say_why(begin: Begin) -> None:
    engine = get_engine("acp")

    def problem(quirks: str = "", **keys: Any) -> str:
        found = anyio.run(engine.check, begin(quirks, **keys).trial.profile, {"HOME": "/nowhere"})
        return found.problem.message if found.problem is not None else found.version or ""

    assert problem() == "1.2.3"
    assert "speaks version 2, and skillup 1" in problem("modern")
    assert "name it in the profile's `command`" in problem(command=None)
    assert "the profile needs `base_url`, `model`" in problem(env={"A": "{base_url} {model}"})
    assert "`model` has to be handed on" in problem(model="m1")
    assert "`base_url` has to be handed on" in problem(base_url="http://127.0.0.1:9")
    assert "SyntaxError" in problem(command=[sys.executable, "-c", "what now"])
    assert error_kind(begin().say("hello", system="Be terse.")) == "unsupported"


KEY = "sk-canary-7d1f20c4e8aa4b"


def at_model(project: Project, script: Script, quirks: str, *more: str) -> tuple[Any, Any]:
    """A case of two messages that the agent hands on to its model, behind the gateway; its turns.

    It answers with the errors of its model as if they were its own words.
    """
    env = {"MODEL_URL": "{base_url}", "KEY": "{key}", "MODEL": "{model}", "QUIRKS": quirks}
    case = "input: {turns: [model one, model two]}\nassertions: [{contains: Fine}]\n"
    with ModelServer(script) as server:
        keys = {"env": env, "model": "m", "base_url": f"{server.url}/v1", "api_key_env": "LAB_KEY"}
        (found,) = run_of(project, case, *more, key=KEY, **keys)
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert {request.model for request in server.requests} == {"m"}
    return found, project.record("case/a/with_skill/1")["turns"]


@pytest.mark.parametrize(
    ("quirks", "reply", "kind"),
    [
        ("", Text("Fine."), None),
        ("resume-only", Text("Fine."), None),
        ("amnesia", Text("Fine."), "session_lost"),
        ("", HttpError(529, "busy", {"retry-after": "23"}), "overloaded"),
        ("", HttpError(401, "no"), "auth"),
        ("", Drop(), "network"),
    ],
)
def test_the_gateway_has_the_key_and_proves_what_the_model_was_sent_and_said(
    project: Project, quirks: str, reply: Reply, kind: str | None
) -> None:
    found, turns = at_model(project, lambda _: reply, quirks, "--rate-limit-wait", "0s")
    assert (found["error"] or {}).get("kind") == kind
    if kind is None:
        assert [turn["usage"]["input_tokens"] for turn in turns] == [100, 100]
        assert turns[1]["session_verified"]
    assert kind != "session_lost" or "did not hold" in turns[1]["error"]["evidence"]


@pytest.mark.slow
def test_a_message_that_was_refused_begins_the_trial_anew(project: Project) -> None:
    """What an agent has stored of it, and where, nobody knows."""
    asked: list[str] = []

    def script(request: ModelRequest) -> Reply:
        asked.append(request.latest)
        refused = request.latest == "model two" and asked.count("model two") == 1
        return HttpError(429, "no", {"retry-after": "1"}) if refused else Text("Fine.")

    found, _ = at_model(project, script, "")
    assert (found["status"], found["attempt"]) == ("PASS", 2)
    assert asked == ["model one", "model two", "model one", "model two"]
