"""What comparing needs of a run: each trial's verdict, score and cost, and the suites' gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from skillup.trends.selection import Selection

Status = Literal["PASS", "FAIL", "ERROR", "SKIP", "NOT_HELD"]
"""A case's status; NOT_HELD: the run had planned the trial, and ended before it."""
VERDICTS = ("PASS", "FAIL")
WITH_SKILL = "with_skill"


class CaseKey(NamedTuple):
    """What makes two trials trials of the same thing, in one run or in two."""

    suite: str
    case_id: str
    engine: str
    """The profile's name."""
    variant: str


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What came of one trial."""

    key: CaseKey
    trial: int
    status: Status
    score: float = 0.0
    cost_usd: float | None = None
    duration_ms: int = 0
    reason: str = ""
    """The verdict's ground, or the error's, in one line."""


@dataclass(frozen=True, slots=True)
class RunOutcomes:
    """One run, as it is compared and indexed."""

    run_id: str
    started_at: str
    """UTC, ISO 8601."""
    path: str
    """Its directory when it was read."""
    finished: bool
    """False: trials were planned that were not held."""
    trials: tuple[TrialOutcome, ...]
    gates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By suite, the gates it had when the run was held; a run of an older version has none."""
    until_decided: bool = False
    """How often each case was held depended on how it did, as `--until-decided` wants it."""
    selection: Selection | None = None
    """What it was asked to choose; None: not told, as of one that an older version indexed."""
    digests: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By suite and case id, of what the case was; only where the run's directory told it."""
