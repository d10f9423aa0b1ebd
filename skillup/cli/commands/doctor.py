"""`skillup doctor`: which engines are here, and do they work?"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from skillup.cli.options import AsJson, Texts, option


def doctor(
    engine: Annotated[
        Texts, typer.Argument(help="Profiles or adapters. Default: all of them.")
    ] = None,
    probe: Annotated[
        bool, option("Run a conversation of two turns: asks the model, costs.", "--probe")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Show which CLIs are installed, which versions, how they would log in.

    Exit code: 0 if at least what was named works, 3 otherwise.
    """
    from skillup.app.doctor import examine, exit_code, print_findings

    findings = examine(engine, probe=probe)
    if as_json:
        data = [finding.as_dict() for finding in findings]
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
    else:
        print_findings(findings)
    return exit_code(findings, named=bool(engine))
