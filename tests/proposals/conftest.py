"""A copy of the proposals folder, and its tool run as a user runs it: a process of plain Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.proposals import PLAIN_PYTHON, Run

SOURCE = Path(__file__).parents[2] / "proposals"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of proposals with the real tool and template, and an index without rows."""
    folder = tmp_path / "proposals"
    folder.mkdir()
    for name in ("new.py", "template.md"):
        shutil.copy(SOURCE / name, folder / name)
    lines = (SOURCE / "README.md").read_text("utf-8").splitlines(keepends=True)
    rowless = "".join(line for line in lines if not line.startswith("| [SUP-"))
    (folder / "README.md").write_text(rowless, "utf-8")
    return folder


@pytest.fixture
def new(folder: Path) -> Run:
    """Run the folder's tool; ``wrapper`` is code that prepares the process first."""

    def run(*arguments: str, wrapper: str | None = None) -> subprocess.CompletedProcess[str]:
        prefix = PLAIN_PYTHON if wrapper is None else [*PLAIN_PYTHON, "-c", wrapper]
        return subprocess.run(
            [*prefix, str(folder / "new.py"), *arguments],
            cwd=folder.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
            check=False,
        )

    return run
