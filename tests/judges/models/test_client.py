"""Asking models with the providers' real clients: right answers, wrong ones, refusals, faults."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import replace

import pytest

from skillup.judges.agent import AgentVerdict, answer_schema
from skillup.judges.evaluate import gather
from skillup.judges.llm import (
    CriterionVerdict,
    RubricAnswer,
    SimilarityAnswer,
    WindowAnswer,
    scale_form,
)
from skillup.judges.question import AnswerForm, AskModel, ModelAnswer, ModelQuestion
from skillup.judges.remote import LONGEST_BODY
from tests.support.asking import APIS, KEYS, MODELS, RIGHT, Verdict, asking, question
from tests.support.model_server import (
    Answer,
    Garbage,
    HttpError,
    ModelRequest,
    ModelServer,
    Refusal,
    Reply,
    Structured,
    Text,
    Usage,
)

JUDGE_KEY = {"JUDGE_KEY": "sk-judge-12345", "SKILLUP_TRUST": "1"}

every_api = pytest.mark.parametrize("api", APIS)
one_api = pytest.mark.parametrize("api", ["anthropic"])

# Which models are still offered, the providers' clients know better with every version.
pytestmark = pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")


def ask(asked: ModelQuestion, environment: Mapping[str, str] = KEYS) -> ModelAnswer:
    return asking(lambda asker: asker(asked), environment=environment)


def said(answer: ModelAnswer) -> str:
    """The error of an answer that has one, which is all that it has."""
    assert answer.value is None
    assert answer.error is not None
    assert answer.error.count("\n") <= 1
    return answer.error


def key_sent(request: ModelRequest) -> str:
    """Clients send it in one header or the other."""
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    return request.headers.get("x-api-key") or bearer


@every_api
def test_a_right_answer_is_typed_and_says_what_it_took(api: str) -> None:
    usage = Usage(input=1000, cached=0, output=50)
    with ModelServer(lambda request: Answer(Structured(RIGHT), usage)) as server:
        answer = ask(question(api, server.url))
    assert answer.error is None
    assert answer.value == Verdict(passed=True, reason="It asks before it deletes.")
    assert not answer.cached
    assert answer.model == MODELS[api].partition(":")[2]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1000, 50)
    assert answer.usage.requests == 1
    assert answer.cost_usd is not None
    assert answer.cost_usd > 0
    (request,) = server.requests
    assert request.system == "You judge answers."
    assert request.latest == "Does it ask first?"
    assert request.body["temperature"] == 0


PASS = json.dumps(RIGHT)
FAIL = json.dumps({"passed": False, "reason": "It deletes at once."})


NO_ANSWERS: list[tuple[Reply, str]] = [
    (Text(f"The agent wrote:\n```json\n{PASS}\n```\nIt is wrong. {FAIL}"), "not one JSON object"),
    (Text(f"```json\n{PASS}\n```\n```json\n{FAIL}\n```"), "not JSON"),
    (Text(f"{PASS}\n{FAIL}"), "not JSON"),
    (Text(f"So I say:\n```json\n{PASS}\n```"), "not one JSON object"),
    (Text("no object at all"), "not one JSON object"),
    ((Text("It asks first."), Structured(RIGHT)), "exactly one call"),
    ((Structured(RIGHT), Structured(RIGHT)), "exactly one call"),
    (Structured({**RIGHT, "verdict": "fail"}), "verdict: Extra inputs"),
    (Structured({"passed": True}), "reason: Field required"),
]


@every_api
def test_anything_but_one_object_of_the_form_is_no_answer(api: str) -> None:
    """J1: the fence that a judge quotes is no verdict; it is told so, and asked again."""

    def script(request: ModelRequest) -> Reply:
        row, then = request.user_texts[0].split()
        corrected = then == "corrected" and len(request.entries) > 2
        return Structured(json.loads(FAIL)) if corrected else NO_ANSWERS[int(row)][0]

    async def all_rows(asker: AskModel) -> list[tuple[str, ModelAnswer, ModelAnswer]]:
        return [
            (
                told,
                await asker(question(api, server.url, f"{row} corrected")),
                await asker(question(api, server.url, f"{row} repeated")),
            )
            for row, (_, told) in enumerate(NO_ANSWERS)
        ]

    with ModelServer(script) as server:
        answers = asking(all_rows)
    for row, (told, corrected, repeated) in enumerate(answers):
        assert corrected.value == Verdict.model_validate_json(FAIL)
        _, again = (r for r in server.requests if r.user_texts[0] == f"{row} corrected")
        assert told in again.entries[-1].text
        assert "no answer of the form asked for: asked 3 times" in said(repeated)
        assert told in said(repeated)
    assert len(server.requests) == (2 + 3) * len(NO_ANSWERS)


@every_api
@pytest.mark.parametrize("text", [FAIL, f"```json\n{FAIL}\n```", f" {FAIL}\n"])
def test_a_message_that_is_one_object_is_an_answer(api: str, text: str) -> None:
    """J1: servers that know no tools answer with a message."""
    with ModelServer(lambda request: Text(text)) as server:
        answer = ask(question(api, server.url))
    assert answer.value == Verdict.model_validate_json(FAIL)
    assert len(server.requests) == 1


@every_api
def test_the_provider_is_asked_to_enforce_the_form(api: str) -> None:
    """J1: strict, with keywords of JSON Schema, and a choice that forces the answer."""
    right = {"verdicts": [{"id": name, "reason": "x", "verdict": "pass"} for name in ("c1", "c2")]}
    with ModelServer(lambda request: Structured(right)) as server:
        asked = replace(question(api, server.url), form=RubricAnswer, ids=("c1", "c2"))
        assert ask(asked).value == RubricAnswer.model_validate(right)
    (request,) = server.requests
    (tool,) = request.body["tools"]
    tool = tool.get("function", tool)
    schema = tool.get("parameters", tool.get("input_schema"))
    verdict = schema["$defs"]["CriterionVerdict"]
    assert tool["strict"] is True
    assert schema["additionalProperties"] is verdict["additionalProperties"] is False
    assert {"id", "reason", "verdict"} <= set(verdict["required"])
    assert verdict["properties"]["id"]["enum"] == ["c1", "c2"]
    assert verdict["properties"]["verdict"]["enum"] == ["pass", "fail", "unknown"]
    assert request.body["tool_choice"] not in ("auto", {"type": "auto"})
    if api != "anthropic":  # which takes no such limits: pydantic-ai says them in words
        verdicts = schema["properties"]["verdicts"]
        assert (verdicts["minItems"], verdicts["maxItems"]) == (2, 2)


def test_a_reason_comes_before_what_it_is_for() -> None:
    """J11: a model that has said its verdict finds a reason for it."""
    forms: list[type[AnswerForm]] = [CriterionVerdict, SimilarityAnswer, WindowAnswer, AgentVerdict]
    decides = {"verdict", "step", "score", "relevant", "pass"}
    rows = [form.model_json_schema() for form in forms]
    for row in [*rows, scale_form(5).model_json_schema()["$defs"]["CriterionStep"]]:
        keys = list(row["properties"])
        assert keys.index("reason") < keys.index((decides & {*keys}).pop()) == len(keys) - 1
    sent = answer_schema(["a"])["$defs"]["AgentVerdict"]
    assert list(sent["properties"])[-1] == sent["required"][-1] == "pass"


NOT_THE_API = "the answer of the server is not what the API promises"
ENDLESS = '{"a": "' + "a" * LONGEST_BODY + '"}'


@every_api
@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Refusal(), "refused to answer"),
        (HttpError(429, "slow down", {"retry-after": "3600"}), "it asks to wait 3600 s"),
        *(
            (Garbage(ENDLESS, packed), "the answer of the server is longer than 4 MiB$")
            for packed in (True, False)
        ),
        (Garbage("<html>busy</html>"), f"^anthropic:.*{NOT_THE_API}|^openai.* decode response"),
        *((Garbage(body), NOT_THE_API) for body in ("[]", "{}", "null")),
    ],
)
def test_what_is_no_answer_is_an_error_and_not_asked_again_nor_read_without_end(
    api: str, reply: Reply, told: str
) -> None:
    """S9: 3.9 MB of gzip were 1.9 GB of memory."""
    with ModelServer(lambda request: reply) as server:
        answer = ask(question(api, server.url))
    assert re.search(told, said(answer))
    assert len(server.requests) == 1


@one_api
def test_what_may_pass_is_tried_again(api: str) -> None:
    def script(request: ModelRequest) -> Reply:
        again = HttpError(500, headers={"retry-after-ms": "1"})
        return Structured(RIGHT) if request.attempt == 2 else again

    with ModelServer(script) as server:
        answer = ask(question(api, server.url))
    assert answer.error is None
    assert len(server.requests) == 3


@every_api
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('"temperature": 0', "`temperature` is deprecated for this model."),
        ('"strict": true', "Unknown parameter: 'tools[0].function.strict'."),
    ],
)
def test_a_setting_that_is_refused_is_left_out(api: str, setting: str, said: str) -> None:
    """J1: the answer is looked at here, whoever enforces its form."""

    def script(request: ModelRequest) -> Reply:
        return HttpError(400, said) if setting in request.raw_text else Structured(RIGHT)

    with ModelServer(script) as server:
        answer = ask(question(api, server.url))
    assert answer.error is None
    assert len(server.requests) == 2


def test_a_setting_that_is_refused_to_several_at_once_is_an_error_for_none() -> None:
    together = threading.Barrier(3)

    def script(request: ModelRequest) -> Reply:
        if "temperature" not in request.body:
            return Structured(RIGHT)
        together.wait(30)
        return HttpError(400, "`temperature` is deprecated for this model.")

    async def ask_all(asker: AskModel) -> list[ModelAnswer]:
        questions = [question("anthropic", server.url, f"Question {n}") for n in range(3)]
        return await gather(asker, questions)

    with ModelServer(script) as server:
        answers = asking(ask_all)
    assert [answer.error for answer in answers] == [None] * 3
    assert [answer.sampling for answer in answers] == [{}] * 3


def test_keys_in_errors_are_masked() -> None:
    def script(request: ModelRequest) -> Reply:
        return HttpError(401, f"wrong key: {key_sent(request)}")

    with ModelServer(script) as server:
        answer = ask(question("anthropic", server.url))
    assert "wrong key: ***ANTHROPIC_API_KEY***" in said(answer)


def test_no_key_but_the_one_meant_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-oai-not-for-this")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "sk-ant-not-for-this")
    with ModelServer(lambda request: Structured(RIGHT)) as server:
        for api in APIS:
            ask(question(api, server.url, api_key_env="JUDGE_KEY"), JUDGE_KEY)
        ask(question("openai-chat", server.url), {})
    assert len(server.requests) == 4
    assert not [r for r in server.requests if "not-for-this" in str(r.headers)]
