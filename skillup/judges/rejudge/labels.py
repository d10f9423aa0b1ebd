"""A judge against what people said: `labels.csv`, and accuracy, precision, recall and kappa.

``pass`` is the positive class: precision is the share of the judge's passes that people passed,
too, recall the share of people's passes that the judge found.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillup.errors import InvalidFilesError, Problem
from skillup.judges.rejudge.judges_compared import CASE, JudgedItem, JudgeVerdict, kappa_of

_YES = frozenset({"pass", "passed", "yes", "true", "1", "good"})
_NO = frozenset({"fail", "failed", "no", "false", "0", "bad"})
_QUOTED = re.compile(r'\w+ "(.*)"')
"""The line of a rubric, in the name of its check: ``rubric "Is polite"``."""
_NEEDED = ("job", "label")
_KNOWN = ("job", "turn", "check", "label")


@dataclass(frozen=True, slots=True)
class Label:
    """What a person said of one thing."""

    line: int
    job: str
    """A job's id, or a case's: then of all its trials."""
    turn: int | None
    """None: whichever turn has the check."""
    check: str
    passed: bool


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often a judge and people said what."""

    true_pass: int
    false_pass: int
    true_fail: int
    false_fail: int

    @property
    def total(self) -> int:
        """All that both judged."""
        return self.true_pass + self.false_pass + self.true_fail + self.false_fail

    def shares(self) -> dict[str, tuple[int, int]]:
        """Accuracy, precision and recall, each as a part of a whole, which may be 0."""
        right = self.true_pass + self.true_fail
        return {
            "accuracy": (right, self.total),
            "precision": (self.true_pass, self.true_pass + self.false_pass),
            "recall": (self.true_pass, self.true_pass + self.false_fail),
        }

    @property
    def kappa(self) -> float | None:
        """How far they agree beyond chance; None where that is not defined."""
        pairs = [(True, True)] * self.true_pass + [(True, False)] * self.false_pass
        pairs += [(False, False)] * self.true_fail + [(False, True)] * self.false_fail
        return kappa_of(pairs)


@dataclass(frozen=True, slots=True)
class Score:
    """How a judge did."""

    counts: Confusion
    by_check: Mapping[str, Confusion]
    """The same of each check or criterion, by its name."""
    wrong: tuple[tuple[JudgedItem, JudgeVerdict, Label], ...]
    unanswered: tuple[JudgedItem, ...]
    """Labelled, and the judge failed to answer."""
    unmatched: tuple[Label, ...]
    """Labels of something that was not judged."""
    contradicted: tuple[tuple[JudgedItem, tuple[Label, ...]], ...]
    """What was labelled both ways: it counts for nothing."""


def read_labels(path: Path) -> list[Label]:
    """The rows of a CSV file with the columns `job` and `label`, and perhaps `turn` and `check`.

    Without a `check` it is the trial's verdict. Rows whose label is still empty are left out.
    Raises InvalidFilesError with every problem.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFilesError([Problem(path, 1, 1, "", f"cannot be read: {error}")]) from None
    # Spreadsheets separate by semicolons where the comma is that of decimals.
    head = text.partition("\n")[0]
    separator = ";" if ";" in head and "," not in head else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
    columns = [name.strip() for name in rows.fieldnames or ()]
    rows.fieldnames = columns
    lacking = [name for name in _NEEDED if name not in columns]
    if lacking:
        what = f"the first line lacks {', '.join(f'`{name}`' for name in lacking)}"
        fix = "write the columns: job,turn,check,label"
        raise InvalidFilesError([Problem(path, 1, 1, "", what, fix)])
    labels: list[Label] = []
    problems: list[Problem] = []
    for row in rows:
        if not (row.get("label") or "").strip():
            continue
        read = _label(row, rows.line_num)
        if isinstance(read, Label):
            labels.append(read)
        else:
            problems.append(Problem(path, rows.line_num, 1, *read))
    if problems:
        raise InvalidFilesError(problems)
    return labels


def _label(row: Mapping[str, str | None], line: int) -> Label | tuple[str, str, str]:
    job, turn, check, label = (_flat(row.get(name) or "") for name in _KNOWN)
    if not job:
        return "job", "there is no job", "write a trial's id, or a case's"
    if turn and not turn.isdigit():
        return "turn", f"`{turn}` is no turn", "write its number, 0 for the conversation"
    said = label.casefold()
    if said not in _YES | _NO:
        return "label", f"`{label}` is no label", "write `pass` or `fail`"
    return Label(line, job, int(turn) if turn else None, check or CASE, said in _YES)


def labels_to_fill_in(items: Iterable[JudgedItem]) -> str:
    """A CSV file with a row for each of `items`, whose label is for people to write."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_KNOWN)
    writer.writerows((item.job, item.turn, _flat(item.check), "") for item in items)
    return text.getvalue()


def against_labels(verdicts: Mapping[JudgedItem, JudgeVerdict], labels: Sequence[Label]) -> Score:
    """How well `verdicts` agree with `labels`; each labelled item counts once."""
    of_item: dict[JudgedItem, list[Label]] = {}
    unmatched: list[Label] = []
    for label in labels:
        items = [item for item, said in verdicts.items() if _is_meant(item, said, label)]
        for item in items:
            of_item.setdefault(item, []).append(label)
        if not items:
            unmatched.append(label)
    said_and_meant: dict[str, list[tuple[bool, bool]]] = {}
    wrong: list[tuple[JudgedItem, JudgeVerdict, Label]] = []
    unanswered: list[JudgedItem] = []
    contradicted: list[tuple[JudgedItem, tuple[Label, ...]]] = []
    for item, given in of_item.items():
        verdict, label = verdicts[item], given[0]
        if any(other.passed != label.passed for other in given):
            contradicted.append((item, tuple(given)))
        elif verdict.passed is None:
            unanswered.append(item)
        else:
            pair = (verdict.passed, label.passed)
            said_and_meant.setdefault(item.check, []).append(pair)
            if verdict.passed != label.passed:
                wrong.append((item, verdict, label))
    return Score(
        counts=_confusion([pair for pairs in said_and_meant.values() for pair in pairs]),
        by_check={check: _confusion(pairs) for check, pairs in said_and_meant.items()},
        wrong=tuple(wrong),
        unanswered=tuple(unanswered),
        unmatched=tuple(unmatched),
        contradicted=tuple(contradicted),
    )


def _confusion(pairs: Sequence[tuple[bool, bool]]) -> Confusion:
    return Confusion(
        true_pass=pairs.count((True, True)),
        false_pass=pairs.count((True, False)),
        true_fail=pairs.count((False, False)),
        false_fail=pairs.count((False, True)),
    )


def _is_meant(item: JudgedItem, verdict: JudgeVerdict, label: Label) -> bool:
    """A case's id stands for all its trials; a criterion's own name for `check / criterion`.

    A check that failed as a whole has no criteria: those that people labelled are unanswered.
    """
    if item.job != label.job and item.job.rsplit("/", 3)[0] != label.job:
        return False
    if label.turn is not None and item.turn != label.turn:
        return False
    check = _flat(item.check)
    if verdict.passed is None and label.check.startswith(f"{check} / "):
        return True
    names = (check, *check.split(" / "))
    return label.check in (*names, *(quoted[1] for n in names if (quoted := _QUOTED.fullmatch(n))))


def _flat(text: str) -> str:
    """Names may hold line breaks, which spreadsheets and people change."""
    return " ".join(text.split())
