"""What judging again, and judges side by side, come to: on a terminal and as JSON."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from skillup.judges.labels import Label, against_labels
from skillup.judges.rejudge import JudgeColumn, compare, pairs_of
from skillup.reports.rejudging import (
    RejudgeCounts,
    counts_line,
    judged_lines,
    panel_data,
    print_panel,
)
from skillup.schema.grade import CheckResult, Grade, Judging
from tests.support.stored import a_grade

JOB = "case/e/with_skill/1"
EVIL = "\x1b[2Jx\x07\n [/bold] [red]y\u202e"


def check(name: str, *, passed: bool = True, **more: Any) -> CheckResult:
    given: dict[str, Any] = {"kind": "contains", "scope": "conversation", "expected": name, **more}
    return CheckResult(name=name, passed=passed, score=float(passed), **given)


def grade(*checks: CheckResult, status: str = "PASS") -> Grade:
    return a_grade().model_copy(update={"assertions": list(checks), "status": status})


def test_a_flip_shows_both_findings_and_a_new_or_gone_check_the_one_there_is() -> None:
    before = grade(check("contains 'x'", found="found", excerpt="an x here"), check("a"))
    now = check("contains 'x'", passed=False, found="not found", excerpt="nothing")
    change = compare(before, grade(now, check("b", passed=False, found="no"), status="FAIL"))
    first, *rest = (line.plain for line in judged_lines("case", change.after, change))
    assert first.startswith("PASS → FAIL  case")
    assert rest == [
        "  pass → fail   conversation: contains 'x'",
        "      before  found  “an x here”",
        "      after   not found  “nothing”",
        "  new: fail     conversation: b",
        "      after   no",
        "  gone: pass    conversation: a",
        "      before  ",
    ]


def test_a_part_of_which_something_else_is_said_is_shown_with_its_note() -> None:
    """J4: an invented quotation, which changed no verdict and no score, was not to be seen."""
    flow, form = (CheckResult(name=n, kind="aspect", passed=True, score=0.75) for n in "fg")
    noted = flow.model_copy(update={"notes": ["the quotation is nowhere"]})
    sides = ([flow, form], [noted, form])
    before, after = (grade(check("good", kind="rubric", children=c)) for c in sides)
    change = compare(before, after)
    lines = [line.plain for line in judged_lines("case", change.after, change)]
    assert lines[-3:-1] == ["      f", "        before  pass 0.75  "]
    assert lines[-1].endswith("(the quotation is nowhere)")


def test_hostile_text_does_not_reach_the_terminal() -> None:
    before = grade(check(EVIL, found=EVIL, excerpt=EVIL))
    after = grade(check(EVIL, passed=False, found=EVIL, excerpt=EVIL, error=EVIL))
    change = compare(before, after)
    lines = [*judged_lines(EVIL, after, change), *judged_lines(EVIL, after, None)]
    assert all(line.plain.isprintable() for line in lines)

    columns = [column(EVIL, True, EVIL), column("b", False, EVIL), column("c", None, EVIL)]
    labels = [Label(2, JOB, 0, "rubric", "fail"), Label(3, EVIL, 0, EVIL, "fail")]
    text = "\n".join(printed(columns, labels=labels))
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "[/bold] [red]y" in text


def test_counts_leave_out_what_is_none() -> None:
    tally = RejudgeCounts()
    tally.add(grade(), None)
    assert counts_line(tally, compared=False).plain == "1 judged: 1 passed"
    assert counts_line(tally, compared=True).plain == "1 judged: 1 passed; nothing changed"
    tally.add(grade(status="FAIL"), compare(grade(), grade(status="FAIL")))
    assert counts_line(tally, compared=True).plain == (
        "2 judged: 1 passed, 1 failed; 1 changed, 1 with another verdict"
    )


def column(name: str, passed: bool | None, text: str = "because", **more: Any) -> JudgeColumn:
    result = CheckResult(
        name="rubric",
        kind="rubric",
        passed=bool(passed),
        score=0.0,
        found=text,
        excerpt=text,
        error=text if passed is None else None,
    )
    found = JudgeColumn(name)
    found.add(JOB, a_grade().model_copy(update={"assertions": [result], **more}))
    return found


def panel(columns: list[JudgeColumn], labels: list[Label]) -> dict[str, Any]:
    scores = {c.name: against_labels(c.verdicts, labels, {}) for c in columns[:1] if labels}
    return panel_data("run", columns, pairs_of(columns), scores, 1)


def printed(columns: list[JudgeColumn], labels: list[Label]) -> list[str]:
    stream = io.StringIO()
    print_panel(panel(columns, labels), Console(file=stream, highlight=False, width=200))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_costs_stand_beside_each_judge() -> None:
    usage = {"input_tokens": 900, "output_tokens": 300}
    paid = Judging(calls=3, cached_calls=1, usage=usage, cost_usd=0.0134)
    free = Judging(calls=3, cached_calls=3)
    lines = printed([column("a:x", True, judging=paid), column("b:y", False, judging=free)], [])
    assert lines[0] == "1 trial"
    assert lines[2].split() == ["a:x", "1", "1", "0", "0", "0", "3", "1", "1.2k", "$0.0134"]
    assert lines[3].split() == ["b:y", "1", "0", "1", "0", "0", "3", "3", "0", "$0"]
