"""RunDirectory: what is finished is there whole, and nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.history.runs import read_run
from skillup.schema.record import TurnError, TurnRecord
from skillup.store import RunDirectory
from skillup.store.files import unpack
from skillup.store.stored_run import parsed_record
from tests.support.records import file_states
from tests.support.stored import a_checkpoint, a_grade, a_record, a_result, change

JOB = "case/scripted/with_skill/1"


def mask(text: str) -> str:
    return text.replace("sk-1", "***")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    info = {"run_id": "r1", "jobs": [JOB]}
    with RunDirectory.create(tmp_path / "a run?#%41", info, mask=mask) as made:
        yield made


def test_what_was_written_comes_back_and_the_layout_is_as_documented(run: RunDirectory) -> None:
    place = run.begin_trial(JOB)
    with_output = place.streams.open("turn-01.stdout.jsonl")
    with_output.write(b"one\n")
    with_output.close()
    place.keep_artifact("out/a.txt", b"of sk-1")
    place.keep_artifact("out/b\udcff.txt", b"of an odd name")
    sha = run.blobs.put(b"content")
    run.write_record(JOB, a_record(response="Grüße"))
    run.write_grade(JOB, a_grade(reason="first"))
    run.write_grade(JOB, a_grade(reason="second"))
    run.write_result(a_result())
    run.remove_scratch(JOB)
    run.close()
    assert {path.name for path in run.path.iterdir()} == {"run.sqlite", "result.json", "lock"}

    again = RunDirectory.open(run.path)
    assert again.run_info() == {"run_id": "r1", "jobs": [JOB]}
    assert again.read_record(JOB) == a_record(response="Grüße")
    assert again.read_grade(JOB) == a_grade(reason="second")
    assert again.read_result() == a_result()
    assert again.blobs.get(sha) == b"content"
    files = {name: b"".join(read()) for name, read in again.trial_files(JOB).items()}
    assert list(files) == [
        *("record.json", "grading.json", "raw/turn-01.stdout.jsonl"),
        *("files/out/a.txt", "files/out/b\\xff.txt"),
    ]
    assert files["files/out/a.txt"] == b"of ***"
    assert files["raw/turn-01.stdout.jsonl"] == b"one\n"
    assert [event["event"] for event in again.events()] == [
        *("run_created", "trial_started", "trial_finished"),
        "result_written",
    ]
    with pytest.raises(RuntimeError, match="reading only"):
        again.write_record(JOB, a_record())


def test_a_trial_has_one_record(run: RunDirectory) -> None:
    run.write_record(JOB, a_record(response="first"))
    run.sync()
    run.write_record(JOB, a_record(response="second"))
    with pytest.raises(RunDirectoryError, match="UNIQUE"):
        run.sync()
    with pytest.raises(RunDirectoryError):
        run.close()
    assert RunDirectory.open(run.path).read_record(JOB).turns[0].response == "first"


def test_readers_see_what_is_committed_while_the_run_goes_on(run: RunDirectory) -> None:
    reader = RunDirectory.open(run.path)
    seen = reader.progress_stamp()
    run.write_record(JOB, a_record())
    run.sync()
    assert reader.progress_stamp() != seen
    assert reader.finished_jobs() == {JOB}
    with pytest.raises(RunDirectoryError, match="is being written"):
        RunDirectory.open(run.path, writable=True)
    run.close()  # the reader goes on, as `skillup view` does
    alone = run.path.parent / "copy"
    alone.mkdir()
    shutil.copy(run.path / "run.sqlite", alone)
    alone = Path(f"/{alone}")  # two slashes are one
    assert RunDirectory.open(alone).finished_jobs() == {JOB}, "all of it is in this file"


def test_a_run_that_another_program_writes_meanwhile_is_not_believed(run: RunDirectory) -> None:
    """S8: a record in another trial's place ended the run, and `--resume` believed it."""
    run.write_record(JOB, a_record())
    run.sync()
    change(run.path, "UPDATE attempts SET grade = record")
    with pytest.raises(RunDirectoryError, match="changed by another program"):
        run.write_result(a_result())
    assert not (run.path / "result.json").exists()
    with pytest.raises(RunDirectoryError):
        run.close()
    with pytest.raises(RunDirectoryError, match="changed by another program"):
        RunDirectory.open(run.path, writable=True)
    with pytest.raises(RunDirectoryError, match="changed by another program"):
        read_run(run.path)


@pytest.mark.parametrize("gone", [True, False])
def test_a_run_whose_file_another_took_the_place_of_has_ended(
    run: RunDirectory, gone: bool
) -> None:
    file = run.path / "run.sqlite"
    file.rename(run.path / "own")
    if not gone:
        shutil.copy(run.path / "own", file)
    run.journal("note")
    with pytest.raises(RunDirectoryError, match="changed by another program"):
        run.sync()
    with pytest.raises(RunDirectoryError):
        run.close()


@pytest.mark.parametrize(
    "job", ["../../etc/x/1/1", "a b/ä\n/-v/1", "x" * 400 + "/p/v/1", "raw/p/v/2"]
)
def test_odd_job_ids_come_back_as_they_were(run: RunDirectory, job: str) -> None:
    run.begin_trial(job)
    run.write_record(job, a_record())
    assert run.finished_jobs() == {job}
    run.remove_scratch(job)


@pytest.mark.parametrize(
    "damage", [b"", b'{"run_id": "r', b"\0" * 100, b"[]", b"{}", b"[" * 200_000]
)
def test_a_damaged_record_is_none_and_the_trial_can_be_run_again(
    run: RunDirectory, damage: bytes
) -> None:
    run.write_record(JOB, a_record())
    run.write_grade(JOB, a_grade())
    run.close()
    change(run.path, "UPDATE attempts SET record = ?", zlib.compress(damage) if damage else damage)
    with RunDirectory.open(run.path, writable=True) as again:
        assert again.finished_record(JOB) is None
        with pytest.raises(RunDirectoryError, match="damaged"):
            again.read_record(JOB)
        again.take_back(JOB)
        again.write_record(JOB, a_record())
        assert again.finished_record(JOB) == a_record()
        assert list(again.attempts(JOB)) == []
        assert again.read_grade(JOB) is None


@pytest.mark.parametrize("numbers", [(2,), (0,), (-1,), (1, 1), (2, 1), (1, 3), ()])
def test_a_record_of_another_version_or_with_turns_out_of_order_is_damaged(
    run: RunDirectory, numbers: tuple[int, ...]
) -> None:
    turns = [TurnRecord(turn_number=n, status="completed", content="") for n in numbers]
    version = a_record().schema_version if numbers else "skillup.record/9"
    odd = a_record().model_copy(update={"turns": turns, "schema_version": version})
    run.write_record(JOB, odd)
    with pytest.raises(RunDirectoryError, match="damaged"):
        run.read_record(JOB)


def test_a_trial_begins_anew_beside_what_an_earlier_attempt_left(run: RunDirectory) -> None:
    first = run.begin_trial(JOB)
    first.streams.open("turn-01.stdout.jsonl").write(b"old")
    first.keep_artifact("a.txt", b"old")
    (first.scratch / "workspace").mkdir()
    second = run.begin_trial(JOB)
    assert not first.scratch.exists()
    assert list(second.scratch.iterdir()) == []
    second.streams.open("turn-01.stdout.jsonl").close()
    run.write_record(JOB, a_record())
    assert list(run.trial_files(JOB)) == [
        *("raw.attempt-1/turn-01.stdout.jsonl", "files.attempt-1/a.txt"),
        *("record.json", "raw/turn-01.stdout.jsonl"),
    ]


def test_streams_of_messages_that_do_not_count_are_kept_under_other_names(
    run: RunDirectory,
) -> None:
    streams, user = run.begin_trial(JOB).streams, "user/turn-01.stdout.jsonl"
    for attempt in (1, 2):
        for ending in ("stdout.jsonl", "stderr.txt"):
            streams.open(f"turn-01.{ending}").close()
        if attempt == 1:
            streams.set_aside("turn-01", "refused")
    streams.set_aside("turn-01", "refused")
    streams.open("turn-02-follow-up-1.stdout.jsonl").close()
    streams.below("user").open("turn-01.stdout.jsonl").close()
    names = [f"turn-01.refused-{n}.{end}" for n in (1, 2) for end in ("stderr.txt", "stdout.jsonl")]
    raw = [name.removeprefix("raw/") for name in run.trial_files(JOB)]
    assert raw == [*names, "turn-02-follow-up-1.stdout.jsonl", user]
    other = run.begin_trial("other/p/v/1").streams
    other.copy_from(streams)
    other.remove_from(2)
    assert [name.removeprefix("raw/") for name in run.trial_files("other/p/v/1")] == [*names, user]


def test_retried_attempts_are_kept_and_do_not_finish_the_trial(run: RunDirectory) -> None:
    for response in ("one", "two", "three"):
        run.begin_trial(JOB)
        error = TurnError(kind="rate_limit", message="wait")
        run.write_record(JOB, a_record(response=response, error=error), state="retried")
    assert run.finished_jobs() == set()
    assert [e["error"] for e in run.events() if e["event"] == "trial_retried"] == ["rate_limit"] * 3
    assert [record.turns[0].response for record in run.attempts(JOB)] == ["one", "two", "three"]
    assert list(run.trial_files(JOB)) == [f"attempt-{number}.json" for number in (1, 2, 3)]


def test_a_trial_of_another_run_comes_beside_what_was_begun_here(
    run: RunDirectory, tmp_path: Path
) -> None:
    run.begin_trial(JOB).streams.open("turn-01.stdout.jsonl").write(b"old")
    with RunDirectory.create(tmp_path / "other", {}) as other:
        other.begin_trial(JOB).streams.open("turn-01.stdout.jsonl").close()
        other.write_record(JOB, a_record())
        [(_, found)] = run.take_attempts(other, JOB, {})
    run.write_record(JOB, found.record())
    assert list(run.trial_files(JOB)) == [
        *("raw.attempt-1/turn-01.stdout.jsonl", "record.json", "raw/turn-01.stdout.jsonl")
    ]


def test_a_content_that_was_damaged_can_be_put_again(run: RunDirectory) -> None:
    sha = run.blobs.put(b"content")
    run.close()
    change(run.path, "UPDATE blobs SET data = x'00'")
    with RunDirectory.open(run.path, writable=True) as again:
        assert again.blobs.get(sha) is None
        assert again.blobs.put(b"content") == sha
        again.sync()
        assert again.blobs.get(sha) == b"content"


def test_secrets_are_masked_wherever_they_stand(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path / "run", {"key": "sk-1"}, mask=mask) as run:
        place = run.begin_trial(JOB)
        place.keep_artifact("a.txt", b"sk-1")
        stored = run.write_record(JOB, a_record(response="sk-1"))
        run.write_grade(JOB, a_grade(reason="sk-1"))
        run.journal("note", text="sk-1")
    assert stored.turns[0].response == "***"
    connection = sqlite3.connect(tmp_path / "run" / "run.sqlite")
    for table in ("run", "attempts", "files", "blobs", "events"):
        for row in connection.execute(f"SELECT * FROM {table}"):
            for value in row:
                with suppress(ValueError):  # no such text
                    value = unpack(value)
                assert "sk-1" not in str(value)
    connection.close()


def test_create_refuses_what_is_there_already(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.sqlite.new").write_bytes(b"what kill -9 left")
    RunDirectory.create(tmp_path / "run", {}).close()
    with pytest.raises(RunDirectoryError, match="holds a run") as caught:
        RunDirectory.create(tmp_path / "run", {})
    assert "--resume" in (caught.value.hint or "")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(RunDirectoryError, match="not empty"):
        RunDirectory.create(tmp_path / "mine", {})
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("content", [None, b"", b"SQLite format 3\0", b"x" * 5000])
def test_open_refuses_what_is_no_run(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "run.sqlite").write_bytes(content)
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(RunDirectoryError):
            RunDirectory.open(path)


def test_a_run_in_a_folder_that_may_not_be_written_can_be_read(run: RunDirectory) -> None:
    run.write_record(JOB, a_record())
    run.close()
    program = (
        "import os, sys; from pathlib import Path; from skillup.store import RunDirectory\n"
        "os.geteuid() or os.setuid(65534)\n"
        "print(sorted(RunDirectory.open(Path(sys.argv[1])).finished_jobs()))"
    )
    own = takewhile(lambda folder: folder != Path(tempfile.gettempdir()), run.path.parents)
    for folder in (run.path, *own):
        folder.chmod(0o555 if folder == run.path else 0o755)
    try:
        command = [sys.executable, "-c", program, str(run.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        run.path.chmod(0o755)
    assert done.stdout.strip() == f"['{JOB}']", done.stderr


def test_readers_never_see_what_was_not_committed_nor_half_of_it(run: RunDirectory) -> None:
    """Where a rollback journal takes the log's place."""
    run.write_record(JOB, a_record())
    run.close()
    program = (
        "import os, sqlite3, sys; file = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "file.executescript('PRAGMA cache_size = 1; BEGIN; DELETE FROM attempts')\n"
        "file.executemany('INSERT INTO events (json) VALUES (?)', [('x' * 9000,)] * 100)\n"
        "os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program, str(run.path / "run.sqlite")], check=False)
    assert (run.path / "run.sqlite-journal").stat().st_size
    assert RunDirectory.open(run.path).finished_jobs() == {JOB}


def test_a_run_can_be_closed_while_threads_read_it(run: RunDirectory) -> None:
    """It crashed the process."""
    for number in range(2000):
        run.journal("note", number=number)
    run.sync()

    def read(reader: RunDirectory) -> None:
        while True:
            reader.database.rows("SELECT json FROM events ORDER BY json")

    with ThreadPoolExecutor() as threads:
        for _ in range(60):
            reader = RunDirectory.open(run.path)
            reading = [threads.submit(read, reader) for _ in range(2)]
            reader.database.rows("SELECT json FROM events")
            reader.close()
            assert {type(each.exception()) for each in reading} == {RunDirectoryError}


def test_the_result_of_an_earlier_start_does_not_outlive_the_next_trial(run: RunDirectory) -> None:
    run.write_result(a_result())
    run.close()
    with RunDirectory.open(run.path, writable=True) as again:
        assert again.read_result() == a_result()
        again.write_record(JOB, a_record())
        assert not (run.path / "result.json").exists()
        assert (run.path / "result.json.earlier").exists()
        again.write_result(a_result())
    assert RunDirectory.open(run.path).read_result() == a_result()


@pytest.mark.parametrize(("name", "answer"), [("a.txt", "x"), ("a.txt", "sk-1"), ("sk-1", "x")])
def test_a_long_list_of_files_is_stored_once(run: RunDirectory, name: str, answer: str) -> None:
    """F9: 5.6 MB of it were written again with each checkpoint."""
    files = file_states({**{f"{number:04}": "x" for number in range(3000)}, name: "y"})
    after = {**files, "new": files["0000"]}
    turn = a_record(response=answer).turns[0].model_copy(update={"files": after})
    record = a_record().model_copy(update={"initial_files": files, "turns": [turn]})
    for job in (JOB, JOB.replace("/1", "/2")):
        run.begin_trial(job)
        for messages in (1, 2):
            run.write_checkpoint(job, a_checkpoint(messages=messages, record=record))
        found = run.read_checkpoint(job)
        stored = run.write_record(job, record)
        assert found is not None
        assert found.record == stored == run.read_record(job)
    assert (stored == record) is ("sk-1" not in (name, answer))
    assert [one.record() for one in run.finished()] == [stored, stored]
    exported = b"".join(run.trial_files(JOB)["record.json"]())
    assert parsed_record(exported, "") == stored
    sql = "SELECT (SELECT count(*) FROM file_lists), sum(length(record)) FROM attempts"
    [(lists, size)] = run.database.rows(sql)
    assert (lists, size < 3000) == ((0, False) if name == "sk-1" else (1, True))


def test_the_latest_checkpoint_is_read_until_the_trial_has_finished_or_begins_anew(
    run: RunDirectory,
) -> None:
    assert run.read_checkpoint(JOB) is None
    run.begin_trial(JOB)
    run.write_checkpoint(JOB, a_checkpoint(messages=1))
    run.write_checkpoint(JOB, a_checkpoint(messages=2))
    assert run.read_checkpoint(JOB) == a_checkpoint(messages=2)
    run.begin_trial(JOB)
    assert run.read_checkpoint(JOB) is None
    for bad in (
        a_checkpoint(schema_version="skillup.checkpoint/9"),
        a_checkpoint(variables={"name": "my sk-1"}),
    ):
        run.write_checkpoint(JOB, a_checkpoint())
        run.write_checkpoint(JOB, bad)
        assert run.read_checkpoint(JOB) is None
    run.write_checkpoint(JOB, a_checkpoint())
    run.write_record(JOB, a_record())
    assert run.read_checkpoint(JOB) is None
    run.take_back(JOB)
    assert run.read_checkpoint(JOB) is None
    assert [record.turns for record in run.attempts(JOB)] == [a_record().turns]


WRITER = """
import asyncio, sys
from pathlib import Path
from skillup.store import RunDirectory
from tests.support.stored import a_grade, a_record

async def main():
    run = RunDirectory.create(Path(sys.argv[1]), {"run_id": "r"})
    print("made", flush=True)

    async def trial(n):
        run.begin_trial(f"case/p/v/{n}").streams.open("turn-01.stdout.jsonl").write(b"x" * 5000)
        run.blobs.put(bytes(3000) + n.to_bytes(4, "big"))
        run.write_record(f"case/p/v/{n}", a_record(response=str(n) * 500))
        run.write_grade(f"case/p/v/{n}", a_grade())
        await run.committed()
        print(n, flush=True)

    for n in range(0, 100_000, 8):
        await asyncio.gather(*(trial(n + i) for i in range(8)))

asyncio.run(main())
"""


@pytest.mark.parametrize("seed", range(3))
def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    command = [sys.executable, "-c", WRITER, str(tmp_path / "run")]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as writer:
        assert writer.stdout is not None
        acknowledged = {next(writer.stdout) for _ in range(chance.randrange(1, 200))}
        writer.kill()
        acknowledged |= {line for line in writer.stdout if line.endswith("\n")}
    # A torn write at the end of the log costs what had not been acknowledged at most.
    torn = shutil.copytree(tmp_path / "run", tmp_path / "torn")
    log = torn / "run.sqlite-wal"
    with log.open("ab") as file:
        file.write(chance.randbytes(chance.randrange(1, 9000)))
    for path in (tmp_path / "run", torn):
        with RunDirectory.open(path, writable=True) as again:
            finished = {job.rpartition("/")[2] for job in again.finished_jobs()}
            assert {line.strip() for line in acknowledged} - {"made"} <= finished
            for found in again.finished():
                number = found.job_id.rpartition("/")[2]
                assert found.record().turns[0].response == number * 500
                # Of what was not acknowledged, the record may be there and the grade not yet.
                known = [a_grade()] if f"{number}\n" in acknowledged else [a_grade(), None]
                assert found.grade() in known
