"""Which parts of a case were changed between two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.reports.html.comparison import case_changes, sides_of
from skillup.reports.html.run_data import RunData
from skillup.store import RunDirectory
from tests.support.stored import a_grade, a_record

JOB = "case/scripted/with_skill/1"


def _run(path: Path, **case: Any) -> Path:
    with RunDirectory.create(path, {"run_id": path.name, "jobs": [JOB]}) as run:
        run.write_record(JOB, a_record().model_copy(update={"case": {"id": "case", **case}}))
        run.write_grade(JOB, a_grade())
    return path


TURNS = ["Hello", {"content": "More", "assertions": [{"contains": "x"}]}]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"input": {"turns": TURNS}}, {"input": {"turns": TURNS}}, []),
        (
            {"input": {"turns": TURNS}},
            {"input": {"turns": ["Hello", {"content": "More", "assertions": []}]}},
            ["checks of turn 2"],
        ),
        (
            {"input": {"turns": [{"content": "Hello"}]}},
            {"input": {"turns": [{"content": "Hello", "expected_output": "Greets"}]}},
            ["checks of turn 1"],
        ),
        ({"input": {"turns": TURNS}}, {"input": {"turns": TURNS[:1]}}, ["messages"]),
        ({"input": {"prompt": "a"}}, {"input": {"prompt": "b", "system": "c"}},
         ["messages", "system"]),
        ({"assertions": [{"contains": "a"}]}, {"context": {"files": {"a": "b"}}},
         ["checks of the whole conversation", "context"]),
        ({"input": None}, {"input": {"prompt": "b"}}, ["input"]),
    ],
)  # fmt: skip
def test_what_was_changed_is_named(
    tmp_path: Path, before: dict[str, Any], now: dict[str, Any], expected: list[str]
) -> None:
    a, b = _run(tmp_path / "a", **before), _run(tmp_path / "b", **now)
    assert case_changes(a, JOB, b, JOB) == expected


def test_of_a_record_that_cannot_be_read_nothing_is_said(tmp_path: Path) -> None:
    a, b = _run(tmp_path / "a", title="A"), _run(tmp_path / "b", title="B")
    (b / "trials" / JOB / "record.json").write_text("{")
    assert case_changes(a, JOB, b, JOB) == []
    assert case_changes(a, JOB, tmp_path / "none", JOB) == []


def test_two_runs_beside_each_other_say_which_cases_were_changed(tmp_path: Path) -> None:
    a = RunData(_run(tmp_path / "a", assertions=[{"contains": "a"}]))
    b = RunData(_run(tmp_path / "b", assertions=[{"contains": "b"}]))

    sides = sides_of(a, b, shift=1)

    assert sides["rows"][0]["case_changes"] == ["checks of the whole conversation"]
    assert "1 case was edited between the two runs: case" in sides["notes"]
    assert sides_of(a, a, shift=1)["notes"] == []
