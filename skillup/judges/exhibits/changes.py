"""What changed in the workspace from the start to the point in question, and what is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from skillup.schema.record import FileState
from skillup.workspace.text_diff import unified_diff

_TEXT_BYTES = 1 << 20
"""Larger files are only named in a diff."""

ReadFile = Callable[[FileState], bytes | None]


def diff_lines(
    before: Mapping[str, FileState], after: Mapping[str, FileState], read_file: ReadFile
) -> Iterator[str]:
    """A unified diff, line by line without newlines; binary and large files are only named."""
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if _same(old, new):
            continue
        yield f"--- {_header(f'a/{path}') if old is not None else '/dev/null'}"
        yield f"+++ {_header(f'b/{path}') if new is not None else '/dev/null'}"
        old_text, new_text = _text(old, read_file), _text(new, read_file)
        if old_text is None or new_text is None:
            yield f"[{_described(old)} → {_described(new)}; not shown: no text, large or not kept]"
        else:
            yield from unified_diff(old_text, new_text)


def file_list(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> str:
    """A line for each file, deleted ones too: what happened to it, its size, its path."""
    lines = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        state = new or old
        size = state.size if state is not None else 0
        lines.append(f"{_happened(old, new):<10}{size:>10}  {_header(path)}{_about(state)}")
    return "\n".join(lines) + "\n" if lines else "the workspace has no files\n"


def added(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> list[str]:
    """The paths of files that were not there at the start."""
    return [path for path in after if path not in before]


def _header(path: str) -> str:
    """As git does, so that a newline in a name cannot look like a line of the diff."""
    return path if path.isprintable() else ascii(path)


def _happened(old: FileState | None, new: FileState | None) -> str:
    if new is None:
        return "deleted"
    if old is None:
        return "added"
    return "unchanged" if _same(old, new) else "modified"


def _about(state: FileState | None) -> str:
    if state is None or (state.link is None and state.kept):
        return ""
    return f" -> {state.link}" if state.link is not None else " (too large to be kept)"


def _same(old: FileState | None, new: FileState | None) -> bool:
    if old is None or new is None:
        return old is new
    return (old.sha256, old.link, old.size) == (new.sha256, new.link, new.size)


def _text(state: FileState | None, read_file: ReadFile) -> str | None:
    if state is None:
        return ""
    if state.link is not None or state.size > _TEXT_BYTES or not state.kept:
        return None
    content = read_file(state)
    if content is None or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _described(state: FileState | None) -> str:
    if state is None:
        return "nothing"
    return f"link to {state.link}" if state.link is not None else f"{state.size} bytes"
