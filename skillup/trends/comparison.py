"""Two runs beside each other: every case's change, and the numbers over all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from skillup.trends.changes import CaseChange, Change, changes
from skillup.trends.digests import edited_cases
from skillup.trends.lone_baseline import is_lone_baseline, without_lone_baseline
from skillup.trends.outcomes import VERDICTS, WITH_SKILL, CaseKey, RunOutcomes
from skillup.trends.statistics.exact import ExactTest, mcnemar, stratified
from skillup.trends.statistics.paired import bootstrap_interval, sign_test_of_mean
from skillup.trends.statistics.proportions import Interval
from skillup.trends.tallies import Tally, by_case

DEFAULT_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Did passes become more or fewer over all cases that both runs judged?"""

    cases: int
    worse: int
    """Cases with a lower pass rate in B."""
    better: int
    test: ExactTest | None
    """None: only one of the runs was held `--until-decided`, so their rates are no equals."""
    name: str
    """Of the test."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The mean difference of scores, B - A, over cases that both runs judged."""

    cases: int
    mean_a: float
    mean_b: float
    difference: float
    interval: Interval | None
    """None: one case only."""
    test: ExactTest | None
    """As that of the verdicts."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a trial took on average, in A and in B, over cases for which both runs tell it."""

    cases: int
    a: float
    b: float

    @property
    def increase(self) -> float | None:
        """0.2 means 20 % more; None: A took nothing, and B something."""
        if self.a == 0:
            return 0.0 if self.b == 0 else None
        return self.b / self.a - 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """A and B; numbers over all cases are over those with the skill, unless there are none."""

    a: RunOutcomes
    b: RunOutcomes
    confidence: float
    cases: tuple[CaseChange, ...]
    counted: tuple[CaseChange, ...]
    """Those that the numbers are over: a baseline that fails is no regression."""
    verdicts: Verdicts
    scores: Scores | None
    """None: no case was judged in both."""
    cost: Means | None
    duration: Means | None
    earlier: Mapping[CaseKey, str]
    """Cases without a verdict in A: the id of the earlier run whose verdicts stand for it."""
    until_decided: bool
    """Whether how often a case was held depended on how it did, in one of the runs or more."""
    notes: tuple[str, ...] = ()
    """What to know when reading the rest, in a sentence each."""
    edited: tuple[tuple[str, str], ...] = ()
    """Suite and id of cases that were not the same in A and B, as far as the runs tell."""

    def of(self, change: Change) -> list[CaseChange]:
        """The cases with that change."""
        return [case for case in self.cases if case.change == change]


def unanswered(run: RunOutcomes, later: RunOutcomes) -> set[CaseKey]:
    """Cases without a verdict in `run`: for an error or its end, or as only `later` has them.

    A skip counts where `later` has a verdict: it may come from an error of the case that it depends
    on, and in any case must not hide that the case passed before.
    """
    cases, judged = by_case(run.trials), {t.key for t in later.trials if t.status in VERDICTS}
    lost = {key for key, own in cases.items() if own.state in ("error", "not_held")}
    skipped = {key for key, own in cases.items() if own.state == "skip" and key in judged}
    return lost | skipped | {trial.key for trial in later.trials if trial.key not in cases}


def compare_runs(
    a: RunOutcomes,
    b: RunOutcomes,
    confidence: float,
    earlier: Mapping[CaseKey, tuple[str, Tally]] | None = None,
    earlier_until_decided: Collection[str] = (),
) -> Comparison:
    """Compare them; cases are paired by suite, id, engine and variant.

    `earlier`: for cases that A did not run, skipped or did not plan, the id of an earlier run and
    what it says; so that an error in one night, or a run of a few cases in between, does not hide
    what broke. `earlier_until_decided`: ids of those that were held so.
    """
    before, after = by_case(a.trials), by_case(b.trials)
    found = (earlier or {}).items()
    standing = {
        key: stands
        for key, stands in found
        if key in before or (key in after and not is_lone_baseline(key, a))
    }
    before.update((key, own) for key, (_, own) in standing.items())
    stand_ins = [run_id for run_id, _ in standing.values()]
    decided = {
        "A": a.until_decided,
        "B": b.until_decided,
        **{run_id: run_id in earlier_until_decided for run_id in stand_ins},
    }
    until_decided, alike = any(decided.values()), len(set(decided.values())) == 1
    cases = changes(before, after, confidence, until_decided=until_decided)
    cases, left_out = without_lone_baseline(cases, a, b)
    counted = [case for case in cases if case.key.variant == WITH_SKILL] or cases
    both = [case for case in counted if case.a.judged and case.b.judged]
    return Comparison(
        a=a,
        b=b,
        confidence=confidence,
        cases=tuple(cases),
        counted=tuple(counted),
        verdicts=_verdicts(both, until_decided=until_decided, alike=alike),
        scores=_scores(both, confidence, alike=alike),
        cost=means(both, lambda tally: tally.cost_usd),
        duration=means(both, lambda tally: tally.duration_ms),
        earlier={key: run_id for key, (run_id, _) in standing.items()},
        until_decided=until_decided,
        notes=(*_notes(stand_ins, [name for name, so in decided.items() if so], alike), *left_out),
        edited=tuple(edited_cases(a, b)),
    )


def _notes(stand_ins: Sequence[str], decided: Sequence[str], alike: bool) -> Iterator[str]:
    """`decided`: the runs that were held until their cases were; `alike`: all of them, or none."""
    if stand_ins:
        count = f"{len(stand_ins)} case{'s' if len(stand_ins) != 1 else ''}"
        are = "are" if len(stand_ins) != 1 else "is"
        runs = dict.fromkeys(stand_ins)
        whom = next(iter(runs)) if len(runs) == 1 else f"{len(runs)} earlier runs"
        yield f"{count} without a verdict in A {are} compared with {whom}"
    if decided:
        were = f"{' and '.join(decided)} {'were' if len(decided) > 1 else 'was'}"
        yield (
            f"{were} held --until-decided: how often a case was held depends on how it did, "
            "so the p of a case counts threefold; and rates lie further from the threshold than "
            "the truth, on average" + ("" if alike else ", so nothing is tested over all cases")
        )


def _verdicts(both: Sequence[CaseChange], *, until_decided: bool, alike: bool) -> Verdicts:
    rates = [(case.a.rate or 0.0, case.b.rate or 0.0) for case in both]
    worse, better = sum(b < a for a, b in rates), sum(b > a for a, b in rates)
    if until_decided:
        # Held by the same rule, an unchanged case could as well have come in the other order.
        exchanged = sign_test_of_mean([b - a for a, b in rates]) if alike else None
        return Verdicts(len(both), worse, better, exchanged, "runs exchanged case by case")
    if all(case.a.judged == case.b.judged == 1 for case in both):
        return Verdicts(len(both), worse, better, mcnemar(worse, better), "McNemar's exact test")
    test = stratified(case.counts for case in both)
    name = "McNemar's exact test, for several trials"
    return Verdicts(len(both), worse, better, test, name)


def _scores(both: Sequence[CaseChange], confidence: float, *, alike: bool) -> Scores | None:
    """The same case on several engines is one pair: what it asks is the same."""
    groups: dict[tuple[str, str], list[CaseChange]] = {}
    for case in both:
        groups.setdefault((case.key.suite, case.key.case_id), []).append(case)
    if not groups:
        return None
    scores = [
        (fmean(case.a.score or 0.0 for case in group), fmean(case.b.score or 0.0 for case in group))
        for group in groups.values()
    ]
    differences = [b - a for a, b in scores]
    level = confidence if 0 < confidence < 1 else DEFAULT_CONFIDENCE
    return Scores(
        cases=len(scores),
        mean_a=fmean(a for a, _ in scores),
        mean_b=fmean(b for _, b in scores),
        difference=fmean(differences),
        interval=bootstrap_interval(differences, level),
        test=sign_test_of_mean(differences) if alike else None,
    )


def means(both: Iterable[CaseChange], of: Callable[[Tally], float | None]) -> Means | None:
    """Means over the cases for which `of` knows something in both runs; None: there are none."""
    told = [(of(case.a), of(case.b)) for case in both]
    pairs = [(a, b) for a, b in told if a is not None and b is not None]
    if not pairs:
        return None
    return Means(len(pairs), fmean(a for a, _ in pairs), fmean(b for _, b in pairs))


def suites_of(cases: Iterable[CaseChange]) -> list[str]:
    """The suites, each once."""
    return list(dict.fromkeys(case.key.suite for case in cases))
