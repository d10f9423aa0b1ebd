"""A unified diff of two texts, in time that does not explode."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

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
