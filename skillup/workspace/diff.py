"""The diff of one turn's files, for people to read: short, and safe to print."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from itertools import takewhile

from skillup.schema.record import FileState
from skillup.workspace.blobs import BlobStore

_CONTEXT_LINES = 3
_MOST_COMPARISONS = 2_000_000
"""Beyond this many pairs of lines the changed region is shown as replaced as a whole."""
_TEXT_BYTES = 1 << 20
"""Larger files are only named in a diff."""


def unified_diff(before: str, after: str) -> Iterator[str]:
    """The hunks, line by line without newlines; nothing if the texts are equal.

    A file without a newline at its end is marked as git marks it.
    """
    if before == after:
        return
    # Split at newlines only (not at form feeds and the like), each with its newline.
    a, b = before.split("\n"), after.split("\n")
    for lines in (a, b):
        last = lines.pop()
        lines[:] = [f"{line}\n" for line in lines]
        if last:
            lines.append(last)
    start = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(a, b, strict=False)))
    backwards = zip(reversed(a[start:]), reversed(b[start:]), strict=False)
    end = sum(1 for _ in takewhile(lambda two: two[0] == two[1], backwards))
    # Only what lies between is compared, with enough around it for the context.
    skip, keep = max(0, start - _CONTEXT_LINES), max(0, end - _CONTEXT_LINES)
    a, b = a[skip : len(a) - keep], b[skip : len(b) - keep]
    if len(a) * len(b) <= _MOST_COMPARISONS:
        hunks = list(difflib.SequenceMatcher(None, a, b).get_grouped_opcodes(_CONTEXT_LINES))
    else:
        head, a_end, b_end = start - skip, len(a) - (end - keep), len(b) - (end - keep)
        hunks = [
            [
                ("equal", 0, head, 0, head),
                ("replace", head, a_end, head, b_end),
                ("equal", a_end, len(a), b_end, len(b)),
            ]
        ]
    for hunk in hunks:
        (_, a_start, _, b_start, _), (_, _, a_end, _, b_end) = hunk[0], hunk[-1]
        sides = ((skip + a_start, a_end - a_start), (skip + b_start, b_end - b_start))
        old, new = (f"{first + 1 if length else first},{length}" for first, length in sides)
        yield f"@@ -{old} +{new} @@"
        for kind, a_start, a_end, b_start, b_end in hunk:
            signed = [(" " if kind == "equal" else "-", line) for line in a[a_start:a_end]]
            if kind != "equal":
                signed += [("+", line) for line in b[b_start:b_end]]
            for sign, line in signed:
                yield sign + line.removesuffix("\n")
                if not line.endswith("\n"):
                    yield "\\ No newline at end of file"


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
    kept: list[str] = []
    room = limit
    for path in paths:
        for line in _file_diff(path, before.get(path), after.get(path), blobs):
            room -= len(line) + 1
            if room < 0:
                return "".join([*kept, f"[the diff goes on; cut at {limit} characters]\n"])
            kept.append(f"{line}\n")
    return "".join(kept)


def _file_diff(
    path: str, old: FileState | None, new: FileState | None, blobs: BlobStore
) -> Iterator[str]:
    for mark, side, state in (("---", "a", old), ("+++", "b", new)):
        # As git does, so that a newline in a name cannot look like a line of the diff.
        name = f"{side}/{path}" if path.isprintable() else ascii(f"{side}/{path}")
        yield f"{mark} {'/dev/null' if state is None else name}"
    if old is not None and new is not None and old.executable != new.executable:
        yield f"[now {'executable' if new.executable else 'not executable'}]"
    old_text, new_text = _text(old, blobs), _text(new, blobs)
    if old_text is not None and new_text is not None:
        yield from unified_diff(old_text, new_text)
        return
    links = any(state is not None and state.link is not None for state in (old, new))
    why = "" if links else "; not shown: binary, large or not kept"
    yield f"[{_described(old)} → {_described(new)}{why}]"


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
    try:
        return None if content is None or b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None
