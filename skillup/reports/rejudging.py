"""What judging again came to, and judges side by side: counts, and both as JSON."""

from __future__ import annotations

import json
from collections import Counter
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
from skillup.reports.result import GradeTotals
from skillup.schema.analysis import Analysis
from skillup.schema.grade import Grade, Judging
from skillup.stats.proportions import wilson

JUDGEMENT_VERSION = "skillup.judgement/1"
PANEL_VERSION = "skillup.panel/1"


@dataclass(slots=True)
class RejudgeCounts:
    totals: GradeTotals = field(default_factory=GradeTotals)
    changed: int = 0  # Trials with any change
    flipped: int = 0  # Of these, with another status
    flips: Counter[str] = field(default_factory=Counter)  # Checks, by kind of change
    left_out: int = 0  # Records of cases that `--cases` does not have
    not_run: int = 0  # Trials of the run that have no record
    stopped_by_failures: bool = False  # Those did not run because of `--max-fail`
    damaged: int = 0
    took: Judging | None = None  # What judging again took of judges that read

    @property
    def total(self) -> int:
        return self.totals.with_skill.total() + self.totals.baseline.total()

    def add(self, grade: Grade, change: GradeChange | None) -> None:
        self.totals.add(grade)
        if change:
            self.changed += 1
            self.flipped += change.is_flip
            self.flips.update(flip.change for flip in change.flips)

    def exit_code(self) -> ExitCode:
        own, baseline = self.totals.with_skill, self.totals.baseline
        errors = own["ERROR"] + baseline["ERROR"] + self.damaged
        if errors or (self.not_run and not self.stopped_by_failures):
            return ExitCode.ERROR
        return ExitCode.FAILED if own["FAIL"] or self.not_run else ExitCode.PASSED


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
        changes = _change(change) if change else None
        data = {"job_id": job_id, "grade": _dump(grade), "changes": changes}
        yield separator + json.dumps(data, ensure_ascii=False)
        separator = ",\n"
    kinds = ("flipped", "changed", "added", "removed")
    checks = {f"checks_{kind}": tally.flips[kind] for kind in kinds}
    end = {
        "summary": _dump(tally.totals.summary()),
        "changes": {"trials": tally.changed, "statuses": tally.flipped, **checks},
        "judging": _dump(tally.took),
        **{name: getattr(tally, name) for name in ("left_out", "not_run", "damaged")},
        "analysis": _dump(analysis()) if analysis is not None else None,
    }
    yield "\n  ],\n" + json.dumps(end, ensure_ascii=False, indent=2).removeprefix("{\n") + "\n"


def _change(change: GradeChange) -> dict[str, Any]:
    """What changed about one trial; a check that is new or gone is null on one side."""
    sides = {"before": change.before, "after": change.after}
    return {
        **{
            name: {side: getattr(grade, name) for side, grade in sides.items()}
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


# Judges side by side: what is printed as JSON, and what the terminal lays out.


def panel_data(
    source: str,
    columns: Sequence[JudgeColumn],
    pairs: Sequence[JudgePair],
    scores: Mapping[str, Score],
    trials: int,
) -> dict[str, Any]:
    """``{schema_version, skillup_version, source, trials, judges, pairs}``.

    A verdict is ``{passed, reason, quote}``; `passed` is null where the judge failed.
    """
    judges = []
    for column in columns:
        verdicts = [verdict.passed for verdict in column.read().values()]
        failures = column.failures().items()
        score = scores.get(column.name)
        judges.append(
            {
                "name": column.name,
                "items": len(verdicts),
                "passed": verdicts.count(True),
                "failed": verdicts.count(False),
                "errors": [{**_item(i), "reason": why} for why, items in failures for i in items],
                "judging": _dump(column.took),
                "labels": _score(score) if score is not None else None,
            }
        )
    return {
        "schema_version": PANEL_VERSION,
        "skillup_version": __version__,
        "source": source,
        "trials": trials,
        "judges": judges,
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                **_agreement(pair.items),
                "trials": _agreement(pair.trials),
                "disagreements": [_both(one) for one in pair.items.disagreements],
                "trial_disagreements": [_both(one) for one in pair.trials.disagreements],
                "unanswered": [_both(one) for one in pair.items.unanswered],
                "only_one": [_item(item) for item in pair.items.only_one],
            }
            for pair in pairs
        ],
    }


def _agreement(found: Agreement) -> dict[str, Any]:
    counts = {"items": found.items, "agreed": found.agreed}
    return {**counts, "agreement": found.share, "kappa": found.kappa}


def _score(score: Score) -> dict[str, Any]:
    return {
        **_confusion(score.counts),
        "by_check": {check: _confusion(counts) for check, counts in score.by_check.items()},
        "wrong": [
            {
                **_item(item),
                **_verdict(verdict),
                "label": "pass" if label.passed else "fail",
                "line": label.line,
            }
            for item, verdict, label in score.wrong
        ],
        "unanswered": [_item(item) for item in score.unanswered],
        "unmatched": [{**_item(label), "line": label.line} for label in score.unmatched],
        "contradicted": [
            {**_item(item), "lines": [label.line for label in labels]}
            for item, labels in score.contradicted
        ],
    }


def _confusion(counts: Confusion) -> dict[str, Any]:
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
