"""Which trials of a run `skillup show` prints, and where what it prints of them is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from skillup.errors import RunDirectoryError, UsageError
from skillup.plan import is_named
from skillup.reports.html.run_files import RawFiles, progress_of
from skillup.reports.terminal.conversation import ShownTrial
from skillup.reports.terminal.listing import shown_path
from skillup.reports.text import listed_ids, plain, shown_id
from skillup.schema.grade import BASELINE
from skillup.schema.record import Record
from skillup.store import RunDirectory, trials


@dataclass(slots=True)
class ShownTrials:
    """The trials that are shown."""

    run: RunDirectory
    run_id: str
    ended: int
    """How many trials match and have ended, failed or not."""
    jobs: Mapping[str, Path]
    """Those that are shown: their directories."""
    labels: Mapping[str, str]
    unreadable: dict[str, str] = field(default_factory=dict)
    """Jobs whose record or grade cannot be read, and why; known when :meth:`trials` has ended."""

    def trials(self) -> Iterator[ShownTrial]:
        """One at a time in memory."""
        raw = RawFiles(self.run.path, progress_of(self.run.events()).forks)
        for job, directory in self.jobs.items():
            try:
                record = trials.load_record(directory / trials.RECORD_FILE)
            except trials.DamagedRecordError:
                self.unreadable[job] = "its record is damaged; `skillup run --resume` runs it anew"
                continue
            except RunDirectoryError as error:
                self.unreadable[job] = error.message
                continue

            def streams(turn: int, follow_up: int, job: str = job) -> list[Path]:
                links = raw.of_turn(job, turn, follow_up)
                paths = (unquote(link["href"], errors="surrogateescape") for link in links)
                return [Path(shown_path(self.run.path / path)) for path in paths]

            grade = trials.load_grade(directory / trials.GRADE_FILE)
            if grade is None and (directory / trials.GRADE_FILE).exists():
                self.unreadable[job] = (
                    "its grade is damaged; `skillup run --resume` derives it anew"
                )
            # Those before the attempt that counts, as far as they can be read.
            earlier: list[tuple[Path, Record]] = []
            for path in directory.glob("attempt-*.json*"):
                with suppress(trials.DamagedRecordError, RunDirectoryError):
                    earlier.append((Path(shown_path(path)), trials.load_record(path)))
            earlier.sort(key=lambda one: (one[1].started_at, one[0]))
            where = Path(shown_path(directory))
            yield ShownTrial(job, self.labels[job], where, record, grade, streams, earlier)


def shown_trials(
    path: Path, glob: str | None, trial: int | None, *, only_failed: bool
) -> ShownTrials:
    """The trials of the run at `path` that match, in the order of its plan.

    Raises UsageError if no trial of that name has ended, and RunDirectoryError.
    """
    run = RunDirectory.open(path)
    info = run.run_info()
    planned = list(info.get("jobs") or ())
    order = {job: place for place, job in enumerate(planned)}
    found = dict(trials.directories_with_records(run.path / "trials"))
    ended = {job: found[job] for job in sorted(found, key=lambda j: order.get(j, len(order)))}
    parts = {job: job.rsplit("/", maxsplit=3) for job in [*planned, *ended]}
    parts = {job: part for job, part in parts.items() if len(part) == 4 and part[3].isdecimal()}
    taken = [
        job
        for job in ended
        if job in parts
        and (glob is None or is_named(parts[job][0], parts[job][0].partition("/")[0], (glob,)))
        and trial in (None, int(parts[job][3]))
    ]
    if not taken and (glob is not None or trial is not None):
        what = "no trial" + (f" {trial}" if trial is not None else "")
        what += f" of {glob}" if glob is not None else ""
        names = listed_ids([job for job in ended if job in parts]) or "none yet"
        raise UsageError(f"{what} has ended in this run", hint=f"there are: {names}")
    shown = [job for job in taken if not only_failed or _has_failed(ended[job])]
    # A trial in a few words: what distinguishes it from the others of the run.
    differ = [len(set(column)) > 1 for column in zip(*parts.values(), strict=True)]
    labels = {}
    for job, (case, engine, variant, number) in parts.items():
        words = [engine, variant.removesuffix("_skill"), f"#{number}"]
        own = [word for word, differs in zip(words, differ[1:], strict=True) if differs]
        labels[job] = plain(" ".join([shown_id(case), *own]))
    run_id = str(info.get("run_id") or run.path.name)
    return ShownTrials(run, run_id, len(taken), {job: ended[job] for job in shown}, labels)


def _has_failed(directory: Path) -> bool:
    """Or has no grade yet; without the skill a failure is what a baseline is there to show."""
    grade = trials.load_grade(directory / trials.GRADE_FILE)
    if grade is None or grade.status == "ERROR":
        return True
    return grade.status == "FAIL" and grade.variant != BASELINE
