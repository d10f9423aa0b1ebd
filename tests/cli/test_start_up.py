"""What the command imports before it knows what is wanted."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("anyio", "jsonpath_ng", "psutil", "pydantic", "regex", "rich", "typer", "yaml")

PROBE = """
import json, sys
from skillup.__main__ import main
sys.argv = ["skillup", *sys.argv[1:]]
try:
    main()
except SystemExit as leave:
    assert not leave.code, leave.code
loaded = sorted({name.partition(".")[0] for name in sys.modules})
sys.stderr.write(json.dumps(loaded))
"""


def imported_by(*arguments: str) -> set[str]:
    """The heavy libraries that `skillup ARGUMENTS` has imported when it is done."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout
    return {name for name in json.loads(done.stderr) if name in HEAVY}


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_needs_no_library(option: str) -> None:
    assert imported_by(option) == set()


def test_help_needs_only_the_command_line_library() -> None:
    assert imported_by("--help") == {"typer"}


@pytest.mark.parametrize("verb", ["run", "validate", "list", "init", "export", "schema", "doctor"])
def test_help_of_a_verb_needs_no_more_than_that_library_itself_does(verb: str) -> None:
    """Some versions of Typer check options by pydantic."""
    assert imported_by(verb, "--help") <= {"typer", "pydantic"}
