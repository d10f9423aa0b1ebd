"""A run, and before it its comparison, for a pull request or a CI job's summary (GitHub's
Markdown): `summary.md` and `skillup compare --report markdown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from skillup.history.comparison import Comparison
from skillup.history.gates import GateResult
from skillup.reports.past_runs import Compared, comparison_sheets
from skillup.reports.result import (
    FailedCheck,
    Row,
    RunView,
    baseline_words,
    count_parts,
    is_bad,
    total_tokens,
)
from skillup.reports.tables import Cell, Sheet, percent, sheets_of, trial_sheet
from skillup.reports.text import money, one_line, plain, seconds, tokens, total
from skillup.schema.grade import RunResult
from skillup.schema.line import grouped

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")
# GitHub looks for these in the finished text, where an escaped sign is a plain one again.
_REFERENCE = re.compile(r"(@|\\#|\b[Gg][Hh]-(?=\d)|:(?!\d+:)(?=(?:\w|[-+]|\\_)+:))(?=[\w+-])")
_ADDRESS = re.compile(r"(?i)(?<=:)(?=//)|(?<=\bwww)(?=\.)")
_AT_THE_START = re.compile(r"^(?=[-+=])|^(?P<number>\d+)(?=[.)])")
_MARKS = {"PASS": "✅", "FAIL": "❌", "ERROR": "⚠️", "SKIP": "⏭️"}
_MAX_GROUPS = 50
_ROWS_AT_ONCE = 20  # The rest is folded, as far as so many
_FOLDED_ROWS = 200
_LONGEST = 60_000  # Characters; GitHub takes no comment of more than 65,536


def markdown(result: RunResult, compared: Compared | None = None) -> str:
    """What is said of the run beside its reference; the counts, a row for each trial, and below it
    why each that did not pass did not.
    """
    view = RunView(result)
    counts = [text for text, _ in count_parts(result.summary, not_run=len(result.not_run))]
    counts[0] = f"{result.summary.passed} of {result.summary.total} passed"
    baseline = baseline_words(result.summary.baseline)
    headline = "; ".join(filter(None, (", ".join(counts), baseline)))
    lines = [*_compared(*compared), ""] if compared is not None else []
    lines += [f"# skillup: {headline}", "", escape(result.ran, 1000), ""]
    lines += [*_figures(view), *_tables(view)]
    lines += [f"\n- {escape(note, 1000)}" for note, _ in view.notes()]
    lines += [line for sheet in sheets_of(result.analysis, view.lines) for line in _sheet(sheet)]
    lines += _failed(view)
    lines += [f"\n⚠️ {escape(warning)}" for warning in result.warnings]
    if result.not_run:
        lines += ["", f"## Not run ({len(result.not_run)})", ""]
        if result.stopped is not None:
            lines += [f"The run was stopped: {escape(result.stopped.message)}.", ""]
        lines += [f"- {escape(job)}" for job in result.not_run[:_MAX_GROUPS]]
    return _within(lines)


def escape(text: str, width: int = 300) -> str:
    """`text` on one line, so that nothing in it is Markdown, HTML or a terminal's control."""
    line = _SPECIAL.sub(r"\\\1", one_line(plain(text), width))
    line = _REFERENCE.sub("\\g<1>\u2060", line)  # a word joiner: nobody sees it
    line = _ADDRESS.sub(r"\\", line)
    return _AT_THE_START.sub(r"\g<number>\\", line)


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _within(lines: Sequence[str]) -> str:
    """The lines, as many as GitHub shows."""
    text = "\n".join(lines) + "\n"
    if len(text) <= _LONGEST:
        return text
    note = "… cut here, as GitHub shows no more; `result.json` has all of it.\n"
    kept = text[: _LONGEST - len(note) - len(_FOLDED[1]) - 3]
    kept = kept[: kept.rindex("\n") + 1]
    if kept.count(_FOLDED[0]) > kept.count(_FOLDED[1]):
        kept += f"\n{_FOLDED[1]}\n"
    return f"{kept}\n{note}"


_FOLDED = ("<details>", "</details>")


def _folded(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"{_FOLDED[0]}<summary>{title}</summary>", "", *lines, "", _FOLDED[1])


def comparison_markdown(comparison: Comparison, gates: Sequence[GateResult]) -> str:
    """For `skillup compare --report markdown`."""
    return _within(list(_compared(comparison, gates)))


def _compared(comparison: Comparison, gates: Sequence[GateResult]) -> Iterator[str]:
    """As on a terminal, of the gates those that failed."""
    failed = [gate for gate in gates if not gate.passed]
    mark, met = ("❌", f"{len(failed)} of {len(gates)}") if failed else ("✅", "no")
    yield f"# {mark} skillup: {met} gates failed"
    for sheet in comparison_sheets(comparison, failed, _FOLDED_ROWS):
        yield from _sheet(sheet)


def _figures(view: RunView) -> Iterator[str]:
    summary = view.result.summary
    judges = summary.judging.cost_usd if summary.judging is not None else None
    cells = {"of trials passed": percent(summary.pass_rate).text}
    if summary.baseline is not None:
        cells["without the skill"] = percent(summary.baseline.pass_rate).text
    cells |= {
        "time": seconds(summary.duration_ms),
        "cost": total(t.cost_usd for t in view.lines if t.status != "SKIP"),
        "cost of judges": money(judges),
        "tokens": tokens(total_tokens(summary.usage)),
        "run": escape(view.result.run_id),
    }
    yield from (row(cells), "|" + "---|" * len(cells), row(cells.values()))


def _tables(view: RunView) -> Iterator[str]:
    """A row for each trial; of many, for those that did not pass, errors and failures first."""
    if view.side_by_side:
        return
    all_of_them = len(view.lines) <= _ROWS_AT_ONCE
    rows = list(view.rows(lambda line: all_of_them or is_bad(line) or line.status == "SKIP"))
    if not all_of_them:
        rows.sort(key=lambda row: row.grade.status == "SKIP")
    yield from _sheet(_marked(trial_sheet(view, rows[:_ROWS_AT_ONCE])))
    if left := len(view.lines) - len(rows[:_ROWS_AT_ONCE]):
        yield from ("", f"… and {left} more trials; result.json has them all.")


def _marked(sheet: Sheet) -> Sheet:
    for place, (status, *cells) in enumerate(sheet.rows):
        mark = "➖" if status.style == "dim" else _MARKS[status.text]
        sheet.rows[place] = [Cell(f"{mark} {status.text}"), *cells]
    return sheet


def _sheet(sheet: Sheet) -> Iterator[str]:
    if sheet.title:
        yield from ("", f"## {escape(sheet.title, 200)}")
    if sheet.rows:
        heads = sheet.heads or [""] * len(sheet.rows[0])
        numbers = "---:" if sheet.heads else "---"
        table = [row(escape(head, 200) for head in heads)]
        table.append("|---|" + f"{numbers}|" * (len(heads) - 1))
        rows = [row(escape(cell.text) for cell in cells) for cells in sheet.rows]
        yield from ("", *table, *rows[:_ROWS_AT_ONCE])
        if more := rows[_ROWS_AT_ONCE:]:
            yield from _folded(f"… and {len(more)} more", [*table, *more])
    if sheet.lines:
        yield ""
    for line in sheet.lines:
        text = escape(line.text, 2000)
        yield f"- **{text}**" if "bold" in line.style else f"- {text}"


def _failed(view: RunView) -> Iterator[str]:
    """Why each trial that is bad is; those of a case that say the same stand together."""
    alike = grouped(
        view.rows(is_bad),
        lambda row: (row.case, row.grade.status, row.grade.reason, *map(_line, row.failures)),
    )
    groups = list(alike.values())
    if groups:
        yield from ("", "## What did not pass")
    parts = [list(_group(view, rows)) for rows in groups[:_MAX_GROUPS]]
    yield from (line for part in parts[:_ROWS_AT_ONCE] for line in part)
    if more := parts[_ROWS_AT_ONCE:]:
        yield from _folded(f"… and {len(more)} more", (line for part in more for line in part))
    rest = sum(map(len, groups[_MAX_GROUPS:]))
    if rest:
        yield from ("", f"… and {rest} more; `result.json` has them all.")


def _group(view: RunView, rows: Sequence[Row]) -> Iterator[str]:
    grade, failures = rows[0].grade, [f for f in rows[0].failures if f.name != "skipped"]
    yield from ("", f"### {_MARKS[grade.status]} {escape(view.names(rows))}", "")
    if not failures:
        yield escape(grade.reason)
    yield from (f"- {_line(failure)}" for failure in failures[:20])


def _line(failure: FailedCheck) -> str:
    found = escape(failure.found.removeprefix(f"{failure.name}: "))
    return f"{failure.where}**{escape(failure.name, 120)}**: {found}"
