"""Two runs beside each other: every case's change, the numbers over all of them, and gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Literal

from pydantic import ValidationError

from skillup.errors import UsageError
from skillup.frozen import frozen
from skillup.history.runs import (
    ABSENT,
    VERDICTS,
    WITH_SKILL,
    CaseKey,
    CaseTally,
    RunOutcomes,
    by_case,
)
from skillup.schema.suite import Gates
from skillup.stats import (
    Interval,
    PassCounts,
    fisher_lower,
    holm,
    hypergeometric,
    interval_of_mean,
    percent,
    stratified,
    swapped,
    worth_testing,
)

Change = Literal[
    "newly_failing",
    "newly_passing",
    "unsure",
    "still_failing",
    "still_passing",
    "not_run",
    "skipped",
    "only_in_a",
    "only_in_b",
]
"""`unsure`: the pass rates differ, and that may be chance. `not_run`, `skipped`: no verdict in A or
in B, because of an error or the run's end; or by the case's own rules. `still_failing`: in both as
often, and not always passed."""

THREEFOLD = 3
"""What a p of Fisher's test counts for with `--until-decided` (`docs/statistics.md`)."""


@frozen
class CaseChange:
    key: CaseKey
    a: CaseTally
    b: CaseTally
    change: Change
    sure: bool = False
    """Newly failing or newly passing by more than chance; False there: as it was observed."""
    p: float | None = None
    """Of Fisher's one-sided test in the direction seen; None: one trial in each run, or equal."""
    p_corrected: float | None = None
    """By Holm for all cases tested; None: no result of its could have been sure."""

    @property
    def rise(self) -> float:
        """Of the pass rate."""
        return (self.b.rate or 0.0) - (self.a.rate or 0.0)


def changes(
    before: Mapping[CaseKey, CaseTally],
    after: Mapping[CaseKey, CaseTally],
    confidence: float,
    *,
    until_decided: bool = False,
) -> list[CaseChange]:
    """Every case of either run: those of B in its order, then those that only A has.

    A case run once in each run changes as observed. With more trials, it is newly failing if its
    pass rate is surely lower, or if it passed every time before and fails every time now.
    `until_decided`: how often a case was run depended on how it did.
    """
    keys = [*after, *(key for key in before if key not in after)]
    pairs = {key: (before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys}
    counts = {key: counts_of(a, b) for key, (a, b) in pairs.items() if a.judged and b.judged}
    times = THREEFOLD if until_decided else 1
    alpha = 1 - confidence + 1e-9  # p-values that it equals but for rounding are within it
    worse = _corrected(counts, alpha, times)
    better = _corrected({key: swapped(own) for key, own in counts.items()}, alpha, times)
    found = []
    for key, (a, b) in pairs.items():
        if a.rate is None or b.rate is None:
            found.append(CaseChange(key, a, b, _without_verdict(a, b)))
            continue
        down = b.rate < a.rate
        change: Change = "newly_failing" if down else "newly_passing"
        if a.rate == b.rate:
            change = "still_passing" if a.rate == 1 else "still_failing"
        if a.rate == b.rate or a.judged == b.judged == 1:
            found.append(CaseChange(key, a, b, change))
        else:
            p = min(1.0, times * fisher_lower(counts[key] if down else swapped(counts[key])))
            corrected = (worse if down else better).get(key)
            sure = corrected is not None and corrected <= alpha
            flipped = {a.rate, b.rate} == {0.0, 1.0}
            change = change if sure or flipped else "unsure"
            found.append(CaseChange(key, a, b, change, sure, p, corrected))
    return found


def counts_of(a: CaseTally, b: CaseTally) -> PassCounts:
    return PassCounts(a.passed, a.judged, b.passed, b.judged)


def _without_verdict(a: CaseTally, b: CaseTally) -> Change:
    states = {a.state, b.state}
    if "absent" in states:
        return "only_in_b" if a.state == "absent" else "only_in_a"
    return "skipped" if "skip" in states and not states & {"error", "not_started"} else "not_run"


def _corrected(
    counts: Mapping[CaseKey, PassCounts], alpha: float, times: int
) -> dict[CaseKey, float]:
    """Corrected p that each case got worse, of those with several trials; a p counts `times`."""
    several = {key: own for key, own in counts.items() if own.trials_a > 1 or own.trials_b > 1}
    least = [times * hypergeometric(own)[1][0] for own in several.values()]  # it can be no smaller
    kept = [k for k, keep in zip(several, worth_testing(least, alpha), strict=True) if keep]
    p_values = holm([times * fisher_lower(several[key]) for key in kept])
    return dict(zip(kept, p_values, strict=True))


def edited_cases(a: RunOutcomes, b: RunOutcomes) -> list[tuple[str, str]]:
    """Suite and id of cases that were not the same in both, as far as the runs tell."""
    found = []
    for case in dict.fromkeys(trial.key[:2] for trial in b.trials):
        before, after = (run.about.cases.get("/".join(case)) for run in (a, b))
        if before and after and before != after:
            found.append(case)
    return found


DEFAULT_CONFIDENCE = 0.95


@frozen
class Verdicts:
    """Did passes become more or fewer over all cases that both runs judged?"""

    cases: int
    worse: int  # Cases with a lower pass rate in B
    better: int
    p: float | None
    """By McNemar's exact test; None: with `--until-decided`, good cases have more trials."""


@frozen
class Means:
    """Of what trials came to or took, in A and in B, over cases for which both runs tell it."""

    cases: int
    a: float
    b: float
    interval: Interval | None  # Of the difference; None: the cases all differ alike

    @property
    def increase(self) -> float | None:
        """0.2 means 20 % more; None: A took nothing, and B something."""
        if self.a == 0:
            return 0.0 if self.b == 0 else None
        return self.b / self.a - 1


class Comparison:
    """A and B; numbers over all cases are over those with the skill, unless there are none."""

    def __init__(
        self,
        a: RunOutcomes,
        b: RunOutcomes,
        confidence: float,
        earlier: Mapping[CaseKey, tuple[RunOutcomes, CaseTally]] | None = None,
    ) -> None:
        """`earlier`: for cases without a verdict in A, an earlier run and what it says; so that an
        error in one night, or a run of a few cases in between, does not hide what broke.
        """
        self.a, self.b, self.confidence = a, b, confidence
        before, after, stand_ins = by_case(a.trials), by_case(b.trials), earlier or {}
        before.update((key, own) for key, (_, own) in stand_ins.items())
        runs = {"A": a, "B": b, **{run.run_id: run for run, _ in stand_ins.values()}}
        decided = [name for name, run in runs.items() if run.until_decided]
        self.earlier = {key: run.run_id for key, (run, _) in stand_ins.items()}
        self.cases = changes(before, after, confidence, until_decided=bool(decided))
        # Those that the numbers are over: a baseline that fails is no regression.
        self.counted = [case for case in self.cases if case.key.variant == WITH_SKILL] or self.cases
        both = [case for case in self.counted if case.a.judged and case.b.judged]
        self.judged_in_both = both
        self.verdicts = Verdicts(
            cases=len(both),
            worse=sum(case.rise < 0 for case in both),
            better=sum(case.rise > 0 for case in both),
            p=None if decided else stratified(counts_of(case.a, case.b) for case in both),
        )
        self.scores = means(both, lambda tally: tally.score, confidence)
        self.cost = means(both, lambda tally: tally.cost_usd)
        self.duration = means(both, lambda tally: tally.duration_ms)
        self.notes = list(_notes([*self.earlier.values()], decided))
        self.edited = edited_cases(a, b)

    def of(self, change: Change) -> list[CaseChange]:
        return [case for case in self.cases if case.change == change]


def cases_without_verdict(run: RunOutcomes, later: RunOutcomes) -> set[CaseKey]:
    """For an error or the end of `run`, or as only `later` has them; a skip counts where `later`
    has a verdict: it must not hide that the case passed before.
    """
    cases, judged = by_case(run.trials), {t.key for t in later.trials if t.status in VERDICTS}
    lost = {key for key, own in cases.items() if own.state in ("error", "not_started")}
    skipped = {key for key, own in cases.items() if own.state == "skip" and key in judged}
    return lost | skipped | {trial.key for trial in later.trials if trial.key not in cases}


def _notes(ids: Sequence[str], decided: Sequence[str]) -> Iterator[str]:
    """`ids`: the runs that stand in, for a case each; `decided`: those with `--until-decided`."""
    if ids:
        cases = "1 case" if len(ids) == 1 else f"{len(ids)} cases"
        runs = ", ".join(dict.fromkeys(ids))
        yield f"{cases} without a verdict in A compared with {runs}"
    if decided:
        yield (
            f"run --until-decided: {', '.join(decided)}. There the number of trials of a case "
            "depends on their outcomes, so its p counts threefold, nothing is tested over all "
            "cases, and rates lie further from the threshold than the truth, on average"
        )


def means(
    both: Iterable[CaseChange],
    of: Callable[[CaseTally], float | None],
    confidence: float = DEFAULT_CONFIDENCE,
) -> Means | None:
    """Over the cases for which `of` knows something in both runs; on several engines it is one."""
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for case in both:
        a, b = of(case.a), of(case.b)
        if a is not None and b is not None:
            groups.setdefault((case.key.suite, case.key.case_id), []).append((a, b))
    if not groups:
        return None
    pairs = [(fmean(a for a, _ in group), fmean(b for _, b in group)) for group in groups.values()]
    interval = interval_of_mean([b - a for a, b in pairs], confidence)
    return Means(len(pairs), fmean(a for a, _ in pairs), fmean(b for _, b in pairs), interval)


# The gates of a suite: what a run has to meet, compared with an earlier one.


@frozen
class GateResult:
    suite: str
    gate: str  # The key: `max_new_failures`, …
    limit: float
    found: float | None  # None: not known, and then the gate fails
    passed: bool
    finding: str  # What was found, in words


def given_gates(rules: Sequence[str]) -> dict[str, Any]:
    """`--gate NAME=VALUE` → the values by name. Raises UsageError for anything else."""
    values: dict[str, Any] = {}
    for rule in rules:
        name, separator, value = rule.partition("=")
        names = ", ".join(Gates.model_fields)
        if not separator or name not in Gates.model_fields:
            raise UsageError(f"--gate {rule}: not NAME=VALUE", hint=f"the names are: {names}")
        try:
            values[name] = float(value) if "." in value or "e" in value.lower() else int(value)
            Gates.model_validate({name: values[name]})
        except ValueError as error:
            what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "no number"
            raise UsageError(f"--gate {rule}: {what}") from None
    return values


def gates_by_suite(run: RunOutcomes, given: Mapping[str, Any]) -> dict[str, Gates]:
    """The gates of each suite of `run`: as recorded when it was run, under `given`."""
    suites = {trial.key.suite for trial in run.trials} | set(run.gates)
    return {
        suite: Gates.model_validate({**run.gates.get(suite, {}), **given})
        for suite in sorted(suites)
    }


def check_gates(comparison: Comparison, gates: Mapping[str, Gates]) -> list[GateResult]:
    results = []
    for suite in dict.fromkeys(case.key.suite for case in comparison.counted):
        cases = [case for case in comparison.counted if case.key.suite == suite]
        if suite in gates and any(case.b.state != "absent" for case in cases):
            for gate, (value, finding) in _findings(cases, gates[suite]).items():
                limit: float | None = getattr(gates[suite], gate)
                if limit is not None:
                    over = None if value is None else value - limit
                    over = -over if over is not None and gate.startswith("min_") else over
                    passed = over is not None and over <= 1e-9
                    results.append(GateResult(suite, gate, limit, value, passed, finding))
    return results


def _findings(cases: list[CaseChange], gates: Gates) -> dict[str, tuple[float | None, str]]:
    """By gate, the value (None: not known) and what was found, in words."""
    new = [case for case in cases if case.change == "newly_failing"]
    sure = sum(case.sure for case in new)
    missing = sum(not case.b.judged and case.b.not_run > 0 for case in cases)
    failing = f"{len(new)} newly failing" + (f", {sure} of them surely" if sure else "")
    # Each case counts the same: with `--until-decided`, good ones have far more trials.
    rates = [rate for case in cases if (rate := case.b.rate) is not None]
    rate, passed = fmean(rates) if rates else None, "no verdict in B"
    if rate is not None:
        of = f", the mean of {len(rates)} cases" if rates[1:] else ""
        passed = f"{_beside(rate, gates.min_pass_rate or 0.0, percent)} passed{of}"
    cost = means(cases, lambda tally: tally.cost_usd)
    more = None if cost is None else cost.increase
    took = "the cost of no case is known in both runs" if cost is None else "A cost nothing, B does"
    if more is not None:
        took = _beside(more, gates.max_cost_increase or 0.0, "{:+.{}%}".format) + " a trial"
    return {
        "max_new_failures": (len(new), failing + (f"; {missing} not run" if missing else "")),
        "min_pass_rate": (rate, passed),
        "max_cost_increase": (more, took),
        "max_not_run": (missing, f"{missing} without a verdict, for an error or the run's end"),
    }


def _beside(found: float, limit: float, show: Callable[[float, int], str]) -> str:
    """`found` with as many digits as tell it from its limit."""
    digits = 1
    while digits < 4 and abs(found - limit) > 1e-9 and show(found, digits) == show(limit, digits):
        digits += 1
    return show(found, digits)
