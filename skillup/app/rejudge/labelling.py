"""`skillup label`: what judges said, sampled, in a file of labels that people fill in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skillup.app.rejudge.judging import masked, secrets_of
from skillup.app.rejudge.sources import RecordSource
from skillup.errors import UsageError
from skillup.frozen import frozen
from skillup.judges.labels import COLUMNS, Row, flat, read_rows, rows_text, texts_of
from skillup.judges.material import Part, exchanges_of
from skillup.judges.rejudge import JudgeColumn, JudgedItem, JudgeVerdict
from skillup.plan import Selection
from skillup.schema.record import Record
from skillup.store.files import write_atomic


@frozen
class LabelItem:
    """One thing that a judge read, as a row and for the page."""

    item: JudgedItem
    verdict: JudgeVerdict
    stratum: str
    message: str
    answer: str

    def row(self) -> Row:
        place = {"job": self.item.job, "turn": str(self.item.turn), "check": flat(self.item.check)}
        said = {"message": self.message, "answer": self.answer, "judge": str(self.verdict.said)}
        return {**dict.fromkeys(COLUMNS, ""), **place, **said, "stratum": self.stratum}


@dataclass(slots=True)
class Labelling:
    """The items of one sitting, and the file that has their labels."""

    path: Path
    source: RecordSource
    items: Sequence[LabelItem]
    _columns: list[str] = field(default_factory=lambda: list(COLUMNS))
    _rows: list[Row] = field(default_factory=list)  # All of the file
    _own: list[Row] = field(default_factory=list)  # Of these, that of each item

    @classmethod
    def begin(cls, path: Path, source: RecordSource, items: Sequence[LabelItem]) -> Labelling:
        """Rows that are in the file stay, of other runs too; missing ones are added and saved."""
        made = cls(path, source, items)
        if path.exists():
            columns, rows = read_rows(path)
            made._columns = [*columns, *(name for name in COLUMNS if name not in columns)]
            made._rows = [row for _, row in rows]
        known = {_key(row): row for row in reversed(made._rows)}
        for one in items:
            row = one.row()
            found = known.get(_key(row)) or known.get(_key(row | {"answer": ""}))
            if found is None:
                made._rows.append(row)
            made._own.append(found if found is not None else row)
        made._write()
        return made

    def row(self, number: int) -> Row:
        return self._own[number]

    def done(self) -> int:
        return sum(bool(row.get("label")) for row in self._own)

    def save(self, number: int, label: str, reason: str) -> None:
        """In place of an earlier label. The judge's reason stands for people's if they agree."""
        row, verdict = self._own[number], self.items[number].verdict
        agreed = verdict.reason if label == verdict.said else ""
        row |= {"label": label, "reason": reason.strip() or agreed}
        self._write()

    def _write(self) -> None:
        write_atomic(self.path, rows_text(self._columns, self._rows).encode(errors="replace"))

    def parts(self, number: int) -> list[tuple[str, Part]]:
        """The conversation up to what is judged, each text after its exchange."""
        item = self.items[number].item
        record = self._record(item.job)
        turns = (turn for turn in record.turns if turn.turn_number == item.turn)
        exchanges = exchanges_of(record, next(turns, None))
        return [(one.label, part) for one in exchanges for part in one.parts]

    def _record(self, job: str) -> Record:
        run = self.source.run
        if run is not None:
            return run.read_record(job)
        return next(one.record for one in self.source.subjects() if one.job_id == job)


def _key(row: Row) -> tuple[str, ...]:
    names = ("job", "turn", "check", "answer")
    return tuple(flat(row.get(name) or ("0" if name == "turn" else "")) for name in names)


def items_to_label(source: RecordSource, selection: Selection, most: int) -> list[LabelItem]:
    """A sample of what judges read, the same each time. Raises UsageError if there is nothing."""
    if source.kind not in ("run", "record"):
        raise UsageError("only grades of runs are labelled", hint="see `skillup judge`")
    secrets = secrets_of(source, None)
    found: dict[str, list[LabelItem]] = {}
    for subject in source.subjects():
        record, grade = subject.record, subject.grade()
        tags = [str(tag) for tag in record.case.get("tags") or ()]
        if grade is None or not selection.takes(record.case_id, tags, record.branch_of):
            continue
        column, grade = JudgeColumn(""), masked(grade, secrets)
        column.add(subject.job_id, grade)
        texts = texts_of(subject.job_id, grade)
        for item, verdict in column.read().items():
            if verdict.said is not None:
                stratum = "disputed" if verdict.divided else verdict.said
                message, answer = texts[item.job, item.turn]
                one = LabelItem(item, verdict, stratum, message, answer)
                found.setdefault(stratum, []).append(one)
    if not found:
        hint = "rules need no labels; errors have no verdict"
        raise UsageError("no model and no agent read for a check here", hint=hint)
    return list(_sample(found, most))


def _sample(found: dict[str, list[LabelItem]], most: int) -> Iterator[LabelItem]:
    """What judges dispute first, then of the other strata by turns."""
    order = ("disputed", "unknown", "fail", "pass")
    drawn = [sorted(found.get(name, ()), key=_draw) for name in order]
    first, others = drawn[0][:most], drawn[1:]
    yield from first
    left = most - len(first)
    while left > 0 and any(others):
        for stratum in filter(None, others[: left + 1]):
            if left > 0:
                yield stratum.pop(0)
                left -= 1


def _draw(one: LabelItem) -> bytes:
    """An order that has nothing to do with what is in it."""
    return hashlib.sha256(repr(one.item).encode("utf-8", "surrogatepass")).digest()
