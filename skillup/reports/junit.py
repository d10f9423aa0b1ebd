"""`junit.xml`: a run in the form that CI systems read. ERROR is an error, SKIP is skipped.

Source of the format: the JUnit XML that Ant writes and Jenkins, GitLab and others read; written by
junitparser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from junitparser import Error, Failure, JUnitXml, Properties, Property, Skipped, TestCase, TestSuite

from skillup.reports.text import plain
from skillup.schema.grade import CheckResult, Grade, RunResult

# What XML 1.0 cannot hold, however it is written: https://www.w3.org/TR/xml/#charsets
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ANSWER_CHARACTERS = 4000


def junit_xml(result: RunResult) -> bytes:
    """The run as XML: a test suite for each suite, engine and variant, a test case for each trial.

    A trial that was planned and not held is an error: it must not look like a pass.
    """
    xml = JUnitXml("skillup")
    groups: dict[tuple[str, str, str], list[Grade]] = {}
    for grade in result.cases:
        groups.setdefault((grade.suite, grade.engine, grade.variant), []).append(grade)
    for (suite, engine, variant), grades in groups.items():
        tests = TestSuite(_text(f"{suite} ({engine}, {variant.replace('_', ' ')})"))
        tests.timestamp = result.started_at
        for grade in grades:
            tests.add_testcase(_test(grade))
        xml.add_testsuite(tests)
    if result.not_run:
        tests = TestSuite("not run")
        for job in result.not_run:
            case = TestCase(_text(job), classname="not run", time=0.0)
            case.result = [Error("this trial was planned and not held", "not_run")]
            tests.add_testcase(case)
        xml.add_testsuite(tests)
    text: bytes = xml.tostring()
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + text + b"\n"


def _test(grade: Grade) -> TestCase:
    several = f" #{grade.trial}" if grade.trial > 1 else ""
    case = TestCase(
        _text(grade.case_id + several),
        classname=_text(f"{grade.suite}.{grade.engine}.{grade.variant}"),
        time=grade.duration_ms / 1000,
    )
    message, details = _text(grade.reason), _text("\n".join(_details(grade)))
    if grade.status == "FAIL":
        case.result = [Failure(message, "fail")]
        case.result[0].text = details
    elif grade.status == "ERROR":
        kind = str((grade.error or {}).get("kind", "error"))
        case.result = [Error(message, kind)]
        case.result[0].text = details
    elif grade.status == "SKIP":
        case.result = [Skipped(message)]
    case.append(_properties(grade))
    case.system_out = _text("\n".join(_conversation(grade)))
    return case


def _properties(grade: Grade) -> Properties:
    values: dict[str, object] = {
        "score": grade.score,
        "session_id": grade.session_id,
        "cost_usd": grade.cost_usd,
        "judge_cost_usd": grade.judging.cost_usd if grade.judging else None,
        **{name: count for name, count in (grade.usage or {}).items() if name.endswith("_tokens")},
        "tags": ", ".join(grade.tags) or None,
    }
    properties = Properties()
    for name, value in values.items():
        if value is not None:
            properties.add_property(Property(name, _text(str(value))))
    return properties


def _details(grade: Grade) -> Iterator[str]:
    """What was not met, turn by turn; what a turn met for an error; warnings."""
    for turn in grade.turns:
        if turn.error is not None:
            yield f"turn {turn.turn_number}: {turn.error['kind']}: {turn.error['message']}"
        elif turn.status != "completed":
            yield f"turn {turn.turn_number}: {turn.status}: {turn.reason}"
        for check in turn.deciding_checks():
            yield from _unmet(f"turn {turn.turn_number}: ", check)
    for check in grade.assertions:
        yield from _unmet("", check)
    yield from (f"warning: {warning}" for warning in grade.warnings)


def _unmet(where: str, check: CheckResult) -> Iterator[str]:
    if check.passed:
        return
    yield f"{where}{check.name}: {check.error or check.found}"
    if check.excerpt:
        yield f"    {check.excerpt}"


def _conversation(grade: Grade) -> Iterator[str]:
    for turn in grade.turns:
        yield f"[turn {turn.turn_number}] {turn.content}"
        yield f"[answer] {_shortened(turn.response)}"
        for follow_up in turn.follow_ups:
            yield f"[{follow_up.label}] {follow_up.content}"
            yield f"[answer] {_shortened(follow_up.response)}"


def _shortened(text: str) -> str:
    if len(text) <= _ANSWER_CHARACTERS:
        return text
    return f"{text[:_ANSWER_CHARACTERS]}… ({len(text)} characters in all)"


def _text(text: str) -> str:
    """Without what XML cannot hold, and without terminal controls that a log would pass on."""
    return _ILLEGAL.sub("\ufffd", plain(text))
