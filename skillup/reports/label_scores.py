"""A judge against people's labels, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skillup.judges.replay.labels import Label, Score
from skillup.reports.panel import figures, indented, item_line, share, verdict_table
from skillup.reports.text import one_line

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

_LABEL = 120
_SHOWN = 10
"""Labels that fit nothing; there may be a whole file of them, of another run."""


def label_lines(name: str, score: Score, *, quiet: bool = False) -> Group:
    """Accuracy, precision, recall and the confusion table; unless `quiet`, what was wrong."""
    from rich.console import Group
    from rich.text import Text

    shares = (
        ("accuracy", score.accuracy),
        ("precision", score.precision),
        ("recall", score.recall),
    )
    summary = "   ".join(f"{what} {share(value)}" for what, value in shares)
    table = figures(
        [
            ("", "people: pass", "people: fail"),
            ("judge: pass", str(score.true_pass), str(score.false_pass)),
            ("judge: fail", str(score.false_fail), str(score.true_fail)),
        ]
    )
    parts: list[RenderableType] = [
        "",
        Text(f"{one_line(name, _LABEL)} and people's labels", style="bold"),
        indented(Text(summary)),
        indented(table),
        *(indented(Text(line, style="yellow")) for line in _left_out(score)),
    ]
    if not quiet:
        for item, verdict, label in score.wrong:
            said = "pass" if label.passed else "fail"
            line = item_line(item)
            line.append(f"  labelled {said} in line {label.line}", style="dim")
            parts += ["", indented(line), indented(verdict_table([("", verdict)]), 4)]
    return Group(*parts)


def _left_out(score: Score) -> Iterator[str]:
    if score.unanswered:
        yield f"{len(score.unanswered)} left out: labelled, and the judge failed on it"
    for label in score.unmatched[:_SHOWN]:
        yield f"line {label.line} left out: nothing that was judged is {_of(label)}"
    if len(score.unmatched) > _SHOWN:
        yield f"and {len(score.unmatched) - _SHOWN} more of the kind"


def _of(label: Label) -> str:
    turn = "" if label.turn is None else f", turn {label.turn}"
    return one_line(f"{label.job}{turn}, {label.check}", _LABEL)
