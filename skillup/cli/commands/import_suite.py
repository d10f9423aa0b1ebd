"""`skillup import`: other tools' suites, made into ours."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from skillup.cli.options import AsJson, Force, option


class From(StrEnum):
    """The tools whose files are read."""

    agentv = "agentv"
    vibecheck = "vibecheck"
    promptfoo = "promptfoo"
    anthropic = "anthropic"


def import_suite(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="YAML, JSON or JSONL files of suites.")
    ],
    out: Annotated[Path, option("The new suite's folder; several files get one each.")],
    from_: Annotated[
        From | None, option("Which tool's. Default: by what is in the file.", "--from")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> int:
    """Convert suites of AgentV, vibecheck, promptfoo or Anthropic's skill evals.

    What could not be carried over, or only nearly, is listed line by line.
    """
    from skillup.importers.convert import import_files
    from skillup.reports.terminal.listing import shown_path
    from skillup.reports.text import count, plain

    data = []
    for item in import_files(files, out, format_=from_.value if from_ else None, force=force):
        source, suite = shown_path(item.source), item.directory
        cases = [
            {"id": case.id, "file": shown_path(suite / case.file)} for case in item.draft.cases
        ]
        data.append(
            {
                "source": source,
                "format": item.format,
                "suite": shown_path(suite / "eval.yaml"),
                "name": item.draft.name,
                "cases": cases,
                "notes": [asdict(note) | {"file": shown_path(note.file)} for note in item.notes],
            }
        )
        if as_json:
            continue
        for note in item.notes:
            text = str(note).removeprefix(str(note.file))
            sys.stderr.write(plain(shown_path(note.file) + text) + "\n")
        lost = sum(note.kind == "lost" for note in item.notes)
        what = f"{source} ({item.format}) → {shown_path(suite)}: {count(len(cases), 'case')}"
        changed = len(item.notes) - lost
        sys.stderr.write(plain(f"{what}; {lost} not carried over, {changed} changed\n"))
    if as_json:
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
    return 0
