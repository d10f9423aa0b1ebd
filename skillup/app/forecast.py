"""What past runs say of one that is to come: its cost and time, and whose turn it is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import anyio

from skillup.app.provenance import checkout
from skillup.dataclass import frozen
from skillup.errors import IndexTroubleError
from skillup.history.index import all_runs, index_url
from skillup.history.runs import VERDICTS, CaseKey, RunOutcomes, by_case
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


def _shown(expected: Expected | None, show: Callable[[float], str]) -> str:
    if expected is None:
        return "not known"
    mean, low, high = map(show, (expected.mean, expected.low, expected.high))
    return f"{mean}, between {low} and {high}" if low != high else mean


@frozen
class Forecast:
    trials: int
    new_cases: int  # Without a past verdict: in neither cost nor time
    runs: int  # How many past ones it is from
    cost_usd: Expected | None  # Of the agents; None: not known
    duration_ms: Expected | None

    def as_text(self) -> str:
        cost, time = self.cost_usd, self.duration_ms
        new = count(self.new_cases, "case")
        new = f"; without {new} that no past run judged" if self.new_cases else ""
        return (
            f"{count(self.trials, 'trial')}\ncost  {_shown(cost, money)}\n"
            f"time  {_shown(time, lambda ms: seconds(round(ms)))}\n"
            f"from {count(self.runs, 'past run')}{new}; nothing was started\n"
        )


def forecast(jobs: Sequence[Job], past: Sequence[RunOutcomes], parallel: int) -> Forecast:
    """What `jobs` will come to, `parallel` at once; `past`: the oldest first."""
    trials = Counter(map(_key, jobs))
    nights = []
    for run in past:
        own = {k: tally for k, tally in by_case(run.trials).items() if k in trials and tally.judged}
        nights += [own] if own else []
    nights = nights[-_NIGHTS:]
    costs = [{key: own.cost_usd for key, own in night.items()} for night in nights]
    times = [{key: own.duration_ms for key, own in night.items()} for night in nights]
    return Forecast(
        trials=len(jobs),
        new_cases=len(trials.keys() - {key for night in nights for key in night}),
        runs=len(nights),
        cost_usd=_expected(trials, costs, 1),
        duration_ms=_expected(trials, times, parallel),
    )


def _expected(
    trials: Counter[CaseKey], nights: Sequence[Mapping[CaseKey, float | None]], parallel: int
) -> Expected | None:
    """Over the cases that some night has; None: there are none, or of one no value is known."""
    rows = [{key: v for key, v in night.items() if v is not None} for night in nights]
    keys = dict.fromkeys(key for night in nights for key in night)
    seen = {key: [row[key] for row in rows if key in row] for key in keys}
    if not seen or not all(seen.values()):
        return None
    means = {key: fmean(values) for key, values in seen.items()}
    total = sum(trials[key] * mean for key, mean in means.items()) / parallel
    total = max(total, max(means.values()) if parallel > 1 else 0.0)
    ratios = []
    for row in filter(None, rows):
        usual = sum(trials[key] * means[key] for key in row)
        own = sum(trials[key] * value for key, value in row.items())
        ratios.append(own / usual if usual else 1)
    return Expected(total, total * min(ratios), total * max(ratios))
