"""A run's result: `result.json` with its counts, and what every report shows of it.

Terminal, Markdown, JUnit, benchmark and the page only lay this out. Texts are as they were
recorded: each renderer makes them harmless in its own form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.dataclass import frozen
from skillup.errors import ExitCode
from skillup.reports.text import Labels, count, listed, money
from skillup.schema.grade import BASELINE, CheckResult, Counts, Grade, RunResult, Stop, Summary
from skillup.schema.line import TrialLine, grouped, lines_of
from skillup.schema.record import TurnError, Usage, joined, total_cost

MAX_NAMED = 6
STYLE = {"PASS": "green", "FAIL": "red", "ERROR": "bold magenta", "SKIP": "yellow"}
"""Of a status, on a terminal."""


def build_result(
    run_id: str,
    started_at: str,
    grades: Sequence[Grade],
    without: Sequence[str],
    duration_ms: int,
    stop: Stop | None = None,
    not_needed: Collection[str] = (),
    warnings: Iterable[str] = (),
) -> RunResult:
    """`grades`, and the jobs `without` one, in the order of the plan; `stop` is in the result only
    if it kept trials from being started; `not_needed`: jobs that `--until-decided` saved.
    """
    saved = frozenset(not_needed)
    not_run = [job for job in without if job not in saved]
    return RunResult(
        run_id=run_id,
        started_at=started_at,
        finished=not not_run,
        summary=summarize(lines_of(grades), duration_ms),
        cases=[],
        not_run=not_run,
        stopped=stop if not_run else None,
        not_needed=[job for job in without if job in saved],
        warnings=list(warnings),
    ).model_copy(update={"cases": grades})


def summarize(trials: Sequence[TrialLine], duration_ms: int | None = None) -> Summary:
    """Of a run that took so long (None: all trials together). What fails without the skill is no
    failure of the skill: those are counted apart.
    """
    bare = [trial for trial in trials if trial.variant == BASELINE]
    if duration_ms is None:
        duration_ms = sum(trial.duration_ms for trial in trials)
    return Summary(
        **_counts([trial for trial in trials if trial.variant != BASELINE]).model_dump(),
        baseline=_counts(bare) if bare else None,
        duration_ms=duration_ms,
        cost_usd=total_cost(trial.cost_usd for trial in trials),
        usage={
            name: total_cost(trial.usage[place] for trial in trials)
            for place, name in enumerate(Usage.model_fields)
        },
        judging=joined(*(trial.judging for trial in trials)),
    )


def exit_code(summary: Summary, not_run: int, stop: Stop | None) -> ExitCode:
    """Errors outrank failures, as does what kept trials from running, unless it was failures."""
    errors = summary.error + (summary.baseline.error if summary.baseline is not None else 0)
    by_failures = stop is not None and stop.kind == "max_fail"
    if errors or (not_run and not by_failures):
        return ExitCode.ERROR
    return ExitCode.FAILED if summary.fail or not_run else ExitCode.PASSED


def _counts(trials: Sequence[TrialLine]) -> Counts:
    """The pass rate is over verdicts only: errors and skips are none."""
    counts = Counter(trial.status for trial in trials)
    judged = counts["PASS"] + counts["FAIL"]
    return Counts(
        total=len(trials),
        passed=counts["PASS"],
        fail=counts["FAIL"],
        error=counts["ERROR"],
        skip=counts["SKIP"],
        pass_rate=round(counts["PASS"] / judged, 6) if judged else None,
    )


# A row for each trial.


@frozen
class FailedCheck:
    """A check that failed, or what ended a turn."""

    where: str  # ``turn 2: ``; empty for the whole conversation
    name: str  # The check; the kind of an error; a turn's status
    found: str
    check: CheckResult | None = None


class Row:
    """A trial."""

    def __init__(self, grade: Grade) -> None:
        self.grade = grade
        self.checks: list[CheckResult] = []  # Those that decide
        self.failures: list[FailedCheck] = []
        for turn in grade.turns:
            where = f"turn {turn.turn_number}: "
            if turn.error is not None:  # some messages begin with the turn, too
                message = str(turn.error["message"]).removeprefix(where)
                self.failures.append(FailedCheck(where, str(turn.error["kind"]), message))
            elif turn.status != "completed":
                self.failures.append(FailedCheck(where, turn.status, turn.reason))
            self._add(turn.deciding_checks(), where, turn.status)
        self._add(grade.assertions, "", status_of_end(grade))
        self.score = grade.score if grade.status in ("PASS", "FAIL") else None
        self.tokens = total_tokens(grade.usage)
        self.turns_done = sum(turn.status == "completed" for turn in grade.turns)
        self.passed_checks = sum(check.passed for check in self.checks)
        # What its repetitions have in common.
        self.case = _case(grade)
        self.attempt = f"attempt {grade.attempt}" if grade.attempt > 1 else ""

    def _add(self, checks: Sequence[CheckResult], where: str, status: str) -> None:
        self.checks += checks
        self.failures += [
            FailedCheck(where, check.name, check.error or check.found, check)
            for check in checks
            if not check.passed and was_evaluated(check, status)
        ]


def was_evaluated(check: CheckResult, status: str) -> bool:
    """By the status of its turn, or case: what could not be run has nothing that could fail."""
    ran = status.lower() not in ("error", "failed", "skipped", "skip")
    return check.evaluated and (ran or check.assertable or check.error is not None)


def status_of_end(grade: Grade) -> str:
    """What checks of the whole conversation are shown by; `failed`: a gate ended it early."""
    return "failed" if any(turn.status == "failed" for turn in grade.turns) else grade.status


def _case(trial: Grade | TrialLine) -> tuple[str, str, str, str]:
    return trial.suite, trial.case_id, trial.engine, trial.variant


def is_bad(trial: Grade | TrialLine) -> bool:
    """An error or a failure; a baseline that fails shows what it is there to show."""
    return trial.status == "ERROR" or (trial.status == "FAIL" and trial.variant != BASELINE)


def total_tokens(usage: Mapping[str, Any] | None) -> int | None:
    """Input and output; None if neither is known."""
    counts = [(usage or {}).get(name) for name in ("input_tokens", "output_tokens")]
    known = [count for count in counts if isinstance(count, int)]
    return sum(known) if known else None


class RunView:
    def __init__(self, result: RunResult) -> None:
        self.result = result
        self.lines = lines_of(result.cases)
        self.labels = Labels((t.engine, t.variant, t.trial) for t in self.lines)
        # Then a case is a row of the analysis, with a column for each engine or variant.
        self.side_by_side = result.analysis is not None and any(self.labels.several[:2])

    def rows(self, shown: Callable[[TrialLine], bool] = lambda _: True) -> Iterator[Row]:
        """Of the trials that are to be shown; their grades are read one by one."""
        cases = self.result.cases
        return (Row(cases[place]) for place, line in enumerate(self.lines) if shown(line))

    def label(self, trial: Grade | TrialLine) -> str:
        return self.labels.label(*_case(trial)[1:], trial.trial)

    def names(self, rows: Iterable[Row]) -> str:
        """``asks #2, please (3 of 5)``: trials by their cases."""
        of_case = Counter(map(_case, self.lines))
        names = []
        for case, some in grouped(rows, lambda row: row.case).items():
            several = f"{self.labels.label(*case[1:])} ({len(some)} of {of_case[case]})"
            names.append(several if len(some) > 1 else self.label(some[0].grade))
        return listed(names[:MAX_NAMED], len(names))

    def notes(self) -> Iterator[tuple[str, str]]:
        """What a reader of the table should know, each with its style on a terminal."""
        judging = self.result.summary.judging
        if judging is not None and judging.calls:
            cached = f" ({judging.cached_calls} from the cache)" if judging.cached_calls else ""
            cost = f", {money(judging.cost_usd)}" if judging.cost_usd is not None else ""
            yield f"judges: {count(judging.calls, 'call')}{cached}{cost}", "dim"
        again = [f"{self.label(t)} (attempt {t.attempt})" for t in self.lines if t.attempt > 1]
        if again:
            trials = f"{count(len(again), 'trial')} retried"
            yield f"{trials}: {listed(again[:MAX_NAMED], len(again))}", "yellow"
        warnings = ((text, line) for line in self.lines for text in line.warnings)
        warned = [*grouped(warnings, lambda one: one[0]).values()]
        for (text, line), *more in warned[:MAX_NAMED]:
            several = f" and {len(more)} more" if more else ""
            every = 1 + len(more) == len(self.lines)
            yield text if every else f"{self.label(line)}{several}: {text}", "yellow"
        if len(warned) > MAX_NAMED:
            yield f"… and {count(len(warned) - MAX_NAMED, 'more warning')}", "yellow"


def count_parts(summary: Summary | Counts, **more: int) -> list[tuple[str, str]]:
    """``[("7 passed", "green"), ("1 error", …), …]``; `more`: of trials without a grade."""
    errors = "error" if summary.error == 1 else "errors"
    counts = (
        (summary.fail, "failed", STYLE["FAIL"]),
        (summary.error, errors, STYLE["ERROR"]),
        (summary.skip, "skipped", STYLE["SKIP"]),
        *((count, word.replace("_", " "), "yellow") for word, count in more.items()),
    )
    passed = (f"{summary.passed} passed", STYLE["PASS"] if summary.passed else "dim")
    return [passed, *((f"{count} {word}", style) for count, word, style in counts if count)]


def baseline_words(baseline: Counts | None) -> str | None:
    """``without the skill: 27 passed, 21 failed``; None if there is no baseline."""
    if baseline is None:
        return None
    return "without the skill: " + ", ".join(text for text, _ in count_parts(baseline))


def stop_lines(result: RunResult, go_on: str) -> Iterator[str]:
    """Of a run that was stopped early; nothing of any other."""
    if result.not_run:
        why = f"stopped: {result.stopped.message}; " if result.stopped is not None else ""
        missing = len(result.not_run)
        planned = len(result.cases) + missing + len(result.not_needed)
        yield f"{why}{missing} of {count(planned, 'trial')} were not run"
        yield f"go on with: {go_on}"


# What to do about an error, by its kind: the words of `docs/errors.md`, which a test compares.

_ADVICE = Path(__file__).with_name("advice.txt").read_text("utf-8")
ADVICE = dict(line.split(": ", 1) for line in _ADVICE.splitlines())


def error_data(error: TurnError | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """``{kind, message, evidence, advice}``, of a record's error or of a grade's."""
    if error is None:
        return None
    data = error.model_dump() if isinstance(error, TurnError) else dict(error)
    return {
        "kind": data.get("kind"),
        "message": str(data.get("message") or ""),
        "evidence": data.get("evidence") or "",
        "advice": ADVICE.get(str(data.get("kind")), ""),
    }
