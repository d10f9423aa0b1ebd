"""The diff of one turn's files, for people to read: short, and safe to print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skillup.schema.record import FileState
from skillup.workspace.blobs import BlobStore
from skillup.workspace.text_diff import unified_diff

_TEXT_BYTES = 1 << 20
"""Larger files are only named in a diff."""


def diff_of_files(
    paths: list[str],
    before: Mapping[str, FileState],
    after: Mapping[str, FileState],
    blobs: BlobStore,
    limit: int,
) -> str:
    """Unified diffs of `paths`, in that order, at most about `limit` characters.

    Binary, large and no longer kept files are only named; a diff that is cut says so.
    """
    lines = (
        line
        for path in paths
        for line in _file_diff(path, before.get(path), after.get(path), blobs)
    )
    return _bounded(lines, limit)


def _bounded(lines: Iterator[str], limit: int) -> str:
    kept: list[str] = []
    room = limit
    for line in lines:
        if len(line) + 1 > room:
            kept.append(f"[the diff goes on; cut at {limit} characters]\n")
            break
        kept.append(f"{line}\n")
        room -= len(line) + 1
    return "".join(kept)


def _file_diff(
    path: str, old: FileState | None, new: FileState | None, blobs: BlobStore
) -> Iterator[str]:
    yield f"--- {_header('a', path, old)}"
    yield f"+++ {_header('b', path, new)}"
    if old is not None and new is not None and old.executable != new.executable:
        yield f"[now {'executable' if new.executable else 'not executable'}]"
    if any(state is not None and state.link is not None for state in (old, new)):
        yield f"[{_described(old)} → {_described(new)}]"
        return
    old_text, new_text = _text(old, blobs), _text(new, blobs)
    if old_text is None or new_text is None:
        yield f"[{_described(old)} → {_described(new)}; not shown: binary, large or not kept]"
        return
    yield from unified_diff(old_text, new_text)


def _header(side: str, path: str, state: FileState | None) -> str:
    if state is None:
        return "/dev/null"
    # As git does, so that a newline in a name cannot look like a line of the diff.
    return f"{side}/{path}" if path.isprintable() else ascii(f"{side}/{path}")


def _described(state: FileState | None) -> str:
    if state is None:
        return "nothing"
    if state.link is not None:
        return f"symbolic link to {state.link!r}"
    return f"{state.size} bytes"


def _text(state: FileState | None, blobs: BlobStore) -> str | None:
    """The file as text; empty if there is no file, None if it cannot be shown."""
    if state is None:
        return ""
    if state.size > _TEXT_BYTES:
        return None
    content = blobs.read_state(state)
    if content is None or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
