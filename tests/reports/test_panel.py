"""Judges side by side on a terminal, and as JSON."""

from __future__ import annotations

import io
import json
from typing import Any

from rich.console import Console, RenderableType

from skillup.judges.rejudge.judges_compared import JudgeColumn, pairs_of
from skillup.judges.rejudge.labels import Label, against_labels
from skillup.reports.rejudging_json import panel_as_json
from skillup.reports.terminal.rejudging import label_lines, pair_lines, panel_lines
from skillup.schema.grade import CheckResult, Judging
from tests.support.stored import a_grade

JOB = "case/e/with_skill/1"
EVIL = "\x1b[2Jx\x07 [/bold] [red]y\u202e"
LONG = "It says so in so many words. " * 12


def seat(name: str, passed: bool | None, *, text: str = "because", **more: Any) -> JudgeColumn:
    result = CheckResult(
        name="rubric", kind="rubric", passed=bool(passed), score=0.0, found=text, excerpt=text,
        error=text if passed is None else None,
    )  # fmt: skip
    found = JudgeColumn(name)
    found.add(JOB, a_grade().model_copy(update={"assertions": [result], **more}))
    return found


def shown(what: RenderableType, width: int = 80) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, highlight=False, width=width, force_terminal=False).print(what)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_costs_stand_beside_each_judge() -> None:
    paid = Judging(calls=3, cached_calls=1, usage={"input_tokens": 900, "output_tokens": 300},
                   cost_usd=0.0134)  # fmt: skip
    free = Judging(calls=3, cached_calls=3)
    lines = shown(panel_lines([seat("a:x", True, judging=paid), seat("b:y", False, judging=free)],
                              1))  # fmt: skip
    assert lines[0] == "1 trial"
    assert lines[2].split() == ["a:x", "1", "1", "0", "0", "3", "1", "1.2k", "$0.0134"]
    assert lines[3].split() == ["b:y", "1", "0", "1", "0", "3", "3", "0", "$0"]


def test_hostile_text_does_not_reach_the_terminal() -> None:
    seats = [seat(EVIL, True, text=EVIL), seat("b", False, text=EVIL), seat("c", None, text=EVIL)]
    label = Label(2, JOB, 0, "rubric", passed=False)
    gone = Label(3, EVIL, 0, EVIL, passed=False)
    score = against_labels(seats[0].verdicts, [label, gone])
    shown_parts = [panel_lines(seats, 1), *map(pair_lines, pairs_of(seats)),
                   label_lines(EVIL, score)]  # fmt: skip
    lines = [line for part in shown_parts for line in shown(part, 200)]
    text = "\n".join(lines)
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "[/bold] [red]y" in text


def test_the_same_as_json_with_every_figure() -> None:
    seats = [seat("a", True, text="\udc80"), seat("b", False)]
    score = against_labels(seats[0].verdicts, [Label(2, JOB, 0, "rubric", passed=False)])
    data = json.loads(panel_as_json("run", seats, pairs_of(seats), {"a": score}, 1))

    assert [judge["name"] for judge in data["judges"]] == ["a", "b"]
    assert data["judges"][0]["labels"]["precision"] == 0.0
    assert data["judges"][1]["labels"] is None
    [pair] = data["pairs"]
    assert (pair["items"], pair["agreement"], pair["kappa"]) == (1, 0.0, 0.0)
    assert pair["disagreements"][0]["second"] == {
        "passed": False, "reason": "because", "quote": "because",
    }  # fmt: skip
