"""The list of runs: cheap for many finished ones, and right for those in any other state."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.reports.html.run_data import RunData
from skillup.reports.result import build_result
from skillup.reports.server.runs import NoSuchRunError, Served, in_short, of_data
from skillup.store import RunDirectory
from tests.support.large_runs import write_large_run
from tests.support.stored import a_checkpoint, a_grade, a_record

JOBS = ["a/e/with_skill/1", "b/e/with_skill/1"]


def test_the_short_way_tells_what_the_long_way_does(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "r", 11, turns=1)
    assert in_short(run) == of_data(RunData(run))


def test_a_run_with_a_baseline_is_counted_by_its_trials_with_the_skill(tmp_path: Path) -> None:
    path = write_large_run(tmp_path / "r", 2, turns=1)
    info = json.loads((path / "run.json").read_text("utf-8"))
    result = RunDirectory.open(path).read_result()
    (last, old), new = (info["jobs"][-1], "with_skill"), "without_skill"
    job = f"{last.removesuffix(f'/{old}/1')}/{new}/1"
    info["jobs"][-1] = job
    (path / "run.json").write_text(json.dumps(info), "utf-8")
    (path / "trials" / last).parent.rename((path / "trials" / job).parent)
    grades = dict(zip(info["jobs"], result.cases, strict=True))
    grades[job] = grades[job].model_copy(update={"variant": new, "status": "FAIL"})
    (path / "trials" / job / "grading.json").write_text(grades[job].model_dump_json(), "utf-8")
    counted = build_result("r", "", grades, info["jobs"], 10)
    text = counted.model_dump_json(by_alias=True, indent=2)
    (path / "result.json").write_text(text, "utf-8")
    told = in_short(path)
    of_rows = of_data(RunData(path))
    assert told is not None
    for short in (told, of_rows):
        assert (short["done"], short["planned"]) == (2, 2)
        assert short["counts"]["FAIL"] == 0
        assert sum(short["counts"].values()) == 1


def test_the_grades_of_a_finished_run_are_not_read_for_the_list(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "r", 3, turns=1)
    expected = in_short(run)
    result = (run / "result.json").read_bytes()
    (run / "result.json").write_bytes(result.partition(b'"cases": [')[0] + b'"cases": [ cut short')
    assert in_short(run) == expected


def test_a_run_that_goes_on_or_has_no_result_is_read_whole(tmp_path: Path) -> None:
    served = Served(tmp_path)
    with RunDirectory.create(tmp_path / "r", {"run_id": "r", "jobs": JOBS}) as run:
        run.begin_trial(JOBS[0])
        run.write_record(JOBS[0], a_record("a"))
        run.write_grade(JOBS[0], a_grade("a"))
        assert in_short(run.path) is None
        listed = served.listing()["runs"][0]
        assert (listed["status"], listed["planned"], listed["done"]) == ("running", 2, 1)
        before = served.folder_stamp()
        assert served.folder_stamp() == before
        run.begin_trial(JOBS[1])
        assert served.folder_stamp() != before


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    write_large_run(tmp_path / "good", 1, turns=1)
    broken = {
        "torn": "{",
        "odd": "[]",
        "list": '{"jobs": 5, "suites": 1}',
        "when": '{"run_id": 7, "started_at": 5}',
        "deep": "[" * 100_000,
    }
    for name, content in broken.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(content)
    listed = {run["id"]: run["status"] for run in Served(tmp_path).listing()["runs"]}
    unfinished = {"list": "unfinished", "when": "unfinished"}
    damaged = dict.fromkeys(("torn", "odd", "deep"), "damaged")
    assert listed == {"good": "finished", **unfinished, **damaged}


def test_json_that_is_nested_too_deeply_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "r", 2, turns=1)
    record = next(run.rglob("record.json"))
    for file in (run / "result.json", record):
        file.write_text('{"a": ' + "[" * 100_000)
    with (run / "events.jsonl").open("a") as journal:
        journal.write("[" * 100_000 + "\n")
    served = Served(tmp_path, index="none")
    assert served.listing()["runs"][0]["status"] == "unfinished"
    assert len(served.index("r")["rows"]) == 2
    assert any("damaged" in served.detail("r", n).get("problem", "") for n in (1, 2))


def test_only_what_is_in_the_folder_is_served(tmp_path: Path) -> None:
    write_large_run(tmp_path / "runs/a", 1, turns=1)
    write_large_run(tmp_path / "b", 1, turns=1)
    served = Served(tmp_path / "runs")
    for name in ("../b", "b", "", ".", "a/", "./a", str(tmp_path / "b")):
        with pytest.raises(NoSuchRunError):
            served.path(name)
    alone = Served(tmp_path, only="b")
    assert alone.ids() == ["b"]
    with pytest.raises(NoSuchRunError):
        alone.path("runs")


def test_a_page_is_read_again_only_when_something_changed(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "r", 2, turns=1)
    served = Served(tmp_path, index="none")
    before = served.stamp("r")
    assert served.stamp("r") == before
    with (run / "events.jsonl").open("a") as journal:
        journal.write(json.dumps({"event": "run_reopened"}) + "\n")
    assert served.stamp("r") != before


def test_a_run_that_is_damaged_and_mended_is_seen_so(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "r", 2, turns=1)
    served = Served(tmp_path, index="none")
    before, whole = served.stamp("r"), (run / "run.json").read_text()
    (run / "run.json").write_text("{")
    for _ in range(2):
        with pytest.raises(RunDirectoryError, match="is damaged"):
            served.index("r")
    (run / "run.json").write_text(whole)
    assert len(served.index("r")["rows"]) == 2
    assert served.stamp("r") != before


def test_two_runs_that_are_asked_for_beside_each_other_at_once_do_not_wait_for_ever(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        write_large_run(tmp_path / name, 3, turns=1)
    served = Served(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(served.index, *pair) for pair in [("a", "b"), ("b", "a")] * 10]
        told = [one.result(timeout=60)["sides"]["b"]["run_id"] for one in asked]
    assert told == ["a", "b"] * 10


def test_a_conversation_of_the_other_run_is_that_of_its_number(tmp_path: Path) -> None:
    write_large_run(tmp_path / "a", 2, turns=1)
    write_large_run(tmp_path / "b", 3, turns=1, seed=2)
    served = Served(tmp_path)
    alone = served.detail("a", 2)
    beside = served.detail("b", 5, against="a")
    assert (beside["n"], beside["turns"]) == (5, served.detail("a", 2)["turns"])
    assert alone["raw"] == beside["raw"], "links lead into the run it is of"


def test_the_end_of_a_turn_and_the_grade_are_noticed_without_a_word_in_the_journal(
    tmp_path: Path,
) -> None:
    with RunDirectory.create(tmp_path / "r", {"run_id": "r", "jobs": JOBS[:1]}) as run:
        served = Served(tmp_path)
        run.begin_trial(JOBS[0])
        stamps = [served.stamp("r")]
        run.write_checkpoint(JOBS[0], a_checkpoint())
        stamps.append(served.stamp("r"))
        run.write_record(JOBS[0], a_record("a"))
        stamps.append(served.stamp("r"))
        assert served.index("r")["rows"][0]["reason"] == "being judged"
        run.write_grade(JOBS[0], a_grade("a"))
        stamps.append(served.stamp("r"))
        assert served.index("r")["rows"][0]["status"] == "PASS"
    assert len(set(stamps)) == 4
