"""`junit.xml`: a run in the form that CI systems read. ERROR is an error, SKIP is skipped.

There is no standard, but two schemas that readers check against, and this is valid by both: Ant's
(https://github.com/windyroad/JUnit-Schema) and Jenkins' junit-10.xsd
(https://github.com/jenkinsci/xunit-plugin). By them only a suite may have output, so the
conversation is in what did not pass.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Any

import junitparser as junit
from junitparser.junitparser import Attr, IntAttr
from junitparser.xunit2 import FlakyFailure

from skillup.checks.nearest import near_words
from skillup.engines.events import shortened
from skillup.history.runs import key_of
from skillup.reports.result import Row, RunView
from skillup.reports.text import plain
from skillup.schema.grade import BASELINE, Grade, RunResult

# What XML 1.0 cannot hold, however it is written: https://www.w3.org/TR/xml/#charsets
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Suite(junit.TestSuite):
    """With the attributes of Ant's schema that junitparser does not know."""

    package = Attr()
    id = IntAttr()


def junit_xml(result: RunResult) -> bytes:
    """A test suite for each suite, engine and variant, a test case for each trial; those that did
    not run are skipped, in a suite of their own, with the reason.
    """
    xml: Any = junit.JUnitXml()
    tests_of: dict[tuple[str, str, str], list[junit.TestCase]] = {}
    view = RunView(result)
    passed = {key_of(line) for line in view.lines if line.status == "PASS"}
    for row in view.rows():
        tests_of.setdefault((row.case[0], *row.case[2:]), []).append(_test(row, passed))
    suites: list[tuple[str, str, list[junit.TestCase], list[tuple[str, str]]]] = []
    for (suite, engine, variant), tests in tests_of.items():
        name = f"{suite} ({engine}, {variant.replace('_', ' ')})"
        suites.append((name, suite, tests, [("engine", engine), ("variant", variant)]))
    why = f": {result.stopped.message}" if result.stopped is not None else ""
    if result.not_run:
        missing = [
            junit.TestCase(_text(job), classname="not run", time=0.0) for job in result.not_run
        ]
        for case in missing:
            case.result = [junit.Skipped(_text(f"this trial was planned and not run{why}"))]
        suites.append(("not run", "skillup", missing, []))
    for number, (name, package, tests, about) in enumerate(suites):
        made: Any = _Suite(_text(name))
        made.package = _text(package)
        made.id = number
        made.hostname = "localhost"  # where it ran is nobody's business
        made.timestamp = result.started_at[:19]  # Ant's schema has neither fractions nor zones
        properties = junit.Properties()
        for key, value in [("run_id", result.run_id), *about]:
            properties.add_property(junit.Property(key, _text(value)))
        made.append(properties)
        made.add_testcases(tests)
        made.append(junit.SystemOut(""))
        made.append(junit.SystemErr(""))
        xml.append(made)
    text: bytes = xml.tostring()
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + text + b"\n"


def _test(row: Row, passed: Container[object]) -> junit.TestCase:
    """`passed`: the cases of which a trial passed; their failures are flaky, which Surefire's
    schema and Jenkins' tell from failures, and Ant's has no word for.
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
