"""`junit.xml`: every trial once, in the state that CI systems know."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skillup.reports.junit import junit_xml
from skillup.reports.result import build_result
from skillup.schema.grade import CheckResult, Grade, TurnGrade
from tests.support.junit_schemas import ANT, JENKINS, problems


def make_grade(case_id: str = "c", status: str = "PASS", **more: Any) -> Grade:
    fields: dict[str, Any] = {
        "suite": "s", "case_id": case_id, "engine": "e", "variant": "with_skill", "trial": 1,
        "status": status, "score": 1.0, "reason": "why", "execution_mode": "multi_turn",
        "session_id": None, "duration_ms": 1500,
    }  # fmt: skip
    return Grade.model_validate({**fields, **more})


def parsed(*grades: Grade, planned: list[str] | None = None) -> ET.Element:
    jobs = {str(number): grade for number, grade in enumerate(grades)}
    result = build_result("run", "2026-01-01T00:00:00.000Z", jobs, planned or list(jobs), 10)
    return ET.fromstring(junit_xml(result))


def test_statuses_are_those_of_ci_systems() -> None:
    root = parsed(
        make_grade("a"),
        make_grade("b", "FAIL"),
        make_grade("c", "ERROR", error={"kind": "rate_limit", "message": "wait", "evidence": ""}),
        make_grade("d", "SKIP"),
    )

    states = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert states == {"a": [], "b": ["failure"], "c": ["error"], "d": ["skipped"]}
    (error,) = root.iter("error")
    assert (error.get("type"), error.get("message")) == ("rate_limit", "why")
    suite = root.find("testsuite")
    assert suite is not None
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}


def test_a_failure_tells_turn_by_turn_what_was_not_met() -> None:
    check = CheckResult(name="asks", kind="contains", passed=False, score=0, found="not found",
                        expected="confirm", excerpt="Deleted.")  # fmt: skip
    turn = TurnGrade(turn_number=2, status="completed", source="case", content="Yes",
                     response="Deleted.", score=0, post_condition_passed=None,
                     session_verified=True, checks=[check])  # fmt: skip

    (failure,) = parsed(make_grade("b", "FAIL", turns=[turn])).iter("failure")

    assert failure.text == (
        "turn 2: asks: not found\n    expected: confirm\n    Deleted.\n\n"
        "[turn 2] Yes\n[answer] Deleted."
    )


def test_an_error_tells_its_turn_once_and_what_was_not_sent() -> None:
    error = {"kind": "capture", "message": "turn 1: capture `n`: nothing", "evidence": ""}
    turns = [
        TurnGrade(
            turn_number=number,
            status=status,
            source="case",
            content="Hi",
            response=response,
            score=0,
            post_condition_passed=None,
            session_verified=None,
            error=of,
        )
        for number, status, response, of in ((1, "error", "Hello", error), (2, "skipped", "", None))
    ]

    (told,) = parsed(make_grade("b", "ERROR", turns=turns, error=error)).iter("error")

    assert told.text == (
        "turn 1: capture: capture `n`: nothing\nturn 2: skipped: \n\n"
        "[turn 1] Hi\n[answer] Hello\n[turn 2, not sent] Hi"
    )


def test_engines_and_variants_are_suites_of_their_own_and_trials_are_told_apart() -> None:
    root = parsed(
        make_grade("a", engine="x"), make_grade("a", engine="y"),
        make_grade("a", engine="x", trial=2), make_grade("a", engine="y", trial=2),
    )  # fmt: skip

    suites = {s.get("name"): [c.get("name") for c in s.iter("testcase")] for s in root}
    assert suites == {"s (x, with skill)": ["a", "a #2"], "s (y, with skill)": ["a", "a #2"]}


def test_it_is_valid_by_both_schemas_that_readers_check_against() -> None:
    error = {"kind": "rate_limit", "message": "wait", "evidence": ""}
    root = parsed(
        make_grade("a \x00\ufffe<&]]>", cost_usd=1e-7, tags=["t"]),
        make_grade("b", "FAIL", reason="x\x1b[2J\ny", suite=" ", duration_ms=1),
        make_grade("c", "ERROR", error=error, variant="without_skill"),
        make_grade("", "SKIP"),
        planned=["0", "1", "2", "3", "b/e/with_skill/1"],
    )

    for schema in (ANT, JENKINS):
        assert list(problems(root, schema)) == []


@given(st.text())
def test_whatever_an_agent_wrote_is_still_xml(text: str) -> None:
    turn = TurnGrade(
        turn_number=1,
        status="completed",
        source="case",
        content=text,
        response=text,
        score=0,
        post_condition_passed=None,
        session_verified=None,
    )
    graded = make_grade(text or "x", "FAIL", reason=text, turns=[turn])

    root = parsed(graded)
    assert len(list(root.iter("failure"))) == 1
    assert [*problems(root, ANT), *problems(root, JENKINS)] == []
