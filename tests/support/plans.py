"""Plans of small suites: ``a_plan(tmp_path, {"a": {}, "b": {"depends_on": ["a"]}}, trials=3)``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillup.load.suites import load_paths
from skillup.plan import Plan, Selection, make_plan
from skillup.schema.profile import Profile
from tests.support.trees import make_tree

_CASE: Mapping[str, Any] = {"input": {"prompt": "hi"}, "scripted": [{"say": "hi"}]}


def a_plan(
    root: Path,
    cases: Mapping[str, Mapping[str, Any]],
    *,
    engines: Sequence[str] = ("p",),
    suite: str = "name: s\n",
    **selection: Any,
) -> Plan:
    """The plan for a suite with these cases, each with what it says beside a prompt."""
    files = {f"s/{name}.yaml": json.dumps({**_CASE, **own}) for name, own in cases.items()}
    make_tree(root, {"s/eval.yaml": suite, **files})
    suites = load_paths([root / "s"]).or_raise().suites
    held_by = [Profile(name=name, engine="scripted") for name in engines]
    return make_plan(suites, {str(s.path): held_by for s in suites}, Selection(**selection))
