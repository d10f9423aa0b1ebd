"""Texts that are too long are shortened, and say so where something is missing."""

from __future__ import annotations

from collections.abc import Iterable


def cut(text: str, max_bytes: int) -> tuple[str, str | None]:
    """The text, or its beginning and end; and what a reader should know of that, if anything."""
    encoded = text.encode("utf-8", "backslashreplace")
    if len(encoded) <= max_bytes:
        return text, None
    half = max_bytes // 2
    start = encoded[:half].decode(errors="ignore")
    end = encoded[len(encoded) - half :].decode(errors="ignore")
    left_out = len(encoded) - 2 * half
    return f"{start}\n[… {left_out} bytes left out …]\n{end}", f"{left_out} bytes left out"


def first_lines(lines: Iterable[str], most: int | None, max_bytes: int) -> tuple[str, str | None]:
    """The lines up to a limit of lines or of bytes, and what was left out, if anything."""
    kept: list[str] = []
    room = max_bytes
    for number, line in enumerate(lines):
        room -= len(line.encode("utf-8", "backslashreplace")) + 1
        if room < 0 or (most is not None and number >= most):
            kept.append(f"[… the rest is left out: over {number} lines …]")
            return "\n".join(kept) + "\n", f"cut after {number} lines"
        kept.append(line)
    return "".join(f"{line}\n" for line in kept), None
