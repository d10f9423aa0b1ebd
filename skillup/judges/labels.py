"""A judge against what people said: a CSV file of labels.

``pass`` is the positive class: precision is the share of the judge's passes that people passed,
too, recall the share of people's passes that the judge found.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from skillup.checks.context import CheckContext
from skillup.checks.registry import describe
from skillup.dataclass import frozen
from skillup.errors import InvalidFilesError, Problem
from skillup.judges.material import harmless
from skillup.judges.rejudge import CASE, JudgedItem, JudgeVerdict, Said, Verdicts
from skillup.load.yaml_reader import read_text, refuse
from skillup.schema.checks import Check
from skillup.schema.grade import Grade

COLUMNS = ("job", "turn", "check", "label", "reason", "message", "answer", "judge", "stratum")
_EXAMPLES = 3  # Of each label
LONGEST_TEXT = 4000  # Characters of a message, and of an answer
_LABELS: dict[str, Said] = {"pass": "pass", "fail": "fail", "unknown": "unknown"}
_FORMULA = ("=", "+", "-", "@", "\t", "'")  # What spreadsheets do not take for text, and its mark
Row = dict[str, str]
Texts = dict[tuple[str, int], tuple[str, str]]
"""By job and turn: the message and the answer; of turn 0 those of the whole conversation."""


@frozen
class Label:
    line: int
    job: str  # A job's id, or a case's: then of all its trials
    turn: int
    check: str
    said: Said
    answer: str = ""  # What was labelled; empty: whatever is there
    stratum: str = ""  # As what it was chosen


@frozen
class Score:
    rated: Sequence[tuple[JudgedItem, JudgeVerdict, Label]]  # Both have said something
    unanswered: Sequence[JudgedItem]  # Labelled, and the judge failed to answer
    unmatched: Sequence[Label]  # Labels of something that was not judged
    stale: Sequence[Label]  # Labels of another answer than the one that was judged

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """What the judge said, and what people say."""
        return [(str(verdict.said), label.said) for _, verdict, label in self.rated]

    @property
    def wrong(self) -> list[tuple[JudgedItem, JudgeVerdict, Label]]:
        return [one for one in self.rated if one[1].said != one[2].said]

    def groups(self) -> dict[str, list[tuple[str, str]]]:
        """The pairs by check, and by what they were chosen as."""
        found: dict[str, list[tuple[str, str]]] = {}
        chosen: dict[str, list[tuple[str, str]]] = {}
        for (item, _, label), pair in zip(self.rated, self.pairs, strict=True):
            found.setdefault(item.check, []).append(pair)
            if label.stratum:
                chosen.setdefault(f"chosen as: {label.stratum}", []).append(pair)
        return found | chosen


def shares_of(pairs: Sequence[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Each as a part of a whole, which may be 0."""
    both, agreed = pairs.count(("pass", "pass")), sum(a == b for a, b in pairs)
    return {
        "accuracy": (agreed, len(pairs)),
        "precision": (both, sum(a == "pass" for a, _ in pairs)),
        "recall": (both, sum(b == "pass" for _, b in pairs)),
    }


def texts_of(job: str, grade: Grade) -> Texts:
    """What was said in a trial, as label files have it."""
    said = {(job, turn.turn_number): (turn.content, turn.response) for turn in grade.turns}
    said[job, 0] = "", "\n\n".join(f"user: {one}\n\nagent: {two}" for one, two in said.values())
    return {place: (a[:LONGEST_TEXT], b[:LONGEST_TEXT]) for place, (a, b) in said.items()}


def read_rows(path: Path, content: bytes | None = None) -> tuple[list[str], list[tuple[int, Row]]]:
    """The columns, and the rows with their lines. Raises InvalidFilesError."""
    text = read_text(path) if content is None else content.decode("utf-8-sig", "replace")
    rows = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True)
    found, line = list[tuple[int, Row]](), 1
    try:
        columns = list(rows.fieldnames or ())
        lacking = ", ".join(f"`{name}`" for name in ("job", "label") if name not in columns)
        if lacking:
            why = "; the separator is `;`" * (";" in "".join(columns))
            what = f"the first line lacks {lacking}{why}"
            refuse(path, what, f"write: {','.join(COLUMNS[:4])}")
        line = rows.line_num + 1
        for row in rows:
            if any(row.pop(None, ())):  # Cells beyond the columns
                refuse(path, "more cells than columns", "quote a text that has commas", line)
            found.append((rows.line_num, {k: _unmarked(v or "") for k, v in row.items()}))
            line = rows.line_num + 1
    except csv.Error as error:
        what = f"the row that begins here cannot be read: {error}"
        refuse(path, what, 'a `"` in a text is `""`', line)
    return columns, found


def read_labels(path: Path) -> list[Label]:
    """The labels in a CSV file; without a `check`, of the trial. Raises InvalidFilesError."""
    labels: dict[tuple[str, int, str, str], Label] = {}
    problems: list[Problem] = []
    for line, row in read_rows(path)[1]:
        job, turn, check, label, answer, stratum = (
            flat(row.get(name, ""))
            for name in ("job", "turn", "check", "label", "answer", "stratum")
        )
        if not label:
            continue
        wrong = None
        if not job:
            wrong = "job", "there is no job", "write a trial's id, or a case's"
        elif turn and not turn.isdigit():
            wrong = "turn", f"`{turn}` is no turn", "write its number, 0 for the conversation"
        elif label.casefold() not in _LABELS:
            wrong = "label", f"`{label}` is no label", "write `pass`, `fail` or `unknown`"
        else:
            said = _LABELS[label.casefold()]
            new = Label(line, job, int(turn or 0), check or CASE, said, answer, stratum)
            old = labels.setdefault((job, new.turn, new.check, answer), new)
            if old.said != said:
                wrong = "label", f"line {old.line} says the opposite", "leave one of them out"
        if wrong is not None:
            where, what, fix = wrong
            problems.append(Problem(path, line, 1, where, what, fix))
    if problems:
        raise InvalidFilesError(problems)
    return list(labels.values())


def examples_of(
    path: str, checks: Sequence[Check], context: CheckContext, judged: Sequence[str]
) -> list[tuple[str, str]]:
    """What people said of other answers in other trials, by these checks: label and text of each.

    The file is as it was kept with the record. Raises InvalidFilesError.
    """
    record = context.record
    kept = record.references.get(path)
    content = context.read_file(kept) if kept is not None else None
    if content is None:
        refuse(Path(path), "the examples were not kept with the record")
    own = f"{record.case_id}/{record.engine.profile}/{record.variant}/{record.trial}"
    names = {flat(check.name or describe(check)) for check in checks}
    parts = tuple(f"{name} / " for name in names)
    known = {flat(text[:LONGEST_TEXT]) for text in judged}
    found: dict[str, list[tuple[str, str]]] = {"pass": [], "fail": []}
    for _, row in read_rows(Path(path), content)[1]:
        job, check, answer = (flat(row.get(name, "")) for name in ("job", "check", "answer"))
        rows = found.get(_LABELS.get(flat(row["label"]).casefold(), "unknown"))
        ours = check in names or check.startswith(parts)
        is_own = job == own or job.endswith((f"/{own}", f".{own}"))
        if rows is not None and ours and not is_own and answer and answer not in known:
            text = f"{row['answer']}\nWhy: {row.get('reason') or '-'}"
            rows.append((f"{flat(row['label'])} for {check}", harmless(text[:LONGEST_TEXT])))
    return [one for rows in found.values() for one in rows[:_EXAMPLES]]


def rows_text(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """The CSV file of `rows`; what would be a formula in a spreadsheet has a ``'`` before it."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"'{v}" if v.startswith(_FORMULA) else v for k, v in row.items()})
    return text.getvalue()


def _unmarked(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell


def against_labels(verdicts: Verdicts, labels: Sequence[Label], texts: Texts) -> Score:
    """How well `verdicts` agree with `labels`; a trial's own label outranks that of its case."""
    by_place: dict[tuple[str, int, str], list[Label]] = {}
    for label in labels:
        by_place.setdefault((label.job, label.turn, label.check), []).append(label)
    rated: list[tuple[JudgedItem, JudgeVerdict, Label]] = []
    unanswered: list[JudgedItem] = []
    matched, fresh = set[Label](), set[Label]()
    for item, verdict in verdicts.items():
        jobs = (item.job, item.job.rsplit("/", 3)[0])
        places = [(job, item.turn, flat(item.check)) for job in jobs]
        given = [label for place in places for label in by_place.get(place, ())]
        matched.update(given)
        answer = flat(texts.get((item.job, item.turn), ("", ""))[1])
        given = [label for label in given if label.answer in ("", answer)]
        fresh.update(given)
        if given and verdict.said is None:
            unanswered.append(item)
        elif given:
            rated.append((item, verdict, given[0]))
    unmatched = [label for label in labels if label not in matched]
    stale = [label for label in labels if label in matched - fresh]
    return Score(rated, unanswered, unmatched, stale)


def flat(text: str) -> str:
    """Names may hold line breaks, which spreadsheets and people change."""
    return " ".join(text.split())
