"""What a run writes for CI systems, reviewers and other tools."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pydantic import ValidationError

from skillup.errors import UsageError
from skillup.reports.anthropic import benchmark, runs_of
from skillup.reports.formats import FORMATS, parse_formats
from skillup.reports.junit import junit_xml
from skillup.reports.markdown import escape, markdown
from skillup.reports.result import build_result
from skillup.schema.grade import CheckResult, Grade, NearMatch, RunResult
from skillup.schema.suite import Report
from tests.support.graded import a_grade, a_result, a_turn, grades_of
from tests.support.project import Project

# junit-10.xsd of Jenkins' xunit plug-in (https://github.com/jenkinsci/xunit-plugin), as far as
# reports can break it: of each element the attributes that it must and may have, and a pattern of
# its children's names, each with a blank behind it.
_SUITE = "(testsuite |properties |testcase |system-out |system-err )*"
_STATES = "(skipped |error |failure |flakyFailure |system-out |system-err )*"
JENKINS = {
    "testsuites": ("", "time name tests failures errors", "(testsuite )*"),
    "testsuite": (
        "name tests failures errors",
        "group time skipped timestamp hostname id package file log",
        _SUITE,
    ),
    "properties": ("", "", "(property )*"),
    "property": ("name value", "", ""),
    "testcase": ("name", "time classname group", _STATES),
    **dict.fromkeys(("skipped", "error", "failure", "flakyFailure"), ("", "type message", "")),
}
_SECONDS = r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?"


def problems(element: ET.Element) -> Iterator[str]:
    """Everything in the tree that the schema does not allow."""
    required, optional, children = JENKINS[element.tag]
    missing = set(required.split()) - element.attrib.keys()
    unknown = element.attrib.keys() - {*required.split(), *optional.split()}
    yield from (f"{element.tag}: attribute {name}" for name in missing | unknown)
    if not re.fullmatch(_SECONDS, element.get("time", "")):
        yield f"{element.tag}: time {element.get('time')}"
    found = "".join(f"{child.tag} " for child in element)
    if not re.fullmatch(children, found):
        yield f"{element.tag}: child {found}"
    for child in element:
        yield from problems(child)


WHEN = "2026-01-01T00:00:00.000Z"

# `junit.xml`: every trial once, in the state that CI systems know.


def make_grade(case_id: str = "c", status: str = "PASS", **more: Any) -> Grade:
    own: dict[str, Any] = {"suite": "s", "score": 1.0, "turns": [], "duration_ms": 1500}
    return a_grade(case_id, **{**own, "status": status, **more})


def result_of(*grades: Grade, planned: list[str] | None = None) -> RunResult:
    return build_result("run", WHEN, grades, (planned or [])[len(grades) :], 10)


def parsed(*grades: Grade, planned: list[str] | None = None) -> ET.Element:
    return ET.fromstring(junit_xml(result_of(*grades, planned=planned)))


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
    check = CheckResult(
        name="asks",
        kind="contains",
        passed=False,
        score=0,
        found="not found",
        expected="confirm",
        excerpt="Deleted.",
    )
    near = NearMatch(wanted="Deletes", matched=6, line="Deleted.", at=6)
    nearly = check.model_copy(update={"name": "tells", "nearest": near})
    turn = a_turn(2, content="Yes", response="Deleted.", checks=[check, nearly])

    (failure,) = parsed(make_grade("b", "FAIL", turns=[turn])).iter("failure")

    assert failure.text == (
        "turn 2: asks: not found\n    expected: confirm\n    Deleted.\n"
        "turn 2: tells: not found\n    expected: confirm\n"
        '    nearest: Delete▸d.  (expected "s")\n\n'
        "[turn 2] Yes\n[answer] Deleted."
    )


def test_an_error_tells_its_turn_once_and_what_was_not_sent() -> None:
    error = {"kind": "capture", "message": "turn 1: capture `n`: nothing", "evidence": ""}
    turns = [
        a_turn(1, content="Hi", response="Hello", status="error", error=error, checks=[]),
        a_turn(2, content="Hi", status="skipped", checks=[]),
    ]

    (told,) = parsed(make_grade("b", "ERROR", turns=turns, error=error)).iter("error")

    assert told.text == (
        "turn 1: capture: capture `n`: nothing\nturn 2: skipped: \n\n"
        "[turn 1] Hi\n[answer] Hello\n[turn 2, not sent] Hi"
    )


def test_engines_and_variants_are_suites_of_their_own_and_trials_are_told_apart() -> None:
    root = parsed(
        make_grade("a", engine="x"),
        make_grade("a", engine="y"),
        make_grade("a", engine="x", trial=2),
        make_grade("a", engine="y", trial=2),
    )

    suites = {s.get("name"): [c.get("name") for c in s.iter("testcase")] for s in root}
    assert suites == {"s (x, with skill)": ["a", "a #2"], "s (y, with skill)": ["a", "a #2"]}


def test_it_is_valid_by_the_schema_that_readers_check_against() -> None:
    error = {"kind": "rate_limit", "message": "wait", "evidence": ""}
    root = parsed(
        make_grade("a \x00\ufffe<&]]>", cost_usd=1e-7, tags=["t"]),
        make_grade("b", "FAIL", reason="x\x1b[2J\ny", suite=" ", duration_ms=1),
        make_grade("c", "ERROR", error=error, variant="without_skill"),
        make_grade("", "SKIP"),
        planned=["0", "1", "2", "3", "b/e/with_skill/1"],
    )

    assert list(problems(root)) == []


def test_a_failure_of_a_case_that_passed_in_another_trial_is_flaky() -> None:
    root = parsed(*grades_of("wavers", "fp"), *grades_of("broke", "ff"), *grades_of("err", "ep"))

    states = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert {name: tags for name, tags in states.items() if tags} == {
        "wavers": ["flakyFailure"],
        "broke": ["failure"],
        "broke #2": ["failure"],
        "err": ["error"],
    }
    assert sum(int(suite.get("failures", "")) for suite in root) == 2
    assert list(problems(root)) == []


@given(st.text())
def test_whatever_an_agent_wrote_is_still_xml(text: str) -> None:
    turn = a_turn(content=text, response=text, checks=[])
    root = parsed(make_grade(text or "x", "FAIL", reason=text, turns=[turn]))
    assert len(list(root.iter("failure"))) == 1
    assert list(problems(root)) == []


# `summary.md`: what a reviewer reads first.


def written(*grades: Grade, planned: list[str] | None = None) -> str:
    return markdown(result_of(*grades, planned=planned))


def test_the_headline_counts_and_a_failure_is_told() -> None:
    unmet = CheckResult(name="asks first", kind="contains", passed=False, score=0, found="no")
    page = written(make_grade("a"), make_grade("b", "FAIL", assertions=[unmet], score=0.0))

    assert page.startswith("# skillup: 1 of 2 passed, 1 failed\n")
    assert "| ✅ PASS | a |" in page
    assert "- **asks first**: no" in page


def test_errors_and_what_was_not_run_are_apart_from_failures() -> None:
    page = written(make_grade("a", "ERROR"), planned=["0", "b/e/with_skill/1"])

    assert page.startswith("# skillup: 0 of 1 passed, 1 error, 1 not run\n")
    assert "## Not run (1)" in page


def test_nearly_all_is_not_all_of_them() -> None:
    """V22: 299 of 300."""
    page = written(*(make_grade(str(n), "FAIL" if n == 7 else "PASS") for n in range(300)))
    assert "| 99.7% |" in page


@given(st.text())
def test_nothing_that_an_agent_wrote_is_markdown_or_html(text: str) -> None:
    line = escape(text)

    assert "\n" not in line
    assert not re.search(r"(?<!\\)(?:\\\\)*[<>|`*_\[\]$]", line)


@pytest.mark.parametrize(
    "text",
    [
        "- a list",
        "1. a list",
        "=== a heading",
        "# a heading",
        "![i](http://evil.example/x.png) <img src=x onerror=alert(1)> <https://evil.example>",
        "a|b \\| c `code` ``more`` *strong* ~~gone~~ [a](b) [r]: http://x",
        "&lt;script&gt; <!-- x --> $\\text{x}$",
        "\x1b[2J\u202e\r\n\n> quoted",
    ],
)
def test_what_an_agent_wrote_is_text_and_nothing_else(text: str) -> None:
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(escape(text))

    assert re.findall("<[^>]*>", html) == ["<p>", "</p>"]


@pytest.mark.parametrize(
    "text", ["@octocat", "#12", "org/repo#12", "GH-12", ":tada:", "https://x.example", "www.x.y"]
)
def test_github_finds_nobody_to_call_and_nothing_to_link(text: str) -> None:
    plain = re.sub(r"\\(?=[!-/:-@\[-`{-~])", "", escape(text))
    rendered = MarkdownIt("commonmark").render(escape(text))

    assert "<a" not in rendered
    assert plain.replace("\u2060", "") == text
    assert escape(text) != text
    assert not re.search(r"[@#]\w|://|www\.", re.sub(r"\\#", "#", escape(text)))


def test_a_large_run_stays_within_what_github_shows() -> None:
    wide = "é" * 250
    grades = [make_grade(f"{n} {wide}", "FAIL" if n % 9 == 0 else "PASS") for n in range(4000)]

    page = written(*grades)

    assert len(page) <= 60_000
    assert "more trials; result.json has them all." in page
    assert "## What did not pass" in page


def test_what_is_larger_still_is_cut_at_a_line_and_says_so() -> None:
    warned = [make_grade(str(n), "FAIL", reason="é" * 300) for n in range(60)]
    for grade in warned:
        grade.assertions.extend(
            CheckResult(name="é" * 120, kind="x", passed=False, score=0, found="漢" * 300)
            for _ in range(40)
        )

    page = written(*warned)

    assert len(page) <= 60_000
    assert page.endswith("`result.json` has all of it.\n")


def test_of_many_trials_those_that_did_not_pass_have_rows() -> None:
    many = [*grades_of("good", "p" * 30), *grades_of("bad", "fe")]
    text = markdown(a_result(many))
    rows = [line for line in text.splitlines() if line.startswith(("| ❌", "| ⚠️", "| ✅"))]
    assert [row.split(" | ")[1].split()[0] for row in rows] == ["bad", "bad"]
    assert "\n… and 30 more trials; result.json has them all.\n" in text
    assert markdown(a_result(many[13:])).count("| ✅ PASS | good ") == 17


def test_what_failed_without_the_skill_is_not_red() -> None:
    bare = grades_of("asks", "ff", variant="without_skill")
    text = markdown(a_result([*bare, *grades_of("asks", "fp")]))
    assert (text.count("| ➖ FAIL"), text.count("| ❌ FAIL")) == (2, 1)


# `benchmark.json`, in the shape of Anthropic's skill-creator.


def graded(case_id: str, met: int, unmet: int, **more: Any) -> Grade:
    checks = [
        CheckResult(name=f"check {n}", kind="contains", passed=n < met, score=1, found="seen")
        for n in range(met + unmet)
    ]
    status = "FAIL" if unmet else "PASS"
    return make_grade(case_id, status, assertions=checks, **more)


def test_tokens_that_nobody_told_are_said_to_be_unknown() -> None:
    (run,) = benchmark(runs_of([graded("a", 1, 0)]), timestamp=WHEN)["runs"]

    assert run["result"]["tokens"] == 0
    assert run["notes"] == ["the engine did not tell how many tokens it took"]


def test_engines_and_suites_are_told_apart_as_far_as_the_shape_allows() -> None:
    data = benchmark(
        runs_of([graded("a", 1, 0), graded("a", 1, 0, engine="f"), graded("a", 1, 0, suite="t")]),
        timestamp=WHEN,
    )

    runs = [(r["eval_name"], r["run_number"]) for r in data["runs"]]
    assert runs == [("s/a", 1), ("s/a", 2), ("t/a", 1)]


# Which reports are written, and where.


SUITE = {
    "s/eval.yaml": "name: s\nreport: {formats: [junit]}\n",
    "s/c.yaml": "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: y}]\n",
}


def test_formats_are_given_with_commas_or_repeated() -> None:
    assert parse_formats(["junit,markdown", "json", "junit"]) == ("junit", "markdown")
    with pytest.raises(UsageError, match="--report pdf: no such format"):
        parse_formats(["pdf"])


def test_a_suite_may_ask_for_all_that_the_command_line_may_ask_for() -> None:
    everything = ["json", *FORMATS]
    assert Report.model_validate({"formats": everything}).formats == everything
    with pytest.raises(ValidationError):
        Report.model_validate({"formats": ["pdf"]})


def test_a_run_writes_what_is_asked_for_and_report_writes_it_again(project: Project) -> None:
    assert project.write(SUITE).run("run", "s", "--out", "r", "--report", "markdown").exit_code == 0
    assert (project.root / "r/junit.xml").read_bytes().startswith(b"<?xml")
    assert (project.root / "r/summary.md").read_text("utf-8").startswith("# skillup: 1 of 1")
    (project.root / "r/junit.xml").unlink()
    outcome = project.run("report", "r")
    assert outcome.exit_code == 0
    assert len(outcome.stdout.splitlines()) == len(FORMATS)
    assert (project.root / "r/junit.xml").is_file()
    assert project.run("report", "nowhere").exit_code == 2
