"""What judging again has changed, for a terminal: statuses, scores, and check by check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from skillup.judges.rejudge.changes import CheckChange, GradeChange, is_read
from skillup.judges.rejudge.judges_compared import (
    Agreement,
    Disagreement,
    JudgeColumn,
    JudgedItem,
    JudgePair,
    JudgeVerdict,
)
from skillup.judges.rejudge.labels import Confusion, Label, Score
from skillup.reports.rejudging_json import RejudgeCounts
from skillup.reports.terminal.layout import make_table
from skillup.reports.text import count, money, one_line, tokens
from skillup.reports.view_model import (
    STYLE,
    baseline_words,
    count_parts,
    row_of,
    total_tokens,
)
from skillup.schema.grade import CheckResult, Grade, Judging
from skillup.stats.proportions import wilson

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text


_NAME = 100
_EVIDENCE = 160


def grade_line(label: str, grade: Grade, change: GradeChange | None) -> Text:
    """``FAIL   case  3/4 checks  0.75  why``; a status that is new with what it was."""
    from rich.text import Text

    row = row_of(grade)
    line = Text()
    if change is not None and change.is_flip:
        line.append(change.before.status, style="dim").append(" → ")
    line.append(grade.status, style=STYLE[grade.status])
    line.append(f"  {one_line(label, 200)}")
    line.append(f"  {row.passed_checks}/{len(row.checks)} checks", style="dim")
    if row.score is not None:
        before = grade.score if change is None else change.before.score
        was = "" if before == grade.score else f"{before:.2f} → "
        line.append(f"  {was}{grade.score:.2f}", style="dim")
    if grade.status != "PASS":
        line.append(f"  {one_line(grade.reason, 300)}")
    return line


def flip_lines(change: GradeChange) -> Iterator[Text]:
    """A line for each check that changed, and under it what was found, before and after."""
    from rich.text import Text

    for flip in change.flips:
        head = Text("  ")
        head.append(f"{_what(flip):<14}", style=_style(flip))
        head.append(f"{flip.where}: ", style="dim")
        head.append(one_line(_described(flip.check, flip.where), _NAME))
        yield head
        if flip.before is not None and flip.before.name != flip.check.name:
            yield Text(f"      was     {one_line(flip.before.name, _NAME)}", style="dim")
        for name, check in (("before", flip.before), ("after", flip.after)):
            if check is not None and not (flip.change == "removed" and name == "after"):
                yield Text(f"      {name:<6}  {_evidence(check)}", style="dim")


def unmet_lines(grade: Grade) -> Iterator[Text]:
    """A line for each check that failed, with what was found."""
    from rich.text import Text

    for failure in row_of(grade).failures:
        check = failure.check
        if check is not None:
            where = failure.where.removesuffix(": ") or "conversation"
            line = Text("  ").append(f"{_verdict(check):<7}", style="red")
            line.append(f"{where}: ", style="dim")
            yield line.append(one_line(_described(check, where), _NAME))
            yield Text(f"      {_evidence(check)}", style="dim")


def counts_line(tally: RejudgeCounts, *, compared: bool) -> Text:
    """``8 judged: 7 passed, 1 failed; 2 changed (1 verdict), 6 as before``."""
    from rich.text import Text

    summary = tally.summary()
    parts = count_parts(summary, not_run=tally.not_run, damaged=tally.damaged)
    line = Text(f"{tally.total} judged: ")
    line.append_text(Text(", ").join(Text(text, style=style) for text, style in parts))
    baseline = baseline_words(summary.baseline)
    if baseline is not None:
        line.append(f"; {baseline}")
    if compared:
        flips = f", {tally.flipped} with another verdict" if tally.flipped else ""
        line.append(f"; {tally.changed} changed{flips}" if tally.changed else "; nothing changed")
    return line


def _described(check: CheckResult, where: str) -> str:
    """Its name, its role if that is a special one, and the turn it asks if that is elsewhere."""
    role = "" if check.role in ("assertion", "judge") else f"[{check.role}] "
    elsewhere = check.scope.startswith("turn") and check.scope not in (where.partition(",")[0], "")
    told = not elsewhere or f"({check.scope})" in check.name
    return f"{role}{check.name}" + ("" if told else f" ({check.scope})")


def _what(flip: CheckChange) -> str:
    if flip.before is not None and flip.after is not None:
        return f"{_verdict(flip.before)} → {_verdict(flip.after)}"
    word = "new" if flip.before is None else "gone"
    return f"{word}: {_verdict(flip.check)}"


def _verdict(check: CheckResult) -> str:
    if check.error is not None:
        return "error"
    if check.passed:
        return "pass"
    return "fail" if check.assertable else "n/a"


def _style(flip: CheckChange) -> str:
    if flip.after is None:
        return "yellow"
    return "green" if flip.after.passed else "red"


def _evidence(check: CheckResult) -> str:
    found = check.error or check.found
    excerpt = f"  “{one_line(check.excerpt, _EVIDENCE)}”" if check.excerpt.strip() else ""
    notes = "".join(f"  ({one_line(note, _EVIDENCE)})" for note in check.notes if is_read(check))
    return one_line(found, _EVIDENCE) + excerpt + notes


# Judges side by side, for a terminal: what each said, where they part, and why.

_NAME_PANEL = 48
_ITEM = 200
_REASON = 600
_QUOTE = 300
_SHOWN = 5
"""Items listed below a reason for which a judge failed."""


def panel_lines(seats: Sequence[JudgeColumn], trials: int) -> Group:
    """A line for each judge, with what it took; and what it failed to judge, by the reason."""
    from rich.console import Group

    rows = [("judge", "items", "pass", "fail", "error", "calls", "stored", "tokens", "cost")]
    failures: list[RenderableType] = []
    for seat in seats:
        said = [verdict.passed for verdict in seat.read().values()]
        passed, failed, broken = (str(said.count(kind)) for kind in (True, False, None))
        name = one_line(seat.name, _NAME_PANEL)
        rows.append((name, str(len(said)), passed, failed, broken, *took_words(seat.took)))
        for reason, items in seat.failures().items():
            line = _text(f"{name} failed on {count(len(items), 'item')}: ")
            line.stylize("bold magenta")
            line.append(one_line(reason, _REASON), style="not bold default")
            failures += [indented(line), indented(_list_of(items), 6)]
    head = _text(count(trials, "trial"), "bold")
    return Group(head, indented(figures(rows)), *failures)


def pair_lines(pair: JudgePair, *, quiet: bool = False) -> Group:
    """Agreement, kappa, and, unless `quiet`, every disagreement with both reasons."""
    from rich.console import Group

    first, second = one_line(pair.first, _NAME_PANEL), one_line(pair.second, _NAME_PANEL)
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


def item_line(item: JudgedItem) -> Text:
    """``case/engine/with_skill/1  turn 2: the check``."""
    line = _text(f"turn {item.turn}: " if item.turn else "", "dim")
    line.append(one_line(item.check, _ITEM), style="not dim")
    line.append(f"  {one_line(item.job, _ITEM)}", style="dim")
    return line


def verdict_table(sides: Iterable[tuple[str, JudgeVerdict]]) -> Table:
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
    """A table: a head, names on the left, figures on the right of their columns."""
    table = make_table(*rows[0])
    for row in rows[1:]:
        # As Text: a string would be read as markup.
        table.add_row(*map(_text, row))
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
        lines.append(f"{count(len(found.unanswered), 'item')} left out: a judge failed there")
    if found.only_one:
        lines.append(
            f"{count(len(found.only_one), 'item')} left out: only one of the two was asked"
        )
    return lines


def took_words(took: Judging | None) -> tuple[str, str, str, str]:
    """Calls, those of them that were stored, tokens and cost."""
    if took is None:
        return "0", "0", "–", "–"
    if took.calls == took.cached_calls:
        return str(took.calls), str(took.cached_calls), "0", "$0"
    used = tokens(total_tokens(took.usage))
    return str(took.calls), str(took.cached_calls), used, money(took.cost_usd)


def _list_of(items: Sequence[JudgedItem]) -> Text:
    shown = [item_line(item) for item in items[:_SHOWN]]
    if len(items) > _SHOWN:
        shown.append(_text(f"and {len(items) - _SHOWN} more", "dim"))
    return _text("\n").join(shown)


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style)


# A judge against people's labels, for a terminal.

_LABEL = 120
_SHOWN_LABELS = 10
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
    for item, labels in score.contradicted[:_SHOWN_LABELS]:
        lines = ", ".join(str(label.line) for label in labels)
        yield f"left out: lines {lines} say both pass and fail of {one_line(str(item), _LABEL)}"
    if len(score.contradicted) > _SHOWN_LABELS:
        yield f"and {len(score.contradicted) - _SHOWN_LABELS} more that are labelled both ways"
    for label in score.unmatched[:_SHOWN_LABELS]:
        yield f"line {label.line} left out: nothing that was judged is {_of(label)}"
    if len(score.unmatched) > _SHOWN_LABELS:
        yield f"and {len(score.unmatched) - _SHOWN_LABELS} more of the kind"


def _of(label: Label) -> str:
    turn = "" if label.turn is None else f", turn {label.turn}"
    return one_line(f"{label.job}{turn}, {label.check}", _LABEL)
