"""Which reports are written, and where."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from skillup.errors import UsageError
from skillup.reports.formats import FORMATS, parse_formats
from skillup.schema.suite import Report
from tests.support.project import Project

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


def test_a_run_writes_what_the_suite_and_the_command_line_ask_for(tmp_path: Path) -> None:
    project = Project(tmp_path).write(SUITE)

    assert project.run("run", "s", "--out", "r", "--report", "markdown").exit_code == 0

    assert (project.root / "r/junit.xml").read_bytes().startswith(b"<?xml")
    assert (project.root / "r/summary.md").read_text("utf-8").startswith("# skillup: 1 of 1")


def test_reports_are_written_again_from_the_result(tmp_path: Path) -> None:
    project = Project(tmp_path).write(SUITE)
    project.run("run", "s", "--out", "r")
    (project.root / "r/junit.xml").unlink()

    outcome = project.run("report", "r")

    assert outcome.exit_code == 0
    assert len(outcome.stdout.splitlines()) == len(FORMATS)
    assert (project.root / "r/junit.xml").is_file()
    assert project.run("report", "nowhere").exit_code == 2
