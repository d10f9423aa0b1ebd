"""The runs of a folder, by time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skillup.store.places import beginning_of_id, new_run_id
from skillup.store.runs import runs_in


def a_run(folder: Path, name: str, **info: object) -> str:
    path = folder / name
    path.mkdir()
    (path / "run.json").write_text(json.dumps(info, indent=2), encoding="utf-8")
    return name


def test_runs_with_names_of_their_own_are_in_order_too(tmp_path: Path) -> None:
    """As the nights of docs/nightly.md, which else would come after all runs by day."""
    in_order = [
        a_run(tmp_path, "zzz"),
        a_run(tmp_path, "20260101T000000Z-000aaa"),
        a_run(tmp_path, "night", run_id="x", started_at="2026-01-01T00:00:00.500Z"),
        a_run(tmp_path, "20260101T000000Z-900aaa"),
        a_run(tmp_path, "another", run_id="y", started_at="2026-01-02T00:00:00.000Z"),
        a_run(tmp_path, "20260103T000000Z-000aaa"),
    ]
    assert runs_in(tmp_path) == in_order


@pytest.mark.parametrize("text", ["", "{", '{"started_at": "yesterday"}', '{"started_at": 3}'])
def test_what_does_not_tell_its_start_comes_first(tmp_path: Path, text: str) -> None:
    a_run(tmp_path, "20260101T000000Z-000aaa")
    path = tmp_path / "odd"
    path.mkdir()
    (path / "run.json").write_text(text, encoding="utf-8")
    assert runs_in(tmp_path) == ["odd", "20260101T000000Z-000aaa"]


def test_what_is_no_run_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").write_text("")
    name = a_run(tmp_path, "run")
    assert runs_in(tmp_path) == [name]
    assert runs_in(tmp_path / "nowhere") == runs_in(tmp_path / "file") == []


def test_an_id_begins_with_its_time() -> None:
    before, made, after = datetime.now(UTC), new_run_id(), datetime.now(UTC)
    assert beginning_of_id(before) <= made[:-3] <= beginning_of_id(after)
