"""What past runs say of one that is to come: its cost and time, and whose turn it is."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

import anyio

from skillup.app.provenance import checkout
from skillup.errors import IndexTroubleError
from skillup.frozen import frozen
from skillup.history.index import all_runs, index_url
from skillup.history.runs import VERDICTS, CaseKey, CaseTally, RunOutcomes, by_case
from skillup.load.discover import workspace_root
from skillup.plan import Job
from skillup.reports.text import count, money, seconds

_NIGHTS = 20
_LOOKED_AT = 40


def past_runs(suite_root: Path, base: Path, index: str | None) -> list[RunOutcomes]:
    """The newest runs of the suite's repository, the oldest first; none without an index."""
    url = index_url(index, os.environ, workspace_root(base), write=False)
    try:
        repository = anyio.run(checkout, suite_root, os.environ, base)["repository"]
        return all_runs(url, repository, newest=_LOOKED_AT)
    except IndexTroubleError:
        return []


def _key(job: Job) -> CaseKey:
    return CaseKey(job.suite.name, job.loaded.id, job.profile.name, job.variant)


def last_judged(jobs: Sequence[Job], runs: Iterable[RunOutcomes]) -> dict[str, str]:
    """By job when its case was last judged (empty: not lately); what it depends on is as urgent."""
    newest: dict[CaseKey, str] = {}
    for run in runs:
        judged = {trial.key for trial in run.trials if trial.status in VERDICTS}
        newest |= dict.fromkeys(judged, run.started_at)
    found = {job.id: newest.get(_key(job), "") for job in jobs}
    for job in reversed(jobs):
        for needed in set(job.depends_on) & found.keys():
            found[needed] = min(found[needed], found[job.id])
    return found


@frozen
class Expected:
    """As the mean of past runs has it; the least and the most that one of them would have been."""

    mean: float
    low: float
    high: float

    def shown(self, show: Callable[[float], str]) -> str:
        apart = f", between {show(self.low)} and {show(self.high)}" if self.low < self.high else ""
        return f"{show(self.mean)}{apart}"


@frozen
class Forecast:
    trials: int
    new_cases: int
    """Without a past verdict; each is taken as the mean of those on the same engine."""
    runs: int  # How many past ones it is from
    cost_usd: Expected | None  # Of the agents; None: not known
    duration_ms: Expected | None

    def as_json(self) -> str:
        return json.dumps({"dry_run": True, **asdict(self)}, indent=2) + "\n"

    def as_text(self) -> str:
        cost, time = self.cost_usd, self.duration_ms
        shown_cost = cost.shown(money) if cost else "not known"
        shown_time = time.shown(lambda ms: seconds(round(ms))) if time else "not known"
        new = f"; {count(self.new_cases, 'case')} without a past verdict" if self.new_cases else ""
        past = f"from {count(self.runs, 'past run')}{new}; nothing was started"
        return f"{count(self.trials, 'trial')}\ncost  {shown_cost}\ntime  {shown_time}\n{past}\n"


def forecast(jobs: Sequence[Job], past: Sequence[RunOutcomes], parallel: int) -> Forecast:
    """What `jobs` will come to, `parallel` at once; `past`: the oldest first."""
    trials = Counter(map(_key, jobs))
    nights = []
    for run in past:
        own = {k: tally for k, tally in by_case(run.trials).items() if k in trials and tally.judged}
        nights += [own] if own else []
    nights = nights[-_NIGHTS:]
    time = _expected(trials, nights, lambda tally: tally.duration_ms, parallel)
    return Forecast(
        trials=len(jobs),
        new_cases=sum(not any(key in night for night in nights) for key in trials),
        runs=len(nights),
        cost_usd=_expected(trials, nights, lambda tally: tally.cost_usd),
        duration_ms=time,
    )


def _expected(
    trials: Counter[CaseKey],
    nights: Sequence[dict[CaseKey, CaseTally]],
    of: Callable[[CaseTally], float | None],
    parallel: int = 1,
) -> Expected | None:
    """None: no case of some engine has a past value, so that nothing is known of its others."""
    seen: dict[CaseKey, list[float]] = {}
    rows = [
        {key: v for key, own in night.items() if (v := of(own)) is not None} for night in nights
    ]
    for row in rows:
        for key, value in row.items():
            seen.setdefault(key, []).append(value)
    means = {key: fmean(values) for key, values in seen.items()}
    for key in trials:
        alike = [fmean(values) for other, values in seen.items() if other[2:] == key[2:]]
        if not alike:
            return None
        means.setdefault(key, fmean(alike))
    total = sum(many * means[key] for key, many in trials.items())
    total = max(total / parallel, max(means[key] for key in trials) if parallel > 1 else 0.0)
    ratios = []
    for row in filter(None, rows):
        usual = sum(trials[key] * means[key] for key in row)
        ratios.append(
            sum(trials[key] * value for key, value in row.items()) / usual if usual else 1
        )
    return Expected(total, total * min(ratios), total * max(ratios))
