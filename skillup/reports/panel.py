"""Judges side by side, for a terminal: what each said, where they part, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from skillup.judges.replay.agreement import Agreement, Disagreement
from skillup.judges.replay.panel import Pair, Seat
from skillup.judges.replay.verdicts import Item, Verdict
from skillup.reports.text import money, one_line, tokens
from skillup.schema.grade import Judging

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

_NAME = 48
_ITEM = 200
_REASON = 600
_QUOTE = 300
_SHOWN = 5
"""Items listed below a reason for which a judge failed."""


def panel_lines(seats: Sequence[Seat], trials: int) -> Group:
    """A line for each judge, with what it took; and what it failed to judge, by the reason."""
    from rich.console import Group

    rows = [("judge", "items", "pass", "fail", "error", "calls", "stored", "tokens", "cost")]
    failures: list[RenderableType] = []
    for seat in seats:
        said = [verdict.passed for verdict in seat.read().values()]
        passed, failed, broken = (str(said.count(kind)) for kind in (True, False, None))
        name = one_line(seat.name, _NAME)
        rows.append((name, str(len(said)), passed, failed, broken, *took_words(seat.took)))
        for reason, items in seat.failures().items():
            line = _text(f"{name} failed on {_count(len(items), 'item')}: ")
            line.stylize("bold magenta")
            line.append(one_line(reason, _REASON), style="not bold default")
            failures += [indented(line), indented(_list_of(items), 6)]
    head = _text(_count(trials, "trial"), "bold")
    return Group(head, indented(figures(rows)), *failures)


def pair_lines(pair: Pair, *, quiet: bool = False) -> Group:
    """Agreement, kappa, and, unless `quiet`, every disagreement with both reasons."""
    from rich.console import Group

    first, second = one_line(pair.first, _NAME), one_line(pair.second, _NAME)
    rows = [("", "both judged", "agreed", "", "kappa")]
    for name, found in (("items", pair.items), ("trials", pair.trials)):
        kappa = "–" if found.kappa is None else f"{found.kappa:.2f}"
        rows.append((name, str(found.items), str(found.agreed), share(found.share), kappa))
    parts: list[RenderableType] = [
        "",
        _text(f"{first} and {second}", "bold"),
        indented(figures(rows)),
    ]
    if pair.items.items and pair.items.kappa is None:
        parts.append(indented(_text("kappa is not defined: both always said the same", "dim")))
    parts += [indented(_text(line, "dim")) for line in _apart(pair.items)]
    if not quiet:
        for one in pair.items.disagreements:
            parts += ["", *disagreement_lines(one, first, second)]
    return Group(*parts)


def disagreement_lines(one: Disagreement, first: str, second: str) -> list[RenderableType]:
    """What it is about, and below it what each of the two said."""
    sides = [(first, one.first), (second, one.second)]
    return [indented(item_line(one.item)), indented(verdict_table(sides), 4)]


def item_line(item: Item) -> Text:
    """``case/engine/with_skill/1  turn 2: the check``."""
    line = _text(f"turn {item.turn}: " if item.turn else "", "dim")
    line.append(one_line(item.check, _ITEM), style="not dim")
    line.append(f"  {one_line(item.job, _ITEM)}", style="dim")
    return line


def verdict_table(sides: Iterable[tuple[str, Verdict]]) -> Table:
    """A row for each judge: verdict, name, reason; long reasons are folded in their column."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, verdict in sides:
        why = Text(one_line(verdict.reason, _REASON))
        if verdict.quote.strip():
            why.append(f"\n“{one_line(verdict.quote, _QUOTE)}”", style="dim")
        word, style = _WORDS[verdict.passed]
        # As Text: a string would be read as markup.
        table.add_row(Text(word, style=style), Text(name), why)
    return table


_WORDS = {True: ("pass", "green"), False: ("fail", "red"), None: ("error", "bold magenta")}


def figures(rows: Sequence[Sequence[str]]) -> Table:
    """A table without lines: a head, names on the left, figures on the right of their columns.

    Where there is no room, names are folded.
    """
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    for _ in rows[0][1:]:
        table.add_column(justify="right", no_wrap=True)
    for number, row in enumerate(rows):
        # As Text: a string would be read as markup.
        table.add_row(*map(_text, row), style="" if number else "dim")
    return table


def indented(what: RenderableType, columns: int = 2) -> Padding:
    """Moved to the right."""
    from rich.padding import Padding

    return Padding(what, (0, 0, 0, columns), expand=False)


def share(value: float | None) -> str:
    """``88 %``; a dash where there is nothing to divide by."""
    return "–" if value is None else f"{100 * value:.0f} %"


def _apart(found: Agreement) -> list[str]:
    lines = []
    if found.unanswered:
        lines.append(f"{_count(len(found.unanswered), 'item')} left out: a judge failed there")
    if found.only_one:
        count = _count(len(found.only_one), "item")
        lines.append(f"{count} left out: only one of the two was asked")
    return lines


def took_words(took: Judging | None) -> tuple[str, str, str, str]:
    """Calls, those of them that were stored, tokens and cost."""
    if took is None:
        return "0", "0", "–", "–"
    known = [(took.usage or {}).get(name) for name in ("input_tokens", "output_tokens")]
    told = [count for count in known if count is not None]
    free = took.calls == took.cached_calls
    cost = "$0" if free else money(took.cost_usd)
    total = "0" if free else tokens(sum(told) if told else None)
    return str(took.calls), str(took.cached_calls), total, cost


def _list_of(items: Sequence[Item]) -> Text:
    shown = [item_line(item) for item in items[:_SHOWN]]
    if len(items) > _SHOWN:
        shown.append(_text(f"and {len(items) - _SHOWN} more", "dim"))
    return _text("\n").join(shown)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style)
