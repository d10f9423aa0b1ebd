"""`summary.md`: a run on one page, for pull requests and CI job summaries (GitHub's Markdown)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillup.reports.analysis.markdown import markdown_analysis
from skillup.reports.text import money, one_line, plain, seconds, tokens
from skillup.schema.grade import CheckResult, Grade, RunResult

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")
# GitHub looks for these in the finished text, where an escaped sign is a plain one again.
_REFERENCE = re.compile(r"(@|\\#)(?=\w)")
_ADDRESS = re.compile(r"(?i)(?<=:)(?=//)|(?<=\bwww)(?=\.)")
_AT_THE_START = re.compile(r"^(?=[-+=])|^(?P<number>\d+)(?=[.)])")
_MARKS = {"PASS": "✅", "FAIL": "❌", "ERROR": "⚠️", "SKIP": "⏭️"}
_MOST_TOLD = 50
_MOST_ROWS = 1000
_MOST_BYTES = 1 << 20
"""GitHub shows no job summary that is larger."""


def markdown(result: RunResult) -> str:
    """The counts, a row for each trial, and below it why each that did not pass did not."""
    lines = [f"# skillup: {_headline(result)}", "", *_figures(result), ""]
    several = {
        "engine": len({grade.engine for grade in result.cases}) > 1,
        "variant": len({grade.variant for grade in result.cases}) > 1,
        "trial": any(grade.trial > 1 for grade in result.cases),
    }
    shown = [name for name, wanted in several.items() if wanted]
    lines += _table(result, shown)
    lines += markdown_analysis(result.analysis, escape)
    bad = [grade for grade in result.cases if grade.status in ("FAIL", "ERROR")]
    if bad:
        lines += ["", "## What did not pass"]
    for grade in bad[:_MOST_TOLD]:
        lines += ["", *_told(grade, shown)]
    if len(bad) > _MOST_TOLD:
        lines += ["", f"… and {len(bad) - _MOST_TOLD} more; `result.json` has them all."]
    lines += [f"\n⚠️ {escape(warning)}" for warning in result.warnings]
    if result.not_run:
        lines += ["", f"## Not run ({len(result.not_run)})", ""]
        if result.stopped is not None:
            lines += [f"The run was stopped: {escape(result.stopped.message)}.", ""]
        lines += [f"- {escape(job)}" for job in result.not_run[:_MOST_TOLD]]
    return _within(lines, _MOST_BYTES)


def _within(lines: list[str], most: int) -> str:
    """The lines, as many as go into `most` bytes of UTF-8."""
    text = "\n".join(lines) + "\n"
    if len(text.encode("utf-8", "replace")) <= most:
        return text
    note = "\n… cut here, as GitHub shows no larger summary; `result.json` has all of it.\n"
    room = most - len(note.encode())
    kept: list[str] = []
    for line in text.splitlines(keepends=True):
        room -= len(line.encode("utf-8", "replace"))
        if room < 0:
            break
        kept.append(line)
    return "".join(kept) + note


def escape(text: str, width: int = 300) -> str:
    """`text` on one line, so that nothing in it is Markdown, HTML or a terminal's control."""
    line = _SPECIAL.sub(r"\\\1", one_line(plain(text), width))
    line = _REFERENCE.sub("\\g<1>\u2060", line)  # a word joiner: nobody sees it
    line = _ADDRESS.sub(r"\\", line)
    return _AT_THE_START.sub(r"\g<number>\\", line)


def _headline(result: RunResult) -> str:
    summary = result.summary
    parts = [f"{summary.passed} of {summary.total} passed"]
    for count, word in ((summary.fail, "failed"), (summary.error, "not run for errors"),
                        (summary.skip, "skipped"), (len(result.not_run), "not begun")):  # fmt: skip
        if count:
            parts.append(f"{count} {word}")
    return ", ".join(parts)


def _figures(result: RunResult) -> Iterator[str]:
    summary = result.summary
    usage = summary.usage
    known = [usage.get(name) for name in ("input_tokens", "output_tokens")]
    total = sum(count for count in known if count is not None) if any(known) else None
    rate = "–" if summary.pass_rate is None else f"{summary.pass_rate:.0%}"
    judges = summary.judging.cost_usd if summary.judging is not None else None
    yield "| pass rate | time | cost | cost of judges | tokens | run |"
    yield "|---|---|---|---|---|---|"
    yield (
        f"| {rate} | {seconds(summary.duration_ms)} | {money(summary.cost_usd)} "
        f"| {money(judges)} | {tokens(total)} | {escape(result.run_id)} |"
    )


def _table(result: RunResult, shown: list[str]) -> Iterator[str]:
    heads = ["", "case", *shown, "turns", "checks", "score", "time", "cost"]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    rows = result.cases
    if len(rows) > _MOST_ROWS:
        rows = sorted(rows, key=lambda grade: grade.status == "PASS")[:_MOST_ROWS]
    for grade in rows:
        held = sum(turn.status == "completed" for turn in grade.turns)
        checks = [c for turn in grade.turns for c in turn.deciding_checks()] + grade.assertions
        cells = [
            f"{_MARKS[grade.status]} {grade.status}",
            escape(grade.case_id),
            *(escape(str(getattr(grade, name))) for name in shown),
            f"{held}/{len(grade.turns)}",
            f"{sum(check.passed for check in checks)}/{len(checks)}",
            "–" if grade.status in ("ERROR", "SKIP") else f"{grade.score:.2f}",
            seconds(grade.duration_ms),
            money(grade.cost_usd),
        ]
        yield "| " + " | ".join(cells) + " |"
    if len(rows) < len(result.cases):
        yield ""
        yield f"… and {len(result.cases) - len(rows)} more trials; `result.json` has them all."


def _told(grade: Grade, shown: list[str]) -> Iterator[str]:
    where = ", ".join(str(getattr(grade, name)) for name in shown)
    label = f"{grade.case_id} ({where})" if where else grade.case_id
    yield f"### {_MARKS[grade.status]} {escape(label)}"
    yield ""
    yield escape(grade.reason)
    unmet = list(_unmet(grade))
    if unmet:
        yield ""
        yield from (f"- {line}" for line in unmet[:20])


def _unmet(grade: Grade) -> Iterator[str]:
    for turn in grade.turns:
        if turn.error is not None:
            kind, message = turn.error["kind"], turn.error["message"]
            yield f"turn {turn.turn_number}: {escape(f'{kind}: {message}')}"
        for check in turn.deciding_checks():
            if not check.passed:
                yield f"turn {turn.turn_number}: {_check(check)}"
    yield from (_check(check) for check in grade.assertions if not check.passed)


def _check(check: CheckResult) -> str:
    return f"**{escape(check.name, 120)}**: {escape(check.error or check.found)}"
