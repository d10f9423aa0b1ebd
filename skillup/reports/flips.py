"""What judging again has changed, for a terminal: statuses, scores, and check by check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skillup.judges.replay.flips import Flip, GradeChange, is_read
from skillup.reports.judgement import Tally
from skillup.reports.live_view import STYLE
from skillup.reports.result import baseline_words
from skillup.reports.text import one_line
from skillup.schema.grade import CheckResult, Grade

if TYPE_CHECKING:
    from rich.text import Text

_NAME = 100
_EVIDENCE = 160


def grade_line(label: str, grade: Grade, change: GradeChange | None) -> Text:
    """``FAIL   case  3/4 checks  0.75  why``; a status that is new says what it was."""
    from rich.text import Text

    line = Text()
    if change is not None and change.is_flip:
        line.append(change.before.status, style="dim")
        line.append(" → ")
    line.append(grade.status, style=STYLE[grade.status])
    line.append(f"  {one_line(label, 200)}")
    checks = [c for turn in grade.turns for c in turn.deciding_checks()] + grade.assertions
    line.append(f"  {sum(check.passed for check in checks)}/{len(checks)} checks", style="dim")
    if grade.status in ("PASS", "FAIL"):
        line.append(f"  {_score(grade, change)}", style="dim")
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
    """A line for each check that did not pass, with what was found."""
    from rich.text import Text

    placed = [(f"turn {turn.turn_number}", check) for turn in grade.turns for check in turn.checks]
    for where, check in [*placed, *(("conversation", check) for check in grade.assertions)]:
        if not check.passed and check.evaluated:
            line = Text("  ")
            line.append(f"{_verdict(check):<7}", style="red")
            line.append(f"{where}: ", style="dim")
            line.append(one_line(_described(check, where), _NAME))
            yield line
            yield Text(f"      {_evidence(check)}", style="dim")


def counts_line(tally: Tally, *, compared: bool) -> Text:
    """``8 judged: 7 passed, 1 failed; 2 changed (1 verdict), 6 as before``."""
    from rich.text import Text

    line = Text(f"{tally.total} judged: ")
    counts = tally.statuses
    parts = [
        (f"{counts['PASS']} passed", "green"),
        (f"{counts['FAIL']} failed", "red"),
        (f"{counts['ERROR']} error{'s' if counts['ERROR'] > 1 else ''}", "bold magenta"),
        (f"{counts['SKIP']} skipped", "yellow"),
        (f"{tally.not_run} not run", "yellow"),
        (f"{tally.damaged} damaged", "bold magenta"),
    ]
    shown = [part for part in parts if not part[0].startswith("0 ") or part[1] == "green"]
    for number, (text, style) in enumerate(shown):
        line.append(", " if number else "")
        line.append(text, style=style)
    baseline = baseline_words(tally.summary().baseline)
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


def _what(flip: Flip) -> str:
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


def _style(flip: Flip) -> str:
    if flip.after is None:
        return "yellow"
    return "green" if flip.after.passed else "red"


def _evidence(check: CheckResult) -> str:
    found = check.error or check.found
    excerpt = f"  “{one_line(check.excerpt, _EVIDENCE)}”" if check.excerpt.strip() else ""
    notes = "".join(f"  ({one_line(note, _EVIDENCE)})" for note in check.notes if is_read(check))
    return one_line(found, _EVIDENCE) + excerpt + notes


def _score(grade: Grade, change: GradeChange | None) -> str:
    if change is None or change.before.score == grade.score:
        return f"{grade.score:.2f}"
    return f"{change.before.score:.2f} → {grade.score:.2f}"
