"""The JSON of a run: what it knows of itself; a trial's record, grade and checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from skillup.errors import RunDirectoryError
from skillup.schema.base import Model
from skillup.schema.record import RECORD_VERSION, FileState, Record
from skillup.store.files import Mask, disk_errors, masked_json, open_regular, read_regular, to_json
from skillup.store.places import RESULT_FILE

if TYPE_CHECKING:
    from skillup.schema.grade import RunResult

MANY_FILES = 100
"""Longer lists of what was there before turn 1 are stored once, and not in each record."""
_FILES_AT_ONCE = 500
_BEFORE_FILES = f'"schema_version":"{RECORD_VERSION}"'.encode()


class _Files(Model):
    files: dict[str, FileState]


def json_of_files(files: Mapping[str, FileState], mask: Mask) -> bytes | None:
    """As in a record; None: there is a secret in it.

    Piece by piece: while one is made, no other thread of this process goes on.
    """
    pieces: list[bytes] = []
    items = iter(files.items())
    while piece := dict(islice(items, _FILES_AT_ONCE)):
        text, masked = masked_json(_Files(files=piece), mask)
        if masked:
            return None
        pieces.append(text.removeprefix(b'{"files":{')[:-2])
    return b"{" + b",".join(pieces) + b"}"


def with_files(data: bytes, files: bytes) -> bytes:
    """The JSON of a record, or of a checkpoint, with its list of files."""
    return data.replace(_BEFORE_FILES, _BEFORE_FILES + b',"initial_files":' + files, 1)


def parsed_record(data: bytes, where: str) -> Record:
    """The record in `data`, which is called `where` in messages. Raises RunDirectoryError for one
    that was cut short or is none of this version.
    """
    with suppress(ValidationError):
        record = Record.model_validate_json(data)
        # Turns find their checks by their numbers: with others, checks would be lost or swapped.
        in_order = [turn.turn_number for turn in record.turns] == [*range(1, len(record.turns) + 1)]
        if record.schema_version == RECORD_VERSION and in_order:
            return record
    hint = "run the trial again with skillup run --resume"
    raise RunDirectoryError(f"{where} is damaged", hint=hint)


def load_result(folder: Path, *, cases: bool = True) -> RunResult:
    """``result.json`` in `folder`; where it is as we write it, without its cases if nobody needs
    them. Raises RunDirectoryError if there is none, or a damaged one.
    """
    path = folder / RESULT_FILE
    try:
        with disk_errors("read", path):
            from skillup.schema.grade import RunResult

            data = read_regular(path) if cases else b"".join(_lines_without_cases(path))
            return RunResult.model_validate_json(data)
    except ValidationError:
        hint = "`skillup run --resume` writes it anew, from the trials' grades"
        raise RunDirectoryError(f"{path} is damaged", hint=hint) from None


def _lines_without_cases(path: Path) -> Iterator[bytes]:
    inside = False
    with open_regular(path) as file:
        for line in file:
            inside = inside and not line.startswith(b"  ]")
            if not inside:
                yield line
            inside = inside or line == b'  "cases": [\n'


def result_json(result: RunResult, mask: Mask) -> Iterator[str]:
    """``result.json``, part by part: of its grades, one at a time is in memory."""
    lists: list[tuple[str, Iterable[BaseModel]]] = [("\n  ", result.cases)]
    without: dict[str, Any] = {"cases": []}
    if result.analysis is not None:
        lists.append(("\n    ", result.analysis.cases))
        without["analysis"] = result.analysis.model_copy(update={"cases": []})
    rest = to_json(result.model_copy(update=without), mask, indent=2).decode()
    for indent, items in lists:
        # Within a text of JSON there is no line's end: nothing else looks like that.
        head, key, rest = rest.partition(f'{indent}"cases": [')
        yield head + key
        between = ""
        for item in items:
            text = to_json(item, mask, indent=2).decode().rstrip("\n")
            yield between + f"\n{text}".replace("\n", f"{indent}  ")
            between = ","
        yield indent if between else ""
    yield rest
