"""Where a script is, and how it is started.

The copy that was kept with the record counts: a record must be judged as it was. Where the suite's
own file still is the same it is run in place, so that it finds the files beside it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from skillup.schema.record import FileState, Record

_SHELLS = {".sh": "/bin/sh", ".bash": "bash"}


class ScriptProblemError(Exception):
    """The script cannot be started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class FoundScript:
    """A script that can be started."""

    argv: tuple[str, ...]
    notes: tuple[str, ...] = ()


def find_script(
    path: str,
    record: Record,
    read_file: Callable[[FileState], bytes | None],
    suite_root: Path,
    scratch: Path,
) -> FoundScript:
    """The script that the suite calls `path`; a kept copy is written below `scratch`.

    Raises ScriptProblemError if it is nowhere or cannot be started.
    """
    kept = record.references.get(path)
    own = suite_root / path
    if kept is None:
        return FoundScript(command_of(own))
    try:
        present = own.read_bytes() if own.is_file() else None
    except OSError:
        present = None
    if present is not None and hashlib.sha256(present).hexdigest() == kept.sha256:
        return FoundScript(command_of(own))
    content = read_file(kept)
    if content is None:
        raise ScriptProblemError(
            f"the script {own} is not what it was, and the copy kept with the record is gone; "
            "put it back, or judge by what it is now: `skillup judge RUN --cases PATH`"
        )
    copy = scratch / "script" / Path(path).name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content)
    copy.chmod(0o755 if kept.executable else 0o644)
    changed = (f"{path} has changed since; the copy kept with the record was run",)
    return FoundScript(command_of(copy), changed if present is not None else ())


def command_of(script: Path) -> tuple[str, ...]:
    """The command that starts it: its executable bit, its first line or its ending say how.

    Raises ScriptProblemError.
    """
    if script.exists() and not script.is_file():  # a pipe might never end
        raise ScriptProblemError(f"the script {script} is no file; correct its path")
    try:
        with script.open("rb") as file:
            start = file.read(512)
    except FileNotFoundError:
        raise ScriptProblemError(f"there is no script {script}; correct its path") from None
    except OSError as error:
        why = f"the script {script} cannot be read: {error.strerror or error}"
        raise ScriptProblemError(why) from error
    shebang = start.split(b"\n", 1)[0][2:].strip() if start.startswith(b"#!") else b""
    # A program that is no text has no other way to be started.
    if os.access(script, os.X_OK) and (shebang or b"\0" in start):
        return (str(script),)
    if script.suffix == ".py":
        return (sys.executable, str(script))
    if shebang:
        # The interpreter and at most one argument, as the system splits the line.
        return (*shebang.decode(errors="surrogateescape").split(None, 1), str(script))
    if script.suffix in _SHELLS:
        return (_SHELLS[script.suffix], str(script))
    raise ScriptProblemError(
        f"it is not clear how to start the script {script}: "
        "begin it with `#!` and its interpreter, such as `#!/bin/sh`"
    )
