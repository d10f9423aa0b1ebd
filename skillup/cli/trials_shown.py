"""Which trials of a run `skillup show` prints, and where what it prints of them is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

from skillup.errors import RunDirectoryError, UsageError
from skillup.plan import is_named
from skillup.reports.conversation import HeldTrial
from skillup.reports.page.progress import progress_of
from skillup.reports.page.raw_files import RawFiles
from skillup.reports.problems import shown_path
from skillup.reports.text import listed_ids, plain, shown_id
from skillup.schema.grade import BASELINE, Grade
from skillup.schema.record import Record
from skillup.store import RunDirectory, trials
from skillup.store.run_directory import RUN_FILE
from skillup.store.run_shape import check_shape_of_run


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for."""

    glob: str | None
    """Of case ids."""
    trial: int | None
    only_failed: bool

    def takes(self, job: str) -> bool:
        """Whether the job is one that was asked for, whatever it came to."""
        case, _, _, trial = job.rsplit("/", maxsplit=3)
        family = case.partition("/")[0]
        named = self.glob is None or is_named(case, family, (self.glob,))
        return named and self.trial in (None, int(trial))


@dataclass(slots=True)
class Shown:
    """The trials that are shown."""

    run: RunDirectory
    run_id: str
    ended: int
    """How many trials were asked for and have ended, failed or not."""
    jobs: Mapping[str, Path]
    """Those that are shown: their directories."""
    labels: Mapping[str, str]
    unreadable: dict[str, str] = field(default_factory=dict)
    """Jobs whose record or grade cannot be read, and why; known when :meth:`trials` has ended."""

    def trials(self) -> Iterator[HeldTrial]:
        """One at a time in memory."""
        raw = RawFiles(self.run.path, progress_of(self.run.events()).forks)
        for job, directory in self.jobs.items():
            try:
                record = trials.load_record(directory / trials.RECORD_FILE)
            except trials.DamagedRecordError:
                self.unreadable[job] = "its record is damaged; `skillup run --resume` holds it anew"
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
                self.unreadable[job] = "its grade is damaged; `skillup judge` derives it anew"
            where = Path(shown_path(directory))
            earlier = list(_earlier(directory))
            yield HeldTrial(job, self.labels[job], where, record, grade, streams, earlier)


def shown_trials(path: Path, wanted: Wanted) -> Shown:
    """The trials of the run at `path` that are wanted, in the order of its plan.

    Raises UsageError if no trial of that name has ended, and RunDirectoryError.
    """
    run = RunDirectory.open(path)
    info = run.run_info()
    check_shape_of_run(info, run.path / RUN_FILE)
    planned = list(info.get("jobs") or ())
    order = {job: place for place, job in enumerate(planned)}
    ended = dict(trials.directories_with_records(run.path / "trials"))
    jobs = sorted(filter(_is_whole, ended), key=lambda job: order.get(job, len(order)))
    taken = [job for job in jobs if wanted.takes(job)]
    if not taken and (wanted.glob is not None or wanted.trial is not None):
        raise UsageError(_nothing(wanted, planned), hint=_there(wanted, jobs))
    chosen = [job for job in taken if not wanted.only_failed or _is_bad(ended[job])]
    return Shown(
        run,
        str(info.get("run_id") or run.path.name),
        len(taken),
        {job: ended[job] for job in chosen},
        _labels([*planned, *jobs]),
    )


def _is_whole(job: str) -> bool:
    parts = job.rsplit("/", maxsplit=3)
    return len(parts) == 4 and parts[3].isdecimal()


def _is_bad(directory: Path) -> bool:
    """As in summary.md: without the skill a failure is what a baseline is there to show."""
    grade: Grade | None = trials.load_grade(directory / trials.GRADE_FILE)
    if grade is None:
        return True  # nobody knows yet
    return grade.status == "ERROR" or (grade.status == "FAIL" and grade.variant != BASELINE)


def _nothing(wanted: Wanted, planned: list[str]) -> str:
    what = "no trial" if wanted.trial is None else f"no trial {wanted.trial}"
    of = "" if wanted.glob is None else f" of {wanted.glob}"
    if any(_is_whole(job) and wanted.takes(job) for job in planned):
        return f"{what}{of} has ended: it was not run, or is running"
    return f"{what}{of} is in this run"


def _there(wanted: Wanted, jobs: list[str]) -> str:
    alike = [job for job in jobs if replace(wanted, trial=None).takes(job)]
    if wanted.trial is not None and alike:
        numbers = sorted({int(job.rsplit("/", 1)[1]) for job in alike})
        return f"there are the trials {listed_ids([str(number) for number in numbers])}"
    cases = list(dict.fromkeys(job.rsplit("/", maxsplit=3)[0] for job in jobs))
    return f"there are: {listed_ids(cases)}" if cases else "no trial of it has ended"


def _earlier(directory: Path) -> Iterator[tuple[Path, Record]]:
    """What was held of the trial before the attempt that counts, as far as it can be read."""
    found = []
    for path in directory.glob("attempt-*.json*"):
        with suppress(trials.DamagedRecordError, RunDirectoryError):
            found.append((Path(shown_path(path)), trials.load_record(path)))
    return iter(sorted(found, key=lambda one: (one[1].started_at, one[0])))


def _labels(jobs: list[str]) -> dict[str, str]:
    """A trial in a few words: what tells it from the others of the run."""
    parts = {job: job.rsplit("/", maxsplit=3) for job in jobs if _is_whole(job)}
    several = [len({part[place] for part in parts.values()}) > 1 for place in range(4)]
    found = {}
    for job, (case, engine, variant, trial) in parts.items():
        label = [shown_id(case)]
        label += [engine] if several[1] else []
        label += [variant.removesuffix("_skill")] if several[2] else []
        label += [f"#{trial}"] if several[3] else []
        found[job] = plain(" ".join(label))
    return found
