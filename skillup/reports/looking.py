"""How to look at a run that has ended: the last lines of `skillup run`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skillup.reports.formats import FORMATS, HTML
from skillup.reports.problems import shown_path
from skillup.reports.text import plain

if TYPE_CHECKING:
    from rich.console import Console


def print_look(written: Sequence[Path], run: str, console: Console) -> None:
    """The reports that were `written`; to a person on a terminal, else the verbs that show `run`.

    `run` is what these verbs call it.
    """
    for line in _lines(written, run, on_terminal=console.file.isatty()):
        console.print(plain(line), style="dim", markup=False, soft_wrap=True)


def _lines(written: Sequence[Path], run: str, *, on_terminal: bool) -> Iterator[str]:
    for path in written:
        yield f"report: {shown_path(path)}"
    if on_terminal and FORMATS[HTML][0] not in (path.name for path in written):
        yield f"look: skillup show {run} · skillup view {run}"
