"""`skillup label`: what judges said, sampled, in a file of labels that people fill in."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skillup.errors import UsageError
from skillup.judges.labels import COLUMNS, LONGEST_TEXT, Row, flat, read_rows, rows_text, texts_of
from skillup.judges.material import exchanges_of
from skillup.judges.rejudge import JudgeColumn, JudgedItem, JudgeVerdict, Said
from skillup.reports.label_page import label_page
from skillup.reports.server import Answer, NotServedError, json_answer
from skillup.store import RunDirectory
from skillup.store.files import write_atomic

LabelItem = tuple[JudgedItem, JudgeVerdict, Row]
"""One thing that a judge read, what it said, and its row of the file."""


class _Given(BaseModel):
    """What the page posts."""

    model_config = ConfigDict(extra="forbid", strict=True)
    item: int
    label: Said
    reason: str = Field("", max_length=LONGEST_TEXT)


class Labelling:
    """The items of one sitting, and the file that has their labels."""

    def __init__(self, path: Path, run: RunDirectory, most: int) -> None:
        """Rows that are in the file stay, of other runs too; missing ones are added and saved.

        Raises UsageError if there is nothing to label, InvalidFilesError.
        """
        self._path, self._run, self._lock = path, run, threading.Lock()
        self._columns, rows = read_rows(path) if path.exists() else ([], [])
        self._columns += [name for name in COLUMNS if name not in self._columns]
        self._rows = [row for _, row in rows]
        known = {_key(row): row for row in reversed(self._rows)}
        self.items: list[LabelItem] = []
        for item, verdict, row in _sample(run, most):
            found = known.get(_key(row)) or known.get(_key(row | {"answer": ""}))
            self.items.append((item, verdict, row if found is None else found))
            if found is None:
                self._rows.append(row)
        self._write()

    def done(self) -> int:
        return sum(bool(row.get("label")) for _, _, row in self.items)

    def _write(self) -> None:
        text = rows_text(self._columns, self._rows)
        write_atomic(self._path, text.encode(errors="replace"))

    def pages(self, path: str, query: dict[str, list[str]], body: bytes | None) -> Answer:
        """For :class:`skillup.reports.server.LoopbackServer`."""
        with self._lock:
            if path != ("" if body is None else "label"):
                raise NotServedError
            if body is None:
                unlabelled = (n for n, one in enumerate(self.items) if not one[2].get("label"))
                asked = query.get("item", [""])[0]
                return self._page(int(asked) if asked.isdecimal() else next(unlabelled, 0))
            try:
                given = _Given.model_validate_json(body)
            except ValidationError as error:
                raise UsageError(f"no label: {error.errors()[0]['msg']}") from None
            _, verdict, row = self._item(given.item)
            # The judge's reason stands for people's if they agree.
            agreed = verdict.reason if given.label == verdict.said else ""
            row.update({"label": given.label, "reason": given.reason.strip() or agreed})
            self._write()
            return json_answer({"labelled": self.done()})

    def _item(self, number: int) -> LabelItem:
        if not 0 <= number < len(self.items):
            raise NotServedError
        return self.items[number]

    def _page(self, number: int) -> Answer:
        """The item, and the conversation up to it."""
        (item, verdict, row), place = self._item(number), (number, len(self.items), self.done())
        record = self._run.read_record(item.job)
        turns = (turn for turn in record.turns if turn.turn_number == item.turn)
        parts = [
            (exchange.label, part)
            for exchange in exchanges_of(record, next(turns, None))
            for part in exchange.parts
        ]
        page = label_page(place, item, verdict, parts, row)
        return Answer(200, "text/html; charset=utf-8", page)


def _key(row: Row) -> tuple[str, ...]:
    names = ("job", "turn", "check", "answer")
    return tuple(flat(row.get(name) or ("0" if name == "turn" else "")) for name in names)


def _sample(run: RunDirectory, most: int) -> Iterator[LabelItem]:
    """What judges read, the same each time: disputed items first, then the others by turns."""
    order = ("disputed", "unknown", "fail", "pass")
    drawn: dict[str, list[LabelItem]] = {name: [] for name in order}
    for found in run.finished():
        if (grade := found.grade()) is None:
            continue
        column, texts = JudgeColumn(""), texts_of(found.job_id, grade)
        column.add(found.job_id, grade)
        for item, verdict in column.read().items():
            if verdict.said is not None:
                stratum = "disputed" if verdict.divided else verdict.said
                place = (item.job, str(item.turn), flat(item.check), "", "")
                row = (*place, *texts[item.job, item.turn], verdict.said, stratum)
                drawn[stratum].append((item, verdict, dict(zip(COLUMNS, row, strict=True))))
    if not any(drawn.values()):
        hint = "rules need no labels; errors have no verdict"
        raise UsageError("no model and no agent read for a check here", hint=hint)
    for some in drawn.values():
        # An order that has nothing to do with what is in it.
        some.sort(key=lambda one: hashlib.sha256(repr(one[0]).encode(errors="replace")).digest())
    first, *others = drawn.values()
    longest = max(map(len, others))
    by_turns = [some[n] for n in range(longest) for some in others if n < len(some)]
    yield from [*first, *by_turns][:most]
