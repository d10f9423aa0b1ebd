"""The suites in cases/, copied into a project, where a test may change what their agent says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.support.project import Project

CASES = Path(__file__).parents[2] / "cases"


def copy_suite(project: Project, name: str) -> Path:
    """The suite `name`, as `cases` in the project."""
    return Path(shutil.copytree(CASES / name, project.root / "cases"))


def change(path: Path, old: str, new: str) -> None:
    """Replace `old`, which must be there, wherever it stands in the file."""
    text = path.read_text("utf-8")
    assert old in text, f"{path.name} no longer has {old!r}"
    path.write_text(text.replace(old, new), "utf-8")


def failed(case: Any) -> set[str]:
    """The names of the checks of a case in `result.json` that failed."""
    checks = [*(check for turn in case["turns"] for check in turn["checks"]), *case["assertions"]]
    return {check["name"] for check in checks if not check["passed"]}
