"""`summary.md`: a run on one page, for pull requests and CI job summaries (GitHub's Markdown)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from skillup.checks.describe import in_words
from skillup.reports.analysis.render import markdown_analysis
from skillup.reports.phrases import attempt_words, tried_again
from skillup.reports.result import baseline_words
from skillup.reports.text import money, one_line, plain, seconds, tokens
from skillup.schema.grade import BASELINE, CheckResult, Grade, RunResult
from skillup.stats.proportions import percent

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!$])")
# GitHub looks for these in the finished text, where an escaped sign is a plain one again.
_REFERENCE = re.compile(r"(@|\\#|\b[Gg][Hh]-(?=\d)|:(?!\d+:)(?=(?:\w|[-+]|\\_)+:))(?=[\w+-])")
_ADDRESS = re.compile(r"(?i)(?<=:)(?=//)|(?<=\bwww)(?=\.)")
_AT_THE_START = re.compile(r"^(?=[-+=])|^(?P<number>\d+)(?=[.)])")
_MARKS = {"PASS": "✅", "FAIL": "❌", "ERROR": "⚠️", "SKIP": "⏭️"}
_NO_FAILURE = "➖"
"""Of a case that failed without the skill."""
_MOST_TOLD = 50
_ROWS_AT_ONCE = 30
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
    lines += _tables(result, shown)
    again = tried_again((_name(grade, shown), grade.attempt) for grade in result.cases)
    if again is not None:
        lines += ["", f"⚠️ {escape(again, 1000)}"]
    lines += markdown_analysis(result.analysis, escape)
    bad = [grade for grade in result.cases if _is_bad(grade)]
    if bad:
        lines += ["", "## What did not pass"]
    alike = _alike(bad)
    held = Counter(map(_case, result.cases))
    for grades in alike[:_MOST_TOLD]:
        lines += ["", *_told(grades, shown, held[_case(grades[0])])]
    rest = sum(map(len, alike[_MOST_TOLD:]))
    if rest:
        lines += ["", f"… and {rest} more; `result.json` has them all."]
    lines += [f"\n⚠️ {escape(warning)}" for warning in result.warnings]
    if result.not_run:
        lines += ["", f"## Not run ({len(result.not_run)})", ""]
        if result.stopped is not None:
            lines += [f"The run was stopped: {escape(result.stopped.message)}.", ""]
        lines += [f"- {escape(job)}" for job in result.not_run[:_MOST_TOLD]]
    return _within(lines, _MOST_BYTES)


def _is_bad(grade: Grade) -> bool:
    """That the agent fails without the skill is what a baseline is there to show."""
    return grade.status == "ERROR" or (grade.status == "FAIL" and grade.variant != BASELINE)


def _within(lines: list[str], most: int) -> str:
    """The lines, as many as go into `most` bytes of UTF-8."""
    text = "\n".join(lines) + "\n"
    if len(text.encode("utf-8", "replace")) <= most:
        return text
    note = "\n… cut here, as GitHub shows no larger summary; `result.json` has all of it.\n"
    unfolded = "\n</details>\n"  # else the note would be folded with what is above it
    room = most - len((unfolded + note).encode())
    kept: list[str] = []
    for line in text.splitlines(keepends=True):
        room -= len(line.encode("utf-8", "replace"))
        if room < 0:
            break
        kept.append(line)
    cut = "".join(kept)
    return cut + (unfolded if cut.count("<details>") > cut.count("</details>") else "") + note


def escape(text: str, width: int = 300) -> str:
    """`text` on one line, so that nothing in it is Markdown, HTML or a terminal's control."""
    line = _SPECIAL.sub(r"\\\1", one_line(plain(text), width))
    line = _REFERENCE.sub("\\g<1>\u2060", line)  # a word joiner: nobody sees it
    line = _ADDRESS.sub(r"\\", line)
    return _AT_THE_START.sub(r"\g<number>\\", line)


def _headline(result: RunResult) -> str:
    summary = result.summary
    parts = [f"{summary.passed} of {summary.total} passed"]
    errors = "error" if summary.error == 1 else "errors"
    for count, word in ((summary.fail, "failed"), (summary.error, errors),
                        (summary.skip, "skipped"), (len(result.not_run), "not run")):  # fmt: skip
        if count:
            parts.append(f"{count} {word}")
    baseline = baseline_words(summary.baseline)
    return ", ".join(parts) + (f"; {baseline}" if baseline is not None else "")


def _figures(result: RunResult) -> Iterator[str]:
    summary = result.summary
    usage = summary.usage
    known = [usage.get(name) for name in ("input_tokens", "output_tokens")]
    total = sum(count for count in known if count is not None) if any(known) else None
    judges = summary.judging.cost_usd if summary.judging is not None else None
    heads, rates = ["of trials passed"], [_percent(summary.pass_rate)]
    if summary.baseline is not None:
        heads.append("without the skill")
        rates.append(_percent(summary.baseline.pass_rate))
    yield f"| {' | '.join(heads)} | time | cost | cost of judges | tokens | run |"
    yield "|" + "---|" * (len(heads) + 5)
    yield (
        f"| {' | '.join(rates)} | {seconds(summary.duration_ms)} | {money(summary.cost_usd)} "
        f"| {money(judges)} | {tokens(total)} | {escape(result.run_id)} |"
    )


def _percent(rate: float | None) -> str:
    return "–" if rate is None else percent(rate)


def _tables(result: RunResult, shown: list[str]) -> Iterator[str]:
    """A row for each trial; of many, those that did not pass, and the others folded below.

    Folded by themselves are verdicts without the skill: they are none on the skill.
    """
    bare = [grade for grade in result.cases if grade.variant == BASELINE and not _is_bad(grade)]
    own = [grade for grade in result.cases if grade.variant != BASELINE or _is_bad(grade)]
    passed = [grade for grade in own if grade.status == "PASS"]
    others = [grade for grade in own if grade.status != "PASS"]
    if len(own) <= _ROWS_AT_ONCE or not passed:
        passed, others = [], own
    if others:
        yield from _table(others[:_MOST_ROWS], shown)
    room = max(0, _MOST_ROWS - len(others))
    if passed:
        many = "1 trial" if len(passed) == 1 else f"{len(passed)} trials"
        yield from _folded(f"{many} passed", passed[:room], shown)
    if bare:
        room = max(0, room - len(passed))
        yield from _folded(f"without the skill: {_counted(bare)}", bare[:room], shown)
    if len(result.cases) > _MOST_ROWS:
        yield ""
        yield f"… and {len(result.cases) - _MOST_ROWS} more trials; `result.json` has them all."


def _counted(grades: Sequence[Grade]) -> str:
    counts: Counter[str] = Counter(grade.status for grade in grades)
    words = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
    return ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])


def _folded(summary: str, rows: Sequence[Grade], shown: list[str]) -> Iterator[str]:
    yield from ("", f"<details><summary>{summary}</summary>", "")
    yield from _table(rows, shown)
    yield from ("", "</details>")


def _mark(grade: Grade) -> str:
    return _NO_FAILURE if grade.status == "FAIL" and not _is_bad(grade) else _MARKS[grade.status]


def _table(rows: Sequence[Grade], shown: list[str]) -> Iterator[str]:
    heads = ["", "case", *shown, "turns", "checks", "score", "time", "cost"]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for grade in rows:
        held = sum(turn.status == "completed" for turn in grade.turns)
        checks = [c for turn in grade.turns for c in turn.deciding_checks()] + grade.assertions
        cells = [
            f"{_mark(grade)} {grade.status}",
            escape(grade.case_id) + _attempt(grade),
            *(escape(str(getattr(grade, name))) for name in shown),
            f"{held}/{len(grade.turns)}",
            f"{sum(check.passed for check in checks)}/{len(checks)}",
            "–" if grade.status in ("ERROR", "SKIP") else f"{grade.score:.2f}",
            seconds(grade.duration_ms),
            money(grade.cost_usd),
        ]
        yield "| " + " | ".join(cells) + " |"


def _attempt(grade: Grade) -> str:
    return f" ({attempt_words(grade.attempt)})" if grade.attempt > 1 else ""


def _case(grade: Grade) -> tuple[str, ...]:
    return grade.suite, grade.case_id, grade.engine, grade.variant


def _alike(grades: Sequence[Grade]) -> list[list[Grade]]:
    """Trials of one case of which there is the same to be told stand together."""
    groups: dict[tuple[object, ...], list[Grade]] = {}
    for grade in grades:
        told = (*_case(grade), grade.status, grade.reason, *_unmet(grade))
        groups.setdefault(told, []).append(grade)
    return list(groups.values())


def _name(grade: Grade, shown: list[str]) -> str:
    return " ".join([grade.case_id, *(str(getattr(grade, name)) for name in shown)])


def _told(grades: Sequence[Grade], shown: list[str], held: int) -> Iterator[str]:
    grade = grades[0]
    several = {"trial": f"{len(grades)} of {held} trials"} if len(grades) > 1 else {}
    where = ", ".join(several.get(name) or str(getattr(grade, name)) for name in shown)
    label = f"{grade.case_id} ({where})" if where else grade.case_id
    yield f"### {_MARKS[grade.status]} {escape(label)}"
    unmet = list(_unmet(grade))
    if not any(grade.reason.startswith(words) for words in _first_words(grade)):
        yield ""
        yield escape(grade.reason)
    if unmet:
        yield ""
        yield from (f"- {line}" for line in unmet[:20])


def _first_words(grade: Grade) -> Iterator[str]:
    """What a reason begins with that says no more than a line of :func:`_unmet`."""
    for turn in grade.turns:
        if turn.error is not None:
            yield f"{turn.error['kind']}: {turn.error['message']}"
        for check in turn.deciding_checks():
            if not check.passed and not check.error:
                yield f"turn {turn.turn_number}: {in_words(check.name, check.found)}"
    for check in grade.assertions:
        if not check.passed and not check.error:
            yield in_words(check.name, check.found)


def _unmet(grade: Grade) -> Iterator[str]:
    for turn in grade.turns:
        if turn.error is not None:
            where = f"turn {turn.turn_number}: "  # some messages say it, too
            message = turn.error["message"].removeprefix(where)
            yield where + escape(f"{turn.error['kind']}: {message}")
        for check in turn.deciding_checks():
            if not check.passed:
                yield f"turn {turn.turn_number}: {_check(check)}"
    unmet = (check for check in grade.assertions if not check.passed and check.evaluated)
    yield from map(_check, unmet)


def _check(check: CheckResult) -> str:
    if check.error:
        return f"**{escape(check.name, 120)}**: {escape(check.error)}"
    told = in_words(check.name, check.found)
    found = told.removeprefix(f"{check.name}: ")
    if found == told:  # a sentence by itself, or nothing was found
        return f"**{escape(told)}**"
    return f"**{escape(check.name, 120)}**: {escape(found)}"
