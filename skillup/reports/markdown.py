"""`summary.md`: a run for a pull request or a CI job's summary (GitHub's Markdown)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from skillup.checks.context import in_words
from skillup.reports.result import (
    FailedCheck,
    RunView,
    baseline_words,
    count_parts,
    grouped,
    is_bad,
    total_tokens,
)
from skillup.reports.tables import Cell, Sheet, percent, sheets_of, trial_sheet
from skillup.reports.text import money, one_line, plain, seconds, tokens
from skillup.schema.grade import RunResult

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")
# GitHub looks for these in the finished text, where an escaped sign is a plain one again.
_REFERENCE = re.compile(r"(@|\\#|\b[Gg][Hh]-(?=\d)|:(?!\d+:)(?=(?:\w|[-+]|\\_)+:))(?=[\w+-])")
_ADDRESS = re.compile(r"(?i)(?<=:)(?=//)|(?<=\bwww)(?=\.)")
_AT_THE_START = re.compile(r"^(?=[-+=])|^(?P<number>\d+)(?=[.)])")
_MARKS = {"PASS": "✅", "FAIL": "❌", "ERROR": "⚠️", "SKIP": "⏭️"}
_MAX_GROUPS = 50
_ROWS_AT_ONCE = 30
_MAX_BYTES = 1 << 20  # GitHub shows no job summary that is larger


def markdown(result: RunResult) -> str:
    """The counts, a row for each trial, and below it why each that did not pass did not."""
    view = RunView(result)
    counts = [text for text, _ in count_parts(result.summary, not_run=len(result.not_run))]
    counts[0] = f"{result.summary.passed} of {result.summary.total} passed"
    baseline = baseline_words(result.summary.baseline)
    headline = "; ".join(filter(None, (", ".join(counts), baseline)))
    lines = [f"# skillup: {headline}", "", *_figures(result), *_tables(view)]
    retried = view.retried()
    if retried is not None:
        lines += ["", f"⚠️ {escape(retried, 1000)}"]
    lines += [line for sheet in sheets_of(result.analysis) for line in _sheet(sheet)]
    lines += _failed(view)
    lines += [f"\n⚠️ {escape(warning)}" for warning in result.warnings]
    if result.not_run:
        lines += ["", f"## Not run ({len(result.not_run)})", ""]
        if result.stopped is not None:
            lines += [f"The run was stopped: {escape(result.stopped.message)}.", ""]
        lines += [f"- {escape(job)}" for job in result.not_run[:_MAX_GROUPS]]
    return _within(lines, _MAX_BYTES)


def escape(text: str, width: int = 300) -> str:
    """`text` on one line, so that nothing in it is Markdown, HTML or a terminal's control."""
    line = _SPECIAL.sub(r"\\\1", one_line(plain(text), width))
    line = _REFERENCE.sub("\\g<1>\u2060", line)  # a word joiner: nobody sees it
    line = _ADDRESS.sub(r"\\", line)
    return _AT_THE_START.sub(r"\g<number>\\", line)


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _within(lines: list[str], most: int) -> str:
    """The lines, as many as go into `most` bytes of UTF-8."""
    text = "\n".join(lines) + "\n"
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= most:
        return text
    note = "\n… cut here, as GitHub shows no larger summary; `result.json` has all of it.\n"
    kept = encoded[: most - len(note.encode())]
    return kept[: kept.rindex(b"\n") + 1].decode() + note


def _figures(result: RunResult) -> Iterator[str]:
    summary = result.summary
    judges = summary.judging.cost_usd if summary.judging is not None else None
    cells = {"of trials passed": percent(summary.pass_rate).text}
    if summary.baseline is not None:
        cells["without the skill"] = percent(summary.baseline.pass_rate).text
    cells |= {
        "time": seconds(summary.duration_ms),
        "cost": money(summary.cost_usd),
        "cost of judges": money(judges),
        "tokens": tokens(total_tokens(summary.usage)),
        "run": escape(result.run_id),
    }
    yield from (row(cells), "|" + "---|" * len(cells), row(cells.values()))


def _tables(view: RunView) -> Iterator[str]:
    """A row for each trial; of many, for those that did not pass with the skill."""
    all_of_them = len(view.lines) <= _ROWS_AT_ONCE
    rows = list(view.rows(lambda line: all_of_them or is_bad(line) or line.status == "SKIP"))
    sheet = trial_sheet(view, rows)
    for place, (status, *cells) in enumerate(sheet.rows):
        mark = "➖" if status.style == "dim" else _MARKS[status.text]
        sheet.rows[place] = [Cell(f"{mark} {status.text}"), *cells]
    if len(rows) < len(view.lines):
        more = len(view.lines) - len(rows)
        sheet.lines.append(Cell(f"… and {more} more trials; result.json has them all."))
    return _sheet(sheet)


def _sheet(sheet: Sheet) -> Iterator[str]:
    if sheet.title:
        yield from ("", f"## {escape(sheet.title, 200)}")
    if sheet.rows:
        heads = row(escape(head, 200) for head in sheet.heads)
        yield from ("", heads, "|---|" + "---:|" * (len(sheet.heads) - 1))
        yield from (row(escape(cell.text) for cell in cells) for cells in sheet.rows)
    if sheet.lines:
        yield ""
    yield from (f"- {escape(line.text, 2000)}" for line in sheet.lines)


def _failed(view: RunView) -> Iterator[str]:
    """Why each trial that is bad is; those of a case that say the same stand together."""
    groups = grouped(
        view.rows(is_bad),
        lambda row: (row.case, row.grade.status, row.grade.reason, *map(_line, row.failures)),
    )
    if groups:
        yield from ("", "## What did not pass")
    for rows in groups[:_MAX_GROUPS]:
        grade, failures = rows[0].grade, [f for f in rows[0].failures if f.name != "skipped"]
        yield from ("", f"### {_MARKS[grade.status]} {escape(view.names(rows))}", "")
        if not failures:
            yield escape(grade.reason)
        yield from (f"- {_line(failure)}" for failure in failures[:20])
    rest = sum(map(len, groups[_MAX_GROUPS:]))
    if rest:
        yield from ("", f"… and {rest} more; `result.json` has them all.")


def _line(failure: FailedCheck) -> str:
    sentence = f"{failure.name}: {failure.found}"
    if failure.check is None:
        return failure.where + escape(sentence)
    if not failure.check.error:
        sentence = in_words(failure.name, failure.found)
    found = sentence.removeprefix(f"{failure.name}: ")
    if found == sentence:  # a sentence by itself, or nothing was found
        return f"{failure.where}**{escape(sentence)}**"
    return f"{failure.where}**{escape(failure.name, 120)}**: {escape(found)}"
