"""What judging again came to, and judges side by side: counts, and both as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import BaseModel

from skillup import __version__
from skillup.errors import ExitCode
from skillup.judges.rejudge.changes import GradeChange
from skillup.judges.rejudge.judges_compared import (
    Agreement,
    Confusion,
    JudgeColumn,
    JudgePair,
    Score,
)
from skillup.reports.result import summarize
from skillup.schema.grade import Analysis, Grade, Judging, Summary
from skillup.stats.intervals import wilson

JUDGEMENT_VERSION = "skillup.judgement/1"
PANEL_VERSION = "skillup.panel/1"


@dataclass(slots=True)
class RejudgeCounts:
    grades: list[Grade] = field(default_factory=list)
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
        return len(self.grades)

    def summary(self) -> Summary:
        """What judging took is told apart."""
        return summarize(self.grades).model_copy(update={"judging": None})

    def add(self, grade: Grade, change: GradeChange | None) -> None:
        self.grades.append(grade)
        if change:
            self.changed += 1
            self.flipped += change.is_flip
            self.flips.update(flip.change for flip in change.flips)

    def exit_code(self) -> ExitCode:
        errors = any(grade.status == "ERROR" for grade in self.grades) or self.damaged
        if errors or (self.not_run and not self.stopped_by_failures):
            return ExitCode.ERROR
        failed = self.summary().fail or self.not_run
        return ExitCode.FAILED if failed else ExitCode.PASSED


def judgement_json(
    head: Mapping[str, Any],
    judged: Iterable[tuple[str, Grade, GradeChange | None]],
    tally: RejudgeCounts,
    analysis: Analysis | None = None,
) -> str:
    """``{…head, cases: [{job_id, grade, changes}], summary, changes, …}``."""
    kinds = ("flipped", "changed", "added", "removed")
    checks = {f"checks_{kind}": tally.flips[kind] for kind in kinds}
    data = {
        **head,
        "cases": [
            {"job_id": job, "grade": _dump(grade), "changes": _change(change) if change else None}
            for job, grade, change in judged
        ],
        "summary": _dump(tally.summary()),
        "changes": {"trials": tally.changed, "statuses": tally.flipped, **checks},
        "judging": _dump(tally.took),
        **{name: getattr(tally, name) for name in ("left_out", "not_run", "damaged")},
        "analysis": _dump(analysis),
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _change(change: GradeChange) -> dict[str, Any]:
    """What changed about one trial; a check that is new or gone is null on one side."""
    sides = {"before": change.before, "after": change.after}
    checks = [
        {
            **{name: getattr(flip, name) for name in ("change", "where")},
            **{name: _dump(getattr(flip, name)) for name in sides},
        }
        for flip in change.flips
    ]
    return {
        **{
            name: {side: getattr(grade, name) for side, grade in sides.items()}
            for name in ("status", "score", "reason")
        },
        "checks": checks,
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

    A verdict's `passed` is null where the judge failed.
    """
    return {
        "schema_version": PANEL_VERSION,
        "skillup_version": __version__,
        "source": source,
        "trials": trials,
        "judges": [_judge(column, scores.get(column.name)) for column in columns],
        "pairs": [
            {
                "first": pair.first,
                "second": pair.second,
                **_agreement(pair.items),
                "trials": _agreement(pair.trials),
                "disagreements": [
                    {**asdict(one.item), "first": asdict(one.first), "second": asdict(one.second)}
                    for one in pair.items.disagreements
                ],
            }
            for pair in pairs
        ],
    }


def _judge(column: JudgeColumn, score: Score | None) -> dict[str, Any]:
    verdicts = [verdict.passed for verdict in column.read().values()]
    failures = column.failures().items()
    return {
        "name": column.name,
        "items": len(verdicts),
        "passed": verdicts.count(True),
        "failed": verdicts.count(False),
        "errors": [{**asdict(item), "reason": why} for item, why in failures],
        "judging": _dump(column.took),
        "labels": score and _score(score),
    }


def _agreement(found: Agreement) -> dict[str, Any]:
    counts = {"items": found.items, "agreed": found.agreed}
    return {**counts, "agreement": found.share, "kappa": found.kappa}


def _score(score: Score) -> dict[str, Any]:
    return {
        **_confusion(score.counts),
        "wrong": [
            {
                **asdict(item),
                **asdict(verdict),
                "label": "pass" if label.passed else "fail",
                "line": label.line,
            }
            for item, verdict, label in score.wrong
        ],
        "unanswered": [asdict(item) for item in score.unanswered],
        "unmatched": [asdict(label) for label in score.unmatched],
    }


def _confusion(counts: Confusion) -> dict[str, Any]:
    """Each share with its 95 % interval (Wilson), or null where there is nothing to divide by."""
    shares, cells = counts.shares().items(), asdict(counts)
    kappa = cells.pop("kappa")
    return {
        **{name: part / whole if whole else None for name, (part, whole) in shares},
        "intervals": {
            name: list(wilson(part, whole)) if whole else None for name, (part, whole) in shares
        },
        "kappa": kappa,
        "confusion": cells,
    }
