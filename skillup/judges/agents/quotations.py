"""Whether a quotation is in what was judged: the transcript, the diff, a file or its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from skillup.judges.exhibits.changes import diff_lines, file_list
from skillup.judges.exhibits.subject import Exhibited
from skillup.judges.reading.evidence import ENOUGH
from skillup.schema.record import FileState

_TEXT_BYTES = 4 << 20


class Quotations:
    """Looks for quotations; spaces, newlines and case do not count. Texts are read when needed."""

    def __init__(
        self,
        subject: Exhibited,
        read_file: Callable[[FileState], bytes | None],
        mask: Callable[[str], str],
    ) -> None:
        self._texts = _texts(subject, read_file)
        self._read: list[tuple[bool, str]] = []
        self._mask = mask

    def weakness(self, quotation: str, passed: bool) -> str | None:
        """Why the quotation supports nothing, or not a pass: that, what the agent did has to."""
        pieces = [_plain(piece) for piece in quotation.replace("...", "…").split("…")]
        pieces = [piece for piece in pieces if piece]
        if not all(self._has(piece, {True, False}) for piece in pieces):
            return "it is not in what was judged"
        if not passed:
            return None
        if not all(self._has(piece, {True}) for piece in pieces):
            return "the agent did not say it"
        longest = max(pieces, key=len, default="")
        is_all = any(longest == text for _, text in self._read)
        return "it is too short" if len(longest) < ENOUGH and not is_all else None

    def _has(self, piece: str, whose: set[bool]) -> bool:
        if any(piece in text for own, text in self._read if own in whose):
            return True
        for own, text in self._texts:
            self._read.append((own, _plain(self._mask(text))))
            if own in whose and piece in self._read[-1][1]:
                return True
        return False


def _plain(text: str) -> str:
    """Without what quoting changes: spacing, case, quotation marks around it, marks of Markdown."""
    bare = "".join(" " if c in "`*>\"'“”„‘’" else c for c in text)
    return " ".join(bare.split()).casefold()


def _texts(
    subject: Exhibited, read_file: Callable[[FileState], bytes | None]
) -> Iterator[tuple[bool, str]]:
    """Each text, and whether it is what the agent said, did, or met with."""
    for turn in subject.turns:
        yield False, turn.content
        yield True, turn.response
        for item in turn.transcript:
            if item.text:
                yield True, item.text
            if item.tool_result is not None:
                yield True, item.tool_result.content
            if item.tool_call is not None:
                yield True, f"{item.tool_call.name} {item.tool_call.arguments}"
                yield from ((True, str(value)) for value in item.tool_call.arguments.values())
    for told in subject.record.history:
        yield told.role != "user", told.content
    before = subject.record.initial_files or {}
    yield True, "\n".join(diff_lines(before, subject.files, read_file))
    yield True, file_list(before, subject.files)
    for state in subject.files.values():
        content = read_file(state) if state.kept and state.size <= _TEXT_BYTES else None
        if content is not None and b"\0" not in content:
            yield True, content.decode(errors="replace")
