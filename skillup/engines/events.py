"""What a CLI reports: a turn's items in order, foreign JSON, failures and what to do about them."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from skillup.dataclass import frozen
from skillup.engines.base import Progress
from skillup.gateway.meter import ModelExchange
from skillup.schema.checks import ToolKind
from skillup.schema.record import ErrorKind, ToolCall, ToolResult, TranscriptItem, Usage

_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hour": 3600, "day": 86400}
_DURATION = re.compile(r"(?i)(\d{1,9}(?:\.\d{1,9})?)\s*+(ms|sec|s|min|m|hour|h|day)[a-z]*")
_TRY_AGAIN = re.compile(
    r"(?:try again|retry|wait)\s+(?:in|after|for)\s+((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_HEADER = re.compile(r"retry[-_]after[\"']?\s*[:=]\s*[\"']?(\d+(?:\.\d+)?)\b", re.IGNORECASE)

_STATUS: dict[int, ErrorKind] = {
    401: "auth",
    403: "auth",
    402: "quota",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}


@frozen
class Failure:
    """What a parser found out: a kind, and the engine's own words for it."""

    kind: ErrorKind
    text: str


KindsByText = Mapping[ErrorKind, Sequence[str]]  # Parts of a CLI's messages, by their kind


def kinds_by_text(file: Path) -> KindsByText:
    """Of a file with a line ``kind: text`` for each text; of two kinds the first one counts."""
    kinds: dict[Any, tuple[str, ...]] = {}
    for line in file.read_text("utf-8").splitlines():
        kind, _, text = line.partition(": ")
        kinds[kind] = (*kinds.get(kind, ()), text)
    return kinds


_ADVICE = kinds_by_text(Path(__file__).with_name("advice.txt"))
ADVICE = {kind: text for kind, (text,) in _ADVICE.items()}


def kind_of_text(text: str, kinds: KindsByText) -> ErrorKind | None:
    """The kind of the first of the parts that is in the text; a number is no part of an id."""
    plain = text.replace("’", "'")  # CLIs write typographic ones, too

    def has(part: str) -> bool:
        return part in plain and not (part.isdecimal() and not re.search(rf"\b{part}\b", plain))

    return next((kind for kind, parts in kinds.items() if any(map(has, parts))), None)


def kind_of_status(status: int) -> ErrorKind:
    """The kind of an HTTP status of the model's server."""
    return _STATUS.get(status, "model_error")


def failure_of_model(last: ModelExchange, otherwise: str = "") -> Failure:
    """By the model's `last` answer; `otherwise`: what the agent says of it."""
    kind, what = kind_of_status(last.status or 0), f"answered with status {last.status}"
    if last.broken or last.status is None:
        kind, what = "network", "did not answer to the end"
    return Failure(kind, ": ".join(filter(None, (f"its model {what}", last.said or otherwise))))


def parse_retry_after(message: str) -> float | None:
    """How many seconds a provider's error asks to wait for; None: it does not say."""
    found = _TRY_AGAIN.search(message)
    parts = _DURATION.findall(found[1]) if found else []
    if parts:
        return sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)
    header = _HEADER.search(message)
    return float(header[1]) if header else None


def shortened(text: str, limit: int = 4000) -> str:
    """The beginning and the end of a text that is too long."""
    text = text.strip()
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"


Status = Literal["success", "error", "unknown"]

_CONTENT_CHARACTERS = 1 << 20
_UNKNOWN_CHARACTERS = 500
_UNKNOWN_KEPT = 1000  # a flood of them would fill the memory; the raw stream has them all
_DEEPEST = 100  # deeper data could be read, but not written into a record
_LARGEST_COUNT = 1 << 53
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def words(text: str) -> frozenset[str]:
    """The words of a text: long lists of names, without the quotes."""
    return frozenset(text.split())


class Transcript:
    """Collects a turn's items. Nothing it is given makes it raise."""

    def __init__(self, progress: Progress = lambda _: None) -> None:
        self.items: list[TranscriptItem] = []
        self.notices: list[str] = []
        self.unknown_events = 0
        self.unread_lines = 0
        self._progress = progress
        # It may also get each item of the transcript as it comes.
        self._watch: Callable[[TranscriptItem], None] | None = getattr(progress, "item", None)

    def add(self, item: TranscriptItem) -> None:
        self.items.append(item)
        if self._watch is not None:
            self._watch(item)

    def message(self, text: str, agent: str | None = None) -> None:
        """What the agent, or a sub-agent, answers."""
        if text:
            self.add(TranscriptItem(type="message", text=text, agent=agent))
            self._progress("writes")

    def reasoning(self, text: str, agent: str | None = None) -> None:
        if text:
            self.add(TranscriptItem(type="reasoning", text=text, agent=agent))
            self._progress("thinks")

    def call(
        self,
        call_id: str,
        name: str,
        kind: ToolKind,
        arguments: Mapping[str, Any],
        agent: str | None = None,
    ) -> None:
        call = ToolCall(id=call_id, name=name, kind=kind, arguments=dict(arguments))
        self.add(TranscriptItem(type="tool_call", tool_call=call, agent=agent))
        first = next((value for value in arguments.values() if isinstance(value, str)), "")
        self._progress(f"{name} {' '.join(first.split())[:60]}".rstrip())

    def result(self, call_id: str, status: Status, content: str, agent: str | None = None) -> None:
        """What a tool gave back; a very long content is cut."""
        if len(content) > _CONTENT_CHARACTERS:
            left_out = len(content) - _CONTENT_CHARACTERS
            content = f"{content[:_CONTENT_CHARACTERS]}\n… {left_out} characters left out …"
        result = ToolResult(call_id=call_id, status=status, content=content)
        self.add(TranscriptItem(type="tool_result", tool_result=result, agent=agent))

    def notice(self, text: str, agent: str | None = None) -> None:
        """A warning that is no failure, once."""
        if text and text not in self.notices:
            self.notices.append(text)
            self.add(TranscriptItem(type="notice", text=text, agent=agent))

    def question(self, text: str, options: list[str], answer: list[str] | None, why: str) -> None:
        """What the agent asked, and what was answered, or why nothing was."""
        question = {"options": options, "answer": answer}
        item = {"type": "question", "text": text, "question": question}
        self.add(TranscriptItem.model_validate(item))
        if answer is None:
            self.notices.append(f"the agent asked, and {why}: {text}")

    def unknown(self, event: Any) -> None:
        """An event that we do not understand: counted, and kept in short.

        A text is a line that is no JSON; one with a brace may be an event that got cut or mixed up.
        """
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        if isinstance(event, str) and ("{" in text or "}" in text):
            self.unread_lines += 1
        else:
            self.unknown_events += 1
        if self.unknown_events + self.unread_lines <= _UNKNOWN_KEPT:
            text = f"unknown event: {text[:_UNKNOWN_CHARACTERS]}"
            self.add(TranscriptItem(type="notice", text=text))


def loaded_skills(names: Iterable[str], installed: Collection[str]) -> list[TranscriptItem]:
    """Those that the prompt itself loaded: no event shows it."""
    transcript = Transcript()
    for name in names:
        if name in installed:
            transcript.call("prompt#skill", "Skill", "skill", {"skill": name})
            transcript.result("prompt#skill", "success", "")
    return transcript.items


_decode = json.JSONDecoder(parse_constant=str).decode


def read_event(line: bytes) -> dict[str, Any] | str | None:
    """The JSON object of a line; its text if it is none; None if it is blank."""
    if not line.strip():
        return None
    try:
        # NaN and Infinity are no JSON, and could not be written as such again.
        event = _decode(line.decode(json.detect_encoding(line), "surrogatepass"))
        if _ESCAPED_SURROGATE.search(line):
            event = _whole_characters(event)
        if line.count(b"{") + line.count(b"[") > _DEEPEST and _depth(event) > _DEEPEST:
            event = None
    except (ValueError, RecursionError):
        event = None
    return event if isinstance(event, dict) else line.decode(errors="replace")


def _whole_characters(value: Any) -> Any:
    """Half of a character cannot be written as UTF-8; agents cut texts in such places."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return list(map(_whole_characters, value))
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(one) for key, one in value.items()}
    return value


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, dict | list) else 0


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """The value if it is a text; "" for nothing; else its JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def as_amount(value: Any) -> float | None:
    """The value if it is a finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _LARGEST_COUNT else None


def counts(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, int]:
    """The counts that are there, under our `names`: theirs are the values."""
    found = {ours: as_amount(given.get(theirs)) for ours, theirs in names.items()}
    return {name: int(n) for name, n in found.items() if n is not None and n.is_integer()}


def content_text(content: Any) -> str:
    """The text of a message's or a tool result's content: a text, or a list of blocks."""
    if not isinstance(content, list):
        return as_text(content)
    parts = []
    for block in content:
        if isinstance(block, dict) and not isinstance(block.get("text"), str):
            parts.append(f"[{as_text(block.get('type')) or 'block'}]")
        else:
            parts.append(block["text"] if isinstance(block, dict) else as_text(block))
    return "\n".join(parts)


class EventParser(Transcript, ABC):
    """A turn, read from its event stream. Pure: no files, no clock, never raises."""

    def __init__(self, progress: Progress = lambda _: None) -> None:
        super().__init__(progress)
        self.session_id: str | None = None
        self.model: str | None = None
        self.version: str | None = None
        self.usage: Usage | None = None
        self.cost_usd: float | None = None
        self.response = ""
        self.finished = False  # The event that ends a turn has come
        self.closed = False  # So it has, or one of a failed turn, and nothing of another turn after
        self.outgoing = b""  # What the process is to read next
        self._failure: Failure | None = None
        self._parts: list[str] = []  # Of a message or thought that may go on
        self._part_of: object = None

    @property
    def failure(self) -> Failure | None:
        """What the events say went wrong."""
        return self._failure

    @property
    def is_settled(self) -> bool:
        """Whether the turn went well and is over: a live process may stay for the next."""
        return self.finished and self.closed and self.failure is None

    def farewell(self) -> bytes:
        """What a live process is told before it is ended in the middle of its turn."""
        return b""

    def asking(self, message: str) -> Self:
        """The parser of a process that reads the message as it is, to its end."""
        self.outgoing = message.encode("utf-8", "replace")
        return self

    def feed(self, line: bytes) -> None:
        """Takes the next line, without its newline."""
        event = read_event(line)
        if isinstance(event, dict):
            self.take(event)
        elif event is not None:
            self.unknown(event)

    def part(self, text: str, of: object, add: Callable[[str], None]) -> None:
        """A part of a message or thought, `of` which; `add` gets that when it is whole."""
        if of != self._part_of:
            self.end()
        self._parts.append(text)
        self._part_of, self._add_whole = of, add

    def end(self) -> None:
        """No more lines come, or no more parts of a message."""
        parts, self._parts, self._part_of = self._parts, [], None
        if parts:
            self._add_whole("".join(parts))

    @abstractmethod
    def take(self, event: dict[str, Any]) -> None:
        """Takes the next event."""
