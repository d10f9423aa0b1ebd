"""Where no cases are asked for, the plug-in is hardly there."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.project import Project

PROBE = """
import json, sys
import pytest
code = pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", *sys.argv[1:]])
new = sorted(name for name in set(sys.modules) if name.partition(".")[0] == "skillup")
sys.stderr.write(json.dumps({"code": int(code), "skillup": new}))
"""


def imported(project: Project, *arguments: str) -> list[str]:
    """Modules of skillup that a pytest has imported when it is done."""
    project.write({"test_own.py": "def test_own():\n    assert True\n"})
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stderr)
    assert told["code"] == 0, done.stdout
    return list(told["skillup"])


def test_a_pytest_without_the_option_imports_the_plug_in_and_nothing_of_it(
    project: Project,
) -> None:
    assert imported(project) == ["skillup", "skillup.pytest_plugin"]


def test_other_options_of_it_have_no_effect_without_that_one(project: Project) -> None:
    given = ("--skillup-engine", "x", "--skillup-trials", "many")
    assert imported(project, *given) == ["skillup", "skillup.pytest_plugin"]
