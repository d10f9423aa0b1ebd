"""`skillup judge --against`, `--labels`, `--write-labels`: how good are the judges?"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillup.app.rejudge.command import RejudgeRequest
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
from skillup.judges.rejudge.regrade import RegradeItem
from skillup.reports.rejudging import RejudgeCounts, panel_data
from skillup.reports.terminal.layout import make_console
from skillup.reports.terminal.listing import shown_path
from skillup.reports.terminal.rejudging import print_panel
from skillup.reports.text import plain
from skillup.schema.grade import Grade
from skillup.store.trials import load_grade

_LABELS_FROM = "write one with --write-labels"


@dataclass(frozen=True, slots=True)
class PanelRequest:
    """What is to be compared with what."""

    judging: RejudgeRequest
    against: tuple[str, ...] = ()
    """Models that judge in place of the cases' own."""
    labels: Path | None = None
    write_labels: Path | None = None


def compare_judges(request: PanelRequest) -> int:
    """Judge by each judge, compare, show; the exit code.

    Raises UsageError if there is nothing to compare, InvalidFilesError for wrong labels or cases.
    """
    _check_free(request.write_labels)
    labels = _labels(request.labels)
    columns = _columns(request)
    counts = RejudgeCounts()
    trials = _fill(request, columns, counts)
    if not trials and not counts.damaged:
        raise UsageError("there is no record to judge", hint="see -k, --tag and --cases")
    if request.against and not any(column.read() for column in columns):
        raise UsageError(
            "nothing to compare: in these cases no model and no agent reads for a check",
            hint="checks by rules say the same whoever judges",
        )
    if request.write_labels is not None:
        _write_labels(request.write_labels, columns)
    scores = {column.name: against_labels(column.verdicts, labels) for column in columns if labels}
    _check_matches(request.labels, labels, scores)
    _show(request, columns, scores, trials)
    failed = any(column.failures() for column in columns)
    return ExitCode.ERROR if failed or counts.damaged else ExitCode.PASSED


def _columns(request: PanelRequest) -> list[JudgeColumn]:
    doubled = {name for name in request.against if request.against.count(name) > 1}
    if doubled:
        raise UsageError(f"--against {min(doubled)} is there twice", hint="name two judges")
    others = [JudgeColumn(name, name) for name in request.against]
    if len(others) > 1:
        return others
    was_judged = request.judging.source.kind not in ("session", "input")
    if not others:
        return [JudgeColumn(RECORDED if was_judged and not request.judging.cases else NOW)]
    if not was_judged:
        raise UsageError(
            "there is no recorded grade to compare with", hint="give --against a second time"
        )
    return [JudgeColumn(RECORDED), *others]


def _fill(request: PanelRequest, columns: Sequence[JudgeColumn], counts: RejudgeCounts) -> int:
    """Every column judges every record; the number of records."""
    judging = request.judging.rejudging(compared=bool(request.against))
    trials = 0

    def asked() -> Iterator[tuple[tuple[JudgeColumn, str, frozenset[str]], RegradeItem]]:
        nonlocal trials
        for subject, item in judging.items(counts):
            trials += 1
            measured = measured_checks(item.case)
            for column in columns:
                known: Grade | None = None
                if column.name == RECORDED and subject.grade is not None:
                    known = load_grade(subject.grade)
                if known is not None:
                    column.add(subject.job_id, judging.cleaned(known), measured)
                else:
                    yield (column, subject.job_id, measured), _by(column, item)

    for (column, job_id, measured), grade in judging.graded(asked()):
        column.add(job_id, judging.cleaned(grade), measured)
    return trials


def _by(column: JudgeColumn, item: RegradeItem) -> RegradeItem:
    """`item` as `column` judges it; what judges took during the run is not its."""
    record = item.record.model_copy(update={"judging": None})
    if column.model is None:
        return replace(item, record=record)
    return replace(item, record=record, case=judged_by(item.case, column.model, Path.cwd()))


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


def _write_labels(path: Path, columns: Sequence[JudgeColumn]) -> None:
    items = all_items(columns)
    text = labels_to_fill_in(items).encode(errors="replace")
    try:
        with path.open("xb") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"--write-labels {path}: {error.strerror}") from None
    sys.stderr.write(plain(f"{len(items)} items to label are in {shown_path(path)}\n"))


def _show(
    request: PanelRequest, columns: Sequence[JudgeColumn], scores: dict[str, Score], trials: int
) -> None:
    pairs = pairs_of(columns) if request.against else []
    data = panel_data(str(request.judging.source.path), columns, pairs, scores, trials)
    if request.judging.as_json:
        sys.stdout.write(json.dumps(data, ensure_ascii=True, indent=2) + "\n")
    elif request.against or scores:
        print_panel(data, make_console(), quiet=request.judging.quiet)
