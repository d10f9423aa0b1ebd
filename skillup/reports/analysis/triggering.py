"""Whether skills were used when they should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skillup.reports.analysis.figures import percent
from skillup.reports.analysis.naming import Names
from skillup.reports.analysis.sheet import NONE, Cell, Sheet
from skillup.reports.text import listed_ids, one_line
from skillup.schema.analysis import Triggering


def triggering(found: Sequence[Triggering], names: Names) -> Iterator[Sheet]:
    """A row for each skill; one that was looked at once has nothing to be counted."""
    shown = [item for item in found if _observed(item) > 1]
    sheet = Sheet(
        "Triggering: skills used where that was wanted, and left alone where it was not",
        ["skill", "used", "left alone", "precision", "recall", "F1"],
    )
    for item in shown:
        wanted = item.used_rightly + item.not_used_wrongly
        unwanted = item.used_wrongly + item.not_used_rightly
        sheet.rows.append(
            [
                Cell(_name(item, names)),
                _share(item.used_rightly, wanted),
                _share(item.not_used_rightly, unwanted),
                percent(item.precision),
                percent(item.recall),
                NONE if item.f1 is None else Cell(f"{item.f1:.2f}"),
            ]
        )
    sheet.lines += _beside(shown, names)
    yield sheet


def _beside(shown: Sequence[Triggering], names: Names) -> Iterator[Cell]:
    """Which choice there was, once for each skill of a suite: engines have the same."""
    for item in {(item.suite, item.skill): item for item in shown}.values():
        if item.neighbours:
            name = names.case(item.suite, item.skill)
            yield Cell(f"{name}: installed beside it: {listed_ids(item.neighbours)}", "dim")


def _observed(item: Triggering) -> int:
    expected = item.used_rightly + item.not_used_wrongly
    return expected + item.used_wrongly + item.not_used_rightly


def _name(item: Triggering, names: Names) -> str:
    suite = f"{one_line(item.suite)}: " if names.several_suites else ""
    engine = f" {one_line(item.engine)}" if names.several_engines else ""
    return f"{suite}{one_line(item.skill)}{engine}"


def _share(right: int, of: int) -> Cell:
    return Cell(f"{right}/{of}", "green" if right == of else "yellow") if of else NONE
