"""`skillup judge --against`, `--labels`, `--write-labels`: how good are the judges?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from skillup.app.rejudge.cases import CaseSelection, load_edited
from skillup.app.rejudge.judging import Rejudging, say_on_stderr
from skillup.app.rejudge.secrets import hidden_of, masked_cases
from skillup.app.rejudge.setup import routers_for
from skillup.app.rejudge.sources import RecordSource, RecordSubject
from skillup.errors import ExitCode, UsageError
from skillup.judges.rejudge.judges_compared import (
    NOW,
    RECORDED,
    JudgeColumn,
    all_items,
    judged_by,
    measured_checks,
    pairs_of,
)
from skillup.judges.rejudge.labels import (
    Label,
    Score,
    against_labels,
    labels_to_fill_in,
    read_labels,
)
from skillup.judges.rejudge.regrade import RegradeItem, Regrader
from skillup.reports.rejudging_json import RejudgeCounts, panel_as_json
from skillup.reports.terminal.layout import make_console
from skillup.reports.terminal.listing import shown_path
from skillup.reports.terminal.rejudging import label_lines, pair_lines, panel_lines
from skillup.reports.text import plain
from skillup.schema.grade import Grade
from skillup.store.trials import load_grade

_LABELS_FROM = "write one with --write-labels"


@dataclass(frozen=True, slots=True)
class PanelRequest:
    """What is to be compared with what."""

    source: RecordSource
    cases: tuple[Path, ...] = ()
    selection: CaseSelection = field(default_factory=CaseSelection)
    against: tuple[str, ...] = ()
    """Models that judge in place of the cases' own."""
    labels: Path | None = None
    write_labels: Path | None = None
    quiet: bool = False
    as_json: bool = False


def compare_judges(request: PanelRequest) -> int:
    """Judge by each judge, compare, show; the exit code.

    Raises UsageError if there is nothing to compare, InvalidFilesError for wrong labels or cases.
    """
    _check_free(request.write_labels)
    labels = _labels(request.labels)
    seats = _seats(request)
    tally = RejudgeCounts()
    trials = _hear(request, seats, tally)
    if not trials and not tally.damaged:
        raise UsageError("there is no record to judge", hint="see -k, --tag and --cases")
    if request.against and not any(seat.read() for seat in seats):
        raise UsageError(
            "nothing to compare: in these cases no model and no agent reads for a check",
            hint="checks by rules say the same whoever judges",
        )
    if request.write_labels is not None:
        _write_labels(request.write_labels, seats)
    scores = {seat.name: against_labels(seat.verdicts, labels) for seat in seats if labels}
    _check_matches(request.labels, labels, scores)
    _show(request, seats, scores, trials)
    failed = any(seat.failures() for seat in seats)
    return ExitCode.ERROR if failed or tally.damaged else ExitCode.PASSED


def _seats(request: PanelRequest) -> list[JudgeColumn]:
    doubled = {name for name in request.against if request.against.count(name) > 1}
    if doubled:
        raise UsageError(f"--against {min(doubled)} is there twice", hint="name two judges")
    others = [JudgeColumn(name, name) for name in request.against]
    if len(others) > 1:
        return others
    was_judged = request.source.kind not in ("session", "input")
    if not others:
        return [JudgeColumn(RECORDED if was_judged and not request.cases else NOW)]
    if not was_judged:
        raise UsageError(
            "there is no recorded grade to compare with", hint="give --against a second time"
        )
    return [JudgeColumn(RECORDED), *others]


def _hear(request: PanelRequest, seats: Sequence[JudgeColumn], tally: RejudgeCounts) -> int:
    """Every seat judges every record; the number of records."""
    edited = load_edited(request.cases) if request.cases else None
    hidden = hidden_of(request.source, edited)
    secrets = hidden.secrets(os.environ)
    if edited is not None and request.source.is_masked:
        edited = masked_cases(edited, secrets)
    regrader = Regrader(
        routers_for(
            request.source, secrets, compared=bool(request.against), edited=bool(request.cases)
        )
    )
    judging = Rejudging(
        request.source,
        request.selection,
        regrader,
        edited,
        say=lambda note: say_on_stderr(secrets.mask(note)),
        hidden=hidden,
    )
    trials = 0

    def asked() -> Iterator[tuple[tuple[JudgeColumn, str, frozenset[str]], RegradeItem]]:
        nonlocal trials
        for subject, item in judging.items(tally):
            trials += 1
            for note in subject.notes:
                judging.say(note)
            measured = measured_checks(item.case)
            for seat in seats:
                known = _recorded_grade(subject) if seat.name == RECORDED else None
                if known is not None:
                    seat.hear(subject.job_id, judging.cleaned(known), measured)
                else:
                    yield (seat, subject.job_id, measured), _by(seat, item)

    for (seat, job_id, measured), grade in judging.graded(asked()):
        seat.hear(job_id, judging.cleaned(grade), measured)
    return trials


def _recorded_grade(subject: RecordSubject) -> Grade | None:
    return load_grade(subject.grade) if subject.grade is not None else None


def _by(seat: JudgeColumn, item: RegradeItem) -> RegradeItem:
    """`item` as `seat` judges it; what judges took while the conversation was held is not its."""
    record = item.record.model_copy(update={"judging": None})
    if seat.model is None:
        return replace(item, record=record)
    return replace(item, record=record, case=judged_by(item.case, seat.model, Path.cwd()))


def _labels(path: Path | None) -> list[Label]:
    if path is None:
        return []
    labels = read_labels(path)
    if not labels:
        raise UsageError(f"{path} has no label yet", hint="write pass or fail in its last column")
    return labels


def _check_matches(path: Path | None, labels: Sequence[Label], scores: dict[str, Score]) -> None:
    if labels and all(len(score.unmatched) == len(labels) for score in scores.values()):
        raise UsageError(f"{path}: no label is of anything that was judged", hint=_LABELS_FROM)


def _check_free(path: Path | None) -> None:
    if path is not None and path.exists():
        raise UsageError(
            f"--write-labels {path}: it is there already",
            hint="it may hold labels that somebody wrote; choose another name",
        )


def _write_labels(path: Path, seats: Sequence[JudgeColumn]) -> None:
    items = all_items(seats)
    text = labels_to_fill_in(items).encode(errors="replace")
    try:
        with path.open("xb") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"--write-labels {path}: {error.strerror}") from None
    sys.stderr.write(plain(f"{len(items)} items to label are in {shown_path(path)}\n"))


def _show(
    request: PanelRequest, seats: Sequence[JudgeColumn], scores: dict[str, Score], trials: int
) -> None:
    pairs = pairs_of(seats) if request.against else []
    if request.as_json:
        sys.stdout.write(panel_as_json(str(request.source.path), seats, pairs, scores, trials))
        return
    if not request.against and not scores:
        return
    console = make_console()
    console.print(panel_lines(seats, trials))
    for pair in pairs:
        console.print(pair_lines(pair, quiet=request.quiet))
    for seat in seats:
        if seat.name in scores:
            console.print(label_lines(seat.name, scores[seat.name], quiet=request.quiet))
