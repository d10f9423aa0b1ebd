"""What judges took, added up: calls, tokens, cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from skillup.schema.grade import Judging
from skillup.schema.record import Usage, total_cost, total_usage


@dataclass(slots=True)
class UsageTracker:
    """The calls of one evaluation; judges write into it as they are asked."""

    calls: int = 0
    cached_calls: int = 0
    models: list[str] = field(default_factory=list)
    usages: list[Usage | None] = field(default_factory=list)
    costs: list[float | None] = field(default_factory=list)

    def add(
        self, model: str | None, usage: Usage | None, cost_usd: float | None, *, cached: bool
    ) -> None:
        """One call. A cached one is free, whatever it took when it was made."""
        self.calls += 1
        self.cached_calls += cached
        if model is not None and model not in self.models:
            self.models.append(model)
        if not cached:
            self.add_refused(usage, cost_usd)

    def add_refused(self, usage: Usage | None, cost_usd: float | None) -> None:
        """What a provider took for refusing; the call is the one that is made in its place."""
        self.usages.append(usage)
        self.costs.append(cost_usd)

    def merge(self, other: UsageTracker) -> None:
        """All calls of `other`."""
        self.calls += other.calls
        self.cached_calls += other.cached_calls
        self.models.extend(name for name in other.models if name not in self.models)
        self.usages.extend(other.usages)
        self.costs.extend(other.costs)

    def judging(self) -> Judging | None:
        """For a grade or a record; None if nobody was asked."""
        if not self.calls:
            return None
        usage, cost = total_usage(self.usages), total_cost(self.costs)
        return Judging(
            calls=self.calls, cached_calls=self.cached_calls, models=self.models, usage=usage,
            cost_usd=cost,
        )  # fmt: skip


def since(total: Judging | None, before: Judging | None) -> Judging | None:
    """What of `total` came after `before`, which is a part of it; None: nothing did."""
    if total is None or before is None:
        return total
    if total.calls == before.calls:
        return None
    usage, past = total.usage or {}, before.usage or {}
    return Judging(
        calls=total.calls - before.calls,
        cached_calls=total.cached_calls - before.cached_calls,
        models=total.models,
        usage={name: None if n is None else n - (past.get(name) or 0) for name, n in usage.items()},
        cost_usd=None if total.cost_usd is None else total.cost_usd - (before.cost_usd or 0.0),
    )
