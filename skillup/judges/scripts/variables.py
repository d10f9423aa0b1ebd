"""The `EVAL_*` variables of a script: skill-up's three, and more of our own.

Long things are in files; the variables say where. A variable whose value is not known is not set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from skillup.engines.environment import clean_variables
from skillup.judges.exhibits.subject import Exhibited
from skillup.judges.exhibits.transcript import as_json, as_markdown
from skillup.judges.exhibits.workspace_copy import WorkspaceCopy

# The system refuses to start a program with a variable of over 128 KiB.
_LONGEST_VALUE_BYTES = 96 << 10


def script_environment(
    subject: Exhibited,
    copy: WorkspaceCopy,
    user_environment: Mapping[str, str],
    suite_root: Path,
    scratch: Path,
    mask: Callable[[str], str],
) -> dict[str, str]:
    """The whole environment of the script; writes the files that it names below `scratch`."""
    home = scratch / "home"
    home.mkdir()
    files = scratch / "record"
    files.mkdir()
    record, last = subject.record, subject.last
    written = {
        "EVAL_TRANSCRIPT_PATH": ("transcript.json", as_json(subject.turns, record.history)),
        "EVAL_TRANSCRIPT_MARKDOWN_PATH": (
            "transcript.md",
            "\n".join(as_markdown(subject.turns, record.history)),
        ),
        "EVAL_FINAL_MESSAGE_PATH": ("final_message.txt", last.response),
        "EVAL_RECORD_PATH": ("record.json", record.model_dump_json()),
    }
    variables: dict[str, str] = {}
    for name, (file, text) in written.items():
        (files / file).write_text(mask(text), "utf-8", errors="backslashreplace", newline="")
        variables[name] = str(files / file)
    variables |= {
        "EVAL_FINAL_MESSAGE": _as_value(mask(last.response)),
        "EVAL_WORKSPACE": str(copy.root),
        "EVAL_CASE_ID": _as_value(record.case_id),
        "EVAL_TURNS": str(len(record.turns)),
        "EVAL_FILES_NOT_KEPT": _as_value("\n".join(copy.not_kept)),
    }
    if last.process is not None and last.process.exit_code is not None:
        variables["EVAL_EXIT_CODE"] = str(last.process.exit_code)
    if subject.number is not None:
        variables["EVAL_TURN"] = str(subject.number)
    if suite_root.is_dir():
        variables["EVAL_SUITE_ROOT"] = str(suite_root)
    return {**clean_variables(user_environment), "HOME": str(home), **variables}


def _as_value(text: str) -> str:
    """The text, cut to what a variable can hold; variables cannot hold NUL."""
    encoded = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "backslashreplace")
    if len(encoded) <= _LONGEST_VALUE_BYTES:
        return os.fsdecode(encoded)
    return encoded[:_LONGEST_VALUE_BYTES].decode(errors="ignore")
