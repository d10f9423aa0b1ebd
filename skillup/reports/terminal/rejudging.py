"""What judging again has changed, and judges side by side, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from skillup.judges.rejudge.changes import GradeChange, is_read
from skillup.reports.rejudging import RejudgeCounts
from skillup.reports.terminal.layout import Part, make_table, make_text
from skillup.reports.text import count, money, one_line, tokens
from skillup.reports.view_model import STYLE, baseline_words, count_parts, row_of, total_tokens
from skillup.schema.grade import CheckResult, Grade

_NAME = 100
_EVIDENCE = 160


def grade_line(label: str, grade: Grade, change: GradeChange | None) -> Text:
    """``FAIL   case  3/4 checks  0.75  why``; a status that is new with what it was."""
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
    return line.append("" if grade.status == "PASS" else f"  {one_line(grade.reason, 300)}")


def flip_lines(change: GradeChange) -> Iterator[Text]:
    """A line for each check that changed, and under it what was found, before and after."""
    for flip in change.flips:
        before, after = flip.before, flip.after
        style = "yellow" if after is None else "green" if after.passed else "red"
        if before is not None and after is not None:
            what = f"{_verdict(before)} → {_verdict(after)}"
        else:
            what = f"{'new' if before is None else 'gone'}: {_verdict(flip.check)}"
        yield _check_line((f"{what:<14}", style), flip.where, flip.check)
        for word, result in (("before", before), ("after", after)):
            if result is not None:
                yield Text(f"      {word:<7} {_evidence(result)}", style="dim")


def failure_lines(grade: Grade) -> Iterator[Text]:
    for failure in row_of(grade).failures:
        check = failure.check
        if check is not None:
            where = failure.where.removesuffix(": ") or "conversation"
            yield _check_line((f"{_verdict(check):<7}", "red"), where, check)
            yield Text(f"      {_evidence(check)}", style="dim")


def _check_line(what: Part, where: str, check: CheckResult) -> Text:
    """With its role, if that is a special one."""
    role = "" if check.role in ("assertion", "judge") else f"[{check.role}] "
    return make_text("  ", what, (f"{where}: ", "dim"), one_line(role + check.name, _NAME))


def counts_line(tally: RejudgeCounts, *, compared: bool) -> Text:
    """``8 judged: 7 passed, 1 failed; 2 changed (1 verdict), 6 as before``."""
    summary = tally.summary()
    parts = count_parts(summary, not_run=tally.not_run, damaged=tally.damaged)
    counts = Text(", ").join(Text(text, style=style) for text, style in parts)
    line = Text(f"{tally.total} judged: ").append_text(counts)
    baseline = baseline_words(summary.baseline)
    line.append(f"; {baseline}" if baseline is not None else "")
    if compared:
        flips = f", {tally.flipped} with another verdict" if tally.flipped else ""
        line.append(f"; {tally.changed} changed{flips}" if tally.changed else "; nothing changed")
    return line


def took_words(took: Mapping[str, Any] | None) -> tuple[str, str, str, str]:
    """Of a judging: calls, those of them that were stored, tokens and cost."""
    if took is None:
        return "0", "0", "–", "–"
    calls, cached = took["calls"], took["cached_calls"]
    if calls == cached:
        return str(calls), str(cached), "0", "$0"
    return str(calls), str(cached), tokens(total_tokens(took["usage"])), money(took["cost_usd"])


def _verdict(check: CheckResult) -> str:
    if check.error is not None:
        return "error"
    return "pass" if check.passed else "fail" if check.assertable else "n/a"


def _evidence(check: CheckResult) -> str:
    excerpt = f"  “{one_line(check.excerpt, _EVIDENCE)}”" if check.excerpt.strip() else ""
    notes = "".join(f"  ({one_line(note, _EVIDENCE)})" for note in check.notes if is_read(check))
    return one_line(check.error or check.found, _EVIDENCE) + excerpt + notes


# Judges side by side, from the data that `--json` prints: what each said, where they part, and why.

_JUDGE = 48
_ITEM = 200
_REASON = 600
_QUOTE = 300
_SHOWN_LABELS = 10  # Labels that fit nothing; there may be a whole file of them, of another run
_WORDS = {True: ("pass", "green"), False: ("fail", "red"), None: ("error", "bold magenta")}
Data = Mapping[str, Any]


def print_panel(data: Data, console: Console, *, quiet: bool = False) -> None:
    """A line for each judge, with what it took; each pair, and each judge that people labelled.

    Unless `quiet`, with every disagreement and both reasons.
    """
    console.print(Text(count(data["trials"], "trial"), style="bold"))
    heads = ["judge", "items", "pass", "fail", "error", "calls", "stored", "tokens", "cost"]
    rows: list[list[Part]] = []
    for judge in data["judges"]:
        counts = judge["items"], judge["passed"], judge["failed"], len(judge["errors"])
        name = one_line(judge["name"], _JUDGE)
        rows.append([name, *map(str, counts), *took_words(judge["judging"])])
    _print(console, make_table(heads, rows))
    for judge in data["judges"]:
        by_reason: dict[str, list[Data]] = {}
        for error in judge["errors"]:
            by_reason.setdefault(error["reason"], []).append(error)
        for reason, items in by_reason.items():
            head = f"{one_line(judge['name'], _JUDGE)} failed on {count(len(items), 'item')}: "
            _print(console, make_text((head, "bold magenta"), one_line(reason, _REASON)))
            _print(console, _item_line(items[0]), 6)
    for pair in data["pairs"]:
        _print_pair(pair, console, quiet)
    for judge in data["judges"]:
        if judge["labels"] is not None:
            _print_labels(one_line(judge["name"], 120), judge["labels"], console, quiet)


def _print(console: Console, what: RenderableType, columns: int = 2) -> None:
    console.print(Padding(what, (0, 0, 0, columns), expand=False))


def _print_pair(pair: Data, console: Console, quiet: bool) -> None:
    first, second = (one_line(pair[side], _JUDGE) for side in ("first", "second"))
    rows = []
    for name, found in (("items", pair), ("trials", pair["trials"])):
        share = _share(found["agreement"])
        rows.append([name, str(found["items"]), str(found["agreed"]), share, _kappa(found)])
    console.print()
    console.print(Text(f"{first} and {second}", style="bold"))
    _print(console, make_table(["", "both judged", "agreed", "", "kappa"], rows))
    for one in pair["disagreements"] if not quiet else ():
        console.print()
        _print(console, _item_line(one))
        _print_verdicts(console, [(first, one["first"]), (second, one["second"])])


def _print_labels(name: str, score: Data, console: Console, quiet: bool) -> None:
    """Accuracy, precision and recall and the confusion table; unless `quiet`, what was wrong."""
    shares = ("accuracy", "precision", "recall")
    shown = []
    for what in shares:
        limits = score["intervals"][what]
        between = "" if limits is None else " ({:.0f}-{:.0f} %)".format(*(100 * x for x in limits))
        shown.append(f"{what} {_share(score[what])}{between}")
    console.print()
    console.print(Text(f"{name} and people's labels", style="bold"))
    _print(console, Text("   ".join([*shown, f"kappa {_kappa(score)}"])))
    cells = {name: str(number) for name, number in score["confusion"].items()}
    rows = [
        ["judge: pass", cells["true_pass"], cells["false_pass"]],
        ["judge: fail", cells["false_fail"], cells["true_fail"]],
    ]
    _print(console, make_table(["", "people: pass", "people: fail"], rows))
    left_out = [
        f"line {label['line']} left out: nothing that was judged is {_item_line(label).plain}"
        for label in score["unmatched"]
    ]
    if len(left_out) > _SHOWN_LABELS:
        left_out[_SHOWN_LABELS:] = [f"and {len(left_out) - _SHOWN_LABELS} more labels left out"]
    if score["unanswered"]:
        errors = f"{len(score['unanswered'])} left out: labelled, and the judge failed on it"
        left_out.insert(0, errors)
    for line in left_out:
        _print(console, Text(line, style="yellow"))
    for wrong in score["wrong"] if not quiet else ():
        console.print()
        item = _item_line(wrong)
        item.append(f"  labelled {wrong['label']} in line {wrong['line']}", style="dim")
        _print(console, item)
        _print_verdicts(console, [("", wrong)])


def _item_line(item: Data) -> Text:
    """``turn 2: the check  case/engine/with_skill/1``."""
    turn = f"turn {item['turn']}: " if item["turn"] else ""
    job = f"  {one_line(item['job'], _ITEM)}"
    return make_text((turn, "dim"), one_line(item["check"], _ITEM), (job, "dim"))


def _print_verdicts(console: Console, sides: Iterable[tuple[str, Data]]) -> None:
    """A row for each judge: verdict, name, reason; long reasons are folded in their column."""
    rows: list[Sequence[Part]] = []
    for name, verdict in sides:
        why = Text(one_line(verdict["reason"], _REASON))
        if verdict["quote"].strip():
            why.append(f"\n“{one_line(verdict['quote'], _QUOTE)}”", style="dim")
        rows.append([_WORDS[verdict["passed"]], name, why])
    _print(console, make_table(["", "", ""], rows, align="nnl"), 4)


def _share(value: float | None) -> str:
    """``88 %``; a dash where there is nothing to divide by."""
    return "–" if value is None else f"{100 * value:.0f} %"


def _kappa(found: Data) -> str:
    return "–" if found["kappa"] is None else f"{found['kappa']:.2f}"
