"""What the command imports before it knows what is wanted, and before the first agent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"anyio", "click", "jsonpath_ng", "psutil", "pydantic", "regex", "rich", "yaml"}
# Of these nothing is needed before an agent has answered; most of them take longer than it does.
LATE = [
    *("skillup.analysis", "skillup.history", "skillup.importers", "skillup.judges"),
    *("skillup.reports.html", "skillup.sessions", "skillup.simulator", "skillup.stats"),
    *("importlib.metadata", "jsonschema", "jinja2", "junitparser", "rich"),
]

PROBE = """
import json, sys
def report(event, _):
    if event == "subprocess.Popen": finish()
def finish():
    sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)) + "\\n")
    sys.stderr.flush()
from skillup.__main__ import main
sys.addaudithook(report)
sys.argv = ["skillup", *sys.argv[1:]]
try:
    main()
except SystemExit as leave:
    assert not leave.code, leave.code
finish()
"""


def imported_by(*arguments: str, cwd: Path) -> set[str]:
    """The modules that `skillup ARGUMENTS` has imported when it first starts a process, or ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
    )
    return set(next(json.loads(line) for line in done.stderr.splitlines() if line[:1] == "["))


@pytest.mark.parametrize(
    ("arguments", "libraries"),
    [
        (["--version"], set()),
        (["--help"], {"click"}),
        (["run", "--help"], {"click"}),
    ],
)
def test_help_needs_only_the_command_line_library(
    arguments: list[str], libraries: set[str], tmp_path: Path
) -> None:
    assert imported_by(*arguments, cwd=tmp_path) & HEAVY <= libraries


def suite(folder: Path) -> None:
    case = "{input: {prompt: x}, scripted: [{say: y}], assertions: [{contains: y}]}"
    (folder / "eval.yaml").write_text("name: one")
    (folder / "cases").mkdir()
    (folder / "cases" / "a.yaml").write_text(case)


def among(found: set[str], unwanted: list[str]) -> set[str]:
    return {name for name in found if any(f"{name}.".startswith(f"{one}.") for one in unwanted)}


def test_before_the_first_agent_nothing_is_imported_that_only_its_answer_needs(
    tmp_path: Path,
) -> None:
    suite(tmp_path)
    found = imported_by("run", ".", "-q", cwd=tmp_path)
    assert "skillup.trial" in found
    assert not among(found, LATE)


def test_checking_suites_imports_nothing_that_runs_or_draws(tmp_path: Path) -> None:
    suite(tmp_path)
    found = imported_by("validate", ".", cwd=tmp_path)
    running = ["anyio", "asyncio", "skillup.engines", "skillup.schema.record", "skillup.store"]
    assert "skillup.load.suites" in found
    assert not among(found, [*LATE, *running])
