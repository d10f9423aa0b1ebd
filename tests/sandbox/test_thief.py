"""An agent that tries to steal: the table in docs/sandbox.md is what it gets.

``python -m tests.sandbox.test_thief`` writes it anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.sandbox.victims import NOBODY, in_container, python_of, rootless, service, tried
from tests.support.project import Project

PAGE = ROOT / "docs/sandbox.md"
ROOT_USER, TRUST = 0, {"SKILLUP_TRUST": "1"}
COLUMNS = {
    "`none`": ("{type: none}", NOBODY),
    "`none`, root": ("{type: none}", ROOT_USER),
    "`bubblewrap`": ("{type: bubblewrap}", NOBODY),
    "`bubblewrap`, root": ("{type: bubblewrap}", ROOT_USER),
    "`podman`": ("podman", NOBODY),
    "`podman`, root": ("podman", ROOT_USER),
    "`podman`, copied": ("podman elsewhere", ROOT_USER),
}
MARKER, MISSING = "<!-- thief -->\n", "podman is not installed"


def column(name: str, base: Path) -> dict[str, bool]:
    """What was open; skips where that cannot be tried here."""
    environment, user = COLUMNS[name]
    if os.geteuid() not in (0, user) and user == ROOT_USER:
        pytest.skip("only root can try")
    user = user if os.geteuid() == 0 else os.geteuid()
    if "bubblewrap" in environment and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if python_of(user) is None:
        pytest.skip(f"no Python that user {user} may run")
    (place := base / re.sub(r"\W+", "-", name)).mkdir()
    project, way, own = Project(place), list[str](), dict[str, str]()
    with ExitStack() as stack:
        if "podman" in environment and user:
            way, own = rootless(user, place)
            # Files of users inside; and a process of podman's own, which holds their namespace.
            end = "podman unshare rm -r $HOME/.local && podman system migrate"
            stack.callback(subprocess.run, [*way, "sh", "-c", end], env=own, check=True)
        if "podman" in environment:
            lent = stack.enter_context(service()) if "elsewhere" in environment else {}
            environment = in_container("podman", way=way, env=own or None) or pytest.skip(MISSING)
            own |= lent
        return tried(project, environment, user, TRUST | own, way)


def table() -> dict[str, list[str]]:
    """By row, its cells; the first row names the columns."""
    lines = PAGE.read_text("utf-8").partition(MARKER)[2].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows if not row[0].startswith("--")}


@pytest.fixture
def place() -> Iterator[Path]:
    """Which other users may enter."""
    made = Path(tempfile.mkdtemp(prefix="thief-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if "podman" in COLUMNS[n][0] else ()) for n in COLUMNS],
)
def test_a_thief_gets_what_the_page_says(name: str, place: Path) -> None:
    found = column(name, place)
    heads, *rows = table().items()
    told = {row for row, cells in rows if cells[heads[1].index(name)] == "open"}
    stolen = {row for row, is_open in found.items() if is_open}
    assert {row for row, _ in rows} == set(found)
    assert stolen <= told
    # Without a sandbox it is a good thief, whatever this machine's own settings close.
    assert "none" not in name or len(told - stolen) <= 4, told - stolen


def main() -> None:
    base = Path(tempfile.mkdtemp(prefix="thief-", dir="/var/tmp"))
    base.chmod(0o755)
    columns = [column(name, base) for name in COLUMNS]
    lines = [f"| tried by a tool of the agent's | {' | '.join(COLUMNS)} |"]
    lines.append("|---" * (len(COLUMNS) + 1) + "|")
    for row in columns[0]:
        cells = ["open" if one[row] else "–" for one in columns]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    page = PAGE.read_text("utf-8")
    before, _, after = page.partition(MARKER)
    rest = after.partition("\n\n")[2]
    PAGE.write_text(f"{before}{MARKER}" + "\n".join(lines) + f"\n\n{rest}", "utf-8")
    shutil.rmtree(base)


if __name__ == "__main__":
    main()
