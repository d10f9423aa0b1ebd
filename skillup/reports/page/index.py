"""The page's index: the run, its sums, a row for each trial; conversations come by themselves."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from skillup.reports.analysis.reliability import deciding
from skillup.reports.page.run_data import PAGE_VERSION, RunData
from skillup.schema.analysis import Analysis


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
        "analysis": analysis,
        "deciding": _deciding(analysis),
        "decided": data.decided(),
        "rows": data.rows,
        "not_run": data.not_run(),
        "not_needed": data.not_needed(),
        "warnings": _texts(result.get("warnings")),
        "history": history,
        "sides": sides,
    }


def _deciding(analysis: Any) -> list[str]:
    """What `--until-decided` came to, in the words of the terminal."""
    try:
        return list(deciding(Analysis.model_validate(analysis).cases))
    except ValidationError:  # there is none, or it is another version's
        return []


def _texts(value: Any) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []
