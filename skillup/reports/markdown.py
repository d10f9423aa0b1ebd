"""`summary.md`: a run for a pull request or a CI job's summary (GitHub's Markdown)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from skillup.reports.analysis import sheets_of
from skillup.reports.sheet import percent
from skillup.reports.text import money, one_line, plain, seconds, tokens
from skillup.reports.view_model import (
    FailedCheck,
    Labels,
    Row,
    RunView,
    baseline_words,
    count_parts,
    grouped,
    total_tokens,
    view_of,
)
from skillup.schema.grade import RunResult

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")
# GitHub looks for these in the finished text, where an escaped sign is a plain one again.
_REFERENCE = re.compile(r"(@|\\#|\b[Gg][Hh]-(?=\d)|:(?!\d+:)(?=(?:\w|[-+]|\\_)+:))(?=[\w+-])")
_ADDRESS = re.compile(r"(?i)(?<=:)(?=//)|(?<=\bwww)(?=\.)")
_AT_THE_START = re.compile(r"^(?=[-+=])|^(?P<number>\d+)(?=[.)])")
_MARKS = {"PASS": "✅", "FAIL": "❌", "ERROR": "⚠️", "SKIP": "⏭️"}
_MAX_GROUPS = 50
_ROWS_AT_ONCE = 30
_MAX_ROWS = 1000
_MAX_BYTES = 1 << 20  # GitHub shows no job summary that is larger


def markdown(result: RunResult) -> str:
    """The counts, a row for each trial, and below it why each that did not pass did not."""
    view = view_of(result)
    counts = [text for text, _ in count_parts(result.summary, not_run=len(result.not_run))]
    counts[0] = f"{result.summary.passed} of {result.summary.total} passed"
    baseline = baseline_words(result.summary.baseline)
    headline = "; ".join(filter(None, (", ".join(counts), baseline)))
    lines = [f"# skillup: {headline}", "", *_figures(result), "", *_tables(view)]
    retried = view.retried()
    if retried is not None:
        lines += ["", f"⚠️ {escape(retried, 1000)}"]
    lines += _sheets(result)
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
    rows = view.rows
    if len(rows) > _ROWS_AT_ONCE:
        rows = [row for row in rows if row.is_bad or row.grade.status == "SKIP"][:_MAX_ROWS]
    if rows:
        yield from _table(rows, view.labels)
    if len(rows) < len(view.rows):
        yield ""
        yield f"… and {len(view.rows) - len(rows)} more trials; `result.json` has them all."


def _shown(labels: Labels, row: Row) -> dict[str, str]:
    names = [name for name in ("engine", "variant", "trial") if getattr(labels, name)]
    return {name: str(getattr(row.grade, name)) for name in names}


def _table(rows: Sequence[Row], labels: Labels) -> Iterator[str]:
    shown = list(_shown(labels, rows[0])) if rows else []
    heads = ["", "case", *shown, "turns", "checks", "score", "time", "cost"]
    yield from (row(heads), "|" + "---|" * len(heads))
    for one in rows:
        grade = one.grade
        is_expected = grade.status == "FAIL" and not one.is_bad
        cells = [
            f"{'➖' if is_expected else _MARKS[grade.status]} {grade.status}",
            escape(grade.case_id) + (f" ({one.attempt})" if one.attempt else ""),
            *map(escape, _shown(labels, one).values()),
            f"{one.turns_done}/{len(grade.turns)}",
            f"{one.passed_checks}/{len(one.checks)}",
            "–" if one.score is None else f"{one.score:.2f}",
            seconds(grade.duration_ms),
            money(grade.cost_usd),
        ]
        yield row(cells)


def _sheets(result: RunResult) -> Iterator[str]:
    for sheet in sheets_of(result.analysis):
        if sheet.title:
            yield from ("", f"## {escape(sheet.title, 200)}")
        if sheet.rows:
            heads = row(escape(head, 200) for head in sheet.heads)
            yield from ("", heads, "|---|" + "---:|" * (len(sheet.heads) - 1))
            yield from (row(escape(cell.text, 200) for cell in cells) for cells in sheet.rows)
        if sheet.lines:
            yield ""
        yield from (f"- {escape(line.text, 2000)}" for line in sheet.lines)


def _failed(view: RunView) -> Iterator[str]:
    """Why each trial that is bad is; those of a case that say the same stand together."""
    groups = grouped(
        (row for row in view.rows if row.is_bad),
        lambda row: (row.case, row.grade.status, row.grade.reason, *map(_line, row.failures)),
    )
    of_case = Counter(row.case for row in view.rows)
    if groups:
        yield from ("", "## What did not pass")
    for rows in groups[:_MAX_GROUPS]:
        grade, failures = rows[0].grade, [f for f in rows[0].failures if f.name != "skipped"]
        shown = _shown(view.labels, rows[0])
        if len(rows) > 1:
            shown["trial"] = f"{len(rows)} of {of_case[rows[0].case]} trials"
        where = ", ".join(shown.values())
        label = f"{grade.case_id} ({where})" if where else grade.case_id
        yield from ("", f"### {_MARKS[grade.status]} {escape(label)}")
        known = [words for f in failures for words in (f.sentence, f.where + f.sentence)]
        if not grade.reason.startswith(tuple(known)):
            yield from ("", escape(grade.reason))
        if failures:
            yield ""
            yield from (f"- {_line(failure)}" for failure in failures[:20])
    rest = sum(map(len, groups[_MAX_GROUPS:]))
    if rest:
        yield from ("", f"… and {rest} more; `result.json` has them all.")


def _line(failure: FailedCheck) -> str:
    sentence = failure.sentence
    if failure.is_turn:
        return failure.where + escape(sentence)
    found = sentence.removeprefix(f"{failure.name}: ")
    if found == sentence:  # a sentence by itself, or nothing was found
        return f"{failure.where}**{escape(sentence)}**"
    return f"{failure.where}**{escape(failure.name, 120)}**: {escape(found)}"
