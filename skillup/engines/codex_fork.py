"""A Codex thread's rollout as the rollout of another thread, in another workspace. Pure.

Codex's own `fork` needs the parent's file and its home at every turn. A copy under another id needs
neither, if the id is another one in its rows, too: Codex tells the id that it reads there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote

from skillup.engines.session_rewriting import Rewriting
from skillup.engines.transcript import as_dict


def fork_problem(first_line: bytes, thread_id: str) -> str | None:
    """Why a rollout that begins so cannot be copied under another id; None if it can."""
    try:
        row = as_dict(json.loads(first_line))
    except (ValueError, RecursionError):
        row = {}
    meta = as_dict(row.get("payload"))
    if row.get("type") != "session_meta" or meta.get("id") != thread_id:
        return "its file does not begin with what Codex writes there"
    if meta.get("history_mode") not in (None, "legacy", "paginated"):
        return f"its history is of the unknown form {meta['history_mode']!r}"
    if meta.get("history_base") or meta.get("forked_from_id"):
        return "it is itself a fork that Codex made, whose beginning is in another file"
    return None


def forked_lines(
    lines: Iterable[bytes], old_id: str, new_id: str, directories: Mapping[Path, Path]
) -> Iterator[bytes]:
    """The lines under the new id, with the new directories in place of the old ones.

    Lines that name neither stay as they are, to the byte; so does what is no JSON but for the id.
    """
    # Codex has paths in URLs, and in messages to the model that look like XML.
    replacements = {
        form(str(old)): form(str(new))
        for form in (quote, escape, str)
        for old, new in directories.items()
    }
    rewriting = Rewriting(replacements, words={})
    for line in lines:
        yield rewriting.line(line.replace(old_id.encode(), new_id.encode()))
