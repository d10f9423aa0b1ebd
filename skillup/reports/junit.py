"""`junit.xml`: a run in the form that CI systems read. ERROR is an error, SKIP is skipped.

There is no standard; this is valid by Jenkins' junit-10.xsd
(https://github.com/jenkinsci/xunit-plugin). The conversation is in what did not pass.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Any

import junitparser as junit
from junitparser.xunit2 import FlakyFailure

from skillup.checks.nearest import near_words
from skillup.engines.events import shortened
from skillup.history.runs import key_of
from skillup.reports.result import Row, RunView
from skillup.reports.text import plain
from skillup.schema.grade import BASELINE, Grade, RunResult

# What XML 1.0 cannot hold, however it is written: https://www.w3.org/TR/xml/#charsets
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(result: RunResult) -> bytes:
    """A test suite for each suite, engine and variant, a test case for each trial; those that did
    not run are skipped, in a suite of their own, with the reason.
    """
    xml: Any = junit.JUnitXml()
    suites: dict[str, list[junit.TestCase]] = {}
    view = RunView(result)
    passed = {key_of(line) for line in view.lines if line.status == "PASS"}
    for row in view.rows():
        suite, _, engine, variant = row.case
        name = f"{suite} ({engine}, {variant.replace('_', ' ')})"
        suites.setdefault(name, []).append(_test(row, passed))
    why = f": {result.stopped.message}" if result.stopped is not None else ""
    for job in result.not_run:
        missing = junit.TestCase(_text(job), classname="not run", time=0.0)
        missing.result = [junit.Skipped(_text(f"this trial was planned and not run{why}"))]
        suites.setdefault("not run", []).append(missing)
    for name, tests in suites.items():
        made = junit.TestSuite(_text(name))
        made.timestamp = result.started_at[:19]
        made.add_property("run_id", _text(result.run_id))
        made.add_testcases(tests)
        xml.append(made)
    text: bytes = xml.tostring()
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + text + b"\n"


def _test(row: Row, passed: Container[object]) -> junit.TestCase:
    """`passed`: the cases of which a trial passed; their failures are flaky, which Surefire's
    schema and Jenkins' tell from failures.
    """
    grade = row.grade
    case = junit.TestCase(
        _text(grade.case_id + (f" #{grade.trial}" if grade.trial > 1 else "")),
        classname=_text(f"{grade.suite}.{grade.engine}.{grade.variant}"),
        time=grade.duration_ms / 1000,
    )
    message = _text(grade.reason)
    if grade.status == "FAIL" and grade.variant == BASELINE:
        # CI systems count every failure as one of the job.
        case.result = [junit.Skipped("without the skill: failed, which is no failure")]
    elif grade.status == "SKIP":
        case.result = [junit.Skipped(message)]
    elif grade.status != "PASS":
        kind = _text(str((grade.error or {}).get("kind", "error")))
        found: Any
        if row.score is None:
            found = junit.Error(message, kind)
        elif row.case in passed:
            found = FlakyFailure(message, "flaky")
        else:
            found = junit.Failure(message, "fail")
        parts = ["\n".join(_details(row)), "\n".join(_conversation(grade))]
        found.text = _text("\n\n".join(part for part in parts if part))
        case.append(found)
    return case


def _details(row: Row) -> Iterator[str]:
    for failure in row.failures:
        yield f"{failure.where}{failure.name}: {failure.found}"
        if failure.check is not None and failure.check.expected:
            yield f"    expected: {failure.check.expected}"
        if failure.check is not None and (near := failure.check.nearest) is not None:
            line = f"{near.line[: near.at]}▸{near.line[near.at :]}"
            yield f"    nearest: {line}  ({near_words(near)})"
        elif failure.check is not None and failure.check.excerpt:
            yield f"    {failure.check.excerpt}"
    yield from (f"warning: {warning}" for warning in row.grade.warnings)


def _conversation(grade: Grade) -> Iterator[str]:
    for turn in grade.turns:
        if turn.status == "skipped":
            yield f"[turn {turn.turn_number}, not sent] {shortened(turn.content)}"
            continue
        yield f"[turn {turn.turn_number}] {shortened(turn.content)}"
        yield f"[answer] {shortened(turn.response)}"
        for follow_up in turn.follow_ups:
            yield f"[{follow_up.label}] {shortened(follow_up.content)}"
            yield f"[answer] {shortened(follow_up.response)}"


def _text(text: str) -> str:
    """Without what XML cannot hold, and without terminal controls that a log would pass on."""
    return _ILLEGAL.sub("\ufffd", plain(text))
