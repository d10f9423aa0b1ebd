"""What a run was asked to choose: so that a run of few cases is told from a whole night."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_NARROWING = ("cases", "tags", "item", "sample_size")
_CHOOSING = (*_NARROWING, "engines")
_FILES_OF_CASES = (".yaml", ".yml", ".json")


class Selection(NamedTuple):
    """What was asked for, and whether that left out cases of the suites that were named."""

    asked: str
    """As JSON, so that equal texts ask for the same: paths are absolute, and what was not said is
    left out."""
    narrowed: bool
    """By `-k`, `--tag`, `--item`, `--sample-size`, or the path of a single case."""


def selection_of(info: Mapping[str, Any]) -> Selection | None:
    """The selection that `info`, the contents of a `run.json`, tells; None: it tells none."""
    request = info.get("request")
    if not isinstance(request, dict):
        return None
    directory = str(request.get("directory") or "")
    given = request.get("paths") or ()
    paths = sorted({os.path.realpath(Path(directory, str(path))) for path in given})
    asked = {name: request[name] for name in _CHOOSING if request.get(name)}
    narrowed = any(name in asked for name in _NARROWING)
    if "sample_size" in asked:
        asked["seed"] = request.get("seed")
    text = json.dumps({"paths": paths, **asked}, sort_keys=True)
    return Selection(text, narrowed or any(_is_case(path, info) for path in paths))


def _is_case(path: str, info: Mapping[str, Any]) -> bool:
    suites = info.get("suites")
    about = suites.values() if isinstance(suites, dict) else ()
    files = {os.path.realpath(str(own.get("path") or "")) for own in about}
    return path.endswith(_FILES_OF_CASES) and path not in files
