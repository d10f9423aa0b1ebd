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
_COLUMNS = ("job", "turn", "check", "label")


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
        return {
            "accuracy": (self.true_pass + self.true_fail, self.total),
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
    rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
    lacking = [f"`{name}`" for name in ("job", "label") if name not in rows.fieldnames]
    if lacking:
        what, fix = f"the first line lacks {', '.join(lacking)}", "write the columns: "
        raise InvalidFilesError([Problem(path, 1, 1, "", what, fix + ",".join(_COLUMNS))])
    labels: list[Label] = []
    problems: list[Problem] = []
    for row in rows:
        job, turn, check, label = (_flat(row.get(name) or "") for name in _COLUMNS)
        said, line = label.casefold(), rows.line_num
        if not said:
            continue
        for wrong, where, what, fix in (
            (not job, "job", "there is no job", "write a trial's id, or a case's"),
            (
                bool(turn) and not turn.isdigit(),
                "turn", f"`{turn}` is no turn", "write its number, 0 for the conversation",
            ),
            (said not in _YES | _NO, "label", f"`{label}` is no label", "write `pass` or `fail`"),
        ):  # fmt: skip
            if wrong:
                problems.append(Problem(path, line, 1, where, what, fix))
                break
        else:
            place = int(turn) if turn else None
            labels.append(Label(line, job, place, check or CASE, said in _YES))
    if problems:
        raise InvalidFilesError(problems)
    return labels


def labels_to_fill_in(items: Iterable[JudgedItem]) -> str:
    """A CSV file with a row for each of `items`, whose label is for people to write."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
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
    pairs: dict[str, list[tuple[bool, bool]]] = {}
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
            pairs.setdefault(item.check, []).append((verdict.passed, label.passed))
            if verdict.passed != label.passed:
                wrong.append((item, verdict, label))
    return Score(
        _confusion([pair for found in pairs.values() for pair in found]),
        {check: _confusion(found) for check, found in pairs.items()},
        tuple(wrong), tuple(unanswered), tuple(unmatched), tuple(contradicted),
    )  # fmt: skip


def _confusion(pairs: Sequence[tuple[bool, bool]]) -> Confusion:
    kinds = ((True, True), (True, False), (False, False), (False, True))
    return Confusion(*map(pairs.count, kinds))


def _is_meant(item: JudgedItem, verdict: JudgeVerdict, label: Label) -> bool:
    """A case's id stands for all its trials; a criterion's own name for `check / criterion`.

    A check that failed as a whole has no criteria: those that people labelled are unanswered.
    """
    if label.job not in (item.job, item.job.rsplit("/", 3)[0]):
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
