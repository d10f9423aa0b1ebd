"""What the trials of one run say together: from its grades to ``schema.result``."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import starmap
from operator import attrgetter
from statistics import fmean
from typing import Any, NamedTuple

from skillup import stats
from skillup.executors.stopping import CaseTest, threshold_of
from skillup.history.runs import VERDICTS, WITH_SKILL, CaseKey, key_of, mean_known, planned_key
from skillup.schema.grade import (
    BASELINE,
    Analysis,
    AtK,
    CaseReliability,
    Decision,
    Difference,
    EngineColumn,
    Overall,
    Rate,
    RunResult,
    Triggering,
    Uplift,
)
from skillup.schema.line import SkillUse, TrialLine, grouped, lines_of
from skillup.schema.record import Usage


def analyse(
    trials: Iterable[TrialLine],
    run_info: Mapping[str, Any],
    *,
    not_run: Iterable[str] = (),
    not_needed: Iterable[str] = (),
) -> Analysis:
    """What `trials` say together, in the order of the plan; `run_info` is what `run.json` has.

    Of it only `suites` and `request` matter; what hangs on them is not known without them ({}).
    """
    own = grouped(trials, key_of)
    suites: Mapping[str, Any] = run_info.get("suites") or {}
    missing = Counter(planned_key(job, suites)[0] for job in not_run)
    saved = Counter(planned_key(job, suites)[0] for job in not_needed)
    groups = {
        key: sorted(own.get(key, ()), key=lambda trial: trial.trial)
        for key in _in_order([*own, *missing, *saved])
    }
    with_skill = [t for group in groups.values() for t in group if t.variant == WITH_SKILL]
    verdicts = _judged(with_skill)
    return Analysis(
        overall=_overall(verdicts),
        cases=[
            _reliability(key, group, missing[key], saved[key], run_info)
            for key, group in groups.items()
        ],
        uplift=_uplifts(groups),
        triggering=_triggering(verdicts, suites),
        engines=_engine_columns(with_skill),
    )


def with_analysis(result: RunResult, run_info: Mapping[str, Any]) -> RunResult:
    """`result` with its analysis; one that has it already stays as it is."""
    if result.analysis is not None:
        return result
    analysis = analyse(
        lines_of(result.cases), run_info, not_run=result.not_run, not_needed=result.not_needed
    )
    return result.model_copy(update={"analysis": analysis, "ran": run_info.get("ran", "")})


def _in_order(keys: Iterable[CaseKey]) -> list[CaseKey]:
    """Each key once: cases and engines as they first come, with the skill before without."""
    once = list(dict.fromkeys(keys))
    cases = {case: n for n, case in enumerate(dict.fromkeys(key[:2] for key in once))}
    engines = list(dict.fromkeys(key.engine for key in once))
    return sorted(once, key=lambda k: (cases[k[:2]], engines.index(k.engine), k.variant))


def _judged(trials: Iterable[TrialLine]) -> list[TrialLine]:
    return [trial for trial in trials if trial.status in VERDICTS]


def _rate_of(passed: int, judged: int) -> Rate:
    """With Wilson's interval; nothing but the counts if `judged` is 0."""
    if not judged:
        return Rate(passed=0, judged=0, rate=None, low=None, high=None)
    low, high = stats.wilson(passed, judged)
    return Rate(passed=passed, judged=judged, rate=passed / judged, low=low, high=high)


def _tokens_of(trial: TrialLine) -> int | None:
    """Input and output; None: the engine did not report both."""
    usage = dict(zip(Usage.model_fields, trial.usage, strict=True))
    sent, answered = usage["input_tokens"], usage["output_tokens"]
    return None if sent is None or answered is None else sent + answered


_TAKEN: dict[str, Callable[[TrialLine], float | None]] = {
    "turns": attrgetter("turns"),
    "tokens": _tokens_of,
    "cost_usd": attrgetter("cost_usd"),
    "duration_ms": attrgetter("duration_ms"),
}


def _overall(trials: Iterable[TrialLine]) -> Overall | None:
    """The run's pass rate, with the skill. A case on several engines is one."""
    cases = grouped(trials, lambda trial: (trial.suite, trial.case_id)).values()
    counts = [(sum(trial.status == "PASS" for trial in own), len(own)) for own in cases]
    interval = stats.interval_over_cases(counts)
    if interval is None:
        return None
    passed, verdicts = map(sum, zip(*counts, strict=True))
    low, high = interval
    rate = passed / verdicts
    return Overall(passed=passed, judged=verdicts, rate=rate, low=low, high=high, cases=len(cases))


def _engine_columns(trials: Iterable[TrialLine]) -> list[EngineColumn]:
    """Each suite on each engine, with the skill, in the order in which they come."""
    columns = []
    for (suite, engine), own in grouped(trials, lambda one: (one.suite, one.engine)).items():
        verdicts = _judged(own)
        means = {name: mean_known(map(of, verdicts)) for name, of in _TAKEN.items()}
        means["score"] = mean_known(trial.score for trial in verdicts)
        rate = _rate_of(sum(trial.status == "PASS" for trial in verdicts), len(verdicts))
        error = sum(trial.status == "ERROR" for trial in own)
        columns.append(EngineColumn(suite=suite, engine=engine, rate=rate, error=error, **means))
    return columns


# How often each case passes.


def _reliability(
    key: CaseKey, trials: Sequence[TrialLine], not_run: int, saved: int, run_info: Mapping[str, Any]
) -> CaseReliability:
    verdicts = _judged(trials)
    passed = sum(trial.status == "PASS" for trial in verdicts)
    return CaseReliability(
        **key._asdict(),
        rate=_rate_of(passed, len(verdicts)),
        error=sum(trial.status == "ERROR" for trial in trials),
        skip=sum(trial.status == "SKIP" for trial in trials),
        not_run=not_run,
        flaky=0 < passed < len(verdicts),
        at_k=list(starmap(AtK, stats.at_each_k(passed, len(verdicts)))),
        decision=_decision(key, trials, saved, run_info),
    )


def _decision(
    key: CaseKey, trials: Sequence[TrialLine], saved: int, run_info: Mapping[str, Any]
) -> Decision | None:
    """What `--until-decided` decided; None: it was not asked for, or there is no verdict."""
    if not (run_info.get("request") or {}).get("until_decided"):
        return None
    # As in the run: up to the first trial that is missing, since what is slow is missing first.
    test = CaseTest(key, threshold_of(key.suite, run_info), deque(range(1, len(trials) + 1)))
    for trial in trials:
        test.count(trial.trial, trial.status)
    about = test.about()
    told = {name: about[name] for name in ("verdict", "threshold", "error_rate", "trials")}
    return Decision(saved=saved, **told) if about["trials"] else None


# What the skill adds: the trials of each case with it, against those without. That a skill is used
# cannot be without it: checks of that are no gain (`Grade.status_apart`).


class _Pair(NamedTuple):
    """One case on one engine: its verdicts in both variants."""

    case_id: str
    without: list[TrialLine]
    with_skill: list[TrialLine]

    @property
    def counts(self) -> stats.PassCounts:
        """Without, then with the skill, apart from whether it was used."""
        sides = (
            [trial.status_apart or trial.status for trial in side]
            for side in (self.without, self.with_skill)
        )
        a, b = ([status == "PASS" for status in side if status in VERDICTS] for side in sides)
        return stats.PassCounts(sum(a), len(a), sum(b), len(b))


def _uplifts(groups: Mapping[CaseKey, Sequence[TrialLine]]) -> list[Uplift]:
    """Of each suite and engine, then of its cases; empty if nothing was run without the skill."""
    compared = {(key.suite, key.engine) for key in groups if key.variant == BASELINE}
    pairs: dict[tuple[str, str], list[_Pair]] = {}
    for key in dict.fromkeys(key._replace(variant=WITH_SKILL) for key in groups):
        if (key.suite, key.engine) in compared:
            bare = _judged(groups.get(key._replace(variant=BASELINE), ()))
            pair = _Pair(key.case_id, bare, _judged(groups.get(key, ())))
            pairs.setdefault((key.suite, key.engine), []).append(pair)
    found: list[Uplift] = []
    for (suite, engine), of_suite in pairs.items():
        found.append(_uplift(suite, engine, None, of_suite))
        found += [_uplift(suite, engine, pair.case_id, [pair]) for pair in of_suite]
    return found


def _uplift(suite: str, engine: str, case_id: str | None, pairs: Sequence[_Pair]) -> Uplift:
    comparable = [pair for pair in pairs if pair.counts.trials_a and pair.counts.trials_b]
    ran = [pair for pair in pairs if pair.without and pair.with_skill]
    counts = [pair.counts for pair in comparable]
    interval = uplift_interval(counts)
    # A single case shows how many verdicts it has, even where they cannot be compared.
    shown = counts if case_id is None else [pair.counts for pair in pairs]
    passed_a, trials_a, passed_b, trials_b = map(
        sum, zip(stats.PassCounts(0, 0, 0, 0), *shown, strict=True)
    )
    return Uplift(
        suite=suite,
        engine=engine,
        case_id=case_id,
        with_skill=_rate_of(passed_b, trials_b),
        without_skill=_rate_of(passed_a, trials_a),
        uplift=fmean(map(_difference, counts)) if counts else None,
        low=interval and interval.low,
        high=interval and interval.high,
        p=stats.stratified(counts) if counts else None,
        cases=len(comparable),
        not_counted=[pair.case_id for pair in pairs if pair not in comparable],
        **{name: _quantity(ran, of) for name, of in _TAKEN.items()},
    )


def _difference(counts: stats.PassCounts) -> float:
    return counts.passed_b / counts.trials_b - counts.passed_a / counts.trials_a


def uplift_interval(counts: Sequence[stats.PassCounts]) -> stats.Interval | None:
    """As wide as what the cases say by how they differ, and as what their trials leave open."""
    if not counts:
        return None
    low, high = stats.widened(stats.mean_difference(counts), list(map(_difference, counts)))
    return stats.Interval(max(-1.0, low), min(1.0, high))


def _quantity(pairs: Sequence[_Pair], of: Callable[[TrialLine], float | None]) -> Difference | None:
    """Means over cases of their trials' means; None: no case knows it in both variants."""
    sides = [(mean_known(map(of, p.with_skill)), mean_known(map(of, p.without))) for p in pairs]
    known = [(a, b) for a, b in sides if a is not None and b is not None]
    if not known:
        return None
    differences = [a - b for a, b in known]
    interval = stats.interval_of_mean(differences)
    return Difference(
        with_skill=fmean(a for a, _ in known),
        without_skill=fmean(b for _, b in known),
        difference=fmean(differences),
        low=interval and interval.low,
        high=interval and interval.high,
        cases=len(known),
    )


# Whether skills are used when they should be, and only then: what checks say of it.


def _triggering(trials: Iterable[TrialLine], suites: Mapping[str, Any]) -> list[Triggering]:
    """Each suite, engine and skill, from `trials` with the skill that have a verdict."""
    uses: dict[tuple[str, str, str], list[SkillUse]] = {}
    for trial in trials:
        for use in trial.skill_uses:
            uses.setdefault((trial.suite, trial.engine, use.skill.casefold()), []).append(use)
    found = []
    for (suite, engine, name), observed in uses.items():
        counts = Counter((use.expected, use.used) for use in observed)
        hits, misses = counts[True, True], counts[True, False]
        false, rest = counts[False, True], counts[False, False]
        about = suites.get(suite) or {}
        installed = [str(n) for key in ("skills", "distractors") for n in about.get(key) or ()]
        found.append(
            Triggering(
                suite=suite,
                engine=engine,
                skill=observed[0].skill,
                used_rightly=hits,
                not_used_wrongly=misses,
                used_wrongly=false,
                not_used_rightly=rest,
                precision=hits / (hits + false) if hits + false else None,
                recall=hits / (hits + misses) if hits + misses else None,
                # 2PR/(P+R), written so that it is 0 where nothing was right.
                f1=2 * hits / (2 * hits + misses + false) if hits + misses else None,
                distractors=[one for one in installed if one.casefold() != name],
            )
        )
    return found
