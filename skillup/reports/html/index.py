"""The page's index: the run, its sums, a row for each trial; conversations come by themselves."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from skillup.reports.analysis.tables import deciding
from skillup.reports.html.run_data import PAGE_VERSION, RunData
from skillup.schema.analysis import Analysis

_MOST_K = 5
"""As in `34-analysis.js`."""


def index_of(
    data: RunData,
    *,
    mode: str,
    history: list[dict[str, Any]] | None = None,
    sides: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """In the form of `docs/reports.md`; `mode` is ``report`` or ``view``."""
    result = data.result or {}
    analysis = None if data.running else result.get("analysis")
    return {
        "schema": PAGE_VERSION,
        "mode": mode,
        "run": data.head(),
        "summary": data.summary(),
        "analysis": _shown(analysis),
        "deciding": _deciding(analysis),
        "decided": data.decided(),
        "rows": data.rows,
        "not_run": data.not_run(),
        "not_needed": data.not_needed(),
        "warnings": _texts(result.get("warnings")),
        "history": history,
        "sides": sides,
    }


def _shown(analysis: Any) -> Any:
    """`analysis` without what the page has no place for: a run of many cases has much of it."""
    try:
        cases = [
            {
                **case,
                "turns": [],
                "at_k": [at for at in case.get("at_k", ()) if case["flaky"] and at["k"] <= _MOST_K],
            }
            for case in analysis["cases"]
        ]
    except (AttributeError, KeyError, TypeError):  # there is none, or it is another version's
        return analysis
    return {**analysis, "cases": cases}


def _deciding(analysis: Any) -> list[str]:
    """What `--until-decided` came to, in the words of the terminal."""
    try:
        return list(deciding(Analysis.model_validate(analysis).cases))
    except ValidationError:  # there is none, or it is another version's
        return []


def _texts(value: Any) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []
