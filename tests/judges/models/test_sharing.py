"""Questions about one conversation begin alike, so that providers need not read it again."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import anyio
import pytest

from skillup.judges import grade
from skillup.judges.models import Models
from skillup.judges.router import JudgeRouter
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import NO_SECRETS
from skillup.schema.case import Case
from skillup.schema.grade import Grade
from skillup.schema.profile import Profile
from tests.support.asking import KEYS, MODELS
from tests.support.model_server import Answer, ModelRequest, ModelServer, Structured, Usage
from tests.support.records import make_record, make_turn

TURNS = 20
STORY = "The log of that hour names {n} requests, two of them slow, and no fault. "
RELEVANT = {"reason": "It fits.", "relevant": True}
MET = {"id": "c1", "reason": "It says so.", "quote": "The log of that hour", "verdict": "pass"}


def reply(request: ModelRequest) -> Structured:
    tool = json.dumps(request.body["tools"])
    if "relevant" in tool:
        return Structured(RELEVANT)
    if "steps" in tool:
        aspects = ("correctness", "completeness", "flow", "format")
        graded = [{"id": a, "reason": "It is.", "quote": "", "step": 5} for a in aspects]
        return Structured({"steps": graded})
    return Structured({"verdicts": [MET]})


def conversation(url: str, api: str, **case: Any) -> dict[str, Any]:
    turns = [
        make_turn((STORY.format(n=n) * 24) + f"Hour {n} is done.", content=f"And hour {n}?")
        for n in range(TURNS)
    ]
    written = {
        "id": "case",
        "input": {
            "turns": [
                {"content": "x", "assertions": ["Names the requests", {"answer_quality": {}}]}
                for _ in range(TURNS)
            ]
        },
        "assertions": [{"relevance": {}}],
        "judge_model": {
            "model": MODELS[api],
            "base_url": url if api == "anthropic" else f"{url}/v1",
        },
        **case,
    }
    case_ = Case.model_validate(written).model_dump(mode="json", by_alias=True, exclude_unset=True)
    recorded = make_record(*turns, case=case_)
    models = Models(KEYS, NO_SECRETS, rate_limiter=RateLimiter(0))
    router = JudgeRouter(models, lambda name, _: Profile(name=name, engine="scripted"))

    async def main() -> Grade:
        async with router:
            return await grade(recorded.record, recorded.read_file, router)

    graded = anyio.run(main)
    assert graded.status == "PASS", graded.reason
    assert graded.judging is not None
    return graded.judging.usage or {}


def sent(request: ModelRequest) -> str:
    """All that a provider reads, in its order: tools, system, messages."""
    return json.dumps(request.body["tools"]) + request.system + "".join(request.user_texts)


@pytest.mark.parametrize("api", ["anthropic", "openai-responses"])
def test_most_of_a_long_conversation_was_sent_before(api: str) -> None:
    """J5: of 844 kB in 57 questions about 20 turns, 13 % were."""
    with ModelServer(reply) as server:
        conversation(server.url, api)
    texts = sorted((sent(request) for request in server.requests), key=len)
    assert len(texts) == 56
    again = sum(
        max(len(os.path.commonprefix([text, one])) for one in texts[:place])  # noqa: RUF071
        for place, text in enumerate(texts)
        if place
    )
    assert again / sum(map(len, texts)) >= 0.7


class PromptCache:
    """Anthropic's: whole blocks up to a marker; what was written is found once it is answered."""

    def __init__(self) -> None:
        self.written: set[str] = set()

    def reply(self, request: ModelRequest) -> Answer:
        (message,) = request.body["messages"]
        content = message["content"]
        head = json.dumps(request.body["tools"]) + request.system
        blocks = [content] if isinstance(content, str) else [b["text"] for b in content]
        ends = [head + "\0".join(blocks[: n + 1]) for n in range(len(blocks))]
        total, marked, found = len("".join(blocks)) + len(head), 0, 0
        if not isinstance(content, str):
            places = [n for n, block in enumerate(content) if block.get("cache_control")]
            near = range(max(0, places[0] - 20), places[0] + 1) if places else range(0)
            marked = len(ends[places[0]]) if places else 0
            found = max((len(ends[n]) for n in near if ends[n] in self.written), default=0)
            time.sleep(0.02)
            self.written.update(ends[n] for n in places)
        rest = total - max(marked, found)
        return Answer(reply(request), Usage(rest, found, 10, max(marked - found, 0)))


def price(usage: dict[str, Any]) -> float:
    """In prices of an input token; `input_tokens` is all of them."""
    cached, written = usage.get("cached_input_tokens") or 0, usage.get("cache_write_tokens") or 0
    return float(usage["input_tokens"] - cached - written + 0.1 * cached + 1.25 * written)


def test_with_a_cache_that_has_to_be_told_questions_come_after_one_another() -> None:
    cache = PromptCache()
    with ModelServer(cache.reply) as server:
        usage = conversation(server.url, "anthropic")
    # In which order they come, the machine decides.
    assert usage["cached_input_tokens"] > 0.4 * usage["input_tokens"]
    assert price(usage) < 0.7 * usage["input_tokens"]


@pytest.mark.parametrize(("case", "marked"), [({}, False), ({"judge_model": {"repeat": 3}}, True)])
def test_what_is_asked_once_is_not_written_to_a_cache(case: dict[str, Any], marked: bool) -> None:
    cache = PromptCache()
    one: dict[str, Any] = {"input": {"turns": ["x"] * TURNS}, "assertions": ["Names the requests"]}
    with ModelServer(cache.reply) as server:
        model = {"model": MODELS["anthropic"], "base_url": server.url}
        more: dict[str, Any] = {"judge_model": {**model, **case.get("judge_model", {})}}
        usage = conversation(server.url, "anthropic", **one, **more)
    assert bool(usage["cache_write_tokens"]) == marked
    assert (usage["cached_input_tokens"] > 0.6 * usage["input_tokens"]) == marked
