"""A judge against people's labels, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skillup.judges.replay.labels import Confusion, Label, Score
from skillup.reports.panel import figures, indented, item_line, share, verdict_table
from skillup.reports.text import one_line
from skillup.trends.statistics.proportions import wilson

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

_LABEL = 120
_SHOWN = 10
"""Labels that fit nothing; there may be a whole file of them, of another run."""


def label_lines(name: str, score: Score, *, quiet: bool = False) -> Group:
    """Accuracy, precision, recall and the confusion table; unless `quiet`, what was wrong."""
    from rich.console import Group
    from rich.text import Text

    counts = score.counts
    told = [f"{what} {_with_interval(*parts)}" for what, parts in counts.shares().items()]
    summary = "   ".join([*told, f"kappa {_kappa(counts)}"])
    table = figures(
        [
            ("", "people: pass", "people: fail"),
            ("judge: pass", str(counts.true_pass), str(counts.false_pass)),
            ("judge: fail", str(counts.false_fail), str(counts.true_fail)),
        ]
    )
    parts: list[RenderableType] = [
        "",
        Text(f"{one_line(name, _LABEL)} and people's labels", style="bold"),
        indented(Text(summary)),
        indented(table),
        *([indented(_by_check(score))] if len(score.by_check) > 1 else []),
        *(indented(Text(line, style="yellow")) for line in _left_out(score)),
    ]
    if not quiet:
        for item, verdict, label in score.wrong:
            said = "pass" if label.passed else "fail"
            line = item_line(item)
            line.append(f"  labelled {said} in line {label.line}", style="dim")
            parts += ["", indented(line), indented(verdict_table([("", verdict)]), 4)]
    return Group(*parts)


def _by_check(score: Score) -> Table:
    rows = [("", "labelled", "accuracy", "precision", "recall", "kappa")]
    for check, counts in score.by_check.items():
        accuracy, precision, recall = (
            share(part / whole if whole else None) for part, whole in counts.shares().values()
        )
        name, total = one_line(check, _LABEL), str(counts.total)
        rows.append((name, total, accuracy, precision, recall, _kappa(counts)))
    return figures(rows)


def _with_interval(part: int, whole: int) -> str:
    """``80 % (38-96 %)``: where the share lies, as far as so many labels can tell."""
    if not whole:
        return share(None)
    low, high = wilson(part, whole)
    return f"{share(part / whole)} ({low:.0%}-{high:.0%})".replace("%-", "-").replace("%)", " %)")


def _kappa(counts: Confusion) -> str:
    return "–" if counts.kappa is None else f"{counts.kappa:.2f}"


def _left_out(score: Score) -> Iterator[str]:
    if score.unanswered:
        yield f"{len(score.unanswered)} left out: labelled, and the judge failed on it"
    for item, labels in score.contradicted[:_SHOWN]:
        lines = ", ".join(str(label.line) for label in labels)
        yield f"left out: lines {lines} say both pass and fail of {one_line(str(item), _LABEL)}"
    if len(score.contradicted) > _SHOWN:
        yield f"and {len(score.contradicted) - _SHOWN} more that are labelled both ways"
    for label in score.unmatched[:_SHOWN]:
        yield f"line {label.line} left out: nothing that was judged is {_of(label)}"
    if len(score.unmatched) > _SHOWN:
        yield f"and {len(score.unmatched) - _SHOWN} more of the kind"


def _of(label: Label) -> str:
    turn = "" if label.turn is None else f", turn {label.turn}"
    return one_line(f"{label.job}{turn}, {label.check}", _LABEL)
