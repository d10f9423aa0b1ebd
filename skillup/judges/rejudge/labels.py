"""A judge against what people said: `labels.csv`, and accuracy, precision, recall and kappa.

``pass`` is the positive class: precision is the share of the judge's passes that people passed,
too, recall the share of people's passes that the judge found.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillup.errors import InvalidFilesError, Problem
from skillup.judges.rejudge.judges_compared import CASE, JudgedItem, JudgeVerdict, kappa_of

_LABELS = {"pass": True, "yes": True, "true": True, "1": True,
           "fail": False, "no": False, "false": False, "0": False}  # fmt: skip
_COLUMNS = ("job", "turn", "check", "label")


@dataclass(frozen=True, slots=True)
class Label:
    """What a person said of one thing."""

    line: int
    job: str  # A job's id, or a case's: then of all its trials
    turn: int
    check: str
    passed: bool


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often a judge and people said what."""

    true_pass: int
    false_pass: int
    true_fail: int
    false_fail: int
    kappa: float | None  # How far they agree beyond chance; None where that is not defined

    @classmethod
    def of(cls, pairs: Sequence[tuple[bool, bool]]) -> Confusion:
        """Of pairs of what the judge said, and people."""
        return cls(
            true_pass=pairs.count((True, True)),
            false_pass=pairs.count((True, False)),
            true_fail=pairs.count((False, False)),
            false_fail=pairs.count((False, True)),
            kappa=kappa_of(pairs),
        )

    def shares(self) -> dict[str, tuple[int, int]]:
        """Accuracy, precision and recall, each as a part of a whole, which may be 0."""
        right = self.true_pass + self.true_fail
        return {
            "accuracy": (right, right + self.false_pass + self.false_fail),
            "precision": (self.true_pass, self.true_pass + self.false_pass),
            "recall": (self.true_pass, self.true_pass + self.false_fail),
        }


@dataclass(frozen=True, slots=True)
class Score:
    """How a judge did."""

    counts: Confusion
    by_check: Mapping[str, Confusion]  # The same of each check or criterion, by its name
    wrong: tuple[tuple[JudgedItem, JudgeVerdict, Label], ...]
    unanswered: tuple[JudgedItem, ...]  # Labelled, and the judge failed to answer
    unmatched: tuple[Label, ...]  # Labels of something that was not judged


def read_labels(path: Path) -> list[Label]:
    """The rows of a CSV file with the columns `job` and `label`, and perhaps `turn` and `check`.

    Without a `check` it is the trial's verdict. Rows whose label is still empty are left out.
    Raises InvalidFilesError with every problem.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFilesError([Problem(path, 1, 1, "", f"cannot be read: {error}")]) from None
    rows = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
    lacking = [f"`{name}`" for name in ("job", "label") if name not in (rows.fieldnames or ())]
    if lacking:
        what, fix = f"the first line lacks {', '.join(lacking)}", "write the columns: "
        raise InvalidFilesError([Problem(path, 1, 1, "", what, fix + ",".join(_COLUMNS))])
    labels: dict[tuple[str, int, str], Label] = {}
    problems: list[Problem] = []
    for row in rows:
        job, turn, check, label = (_flat(row.get(name) or "") for name in _COLUMNS)
        if not label:
            continue
        wrong = None
        if not job:
            wrong = "job", "there is no job", "write a trial's id, or a case's"
        elif turn and not turn.isdigit():
            wrong = "turn", f"`{turn}` is no turn", "write its number, 0 for the conversation"
        elif label.casefold() not in _LABELS:
            wrong = "label", f"`{label}` is no label", "write `pass` or `fail`"
        else:
            passed = _LABELS[label.casefold()]
            new = Label(rows.line_num, job, int(turn or 0), check or CASE, passed)
            old = labels.setdefault((job, new.turn, new.check), new)
            if old.passed != passed:
                wrong = "label", f"line {old.line} says the opposite", "leave one of them out"
        if wrong is not None:
            where, what, fix = wrong
            problems.append(Problem(path, rows.line_num, 1, where, what, fix))
    if problems:
        raise InvalidFilesError(problems)
    return list(labels.values())


def labels_to_fill_in(items: Iterable[JudgedItem]) -> str:
    """A CSV file with a row for each of `items`, whose label is for people to write."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows((item.job, item.turn, _flat(item.check), "") for item in items)
    return text.getvalue()


def against_labels(verdicts: Mapping[JudgedItem, JudgeVerdict], labels: Sequence[Label]) -> Score:
    """How well `verdicts` agree with `labels`; a trial's own label outranks that of its case."""
    by_place = {(label.job, label.turn, label.check): label for label in labels}
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    wrong: list[tuple[JudgedItem, JudgeVerdict, Label]] = []
    unanswered: list[JudgedItem] = []
    matched: set[Label] = set()
    for item, verdict in verdicts.items():
        jobs = (item.job, item.job.rsplit("/", 3)[0])
        places = [(job, item.turn, _flat(item.check)) for job in jobs]
        given = [by_place[place] for place in places if place in by_place]
        matched.update(given)
        if not given:
            continue
        if verdict.passed is None:
            unanswered.append(item)
            continue
        pairs.setdefault(item.check, []).append((verdict.passed, given[0].passed))
        if verdict.passed != given[0].passed:
            wrong.append((item, verdict, given[0]))
    return Score(
        Confusion.of([pair for found in pairs.values() for pair in found]),
        {check: Confusion.of(found) for check, found in pairs.items()},
        tuple(wrong),
        tuple(unanswered),
        tuple(label for label in labels if label not in matched),
    )


def _flat(text: str) -> str:
    """Names may hold line breaks, which spreadsheets and people change."""
    return " ".join(text.split())
