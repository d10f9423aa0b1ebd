"""Whether a quotation is in what was judged: the transcript, the diff, a file or its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from skillup.judges.exhibits.changes import diff_lines, file_list
from skillup.judges.exhibits.subject import Exhibited
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
        self._read: list[str] = []
        self._mask = mask

    def holds(self, quotation: str) -> bool:
        """Whether the quotation is there; parts around an ellipsis may stand apart."""
        pieces = [_plain(piece) for piece in quotation.replace("...", "…").split("…")]
        return all(self._has(piece) for piece in pieces if piece)

    def _has(self, piece: str) -> bool:
        if any(piece in text for text in self._read):
            return True
        for text in self._texts:
            self._read.append(_plain(self._mask(text)))
            if piece in self._read[-1]:
                return True
        return False


def _plain(text: str) -> str:
    """Without what quoting changes: spacing, case, quotation marks around it, marks of Markdown."""
    bare = "".join(" " if c in "`*>\"'“”„‘’" else c for c in text)
    return " ".join(bare.split()).casefold()


def _texts(subject: Exhibited, read_file: Callable[[FileState], bytes | None]) -> Iterator[str]:
    for turn in subject.turns:
        yield turn.content
        yield turn.response
        for item in turn.transcript:
            if item.text:
                yield item.text
            if item.tool_result is not None:
                yield item.tool_result.content
            if item.tool_call is not None:
                yield f"{item.tool_call.name} {item.tool_call.arguments}"
                yield from (str(value) for value in item.tool_call.arguments.values())
    for told in subject.record.history:
        yield told.content
    before = subject.record.initial_files or {}
    yield "\n".join(diff_lines(before, subject.files, read_file))
    yield file_list(before, subject.files)
    for state in subject.files.values():
        content = read_file(state) if state.kept and state.size <= _TEXT_BYTES else None
        if content is not None and b"\0" not in content:
            yield content.decode(errors="replace")
