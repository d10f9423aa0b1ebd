"""`skillup schema`: JSON Schemas, for editors and other tools."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from skillup.cli.options import option
from skillup.errors import UsageError


class Which(StrEnum):
    """The files that have a schema."""

    case = "case"
    suite = "suite"
    profile = "profile"
    judge = "judge"
    record = "record"
    result = "result"


def schema(
    which: Annotated[Which | None, typer.Argument(help="Default: all of them.")] = None,
    out: Annotated[Path | None, option("Write NAME.schema.json files to this folder.")] = None,
) -> int:
    """Print the JSON Schema of suites, cases, profiles, written-down judges, records or results."""
    from skillup.load.json_schema import json_schema, schema_names

    names = [which.value] if which else schema_names()
    schemas = {name: json_schema(name) for name in names}
    if out is None:
        data = schemas[which.value] if which else schemas
        sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        return 0
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, value in schemas.items():
            text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
            (out / f"{name}.schema.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write to {out}: {error.strerror or error}", hint="choose another --out"
        ) from None
    return 0
