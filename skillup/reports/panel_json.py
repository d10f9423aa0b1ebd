"""Judges side by side as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skillup import __version__
from skillup.judges.replay.agreement import Agreement, Disagreement
from skillup.judges.replay.labels import Confusion, Label, Score
from skillup.judges.replay.panel import Pair, Seat
from skillup.judges.replay.verdicts import Item, Verdict
from skillup.trends.statistics.proportions import wilson

PANEL_VERSION = "skillup.panel/1"


def panel_as_json(
    source: str,
    seats: Sequence[Seat],
    pairs: Sequence[Pair],
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


def _judge(seat: Seat, score: Score | None) -> dict[str, Any]:
    said = [verdict.passed for verdict in seat.read().values()]
    failures = [
        {**_item(item), "reason": reason}
        for reason, items in seat.failures().items()
        for item in items
    ]
    return {
        "name": seat.name,
        "items": len(said),
        "passed": said.count(True),
        "failed": said.count(False),
        "errors": failures,
        "judging": seat.took.model_dump(mode="json") if seat.took is not None else None,
        "labels": _score(score) if score is not None else None,
    }


def _pair(pair: Pair) -> dict[str, Any]:
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
    return {
        "items": found.items,
        "agreed": found.agreed,
        "agreement": found.share,
        "kappa": found.kappa,
    }


def _score(score: Score) -> dict[str, Any]:
    return {
        **_counts(score.counts),
        "by_check": {check: _counts(counts) for check, counts in score.by_check.items()},
        "wrong": [
            {**_item(item), **_verdict(verdict), "label": _word(label), "line": label.line}
            for item, verdict, label in score.wrong
        ],
        "unanswered": [_item(item) for item in score.unanswered],
        "unmatched": [
            {"line": label.line, "job": label.job, "turn": label.turn, "check": label.check}
            for label in score.unmatched
        ],
        "contradicted": [
            {**_item(item), "lines": [label.line for label in labels]}
            for item, labels in score.contradicted
        ],
    }


def _counts(counts: Confusion) -> dict[str, Any]:
    """Each share with its 95 % interval (Wilson), or null where there is nothing to divide by."""
    shares = counts.shares()
    return {
        **{name: part / whole if whole else None for name, (part, whole) in shares.items()},
        "intervals": {
            name: list(wilson(part, whole)) if whole else None
            for name, (part, whole) in shares.items()
        },
        "kappa": counts.kappa,
        "confusion": {
            "true_pass": counts.true_pass,
            "false_pass": counts.false_pass,
            "true_fail": counts.true_fail,
            "false_fail": counts.false_fail,
        },
    }


def _both(one: Disagreement) -> dict[str, Any]:
    return {**_item(one.item), "first": _verdict(one.first), "second": _verdict(one.second)}


def _item(item: Item) -> dict[str, Any]:
    return {"job": item.job, "turn": item.turn, "check": item.check}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {"passed": verdict.passed, "reason": verdict.reason, "quote": verdict.quote}


def _word(label: Label) -> str:
    return "pass" if label.passed else "fail"
