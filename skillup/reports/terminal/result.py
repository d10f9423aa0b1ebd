"""What a person sees of a run when it is over, on stderr: a table, why, and the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skillup.plan import Job, Plan
from skillup.reports.analysis.render import print_analysis
from skillup.reports.formats import FORMATS, HTML
from skillup.reports.phrases import (
    attempt_words,
    judge_lines,
    judging_cost,
    shared_note,
    stop_lines,
    tried_again,
)
from skillup.reports.result import baseline_words
from skillup.reports.terminal.layout import print_table
from skillup.reports.terminal.listing import shown_path
from skillup.reports.terminal.progress import PlainReporter
from skillup.reports.terminal.run_progress import STYLE
from skillup.reports.text import money, one_line, plain, seconds, tokens
from skillup.schema.grade import Grade, RunResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


_NAMED = 6


def print_result(
    result: RunResult,
    plan: Plan,
    grades: Sequence[tuple[Job, Grade]],
    where: str,
    console: Console,
    *,
    verbose: bool = False,
) -> None:
    """The closing table, then one line that counts.

    Of cases that were held several times only the trials that did not pass have a row, unless it is
    to be `verbose`: what all of them came to stands below.
    """
    from rich.text import Text

    reporter = PlainReporter(plan, console)
    rows = list(grades)
    if reporter.show_trial and not verbose:
        rows = [(job, grade) for job, grade in grades if grade.status != "PASS"]
    if grades:
        console.print()
    if rows:
        print_table(console, _table(reporter, rows))
    if len(rows) < len(grades):
        console.print(Text(_passed_line(len(grades) - len(rows)), style="dim"), soft_wrap=True)
    held = Counter(_name(job, reporter) for job, _ in grades)
    for names, grade in _alike(reporter, rows):
        why, whose = _why(grade), _listed(list(_counted(names, held)))
        if why:
            line = Text(f"{whose}: ", style=STYLE[grade.status])
            line.append(why, style="default")
            console.print(line, soft_wrap=True)
        for said in simulated_lines(grade):
            before = "  " if why else f"{whose}: "
            console.print(Text(before + said, style="dim"), soft_wrap=True)
    for said, names in _said_of_judges(reporter, grades):
        whose = _listed(list(_counted(names, held)))
        console.print(Text(f"{whose}: {said}", style="dim"), soft_wrap=True)
    cost = judging_cost(result.summary.judging)
    if cost is not None:
        console.print(f"note: {plain(cost)}", style="dim", markup=False, soft_wrap=True)
    again = tried_again((reporter.label(job), grade.attempt) for job, grade in grades)
    if again is not None:
        console.print(f"note: {again}", style="yellow", markup=False, soft_wrap=True)
    shared = shared_note([grade for _, grade in grades])
    if shared is not None:
        console.print(f"note: {shared}", style="dim", markup=False, soft_wrap=True)
    for warning in dict.fromkeys(text for _, grade in grades for text in grade.warnings):
        console.print(f"note: {plain(warning)}", style="yellow", markup=False, soft_wrap=True)
    print_analysis(result.analysis, console)
    console.print()
    console.print(_counts(result), Text(plain(where)), sep="   ", soft_wrap=True)


def print_ending(result: RunResult, go_on: str, console: Console) -> None:
    """What was not run, why, and the command `go_on` that holds it.

    Said also where the rest of the result is not printed: without it an exit code tells nothing.
    """
    for line in stop_lines(result, go_on):
        console.print(plain(line), style="yellow", markup=False, soft_wrap=True)


def _passed_line(count: int) -> str:
    return "1 trial passed" if count == 1 else f"{count} trials passed"


def _table(reporter: PlainReporter, grades: Sequence[tuple[Job, Grade]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    with_cost = any(grade.cost_usd is not None for _, grade in grades)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("")
    table.add_column("case", overflow="fold")
    for header in ("turns", "checks", "score", "time", "tokens"):
        table.add_column(header, justify="right", no_wrap=True)
    if with_cost:
        table.add_column("cost", justify="right", no_wrap=True)
    for job, grade in grades:
        checks = [c for turn in grade.turns for c in turn.deciding_checks()] + grade.assertions
        completed = sum(turn.status == "completed" for turn in grade.turns)
        usage = grade.usage or {}
        counted = [usage.get("input_tokens"), usage.get("output_tokens")]
        total = sum(n for n in counted if n is not None) if any(counted) else None
        row: list[Text | str] = [
            Text(grade.status, style=STYLE[grade.status]),
            Text("  ".join(filter(None, (reporter.label(job), attempt_words(grade.attempt))))),
            f"{completed}/{len(grade.turns)}",
            f"{sum(c.passed for c in checks)}/{len(checks)}",
            "–" if grade.status in ("ERROR", "SKIP") else f"{grade.score:.2f}",
            seconds(grade.duration_ms),
            tokens(total),
        ]
        if with_cost:
            row.append(money(grade.cost_usd))
        table.add_row(*row)
    return table


def _alike(
    reporter: PlainReporter, grades: Sequence[tuple[Job, Grade]]
) -> Iterator[tuple[dict[str, list[str]], Grade]]:
    """Trials of which there is the same to be told, such as an error in turns that they share.

    By their names without the number: ``{"asks": ["asks #1", "asks #3"]}``.
    """
    groups: dict[tuple[str, ...], tuple[dict[str, list[str]], Grade]] = {}
    for job, grade in grades:
        told = (grade.status, _why(grade), *simulated_lines(grade))
        names = groups.setdefault(told, ({}, grade))[0]
        names.setdefault(_name(job, reporter), []).append(reporter.label(job))
    yield from groups.values()


def _said_of_judges(
    reporter: PlainReporter, grades: Sequence[tuple[Job, Grade]]
) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Each line once, with the trials that it is of, as in :func:`_alike`."""
    groups: dict[str, dict[str, list[str]]] = {}
    for job, grade in grades:
        for said in dict.fromkeys(judge_lines(grade)):
            names = groups.setdefault(said, {})
            names.setdefault(_name(job, reporter), []).append(reporter.label(job))
    yield from groups.items()


def _name(job: Job, reporter: PlainReporter) -> str:
    return reporter.label(job).removesuffix(f" #{job.trial}" if reporter.show_trial else "")


def _counted(names: Mapping[str, Sequence[str]], held: Mapping[str, int]) -> Iterator[str]:
    """``asks #2``, or ``asks (3 of 5)``."""
    for name, labels in names.items():
        yield labels[0] if len(labels) == 1 else f"{name} ({len(labels)} of {held[name]})"


def _listed(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return ", ".join(labels[:_NAMED]) + more


def _why(grade: Grade) -> str:
    """What the table's numbers do not say: why it did not pass, or what it took to pass."""
    if grade.status != "PASS":
        return one_line(grade.reason, 300)
    helped = [
        f"turn {turn.turn_number} ({turn.passed_on})" for turn in grade.turns if turn.passed_on
    ]
    return f"passed on {', '.join(helped)}" if helped else ""


def simulated_lines(grade: Grade) -> Iterator[str]:
    """What a simulated user said and how it ended: nobody can read that in the case.

    Of a case that passed only the end.
    """
    if grade.simulator is None:
        return
    if grade.status != "PASS":
        for turn in grade.turns:
            if turn.source == "simulator" and turn.status != "skipped":
                said = one_line(turn.content, 160) or "nothing"
                yield f"turn {turn.turn_number}, simulated user: {said}"
    if grade.simulator.stop is not None:
        why = one_line(grade.simulator.reason, 200)
        yield f"ended by the simulated user: {grade.simulator.stop}" + (f", {why}" if why else "")


def _counts(result: RunResult) -> str:
    counts = result.summary
    parts = [f"[{'green' if counts.passed else 'dim'}]{counts.passed} passed[/]"]
    for number, word, style in (
        (counts.fail, "failed", "red"),
        (counts.error, "errors" if counts.error > 1 else "error", "bold magenta"),
        (counts.skip, "skipped", "yellow"),
        (len(result.not_run), "not run", "yellow"),
        (len(result.not_needed), "not needed", "dim"),
    ):
        if number:
            parts.append(f"[{style}]{number} {word}[/]")
    line = f"{', '.join(parts)} in {seconds(counts.duration_ms)}"
    baseline = baseline_words(counts.baseline)
    return line if baseline is None else f"{line}; {baseline}"


# How to look at a run that has ended: the last lines of `skillup run`.


def print_look(written: Sequence[Path], run: str, console: Console) -> None:
    """The reports that were `written`; to a person on a terminal, else the verbs that show `run`.

    `run` is what these verbs call it.
    """
    for line in _lines(written, run, on_terminal=console.file.isatty()):
        console.print(plain(line), style="dim", markup=False, soft_wrap=True)


def _lines(written: Sequence[Path], run: str, *, on_terminal: bool) -> Iterator[str]:
    for path in written:
        yield f"report: {shown_path(path)}"
    if on_terminal and FORMATS[HTML][0] not in (path.name for path in written):
        yield f"look: skillup show {run} · skillup view {run}"
