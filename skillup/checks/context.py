"""What a check is asked of: the context handed in from above, and the subject it comes down to."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from skillup.dataclass import frozen
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, CheckRole, EvidencePart, EvidenceSpan
from skillup.schema.record import FileState, Record, ToolCall, TurnRecord

if TYPE_CHECKING:
    from skillup.checks.nearest import Missing

Span = tuple[int, int]  # Where a piece starts and ends in a text, in characters

ReadFile = Callable[[FileState], bytes | None]
"""The bytes of a stored file, found by its hash; None if they were not kept."""
Ask = Callable[[Check, "CheckContext", CheckRole], CheckResult]
"""Evaluates a check that only a judge can evaluate; also told what the check is part of."""


@frozen
class CheckContext:
    record: Record
    turn: TurnRecord | None  # In question; None: the whole conversation
    read_file: ReadFile
    ask: Ask | None = None  # For checks that need a judge; None: they cannot be evaluated
    withheld: str | None = None  # Why none is asked, as nothing would change; None: they are asked


@frozen
class CheckSubject:
    """What a check may look at: one completed turn, or all of them; the workspace of the last."""

    record: Record
    turns: tuple[TurnRecord, ...]
    read_file: ReadFile
    case_sensitive: bool
    answered: TurnRecord | None = None  # The turn whose answer is read; None: none may be

    def of(self, answered: TurnRecord) -> CheckSubject:
        return CheckSubject(self.record, self.turns, self.read_file, self.case_sensitive, answered)

    @property
    def last(self) -> TurnRecord:
        return self.turns[-1]

    @property
    def answer(self) -> str:
        assert self.answered is not None, "a check that reads the answer is a CheckKind of answers"
        return self.answered.response

    @property
    def calls(self) -> list[ToolCall]:
        return [call for turn in self.turns for call in turn.tool_calls]

    def span(self, turn: TurnRecord, part: EvidencePart, **where: Any) -> EvidenceSpan:
        """A piece of `turn`, one of :attr:`turns`; `where` are fields of the span."""
        follow_up = None
        if turn.source == "follow_up":
            same = (t for t in self.record.turns if t.turn_number == turn.turn_number)
            steps = next((list(t.executed()) for t in same), [turn])
            follow_up = next((i for i, step in enumerate(steps[1:]) if step is turn), None)
        return EvidenceSpan(turn=turn.turn_number, follow_up=follow_up, part=part, **where)

    def in_answer(self, *spans: Span) -> tuple[EvidenceSpan, ...]:
        """Spans of :attr:`answer`; none where its plain form is another, and they are of that."""
        turn = self.answered or self.last
        found = [span for span in spans if span[0] < span[1]]
        if not found or plain(turn.response) != turn.response:
            return ()
        return tuple(self.span(turn, "response", start=s, end=e) for s, e in found)

    def text_of(self, state: FileState) -> str | None:
        """The file as text, whatever its bytes; None: they were not kept."""
        content = None if state.sha256 is None else self.read_file(state)
        return None if content is None else content.decode("utf-8-sig", errors="replace")

    def whole_call(self, call: ToolCall) -> tuple[EvidenceSpan, ...]:
        """The call, which is one of :attr:`calls`."""
        return tuple(
            self.span(turn, "call", item=place)
            for turn in self.turns
            for place, item in enumerate(turn.transcript)
            if item.tool_call is call
        )


@frozen
class Finding:
    """Passed or not, what was there, and the piece of it that proves it."""

    passed: bool
    found: str
    excerpt: str = ""
    assertable: bool = True
    evaluated: bool = True
    error: str | None = None
    error_kind: Literal["template"] | None = None
    score: float | None = None  # None: 1 if passed, else 0
    children: tuple[CheckResult, ...] = ()
    spans: tuple[EvidenceSpan, ...] = ()
    missing: Missing | None = None  # Texts that were looked for in vain


class CannotEvaluateError(Exception):
    """The check itself cannot be evaluated: neither it nor its negation passes."""


class NotAssertableError(Exception):
    """There is nothing to look at: the check fails, and so does its negation."""


# Comparing text as people mean it: one Unicode form, one kind of line end, case folded.

# With what stands before it, as accents are composed with their letter. In pieces, because the time
# that normalizing takes grows with the square of the length of a run of combining characters.
_NOT_ASCII = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]{1,1000}")


def plain(text: str, form: Literal["NFC", "NFKC"] = "NFC") -> str:
    r"""`text` in a normal form with ``\n`` line ends, so that equal-looking texts are equal."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        return text
    return _NOT_ASCII.sub(lambda piece: unicodedata.normalize(form, piece[0]), text)


# What has no shape of its own (Unicode's Default_Ignorable_Code_Point, and annotations): zero-width
# characters, directions, fillers, variation selectors, tags.
_SHAPELESS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
INVISIBLE = re.compile(f"[{_SHAPELESS}]+")
_SEEN = re.compile(rf"[^\s{_SHAPELESS}]")


def is_said(text: str) -> bool:
    """Whether there is anything to see in `text`."""
    return _SEEN.search(text) is not None


def first_difference(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def original_span(text: str, span: Span) -> Span:
    """A span of ``plain(text)`` as one of `text`: (0, 0), all of it, where the two differ."""
    return span if plain(text) == text else (0, 0)


# Excerpts and lists for people: short, on one line, harmless to a terminal.

_LONGEST = 300
_AROUND = 60
_START = 200

# Control characters become their pictures: a response must not steer the reader's terminal.
VISIBLE = {code: chr(0x2400 + code) for code in range(0x20)}
VISIBLE |= {0x0A: "⏎", 0x0D: "", 0x09: " ", 0x7F: "␡", **dict.fromkeys(range(0x80, 0xA0), "·")}


def one_line(text: str) -> str:
    """`text` with newlines shown as ⏎ and other control characters as pictures."""
    return text if text.isprintable() else text.translate(VISIBLE)


def around(text: str, span: Span) -> str:
    """The piece at `span` with some 60 characters on either side; 300 at most."""
    start, end = span
    left = max(0, start - _AROUND)
    right = min(len(text), max(end, start) + _AROUND, left + _LONGEST - 2)
    return "…" * bool(left) + one_line(text[left:right]) + "…" * (right < len(text))


def beginning(text: str, longest: int = _START) -> str:
    text = text.strip()
    return one_line(text[:longest]) + "…" * (len(text) > longest)


def quoted(text: str, longest: int = 80) -> str:
    return f'"{beginning(text, longest)}"'


def listed(items: Iterable[str], *, nothing: str = "none", longest: int = _LONGEST) -> str:
    """The items with commas between; what does not fit is counted."""
    shown, room = list(items), longest
    for count, item in enumerate(shown):
        room -= len(item) + 2
        if room < 0:
            return ", ".join([*shown[:count], f"and {len(shown) - count} more"])
    return ", ".join(shown) or nothing


def in_words(name: str, found: str) -> str:
    """A check and the first line of what it found, without what its name says already."""
    first = next(iter(found.strip().splitlines()), "")
    short = first.removesuffix(f" {name.partition(' ')[2]}").rstrip(": ")
    return f"{name}: {short or first}" if first else name
