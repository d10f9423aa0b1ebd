"""The diff of one turn's files, for people to read: short, and safe to print."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from skillup.schema.record import FileState
from skillup.workspace.blobs import BlobStore

# A unified diff of two texts, in time that does not explode.

_CONTEXT_LINES = 3
_MOST_COMPARISONS = 2_000_000
"""Beyond this many pairs of lines the changed region is shown as replaced as a whole."""


def unified_diff(before: str, after: str) -> Iterator[str]:
    """The hunks, line by line without newlines; nothing if the texts are equal.

    A file without a newline at its end is marked as git marks it.
    """
    a, b = _lines(before), _lines(after)
    start = _common(a, b)
    end = _common(a[start:][::-1], b[start:][::-1])
    # Only what lies between is compared, with enough around it for the context.
    skip = max(0, start - _CONTEXT_LINES)
    keep = max(0, end - _CONTEXT_LINES)
    a, b = a[skip : len(a) - keep], b[skip : len(b) - keep]
    for hunk in _hunks(a, b, start - skip, end - keep):
        first, last = hunk[0], hunk[-1]
        yield (
            f"@@ -{_range(skip + first[1], last[2] - first[1])}"
            f" +{_range(skip + first[3], last[4] - first[3])} @@"
        )
        for kind, a_start, a_end, b_start, b_end in hunk:
            if kind == "equal":
                yield from (line for text in a[a_start:a_end] for line in _shown(" ", text))
                continue
            yield from (line for text in a[a_start:a_end] for line in _shown("-", text))
            yield from (line for text in b[b_start:b_end] for line in _shown("+", text))


Opcode = tuple[str, int, int, int, int]


def _hunks(a: list[str], b: list[str], head: int, tail: int) -> Iterator[list[Opcode]]:
    """Groups of edits; the first ``head`` and the last ``tail`` lines are equal."""
    if a == b:
        return
    if len(a) * len(b) <= _MOST_COMPARISONS:
        matcher = difflib.SequenceMatcher(None, a, b)
        for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
            yield list(group)
        return
    a_end, b_end = len(a) - tail, len(b) - tail
    yield [
        ("equal", 0, head, 0, head),
        ("replace", head, a_end, head, b_end),
        ("equal", a_end, len(a), b_end, len(b)),
    ]


def _lines(text: str) -> list[str]:
    """Split at newlines only (not at form feeds and the like), each with its newline."""
    lines = [f"{line}\n" for line in text.split("\n")]
    if lines[-1] == "\n":
        lines.pop()
    else:
        lines[-1] = lines[-1][:-1]
    return lines


def _common(a: list[str], b: list[str]) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def _range(start: int, length: int) -> str:
    return f"{start + 1 if length else start},{length}"


def _shown(sign: str, line: str) -> Iterator[str]:
    if line.endswith("\n"):
        yield sign + line[:-1]
    else:
        yield sign + line
        yield "\\ No newline at end of file"


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
