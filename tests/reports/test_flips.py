"""What a terminal shows of a judgement."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from skillup.errors import ExitCode
from skillup.judges.rejudge.changes import GradeChange, compare
from skillup.reports.rejudging_json import RejudgeCounts, judgement_chunks
from skillup.reports.terminal.rejudging import (
    counts_line,
    flip_lines,
    grade_line,
    unmet_lines,
)
from skillup.schema.grade import CheckResult, Grade
from tests.support.stored import a_grade


def check(name: str, *, passed: bool = True, **more: Any) -> CheckResult:
    given: dict[str, Any] = {"kind": "contains", "scope": "conversation", "expected": name, **more}
    return CheckResult(name=name, passed=passed, score=float(passed), **given)


def grade(*checks: CheckResult, status: str = "PASS") -> Grade:
    return a_grade().model_copy(update={"assertions": list(checks), "status": status})


def shown(change: GradeChange) -> list[str]:
    return [line.plain for line in flip_lines(change)]


def test_a_flip_shows_both_findings_with_evidence() -> None:
    before = grade(check("contains 'x'", found="found", excerpt="an x here"))
    after = grade(check("contains 'x'", passed=False, found="not found", excerpt="nothing"))
    assert shown(compare(before, after)) == [
        "  pass → fail   conversation: contains 'x'",
        "      before  found  “an x here”",
        "      after   not found  “nothing”",
    ]


def test_new_and_gone_checks_show_the_one_finding_there_is() -> None:
    lines = shown(compare(grade(check("a")), grade(check("b", passed=False, found="no"))))
    assert lines == [
        "  new: fail     conversation: b",
        "      after   no",
        "  gone: pass    conversation: a",
        "      before  ",
    ]


def test_a_new_status_says_what_it_was() -> None:
    change = compare(grade(), grade(status="FAIL"))
    assert grade_line("case", change.after, change).plain.startswith("PASS → FAIL  case")


def test_hostile_text_does_not_reach_the_terminal() -> None:
    evil = "\x1b[2Jx\x07\n\u202e"
    before = grade(check(evil, found=evil, excerpt=evil))
    after = grade(check(evil, passed=False, found=evil, excerpt=evil, error=evil))
    change = compare(before, after)
    lines = [*shown(change), *(line.plain for line in unmet_lines(after))]
    lines.append(grade_line(evil, after, change).plain)
    assert all(line.isprintable() for line in lines)


def test_counts_leave_out_what_is_none() -> None:
    tally = RejudgeCounts()
    tally.add(grade(), None)
    assert counts_line(tally, compared=False).plain == "1 judged: 1 passed"
    assert counts_line(tally, compared=True).plain == "1 judged: 1 passed; nothing changed"
    tally.add(grade(status="FAIL"), compare(grade(), grade(status="FAIL")))
    assert counts_line(tally, compared=True).plain == (
        "2 judged: 1 passed, 1 failed; 1 changed, 1 with another verdict"
    )


def test_the_exit_code_is_that_of_a_run() -> None:
    for statuses, code in [
        (["PASS", "SKIP"], ExitCode.PASSED),
        (["PASS", "FAIL"], ExitCode.FAILED),
        (["FAIL", "ERROR"], ExitCode.ERROR),
    ]:
        tally = RejudgeCounts()
        for status in statuses:
            tally.add(grade(status=status), None)
        assert tally.exit_code() == code


def test_json_comes_in_pieces_and_is_whole_at_the_end() -> None:
    tally = RejudgeCounts()

    def judged() -> Iterator[tuple[str, Grade, GradeChange | None]]:
        for number in range(2):
            after = grade(check("a", passed=not number), status="FAIL" if number else "PASS")
            change = compare(grade(check("a")), after)
            tally.add(after, change)
            yield f"job/{number}", after, change

    data = json.loads("".join(judgement_chunks({"by": []}, judged(), tally)))
    assert data["by"] == []
    assert [case["job_id"] for case in data["cases"]] == ["job/0", "job/1"]
    assert data["cases"][0]["changes"] is None
    changes = data["cases"][1]["changes"]
    assert changes["status"] == {"before": "PASS", "after": "FAIL"}
    assert changes["checks"][0]["change"] == "flipped"
    assert (data["summary"]["pass"], data["summary"]["fail"]) == (1, 1)
    assert data["changes"]["statuses"] == 1
