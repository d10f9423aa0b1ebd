"""`skillup validate`: are these files right?"""

from __future__ import annotations

import json
import sys

from skillup.cli.options import AsJson, Paths, Trust, Vars
from skillup.errors import ExitCode


def validate(
    paths: Paths = None,
    var: Vars = None,
    trust: Trust = False,  # noqa: ARG001 - its callback does it
    as_json: AsJson = False,
) -> int:
    """Check suites, cases and the workspace's profiles without running anything."""
    from skillup.app.request import default_paths, parse_vars
    from skillup.app.validation import validate_paths
    from skillup.reports.terminal.listing import print_problems, problem_as_dict

    counts, problems = validate_paths(default_paths(paths), parse_vars(var))
    if as_json:
        numbers = {f"{kind}s": number for kind, number in counts.items()}
        data = {**numbers, "problems": [problem_as_dict(problem) for problem in problems]}
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
    else:
        print_problems(problems, counts)
    errors = any(problem.severity == "error" for problem in problems)
    return ExitCode.USAGE if errors else ExitCode.PASSED
