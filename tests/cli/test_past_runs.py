"""Runs of several nights: `skillup trends`, `skillup compare`, and `skillup report --against`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillup.history.index import forget_run
from skillup.stats import wilson
from tests.support.pages import page_of
from tests.support.project import Outcome, Project
from tests.support.stored import change

pytestmark = pytest.mark.indexed

SUITE = {"eval.yaml": "name: demo\ncases: {files: ['cases/*.yaml']}\n"}
CASE = """
    input: {{turns: [one]}}
    assertions: [{{contains: hi}}]
    scripted: [{{say: "{say}", misbehave: {trouble}}}]
    """
SAYS = {"p": ("hi", "{}"), "f": ("no", "{}"), "e": ("", "{error: auth}")}


def nights(project: Project, **cases: str) -> list[str]:
    """A run for each letter; the ids."""
    ids = []
    for letters in zip(*cases.values(), strict=True):
        for name, letter in zip(cases, letters, strict=True):
            say, trouble = SAYS[letter]
            project.write({f"cases/{name}.yaml": CASE.format(say=say, trouble=trouble)})
        ids.append(project.write(SUITE).run_json(".")["run_id"])
    return ids


def test_every_case_is_a_line_of_marks_and_a_failing_one_says_since_when(project: Project) -> None:
    ids = nights(project, steady="pppp", broke="pfef")
    outcome = project.run("trends")
    assert outcome.exit_code == 0, outcome.stderr
    lines = outcome.stdout.splitlines()
    assert lines[0].startswith("demo  4 runs, ")
    assert lines[0].endswith(ids[3])
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["(all)", "✓~E~"],
        ["broke", "✓✗E✗"],
        ["steady", "✓✓✓✓"],
    ]
    assert f"broke: failing since {ids[1]} (" in outcome.stdout
    assert f"2 runs; last passed in {ids[0]} (" in outcome.stdout
    assert "1/3" in lines[3]
    assert lines[2].split()[2:4] == ["5/7", "71%"]
    assert "E error: not run" in lines[-1]
    assert "\x1b" not in outcome.stdout
    (suite,) = project.run("trends", "demo", "--json").data["suites"]
    assert [run["run_id"] for run in suite["runs"]] == ids
    assert (suite["judged"], suite["errors"]) == (7, 1)
    case = suite["cases"][0]
    assert [run["state"] for run in case["runs"]] == ["pass", "fail", "error", "fail"]
    assert (case["pass_rate"], case["judged"]) == (1 / 3, 3)
    assert case["interval"] == pytest.approx(wilson(1, 3))
    assert case["failing_since"]["first"]["run_id"] == ids[1]
    assert case["failing_since"]["last_pass"]["run_id"] == ids[0]


@pytest.mark.parametrize(
    ("trials", "in_ci", "warned"),
    [("1", "", False), ("1", "true", True), ("2", "true", False), ("3", "", False)],
)
def test_nights_of_too_few_trials_are_warned_of(
    project: Project, trials: str, in_ci: str, warned: bool
) -> None:
    """One that a person runs is none."""
    project.write({**SUITE, "cases/a.yaml": CASE.format(say="hi", trouble="{}")})
    outcome = project.run("run", ".", "--trials", trials, env={"CI": in_ci})
    assert outcome.stderr.count("cannot be told from chance") == warned


def test_runs_and_cases_can_be_chosen(project: Project) -> None:
    ids = nights(project, a="pp", b="pp")
    (suite,) = project.run("trends", "de*", "-k", "b", "--last", "1", "--json").data["suites"]
    assert [run["run_id"] for run in suite["runs"]] == ids[1:]
    assert [case["case_id"] for case in suite["cases"]] == ["b"]
    for options in (("--engine", "codex"), ("--variant", "without_skill"), ("-k", "c*")):
        assert "suites there: demo" in project.run("trends", *options).stderr
    assert "is not one of" in project.run("trends", "--variant", "with_luck").stderr
    unknown = project.run("trends", "nothing")
    assert unknown.exit_code == 2
    assert "suites there: demo" in unknown.stderr


# Runs are indexed as they end, and nothing of that can change what they come to.

FILES = {
    "eval.yaml": """
        name: demo
        cases: {files: ['cases/*.yaml']}
        gates: {max_new_failures: 0, confidence: 0.9}
        """,
    "cases/a.yaml": "{input: {turns: [one]}, assertions: [{contains: hi}], scripted: [{say: hi}]}",
    "cases/b.yaml": "{input: {turns: [one]}, assertions: [{contains: hi}], scripted: [{say: no}]}",
}


@pytest.mark.parametrize(
    "url", ["no/such/folder/index.sqlite", "eval.yaml", "postgresql://me:pw@127.0.0.1:1/x"]
)
def test_an_index_that_cannot_be_written_is_a_line_and_no_more(project: Project, url: str) -> None:
    project.write(FILES)
    outcome = project.run("run", ".", "-k", "a", "--index", url)
    assert outcome.exit_code == 0
    assert "1 passed" in outcome.stderr
    assert "not indexed: " in outcome.stderr
    assert "me:pw" not in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert (project.latest_run() / "result.json").is_file()


# `skillup compare`: nights of a suite.

NIGHTLY = """
    name: demo
    cases: {{files: ['cases/*.yaml']}}
    gates: {gates}
    """
SAYING = """
    {tags}
    input: {{turns: [one]}}
    assertions: [{{contains: hi}}, {{contains: there}}]
    scripted: [{{say: "{say}"}}]
    """
REFUSED = """
    input: {turns: [one]}
    assertions: [{contains: hi}]
    scripted: [{say: x, misbehave: {error: auth}}]
    """


def night(project: Project, *options: str, gates: str = "{}", tags: str = "", **cases: str) -> Any:
    """A run whose agent says this in each case; `refused` is an error."""
    files = {
        f"cases/{name}.yaml": REFUSED if say == "refused" else SAYING.format(say=say, tags=tags)
        for name, say in cases.items()
    }
    project.write({"eval.yaml": NIGHTLY.format(gates=gates), **files})
    return project.run("run", ".", "--json", *options).data


def compare(project: Project, *arguments: str, **more: Any) -> Outcome:
    """`skillup compare ARGUMENTS`."""
    return project.run("compare", *arguments, **more)


def changes(outcome: Outcome) -> dict[str, str]:
    """What became of each case."""
    return {case["case_id"]: case["change"] for case in outcome.data["cases"]}


OFTEN = ("--trials", "12")


def test_the_last_run_is_compared_with_the_nights_before(project: Project) -> None:
    a = night(project, *OFTEN, steady="hi there", broke="hi there", mended="no", worse="hi there")
    b = night(
        project, *OFTEN, steady="hi there", broke="no", mended="hi there", worse="refused", new="hi"
    )
    outcome = compare(project, "--json")
    assert outcome.exit_code == 1
    assert changes(outcome) == {
        "broke": "regressed",
        "mended": "more_passes",
        "steady": "same",
        "worse": "not_run",
        "new": "only_in_b",
    }
    assert [run["run_id"] for run in outcome.data["reference"]] == [a["run_id"]]
    assert outcome.data["run"]["run_id"] == b["run_id"]
    text = compare(project)
    added, edited, _, summary = text.stdout.splitlines()[2:6]
    assert edited == "  3 cases changed: demo/broke, demo/mended, demo/worse"
    assert added == "  1 case added: demo/new"
    assert summary.startswith("1 case regressed (broke); ")
    assert "; 12 trials met an error." in summary
    rows = [line.split()[:5] for line in text.stdout.splitlines() if "→" in line]
    assert ["broke", "regressed", "12/12", "→", "0/12"] in rows
    assert ["worse", "not", "run", "12/12", "→"] in rows
    assert ("\x1b" in text.stdout, text.stderr) == (False, "")


def test_the_gates_that_the_run_began_with_decide_the_exit_code(project: Project) -> None:
    gates = "{max_errors: null}"
    first = night(project, *OFTEN, a="hi there", b="hi there", c="hi there")
    assert compare(project).exit_code == 0, "a first night"
    night(project, *OFTEN, gates=gates, a="no", b="refused", c="hi there")
    project.write({"eval.yaml": NIGHTLY.format(gates="{max_new_failures: 9}")})
    failed = compare(project)
    assert (failed.exit_code, failed.stdout.count("FAILED")) == (1, 1)
    for options, code in (
        (["--gate", "max_new_failures=1"], 0),
        (["--gate", "max_new_failures=null"], 0),
        (["--gate", "max_new_failures=1", "--gate", "max_errors=0"], 1),
        (["--gate", "max_new_failures=many"], 2),
        (["--baseline", first["run_id"]], 1),
        ([first["run_id"], "last"], 1),
        ([first["run_id"]], 0),
        (["--baseline", "nowhere"], 2),
        (["--branch", "elsewhere"], 0),
        (["--report", "pdf"], 2),
        (["--index", "none"], 3),
    ):
        assert compare(project, *options).exit_code == code, options


def test_quarantined_cases_run_and_fail_no_gate(project: Project) -> None:
    tags = "tags: [quarantine]"
    night(project, *OFTEN, tags=tags, a="hi there")
    night(project, *OFTEN, tags=tags, a="no")
    outcome = compare(project)
    assert outcome.exit_code == 0, outcome.stdout
    assert "a  fewer passes  12/12 → 0/12  in quarantine; contains" in outcome.stdout


def test_what_ci_gets(project: Project) -> None:
    night(project, *OFTEN, a="hi there", b="hi there")
    after = night(project, *OFTEN, "--report", "markdown", a="no", b="refused")
    github = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(project.root)}
    outcome = compare(
        project,
        *("--report", "markdown", "--badge", "badge.json", "--webhook", "http://127.0.0.1:1/key"),
        env=github,
    )
    assert outcome.exit_code == 1, "a webhook that cannot be reached changes nothing"
    gates, case, error, hook = outcome.stderr.splitlines()
    assert gates.startswith("::error::skillup: min_passes: no case passed; max_new_failures: 1 reg")
    assert case.startswith("::error file=cases/a.yaml,line=1::a: 12/12 → 0/12; p ")
    assert error.startswith("::error file=cases/b.yaml,line=1::b: 12/12 → error; with more errors")
    assert "; auth: " in error
    assert hook == "--webhook: 127.0.0.1: ConnectionRefusedError"
    assert json.loads((project.root / "badge.json").read_text())["color"] == "red"
    summary = (project.root / ".skillup/runs" / after["run_id"] / "summary.md").read_text()
    assert outcome.stdout.startswith("# ❌ skillup: ")
    assert summary.startswith(outcome.stdout.rstrip())
    assert "\n# skillup: 0 of 24 passed, 12 failed, 12 errors\n" in summary
    quiet = compare(project, "--baseline", after["run_id"], "--webhook", "", env=github)
    assert quiet.exit_code == 2, "with itself"


def test_a_pinned_run_that_is_gone_is_trouble_of_compare_and_not_of_the_run(
    project: Project,
) -> None:
    pinned = night(project, a="hi there")["run_id"]
    assert project.run("baseline", "set", pinned).exit_code == 0
    forget_run(str(project.root / ".skillup/index.sqlite"), pinned)
    project.write({"eval.yaml": NIGHTLY.format(gates="{}")})
    assert project.run("run", ".", "--report", "markdown,html").exit_code == 0
    outcome = compare(project)
    assert (outcome.exit_code, f"pinned run {pinned} is not in" in outcome.stderr) == (2, True)


@pytest.mark.parametrize(("killed", "by_id"), [(True, False), (False, True)])
def test_what_ran_after_the_run_was_indexed_counts(
    project: Project, *, by_id: bool, killed: bool
) -> None:
    """It went on, and was killed, or its end could not be indexed."""
    night(project, *OFTEN, a="hi there")
    stale = night(project, *OFTEN, "--time-limit", "0", a="no")["run_id"]
    assert compare(project).exit_code == 1, "nothing was run"
    assert project.run("run", "--resume", "last", "-q", "--index", "none").exit_code == 1
    if killed:
        (project.root / ".skillup/runs" / stale / "result.json").unlink()
    outcome = compare(project, stale if by_id else "last", "--json")
    assert changes(outcome) == {"a": "regressed"}
    assert outcome.exit_code == 1


def test_a_name_that_means_no_other_run_is_told_so(project: Project) -> None:
    run = night(project, a="hi there")["run_id"]
    for names, told in (
        (["", "last"], "the name of a run is empty"),
        ([run, f".skillup/runs/{run}"], f"{run} is the run that is to be compared with it"),
        ([run, run, run], "more than two runs"),
    ):
        outcome = compare(project, *names)
        assert (outcome.exit_code, told in outcome.stderr) == (2, True), names


def test_the_page_of_two_runs_says_what_the_comparison_says(project: Project) -> None:
    """Also of a case that met an error in the newest night of the reference."""
    night(project, *OFTEN, a="hi there", b="hi there")
    night(project, *OFTEN, a="refused", b="hi there")
    last = night(project, *OFTEN, a="no", b="hi there")

    project.run("report", "last", "--report", "html", "--against", "previous")

    sides = page_of(project.root / ".skillup/runs" / last["run_id"] / "report.html").index["sides"]
    told = compare(project, "--json").data
    of_page, of_verb = (
        {row["case_id"]: row["change"] for row in rows} for rows in (sides["rows"], told["cases"])
    )
    assert of_page == of_verb == {"a": "regressed", "b": "same"}
    assert told["summary"] == f"{sides['summary'][0]}."
    assert sides["changed"] == ["1 case changed: demo/a"]
    project.run("report", "last", "--report", "html")
    alone = page_of(project.root / ".skillup/runs" / last["run_id"] / "report.html").index
    failed = ["✗ max_new_failures (demo): 1 regressed"]
    assert alone["sides"] is None
    assert alone["compared"] == [*failed, *sides["changed"], *sides["summary"]]


# `skillup report`: reports written again, and two runs side by side.

BEFORE = {
    "s/eval.yaml": "name: s\n",
    "s/flips.yaml": "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: y}]\n",
    "s/stays.yaml": "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: y}]\n",
}
WORSE = {
    "s/flips.yaml": "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: no}]\n",
    "s/new.yaml": "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: y}]\n",
}


@pytest.fixture
def ran_twice(tmp_path: Path) -> Project:
    """A suite that was run twice; a case fails since."""
    found = Project(tmp_path, indexed=True).write(BEFORE)
    assert found.run("run", "s").exit_code == 0
    assert found.write(WORSE).run("run", "s").exit_code == 1
    return found


def _runs(ran_twice: Project) -> list[str]:
    return sorted(path.name for path in (ran_twice.root / ".skillup/runs").iterdir())


def test_a_run_is_put_beside_an_earlier_one(ran_twice: Project) -> None:
    before, now = _runs(ran_twice)

    for named in (before, f".skillup/runs/{before}", "previous"):
        outcome = ran_twice.run("report", "last", "--report", "html", "--against", named)
        assert outcome.exit_code == 0, outcome.stderr
        assert outcome.stdout.endswith(f"{now}/report.html\n")

    page = page_of(ran_twice.root / ".skillup/runs" / now / "report.html")
    sides = page.index["sides"]
    assert (sides["a"]["run_id"], sides["b"]["run_id"]) == (before, now)
    rows = {row["case_id"]: row for row in sides["rows"]}
    assert {name: row["change"] for name, row in rows.items()} == {
        "flips": "fewer_passes",
        "stays": "same",
        "new": "only_in_b",
    }
    flips = rows["flips"]
    assert page.details[flips["a"]["n"]]["turns"][0]["response"] == "y"
    assert page.details[flips["b"]["n"]]["turns"][0]["response"] == "no"
    assert len(page.details) == 5, "there is room for what did not change"


def test_a_run_without_a_result_has_a_report_all_the_same(ran_twice: Project) -> None:
    _, now = _runs(ran_twice)
    run = ran_twice.root / ".skillup/runs" / now
    (run / "result.json").unlink()
    change(run, "UPDATE attempts SET grade = NULL WHERE job LIKE 'new/%'")
    change(run, "UPDATE attempts SET record = x'7b' WHERE job LIKE 'stays/%'")

    assert ran_twice.run("report", "last", "--report", "html").exit_code == 0

    page = page_of(run / "report.html")
    assert page.index["run"]["finished"] is False
    assert page.index["summary"]["fail"] == 1
    assert page.row("new")["status"] == "NOT_RUN"
    assert page.row("new")["reason"] == "run, but not judged: `skillup judge RUN`"
    assert page.detail("new")["grade"] is None
    assert "is damaged" in page.detail("stays")["problem"]
    assert page.index["not_run"] == ["new/scripted/with_skill/1"]
    outcome = ran_twice.run("report", now, "--report", "junit")
    assert outcome.exit_code == 2
    assert "has no result.json" in outcome.stderr


def test_wrong_uses_are_refused(ran_twice: Project) -> None:
    for arguments, said in (
        (["nowhere"], "there is no run nowhere"),
        (["2"], "2 runs begin with 2"),
        (["s"], "is no run directory"),
        (["last", "--against", "nowhere"], "there is no run nowhere"),
        (["last", "--report", "junit", "--against", "previous"], "--against is for report.html"),
    ):
        outcome = ran_twice.run("report", *arguments)
        assert outcome.exit_code == 2, arguments
        assert said in outcome.stderr
