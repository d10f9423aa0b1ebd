"""`skillup validate`: are these files right?"""

from __future__ import annotations

import json
import sys

from skillup.cli.options import AsJson, Paths, Vars, default_paths, parse_vars
from skillup.errors import ExitCode


def validate(paths: Paths = None, var: Vars = None, as_json: AsJson = False) -> int:
    """Check suites, cases and profiles without running anything."""
    from skillup.load.suites import load_paths
    from skillup.reports.problems import print_problems, problem_as_dict

    loaded = load_paths(default_paths(paths), variables=parse_vars(var))
    cases = sum(len(suite.cases) for suite in loaded.suites)
    if as_json:
        data = {
            "suites": len(loaded.suites),
            "cases": cases,
            "problems": [problem_as_dict(problem) for problem in loaded.problems],
        }
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
    else:
        print_problems(loaded.problems, suites=len(loaded.suites), cases=cases)
    return ExitCode.USAGE if loaded.errors else ExitCode.PASSED
