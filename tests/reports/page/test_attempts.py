"""Attempts that were not counted: how they ended, what was said, and where their files are."""

from __future__ import annotations

from pathlib import Path

from skillup.reports.html.limits import ORDINARY
from skillup.reports.html.run_data import RunData
from skillup.schema.record import Record, TurnError
from skillup.store import RunDirectory
from tests.support.stored import a_grade, a_record

JOB = "case/scripted/with_skill/1"


def _run(path: Path, *earlier: Record | None) -> RunData:
    """A trial whose last attempt passed; `earlier` ones, or None where the record is damaged."""
    with RunDirectory.create(path, {"run_id": "run", "jobs": [JOB]}) as run:
        last = a_record().model_copy(update={"attempt": len(earlier) + 1})
        run.write_record(JOB, last)
        run.write_grade(JOB, a_grade())
        trial = path / "trials" / JOB
        for number, record in enumerate(earlier, start=1):
            text = "{" if record is None else record.model_dump_json()
            (trial / f"attempt-{number}.json").write_text(text)
            (trial / f"raw.attempt-{number}").mkdir()
            (trial / f"raw.attempt-{number}/turn-01.stdout.jsonl").write_text("")
    return RunData(path)


def test_each_says_how_it_ended_with_its_turns_and_files(tmp_path: Path) -> None:
    crashed = a_record(error=TurnError(kind="crash", message="exit code 1"), response="")
    gate = a_record(response="no")
    update = {"status": "failed", "reason": "post-condition not met: x"}
    gate = gate.model_copy(update={"turns": [gate.turns[0].model_copy(update=update)]})

    told = _run(tmp_path / "run", crashed, gate, None).detail(1, ORDINARY)["attempts"]

    assert [one["attempt"] for one in told] == [1, 2, 3]
    assert [one["error"] and one["error"]["kind"] for one in told] == ["crash", None, None]
    assert [one["reason"] for one in told] == [
        "", "post-condition not met: x", "its record cannot be read",
    ]  # fmt: skip
    assert [[turn["response"] for turn in one["turns"]] for one in told] == [[""], ["no"], []]
    raw = "raw.attempt-1/turn-01.stdout.jsonl"
    assert [link["name"] for link in told[0]["raw"]] == ["attempt-1.json", raw]
    assert [link["href"] for link in told[0]["turns"][0]["raw"]] == [f"trials/{JOB}/{raw}"]


def test_the_first_attempt_has_none_before_it(tmp_path: Path) -> None:
    assert _run(tmp_path / "run").detail(1, ORDINARY)["attempts"] == []


def test_a_link_in_place_of_its_record_is_not_followed(tmp_path: Path) -> None:
    run = _run(tmp_path / "run", None)
    (tmp_path / "other.json").write_text(a_record(response="secret").model_dump_json())
    place = tmp_path / "run/trials" / JOB / "attempt-1.json"
    place.unlink()
    place.symlink_to(tmp_path / "other.json")
    assert "secret" not in str(run.detail(1, ORDINARY))


def test_a_damaged_number_of_attempts_does_not_hold_up_the_page(tmp_path: Path) -> None:
    """S13: a record with `attempt: 10**30` kept the report busy for ever."""
    _run(tmp_path / "run")
    path = tmp_path / "run/trials" / JOB / "record.json"
    damaged = a_record().model_copy(update={"attempt": 10**30})
    path.write_text(damaged.model_dump_json())
    (tmp_path / "run/events.jsonl").unlink()  # which knows what the run has written
    run = RunData(tmp_path / "run")
    assert len(run.detail(1, ORDINARY)["attempts"]) == 999
