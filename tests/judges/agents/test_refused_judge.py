"""Agents as judges, and a provider that refuses them: waited out, and asked anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.ratelimit import RateLimiter
from tests.support.judging import Bench
from tests.support.records import Recorded, make_record, make_turn
from tests.support.virtual_time import HurriedTime

ANSWER = json.dumps({"criteria": [{"id": "file", "pass": True, "reason": "so", "evidence": []}]})


@pytest.fixture
def time() -> HurriedTime:
    return HurriedTime()


@pytest.fixture
def bench(tmp_path: Path, time: HurriedTime) -> Bench:
    return Bench(tmp_path, rate_limiter=RateLimiter(600, **time.both))


@pytest.fixture
def recorded() -> Recorded:
    return make_record(make_turn("I wrote it.", files={"a.txt": "1\n"}))


def judge(*replies: dict[str, Any], **keys: Any) -> dict[str, Any]:
    criteria = [{"id": "file", "outcome": "wrote a.txt"}]
    return {"type": "agent_judge", "criteria": criteria, "scripted": list(replies), **keys}


def refused(kind: str, times: int | None = None, **reply: Any) -> dict[str, Any]:
    misbehave = {"error": kind} if times is None else {"error": kind, "times": times}
    return {"say": ANSWER, "misbehave": misbehave, **reply}


def raw_files(bench: Bench) -> set[str]:
    return {path.name for path in bench.base.glob("scratch/agent-*/raw/*.stdout.jsonl")}


def session_ids(bench: Bench) -> set[str]:
    lines = [
        json.loads(line)
        for path in bench.base.glob("scratch/agent-*/raw/*.stdout.jsonl")
        for line in path.read_text().splitlines()
    ]
    return {line["session_id"] for line in lines if "session_id" in line}


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded"])
def test_a_refused_question_is_waited_out_and_asked_in_another_session(
    bench: Bench, recorded: Recorded, time: HurriedTime, kind: str
) -> None:
    result = bench.judge(judge(refused(kind, 2)), recorded)

    assert (result.error, result.passed) == (None, True)
    assert len(time.slept) == 2
    assert raw_files(bench) == {
        "turn-01.refused-1.stdout.jsonl",
        "turn-01.refused-2.stdout.jsonl",
        "turn-01.stdout.jsonl",
    }
    assert len(session_ids(bench)) == 3


@pytest.mark.parametrize(
    ("kind", "patience", "why"),
    [
        ("quota", 600, "the allowance is used up"),
        ("quota", 0, "the allowance is used up"),
        ("rate_limit", 0, "refusals are not waited out (--rate-limit-wait 0)"),
        ("overloaded", 5, "nothing was accepted in 5 s of waiting"),
    ],
)
def test_what_is_not_waited_out_is_an_error_that_says_why(
    bench: Bench, recorded: Recorded, kind: str, patience: float, why: str
) -> None:
    bench.rate_limiter = RateLimiter(patience, **HurriedTime().both)

    result = bench.judge(judge(refused(kind)), recorded)

    assert not result.passed
    assert "the judge gave no answer" in (result.error or "")
    assert why in (result.error or "")
    assert bench.grade(recorded, judge=judge(refused(kind))).status == "ERROR"
