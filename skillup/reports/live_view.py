"""The live display as lines of text that fit the terminal: a line for each running trial, counts.

Nothing is ever as wide as the terminal: a line that wraps would make the display creep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from skillup.plan import Job
from skillup.reports.pace import about
from skillup.reports.standing import Running, Standing
from skillup.reports.text import money, one_line, plain, seconds, tokens

if TYPE_CHECKING:
    from rich.text import Text

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_A_SECOND = 8
_LEAST_DOING = 18
_WORDS = {"PASS": "passed", "FAIL": "failed", "ERROR": "in error", "SKIP": "skipped"}
STYLE = {"PASS": "green", "FAIL": "red", "ERROR": "bold magenta", "SKIP": "yellow"}


def view(
    standing: Standing,
    label: Callable[[Job], str],
    width: int,
    height: int,
    notice: str = "",
    mask: Callable[[str], str] = str,
) -> list[Text]:
    """The lines, at most ``height - 1`` of at most ``width - 1`` cells each."""
    from rich.text import Text

    width = max(width - 1, 10)
    foot = list(_foot(standing))
    if notice:
        foot.append(Text(notice, style="bold yellow"))
    running = list(standing.running.values())
    room = max(height - 1 - len(foot), 0)
    shown = running if len(running) <= room else running[: max(room - 1, 0)]
    lines = list(_rows(standing, shown, label, width, mask))
    if room and len(shown) < len(running):
        lines.append(Text(f"  … and {len(running) - len(shown)} more", style="dim"))
    lines += foot[: max(height - 1, 1)]
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return lines


def _rows(
    standing: Standing,
    shown: list[Running],
    label: Callable[[Job], str],
    width: int,
    mask: Callable[[str], str],
) -> Iterator[Text]:
    """Columns as wide as what stands in them, as far as the agent's doings leave them room."""
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    frame = FRAMES[int(standing.elapsed() * _FRAMES_A_SECOND / 1000) % len(FRAMES)]
    turn = "turn {0}/{1}" if width >= 79 else "{0}/{1}"
    cells = [
        [
            label(r.job),
            turn.format(r.turn, r.turns) if r.turns else "",
            seconds(standing.elapsed(r.began)),
            f"{tokens(r.tokens)} tok" if r.tokens is not None else "",
            money(r.cost_usd) if r.cost_usd is not None else "",
        ]
        for r in shown
    ]
    if not cells:
        return
    widths = [max(cell_len(row[column]) for row in cells) for column in range(5)]
    longest = widths[0]
    widths[0] = min(longest, max(width * 2 // 5, 12))
    while len(widths) > 3 and width - 2 - sum(w + 2 for w in widths if w) < _LEAST_DOING:
        widths.pop()
    spare = width - 2 - sum(w + 2 for w in widths if w) - _LEAST_DOING
    widths[0] = min(longest, widths[0] + max(spare, 0))
    for row, running in zip(cells, shown, strict=True):
        line = Text(f"{frame} ", style="cyan")
        line.append(set_cell_size(without_middle(row[0], widths[0]), widths[0]), style="default")
        for text, wide in zip(row[1:], widths[1:], strict=False):
            if wide:
                line.append("  " + set_cell_size("", wide - cell_len(text)) + text, style="dim")
        line.append("  " + one_line(mask(plain(running.doing)), width), style="default")
        yield line


def without_middle(text: str, cells: int) -> str:
    """`text` in so many cells: what tells names apart is at their ends, as a trial's number is."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= cells:
        return text
    room = max((cells - 1) // 2, 0)
    begin = len(text)
    while begin and cell_len(text[begin - 1 :]) <= room:
        begin -= 1
    return f"{set_cell_size(text, max(cells - 1 - room, 0)).rstrip()}…{text[begin:].lstrip()}"


def _foot(standing: Standing) -> Iterator[Text]:
    """Two lines: how many stand where; time, money and what is left."""
    from rich.text import Text

    counts = Text(f"{standing.done}/{standing.total} trials", style="bold")
    for status, word in _WORDS.items():
        if standing.counts[status]:
            counts.append("  ")
            counts.append(f"{standing.counts[status]} {word}", style=STYLE[status])
    yield counts
    yield Text(", ".join(going_words(standing)), style="dim")


def going_words(standing: Standing) -> Iterator[str]:
    """``3 running``, ``25 waiting``, ``12 s``, ``about 4 min left``, ``9k tokens``, ``$0.31``.

    What matters most comes first: a narrow terminal cuts the rest. What is not known is left out.
    """
    for number, word in (
        (standing.kept, "kept"),
        (len(standing.running), "running"),
        (standing.waiting, "waiting"),
    ):
        if number:
            yield f"{number} {word}"
    yield seconds(standing.elapsed())
    left = standing.seconds_left()
    if left is not None and (standing.running or standing.waiting):
        yield f"{about(left)} left"
    used, cost = standing.spent()
    if used is not None:
        yield f"{tokens(used)} tokens"
    if cost is not None:
        yield money(cost)
