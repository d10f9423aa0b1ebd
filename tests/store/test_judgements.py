"""New grades lie beside the old ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.store.judgements import JudgementWriter
from tests.support.stored import a_grade


def test_a_judgement_has_a_place_of_its_own_each_time(tmp_path: Path) -> None:
    first, second = JudgementWriter(tmp_path), JudgementWriter(tmp_path)
    assert first.path != second.path
    assert first.path.parent == second.path.parent == tmp_path / "judgements"


def test_grades_lie_as_in_a_run_and_the_head_comes_last(tmp_path: Path) -> None:
    writer = JudgementWriter(tmp_path)
    writer.write_grade("a/b/with_skill/1", a_grade("a"))
    assert not (writer.path / "judgement.json").exists()
    writer.finish({"by": ["x.yaml"]})
    head = json.loads((writer.path / "judgement.json").read_text("utf-8"))
    assert head["schema_version"] == "skillup.judgement/1"
    assert head["judgement_id"] == writer.id
    assert head["by"] == ["x.yaml"]
    grade = json.loads((writer.path / "trials/a/b/with_skill/1/grading.json").read_text("utf-8"))
    assert grade["case_id"] == "a"


def test_ids_of_jobs_cannot_lead_out(tmp_path: Path) -> None:
    writer = JudgementWriter(tmp_path)
    writer.write_grade("../../x/1", a_grade())
    assert {path.name for path in tmp_path.iterdir()} == {"judgements"}


def test_what_the_disk_refuses_is_said(tmp_path: Path) -> None:
    (tmp_path / "judgements").write_text("a file", "utf-8")
    with pytest.raises(RunDirectoryError):
        JudgementWriter(tmp_path)
