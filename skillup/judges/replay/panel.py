"""Several judges over the same records: what each said, and what it took."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from skillup.judges.ledger import joined
from skillup.judges.replay.agreement import Agreement, agreement
from skillup.judges.replay.verdicts import CASE, Item, Verdict, verdicts_of
from skillup.schema.grade import Grade, Judging

RECORDED = "recorded"
"""The name of the judges as they were when the run was judged."""
NOW = "judged now"
"""The name of the judges that the cases name."""


@dataclass(slots=True)
class Seat:
    """One judge of a panel."""

    name: str
    model: str | None = None
    """Who is asked in place of the cases' own judges; None: those themselves."""
    verdicts: dict[Item, Verdict] = field(default_factory=dict)
    """All that it said, of scripts and of trials as a whole, too."""
    took: Judging | None = None
    _measured: set[Item] = field(default_factory=set)

    def hear(self, job: str, grade: Grade, measured: Collection[str] = ()) -> None:
        """One more grade by this judge; `measured` are checks that it had no say in."""
        said = verdicts_of(job, grade)
        self.verdicts.update(said)
        self._measured.update(item for item in said if item.check in measured)
        self.took = joined(self.took, grade.judging)

    def read(self) -> dict[Item, Verdict]:
        """What was read by a model or an agent: what judges can differ in."""
        return {
            item: verdict
            for item, verdict in self.verdicts.items()
            if verdict.kind not in (CASE, "script") and item not in self._measured
        }

    def trials(self) -> dict[Item, Verdict]:
        """The verdicts on trials as a whole."""
        return {item: said for item, said in self.verdicts.items() if said.kind == CASE}

    def failures(self) -> dict[str, list[Item]]:
        """What it failed to judge, by the reason."""
        found: dict[str, list[Item]] = {}
        for item, verdict in self.read().items():
            if verdict.passed is None:
                found.setdefault(verdict.reason, []).append(item)
        return found


@dataclass(frozen=True, slots=True)
class Pair:
    """Two judges compared: by what they read, and by what that came to for each trial."""

    first: str
    second: str
    items: Agreement
    trials: Agreement


def pairs_of(seats: Collection[Seat]) -> list[Pair]:
    """Each judge with each later one."""
    said = [(seat.name, seat.read(), seat.trials()) for seat in seats]
    return [
        Pair(one, other, agreement(read, other_read), agreement(trials, other_trials))
        for (one, read, trials), (other, other_read, other_trials) in combinations(said, 2)
    ]


def all_items(seats: Collection[Seat]) -> list[Item]:
    """Everything that any of them judged, each once, in the order of the records."""
    every: Mapping[Item, None] = {item: None for seat in seats for item in seat.verdicts}
    return list(every)
