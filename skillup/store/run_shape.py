"""Whether the contents of a `run.json` can be those of a run: its lists are lists, and so on.

What older versions did not write may be missing. Format of the file: `docs/runs.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillup.errors import RunDirectoryError

START_ANEW = "start the run anew"


def check_shape_of_run(info: Mapping[str, Any], file: Path) -> None:
    """Raises RunDirectoryError, which names `file`, if `info` has another shape than run.json."""
    suites, references = info.get("suites") or {}, info.get("references") or {}
    lists = [info.get(name) or [] for name in ("jobs", "hidden_variables")]
    whole = all(isinstance(names, list) for names in lists)
    whole = whole and all(isinstance(name, str) for names in lists for name in names)
    whole = whole and all(isinstance(info.get(name, ""), str) for name in ("run_id", "started_at"))
    whole = whole and isinstance(suites, dict) and all(map(_is_suite, suites.values()))
    whole = whole and isinstance(references, dict) and all(map(_are_digests, references.values()))
    if not (whole and _is_request(info.get("request") or {})):
        raise RunDirectoryError(f"{file} is damaged", hint=START_ANEW)


def _is_suite(about: object) -> bool:
    if not isinstance(about, dict):
        return False
    parts = (about.get(name) or {} for name in ("gates", "cases"))
    return all(isinstance(part, dict) for part in parts)


def _are_digests(files: object) -> bool:
    return isinstance(files, dict) and all(isinstance(sha, str | None) for sha in files.values())


def _is_request(request: object) -> bool:
    return isinstance(request, dict) and isinstance(request.get("paths") or [], list)
