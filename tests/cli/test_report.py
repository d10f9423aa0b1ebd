"""`skillup report`: reports written again, and two runs side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import page_of
from tests.support.project import Project

SUITE = {
    "s/eval.yaml": "name: s\n",
    "s/flips.yaml": "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: y}]\n",
    "s/stays.yaml": "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: y}]\n",
}
WORSE = {
    "s/flips.yaml": "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: no}]\n",
    "s/new.yaml": "input: {prompt: x}\nassertions: [{contains: y}]\nscripted: [{say: y}]\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A suite that was run twice; a case fails since."""
    found = Project(tmp_path, indexed=True).write(SUITE)
    assert found.run("run", "s").exit_code == 0
    assert found.write(WORSE).run("run", "s").exit_code == 1
    return found


def _runs(project: Project) -> list[str]:
    return sorted(path.name for path in (project.root / ".skillup/runs").iterdir())


def test_a_run_is_put_beside_an_earlier_one(project: Project) -> None:
    before, now = _runs(project)

    for named in (before, f".skillup/runs/{before}", "previous"):
        outcome = project.run("report", "last", "--report", "html", "--against", named)
        assert outcome.exit_code == 0, outcome.stderr
        assert outcome.stdout.endswith(f"{now}/report.html\n")

    page = page_of(project.root / ".skillup/runs" / now / "report.html")
    sides = page.index["sides"]
    assert (sides["a"]["run_id"], sides["b"]["run_id"]) == (before, now)
    rows = {row["case_id"]: row for row in sides["rows"]}
    assert {name: row["change"] for name, row in rows.items()} == {
        "flips": "newly_failing",
        "stays": "same",
        "new": "only_b",
    }
    flips = rows["flips"]
    assert (flips["a"]["status"], flips["b"]["status"]) == ("PASS", "FAIL")
    assert page.details[flips["a"]["n"]]["turns"][0]["response"] == "y"
    assert page.details[flips["b"]["n"]]["turns"][0]["response"] == "no"
    assert rows["new"]["a"] is None
    stays = rows["stays"]["a"]["n"]
    assert page.details[stays]["grade"]["status"] == "PASS", "there is room for what did not change"
    assert len(page.details) == 5


def test_a_run_without_a_result_has_a_report_all_the_same(project: Project) -> None:
    _, now = _runs(project)
    run = project.root / ".skillup/runs" / now
    (run / "result.json").unlink()
    (run / "trials/new/scripted/with_skill/1/grading.json").unlink()
    (run / "trials/stays/scripted/with_skill/1/record.json").write_text("{")

    assert project.run("report", "last", "--report", "html").exit_code == 0

    page = page_of(run / "report.html")
    assert page.index["run"]["finished"] is False
    assert page.index["summary"]["fail"] == 1
    assert page.row("new")["status"] == "NOT_RUN"
    assert page.row("new")["reason"] == "run, but not judged: `skillup judge RUN`"
    assert page.detail("new")["grade"] is None
    assert "is damaged" in page.detail("stays")["problem"]
    assert page.index["not_run"] == ["new/scripted/with_skill/1"]
    outcome = project.run("report", now, "--report", "junit")
    assert outcome.exit_code == 2
    assert "has no result.json" in outcome.stderr


def test_wrong_uses_are_refused(project: Project) -> None:
    for arguments, said in (
        (["nowhere"], "there is no run nowhere"),
        (["2"], "2 runs begin with 2"),
        (["s"], "is no run directory"),
        (["last", "--against", "last"], "that is the run itself"),
        (["last", "--against", "nowhere"], "there is no run nowhere"),
        (["last", "--report", "junit", "--against", "previous"], "--against is for report.html"),
    ):
        outcome = project.run("report", *arguments)
        assert outcome.exit_code == 2, arguments
        assert said in outcome.stderr
