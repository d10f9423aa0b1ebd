"""What judging again came to, and judges side by side: as JSON, and on a terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any

from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.text import Text

from skillup import __version__
from skillup.dataclass import mutable
from skillup.judges.labels import Score, shares_of
from skillup.judges.rejudge import GradeChange, JudgeColumn, Pairs, is_read, kappa_of, says_of
from skillup.reports.result import STYLE, Row, baseline_words, count_parts, summarize, total_tokens
from skillup.reports.terminal.layout import Part, make_text, print_line, print_table
from skillup.reports.text import count, money, one_line, tokens
from skillup.schema.grade import Analysis, CheckResult, Grade, Judging, Summary
from skillup.schema.line import TrialLine, grouped, line_of
from skillup.stats import wilson

JUDGEMENT_VERSION = "skillup.judgement/1"
PANEL_VERSION = "skillup.panel/1"
_NAME = 100
_WIDE = 120  # Columns of a terminal that has room for intervals beside their figures
_EVIDENCE = 160
Data = Mapping[str, Any]


@mutable
class RejudgeCounts:
    lines: list[TrialLine] = field(default_factory=list)
    changed: int = 0  # Trials with any change
    flipped: int = 0  # Of these, with another status
    flips: Counter[str] = field(default_factory=Counter)  # Checks, by kind of change
    left_out: int = 0  # Records of cases that `--cases` does not have
    not_run: int = 0  # Trials of the run that have no record
    damaged: int = 0
    took: Judging | None = None  # What judging again took of judges that read

    @property
    def total(self) -> int:
        return len(self.lines)

    def summary(self) -> Summary:
        return summarize(self.lines).model_copy(update={"judging": None})

    def add(self, grade: Grade, change: GradeChange | None) -> None:
        self.lines.append(line_of(grade))
        if change:
            self.changed += 1
            self.flipped += change.is_flip
            self.flips.update(flip.change for flip in change.flips)


def judgement_json(
    head: Data,
    judged: Iterable[tuple[str, Grade, GradeChange | None]],
    tally: RejudgeCounts,
    analysis: Analysis | None = None,
) -> str:
    """``{…head, cases: [{job_id, grade, changes}], summary, changes, …}``."""
    kinds = ("flipped", "changed", "added", "removed")
    checks = {f"checks_{kind}": tally.flips[kind] for kind in kinds}
    data = {
        **head,
        "cases": [
            {"job_id": job, "grade": grade, "changes": _change(change) if change else None}
            for job, grade, change in judged
        ],
        "summary": tally.summary(),
        "changes": {"trials": tally.changed, "statuses": tally.flipped, **checks},
        "judging": tally.took,
        **{name: getattr(tally, name) for name in ("left_out", "not_run", "damaged")},
        "analysis": analysis,
    }
    return json.dumps(to_jsonable_python(data), ensure_ascii=False, indent=2) + "\n"


def _change(change: GradeChange) -> dict[str, Any]:
    """What changed about one trial; a check that is new or gone is null on one side."""
    of_grades = {
        name: {"before": getattr(change.before, name), "after": getattr(change.after, name)}
        for name in ("status", "score", "reason")
    }
    return {**of_grades, "checks": change.flips}


def judged_lines(label: str, grade: Grade, change: GradeChange | None) -> Iterator[Text]:
    """``FAIL   case  3/4 checks  0.75  why``, and below it what changed since an older grade; or,
    where there is none to compare with, what failed.
    """
    row = Row(grade)
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
    yield line.append("" if grade.status == "PASS" else f"  {one_line(grade.reason, 300)}")
    if change is None:
        for failure in row.failures:
            if failure.check is not None:
                where = failure.where.removesuffix(": ") or "conversation"
                what = (f"{_verdict(failure.check):<7}", "red")
                yield from _check_lines(what, where, failure.check, {"": failure.check})
        return
    for flip in change.flips:
        old, new = flip.before, flip.after
        style = "yellow" if new is None else "green" if new.passed else "red"
        words = f"{'new' if old is None else 'gone'}: {_verdict(flip.check)}"
        if old is not None and new is not None:
            words = f"{_verdict(old)} → {_verdict(new)}"
        sides = {"before  ": old, "after   ": new}
        yield from _check_lines((f"{words:<14}", style), flip.where, flip.check, sides)
        if old is not None and new is not None:
            yield from _part_lines(old, new)


def _check_lines(
    what: Part, where: str, check: CheckResult, found: Mapping[str, CheckResult | None]
) -> Iterator[Text]:
    """The check, with its role if that is a special one, and what was found."""
    role = "" if check.role in ("assertion", "judge") else f"[{check.role}] "
    yield make_text("  ", what, (f"{where}: ", "dim"), one_line(role + check.name, _NAME))
    for word, result in found.items():
        if result is not None:
            yield Text(f"      {word}{_evidence(result)}", style="dim")


def _part_lines(old: CheckResult, new: CheckResult) -> Iterator[Text]:
    """Criteria, aspects and windows about which something else is said."""
    for before, after in zip(old.children, new.children, strict=False):
        if is_read(new) and says_of(before, reads=True) != says_of(after, reads=True):
            yield Text(f"      {one_line(before.name, _NAME)}", style="dim")
            for word, part in (("before  ", before), ("after   ", after)):
                notes = "".join(f"  ({one_line(note, _EVIDENCE)})" for note in part.notes)
                said = f"{_verdict(part)} {part.score:.2f}  {_evidence(part)}{notes}"
                yield Text(f"        {word}{said}", style="dim")


def _verdict(check: CheckResult) -> str:
    if check.error is not None:
        return "error"
    return "pass" if check.passed else "fail" if check.assertable else "n/a"


def _evidence(check: CheckResult) -> str:
    excerpt = f"  “{one_line(check.excerpt, _EVIDENCE)}”" if check.excerpt.strip() else ""
    notes = "".join(f"  ({one_line(note, _EVIDENCE)})" for note in check.notes if is_read(check))
    return one_line(check.error or check.found, _EVIDENCE) + excerpt + notes


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


def took_words(took: Data | None) -> tuple[str, str, str, str]:
    """Of a judging: calls, those of them that were stored, tokens and cost."""
    if took is None:
        return "0", "0", "–", "–"
    calls, cached = took["calls"], took["cached_calls"]
    if calls == cached:
        return str(calls), str(cached), "0", "$0"
    return str(calls), str(cached), tokens(total_tokens(took["usage"])), money(took["cost_usd"])


# Judges side by side: what each said, where they part, and why.


def panel_data(
    source: str,
    columns: Sequence[JudgeColumn],
    pairs: Sequence[tuple[str, str, Pairs, Pairs]],
    scores: Mapping[str, Score],
    trials: int,
) -> dict[str, Any]:
    """As JSON; a verdict's `said` is null where the judge failed."""
    judges, compared = [], []
    for column in columns:
        verdicts = [verdict.said for verdict in column.read().values()]
        failures, score = column.failures().items(), scores.get(column.name)
        judges.append(
            {
                "name": column.name,
                "items": len(verdicts),
                "passed": verdicts.count("pass"),
                "failed": verdicts.count("fail"),
                "unknown": verdicts.count("unknown"),
                "errors": [{**asdict(item), "reason": why} for item, why in failures],
                "judging": to_jsonable_python(column.took),
                "labels": score and _score(score),
            }
        )
    for first, second, items, of_trials in pairs:
        apart = [
            {**asdict(item), "first": asdict(one), "second": asdict(other)}
            for item, one, other in items
            if one.said != other.said
        ]
        more = {"trials": _agreement(of_trials), "disagreements": apart}
        compared.append({"first": first, "second": second, **_agreement(items), **more})
    return {
        "schema_version": PANEL_VERSION,
        "skillup_version": __version__,
        "source": source,
        "trials": trials,
        "judges": judges,
        "pairs": compared,
    }


def _agreement(found: Pairs) -> dict[str, Any]:
    """Shares and kappa are null where there is nothing to divide by."""
    said = [(str(one.said), str(other.said)) for _, one, other in found]
    agreed, kappa = sum(one == other for one, other in said), kappa_of(said)[0]
    share = agreed / len(said) if said else None
    return {"items": len(said), "agreed": agreed, "agreement": share, "kappa": kappa}


def _score(score: Score) -> dict[str, Any]:
    """Of all labels, and by check and stratum."""
    pairs = score.pairs
    said = ("pass", "fail", "unknown")
    wrong = [
        {**asdict(item), **asdict(verdict), "label": label.said, "line": label.line}
        for item, verdict, label in score.wrong
    ]
    return {
        **_figures(pairs),
        "confusion": {a: {b: pairs.count((a, b)) for b in said} for a in said},
        "groups": {name: _figures(some) for name, some in score.groups().items()},
        "wrong": wrong,
        "unanswered": [asdict(item) for item in score.unanswered],
        "unmatched": [asdict(label) for label in score.unmatched],
        "stale": [asdict(label) for label in score.stale],
    }


def _figures(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Each share with its 95 % interval (Wilson), or null where there is nothing to divide by."""
    shares, (kappa, around) = shares_of(pairs), kappa_of(pairs)
    intervals = {name: list(wilson(*parts)) if parts[1] else None for name, parts in shares.items()}
    return {
        "items": len(pairs),
        **{name: part / whole if whole else None for name, (part, whole) in shares.items()},
        "intervals": intervals,
        "kappa": kappa,
        "kappa_interval": list(around) if around else None,
    }


_JUDGE = 48
_ITEM = 200
_REASON = 600
_WORDS = {
    "pass": ("pass", "green"),
    "fail": ("fail", "red"),
    "unknown": ("unknown", "yellow"),
    None: ("error", "bold magenta"),
}


def print_panel(data: Data, console: Console, *, quiet: bool = False) -> None:
    """Each judge, each pair, and each judge with labels; unless `quiet`, every disagreement."""
    print_line(console, count(data["trials"], "trial"), style="bold")
    counted = ["items", "pass", "fail", "unknown", "error"]
    heads = ["judge", *counted, "calls", "stored", "tokens", "cost"]
    rows = []
    for judge in data["judges"]:
        counts = [judge[name] for name in ("items", "passed", "failed", "unknown")]
        counts.append(len(judge["errors"]))
        name = one_line(judge["name"], _JUDGE)
        rows.append([name, *map(str, counts), *took_words(judge["judging"])])
    print_table(console, rows, heads, indent=2)
    for judge in data["judges"]:
        for reason, errors in grouped(judge["errors"], lambda error: error["reason"]).items():
            head = f"  {one_line(judge['name'], _JUDGE)} failed on {count(len(errors), 'item')}: "
            print_line(console, (head, "bold magenta"), one_line(reason, _REASON))
            print_line(console, "      ", _item_line(errors[0]))
    for pair in data["pairs"]:
        first, second = (one_line(pair[side], _JUDGE) for side in ("first", "second"))
        rows = []
        for name, found in (("items", pair), ("trials", pair["trials"])):
            share = _share(found["agreement"])
            rows.append([name, str(found["items"]), str(found["agreed"]), share, _kappa(found)])
        console.print()
        print_line(console, f"{first} and {second}", style="bold")
        print_table(console, rows, ["", "both judged", "agreed", "", "kappa"], indent=2)
        for one in pair["disagreements"] if not quiet else ():
            _print_item(console, one, [(first, one["first"]), (second, one["second"])])
    for judge in data["judges"]:
        if judge["labels"] is not None:
            _print_labels(one_line(judge["name"], 120), judge["labels"], console, quiet)


def _print_labels(name: str, score: Data, console: Console, quiet: bool) -> None:
    """The figures, by check, and the confusion table; unless `quiet`, what was wrong."""
    console.print()
    print_line(console, f"{name} and people's labels", style="bold")
    shown = {"all": score, **score["groups"]}
    apart = "\n" if console.is_terminal and console.width < _WIDE else " "
    rows = [
        [one_line(what, _NAME), str(one["items"]), *(_with_limits(one, n, apart) for n in _SHARES)]
        for what, one in shown.items()
    ]
    print_table(console, rows, ["", "items", *_SHARES], indent=2)
    if any(what.startswith("chosen as") for what in shown):
        what = "the items were not drawn at random: the figures are of these, not of the run"
        print_line(console, f"  {what}", style="dim")
    console.print()
    said = list(score["confusion"])
    rows = [[f"judge: {a}", *(str(score["confusion"][a][b]) for b in said)] for a in said]
    print_table(console, rows, ["", *(f"people: {b}" for b in said)], indent=2)
    for name, why in _LEFT_OUT.items():
        if left := score[name]:
            what = f"  {count(len(left), 'label')} left out: {why}, "
            line = f"in line {left[0]['line']}, " if "line" in left[0] else ""
            print_line(console, what, line, _item_line(left[0]).plain, style="yellow")
    for wrong in score["wrong"] if not quiet else ():
        label = f"  labelled {wrong['label']} in line {wrong['line']}"
        _print_item(console, wrong, [("", wrong)], label)


_SHARES = ("accuracy", "precision", "recall", "kappa")
_LEFT_OUT = {
    "unanswered": "the judge failed on it",
    "stale": "of another answer",
    "unmatched": "nothing that was judged is",
}


def _with_limits(found: Data, name: str, apart: str) -> str:
    """``83 % (44-97 %)``, ``0.67 (0.12 to 1.00)``; `apart` stands before the interval."""
    if name == "kappa":
        limits = found["kappa_interval"]
        return _kappa(found) + (f"{apart}({limits[0]:.2f} to {limits[1]:.2f})" if limits else "")
    limits = found["intervals"][name]
    between = "{}({:.0f}-{:.0f} %)".format(apart, *(100 * x for x in limits)) if limits else ""
    return _share(found[name]) + between


def _item_line(item: Data) -> Text:
    """``turn 2: the check  case/engine/with_skill/1``."""
    turn = f"turn {item['turn']}: " if item["turn"] else ""
    job = f"  {one_line(item['job'], _ITEM)}"
    return make_text((turn, "dim"), one_line(item["check"], _ITEM), (job, "dim"))


def _print_item(
    console: Console, item: Data, verdicts: Iterable[tuple[str, Data]], label: str = ""
) -> None:
    """What was judged; a row for each judge: verdict, name, and the reason, folded."""
    console.print()
    print_line(console, "  ", _item_line(item), (label, "dim"))
    rows: list[Sequence[Part]] = []
    for name, verdict in verdicts:
        why = Text(one_line(verdict["reason"], _REASON))
        if verdict["quote"].strip():
            why.append(f"\n“{one_line(verdict['quote'], _REASON)}”", style="dim")
        rows.append([_WORDS[verdict["said"]], name, why])
    print_table(console, rows, align="nnl", indent=4)


def _share(value: float | None) -> str:
    """``88 %``; a dash where there is nothing to divide by."""
    return "–" if value is None else f"{100 * value:.0f} %"


def _kappa(found: Data) -> str:
    return "–" if found["kappa"] is None else f"{found['kappa']:.2f}"
