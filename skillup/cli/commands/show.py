"""`skillup show`: read conversations of a run in the terminal."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Annotated
from urllib.parse import unquote

import typer

from skillup.cli.options import RUN_HELP, AsJson
from skillup.errors import RunDirectoryError, UsageError
from skillup.plan import is_named
from skillup.reports.html.progress import progress_of
from skillup.reports.html.raw_files import RawFiles
from skillup.reports.terminal.conversation import ShownTrial
from skillup.reports.terminal.listing import shown_path
from skillup.reports.text import listed_ids, plain, shown_id
from skillup.schema.grade import BASELINE, Grade
from skillup.schema.record import Record
from skillup.store import RunDirectory, trials
from skillup.store.places import check_shape_of_run
from skillup.store.run_directory import RUN_FILE


def show(
    run: Annotated[str, typer.Argument(metavar="[RUN]", help=RUN_HELP)] = "last",
    case: Annotated[
        str | None,
        typer.Argument(
            metavar="[CASE_GLOB]", help="Cases whose id matches; '*': all. See also --failed."
        ),
    ] = None,
    trial: Annotated[
        int | None, typer.Option("--trial", min=1, help="Only this repetition.")
    ] = None,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed", help="Only what failed or met an error; the default if no case is named."
        ),
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Nothing shortened.")] = False,
    as_json: AsJson = False,
) -> int:
    """Print conversations of a run, turn by turn, with what the checks found.

    Without arguments: those of the last run that failed or met an error.

    Exit code: 0, or 2 if there is no such run or case.
    """
    from skillup.app.run_lookup import run_path

    only_failed = failed or (case is None and trial is None)
    shown = shown_trials(run_path(run), TrialFilter(case, trial, only_failed))
    if as_json:
        _print_json(shown)
    else:
        _print(shown, run, case, full)
    return 0


def _print(shown: Shown, run: str, case: str | None, full: bool) -> None:
    from rich.markup import escape

    from skillup.reports.terminal.conversation import print_trial
    from skillup.reports.terminal.layout import make_console
    from skillup.reports.text import plain

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # agents' texts may hold halves of characters
    console = make_console(sys.stdout)
    for number, held in enumerate(shown.trials()):
        if number:
            console.print()
        print_trial(held, console, full=full)
    for job, why in shown.unreadable.items():
        console.print(f"[yellow]{escape(plain(job))}: {escape(plain(why))}[/]", soft_wrap=True)
    if not shown.jobs:
        every = f"skillup show {quote(run)} {quote(case or '*')}"
        ended = f"{shown.ended} trial{'s' if shown.ended != 1 else ''}"
        what = f"none of the {ended} that ended failed or met an error"
        if not shown.ended:
            what = "no trial has ended: they were not held, or are being held"
        console.print(plain(f"{shown.run_id}: {what}"), markup=False, soft_wrap=True)
        if shown.ended:
            console.print(plain(f"to see all: {every}"), markup=False, soft_wrap=True)


def _print_json(shown: Shown) -> None:
    """``{"run_id", "trials": [{"job", "grade", "record"}]}``, a trial at a time."""
    import json

    from skillup.store.journal import no_mask, to_json

    sys.stdout.write(f'{{"run_id": {json.dumps(shown.run_id)}, "trials": [')
    separator = "\n"
    for held in shown.trials():
        data = {
            "job": held.job,
            "grade": held.grade.model_dump(mode="json", by_alias=True) if held.grade else None,
            "record": held.record.model_dump(mode="json", by_alias=True),
        }
        sys.stdout.write(separator + to_json(data, no_mask, indent=None).decode().rstrip("\n"))
        separator = ",\n"
    sys.stdout.write("\n]}\n")


# Which trials of a run `skillup show` prints, and where what it prints of them is.


@dataclass(frozen=True, slots=True)
class TrialFilter:
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

    def trials(self) -> Iterator[ShownTrial]:
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
            yield ShownTrial(job, self.labels[job], where, record, grade, streams, earlier)


def shown_trials(path: Path, wanted: TrialFilter) -> Shown:
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


def _nothing(wanted: TrialFilter, planned: list[str]) -> str:
    what = "no trial" if wanted.trial is None else f"no trial {wanted.trial}"
    of = "" if wanted.glob is None else f" of {wanted.glob}"
    if any(_is_whole(job) and wanted.takes(job) for job in planned):
        return f"{what}{of} has ended: it was not run, or is running"
    return f"{what}{of} is in this run"


def _there(wanted: TrialFilter, jobs: list[str]) -> str:
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
