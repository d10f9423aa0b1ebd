"""Counts over grades as they come, and a judgement as JSON: nothing grows with the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from skillup import __version__
from skillup.errors import ExitCode
from skillup.judges.rejudge.changes import GradeChange
from skillup.judges.rejudge.judges_compared import (
    Agreement,
    Disagreement,
    JudgeColumn,
    JudgedItem,
    JudgePair,
    JudgeVerdict,
)
from skillup.judges.rejudge.labels import Confusion, Label, Score
from skillup.reports.result import summary_of
from skillup.schema.analysis import Analysis
from skillup.schema.grade import BASELINE, Grade, Judging, Summary
from skillup.schema.record import Usage
from skillup.stats.proportions import wilson

JUDGEMENT_VERSION = "skillup.judgement/1"
PANEL_VERSION = "skillup.panel/1"
_STATUSES = ("PASS", "FAIL", "ERROR", "SKIP")


@dataclass(slots=True)
class RejudgeCounts:
    """What the grades so far come to."""

    statuses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STATUSES, 0))
    """Of the trials with the skill."""
    without: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STATUSES, 0))
    """Of the baseline."""
    changed: int = 0
    """Trials with any change."""
    flipped: int = 0
    """Of these, with another status."""
    flips: dict[str, int] = field(default_factory=dict)
    """Checks, by kind of change."""
    left_out: int = 0
    """Records of cases that `--cases` does not have."""
    not_run: int = 0
    """Trials of the run that have no record."""
    stopped_by_failures: bool = False
    """Those were not held because of `--max-fail`."""
    damaged: int = 0
    duration_ms: int = 0
    cost_usd: float | None = None
    took: Judging | None = None
    """What judging again took of judges that read."""
    usage: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(Usage.model_fields))

    @property
    def total(self) -> int:
        """How many were judged."""
        return sum(self.statuses.values()) + sum(self.without.values())

    def add(self, grade: Grade, change: GradeChange | None) -> None:
        """Count one more."""
        counts = self.without if grade.variant == BASELINE else self.statuses
        counts[grade.status] += 1
        self.duration_ms += grade.duration_ms
        if grade.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0) + grade.cost_usd
        for name, count in (grade.usage or {}).items():
            if count is not None:
                self.usage[name] = (self.usage.get(name) or 0) + count
        if change:
            self.changed += 1
            self.flipped += change.is_flip
            for flip in change.flips:
                self.flips[flip.change] = self.flips.get(flip.change, 0) + 1

    def summary(self) -> Summary:
        """As in ``result.json``; the duration is that of all trials together."""
        return summary_of(
            self.statuses,
            self.without,
            duration_ms=self.duration_ms,
            cost_usd=self.cost_usd,
            usage=self.usage,
        )

    def changes(self) -> dict[str, int]:
        """How much judging again has changed."""
        kinds = ("flipped", "changed", "added", "removed")
        checks = {f"checks_{kind}": self.flips.get(kind, 0) for kind in kinds}
        return {"trials": self.changed, "statuses": self.flipped, **checks}

    def exit_code(self) -> ExitCode:
        """As a run's."""
        errors = self.statuses["ERROR"] + self.without["ERROR"] + self.damaged
        if errors or (self.not_run and not self.stopped_by_failures):
            return ExitCode.ERROR
        return ExitCode.FAILED if self.statuses["FAIL"] or self.not_run else ExitCode.PASSED


def judgement_chunks(
    head: Mapping[str, Any],
    judged: Iterator[tuple[str, Grade, GradeChange | None]],
    tally: RejudgeCounts,
    analysis: Callable[[], Analysis] | None = None,
) -> Iterator[str]:
    """``{…head, cases: [{job_id, grade, changes}], summary, changes, …}``, case by case.

    `analysis` is called at the end, when all of `judged` has come.
    """
    opening = json.dumps(dict(head), ensure_ascii=False, indent=2).removesuffix("\n}")
    yield f'{opening},\n  "cases": ['
    separator = "\n"
    for job_id, grade, change in judged:
        data = {
            "job_id": job_id,
            "grade": _dump(grade),
            "changes": _change(change) if change else None,
        }
        yield separator + json.dumps(data, ensure_ascii=False)
        separator = ",\n"
    end = {
        "summary": _dump(tally.summary()),
        "changes": tally.changes(),
        "judging": _dump(tally.took),
        **{name: getattr(tally, name) for name in ("left_out", "not_run", "damaged")},
        "analysis": _dump(analysis()) if analysis is not None else None,
    }
    yield "\n  ],\n" + json.dumps(end, ensure_ascii=False, indent=2).removeprefix("{\n") + "\n"


def _change(change: GradeChange) -> dict[str, Any]:
    """What changed about one trial; a check that is new or gone is null on one side."""
    before, after = change.before, change.after
    return {
        **{
            name: {"before": getattr(before, name), "after": getattr(after, name)}
            for name in ("status", "score", "reason")
        },
        "checks": [
            {
                "change": flip.change,
                "where": flip.where,
                "before": _dump(flip.before),
                "after": _dump(flip.after),
            }
            for flip in change.flips
        ],
    }


def _dump(model: BaseModel | None) -> dict[str, Any] | None:
    return None if model is None else model.model_dump(mode="json", by_alias=True)


# Judges side by side.


def panel_as_json(
    source: str,
    seats: Sequence[JudgeColumn],
    pairs: Sequence[JudgePair],
    scores: Mapping[str, Score],
    trials: int,
) -> str:
    """``{schema_version, skillup_version, source, trials, judges, pairs}``, with a final newline.

    A verdict is ``{passed, reason, quote}``; `passed` is null where the judge failed.
    """
    data = {
        "schema_version": PANEL_VERSION,
        "skillup_version": __version__,
        "source": source,
        "trials": trials,
        "judges": [_judge(seat, scores.get(seat.name)) for seat in seats],
        "pairs": [_pair(pair) for pair in pairs],
    }
    return json.dumps(data, ensure_ascii=True, indent=2) + "\n"


def _judge(seat: JudgeColumn, score: Score | None) -> dict[str, Any]:
    verdicts = [verdict.passed for verdict in seat.read().values()]
    failures = seat.failures().items()
    return {
        "name": seat.name,
        "items": len(verdicts),
        "passed": verdicts.count(True),
        "failed": verdicts.count(False),
        "errors": [{**_item(i), "reason": reason} for reason, items in failures for i in items],
        "judging": _dump(seat.took),
        "labels": _score(score) if score is not None else None,
    }


def _pair(pair: JudgePair) -> dict[str, Any]:
    found = pair.items
    return {
        "first": pair.first,
        "second": pair.second,
        **_figures(found),
        "trials": _figures(pair.trials),
        "disagreements": [_both(one) for one in found.disagreements],
        "trial_disagreements": [_both(one) for one in pair.trials.disagreements],
        "unanswered": [_both(one) for one in found.unanswered],
        "only_one": [_item(item) for item in found.only_one],
    }


def _figures(found: Agreement) -> dict[str, Any]:
    figures = {"items": found.items, "agreed": found.agreed, "agreement": found.share}
    return {**figures, "kappa": found.kappa}


def _score(score: Score) -> dict[str, Any]:
    wrong = [
        {
            **_item(item),
            **_verdict(verdict),
            "label": "pass" if label.passed else "fail",
            "line": label.line,
        }
        for item, verdict, label in score.wrong
    ]
    contradicted = [
        {**_item(item), "lines": [label.line for label in labels]}
        for item, labels in score.contradicted
    ]
    return {
        **_counts(score.counts),
        "by_check": {check: _counts(counts) for check, counts in score.by_check.items()},
        "wrong": wrong,
        "unanswered": [_item(item) for item in score.unanswered],
        "unmatched": [{**_item(label), "line": label.line} for label in score.unmatched],
        "contradicted": contradicted,
    }


def _counts(counts: Confusion) -> dict[str, Any]:
    """Each share with its 95 % interval (Wilson), or null where there is nothing to divide by."""
    shares = counts.shares().items()
    cells = ("true_pass", "false_pass", "true_fail", "false_fail")
    return {
        **{name: part / whole if whole else None for name, (part, whole) in shares},
        "intervals": {
            name: list(wilson(part, whole)) if whole else None for name, (part, whole) in shares
        },
        "kappa": counts.kappa,
        "confusion": {name: getattr(counts, name) for name in cells},
    }


def _both(one: Disagreement) -> dict[str, Any]:
    return {**_item(one.item), "first": _verdict(one.first), "second": _verdict(one.second)}


def _item(item: JudgedItem | Label) -> dict[str, Any]:
    return {"job": item.job, "turn": item.turn, "check": item.check}


def _verdict(verdict: JudgeVerdict) -> dict[str, Any]:
    return {"passed": verdict.passed, "reason": verdict.reason, "quote": verdict.quote}
