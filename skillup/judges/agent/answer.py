"""The judge's answer: one JSON object of a fixed form, taken strictly or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skillup.judges.artifacts import JudgedPart, diff_lines, file_list
from skillup.judges.llm.evidence import ENOUGH
from skillup.judges.strict_json import DoubtfulJsonError, only_object
from skillup.schema.check_specs import Criterion
from skillup.schema.record import FileState

# The criteria as they are asked: each with an id, and the schema of an answer to all of them.


@dataclass(frozen=True, slots=True)
class AskedCriteria:
    """One criterion with the id by which the answer names it."""

    id: str
    criterion: Criterion


def numbered(criteria: Sequence[Criterion]) -> list[AskedCriteria]:
    """Criteria without an id, or with one that another has already, get ``criterion-N``."""
    asked: list[AskedCriteria] = []
    taken = {criterion.id for criterion in criteria}
    for number, criterion in enumerate(criteria, start=1):
        name = criterion.id
        if name is None or any(name == other.id for other in asked):
            name = f"criterion-{number}"
            while name in taken:
                name += "'"
        asked.append(AskedCriteria(name, criterion))
    return asked


def answer_schema(asked: Sequence[AskedCriteria]) -> dict[str, Any]:
    """The JSON Schema of an answer; every key is required, as strict modes of models want it."""
    verdict = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "enum": [item.id for item in asked]},
            "pass": {"type": "boolean"},
            "reason": {"type": "string"},
            "evidence": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id", "pass", "reason", "evidence"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"criteria": {"type": "array", "items": verdict}},
        "required": ["criteria"],
        "additionalProperties": False,
    }


_KEYS = {"id", "pass", "reason", "evidence"}


class MalformedAnswerError(Exception):
    """The answer has not the form that was asked for; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class AgentCriterionVerdict:
    """What the judge said of one criterion."""

    passed: bool
    reason: str
    evidence: tuple[str, ...] = ()


def read_answer(text: str, asked: Sequence[AskedCriteria]) -> dict[str, AgentCriterionVerdict]:
    """The verdicts by criterion id, from a message that is one JSON object, or ends with a block.

    Raises MalformedAnswerError unless it speaks of every criterion, each once, in the right form.
    """
    try:
        told = only_object(text)
    except DoubtfulJsonError as doubt:
        raise MalformedAnswerError(str(doubt)) from None
    given = told.get("criteria")
    if not isinstance(given, list):
        raise MalformedAnswerError("the answer has no list `criteria`")
    verdicts: dict[str, AgentCriterionVerdict] = {}
    known = [item.id for item in asked]
    for part in given:
        name, verdict = _verdict(part)
        if name not in known:
            raise MalformedAnswerError(f"the answer speaks of {name!r}, which was not asked")
        if name in verdicts:
            raise MalformedAnswerError(f"the answer speaks of {name!r} twice")
        verdicts[name] = verdict
    missing = [name for name in known if name not in verdicts]
    if missing:
        raise MalformedAnswerError(f"the answer says nothing of {', '.join(missing)}")
    return verdicts


def _verdict(part: Any) -> tuple[str, AgentCriterionVerdict]:
    if not isinstance(part, dict) or not isinstance(part.get("id"), str):
        raise MalformedAnswerError("an element of `criteria` has no `id`")
    name = part["id"]
    strange = [key for key in part if key not in _KEYS]
    if strange:
        raise MalformedAnswerError(f"{name!r} has the unknown key {strange[0]!r}")
    passed, reason, evidence = part.get("pass"), part.get("reason"), part.get("evidence", [])
    if not isinstance(passed, bool):
        raise MalformedAnswerError(f"`pass` of {name!r} is neither true nor false")
    if not isinstance(reason, str) or not reason.strip():
        raise MalformedAnswerError(f"{name!r} has no `reason`")
    if not isinstance(evidence, list) or not all(isinstance(quote, str) for quote in evidence):
        raise MalformedAnswerError(f"`evidence` of {name!r} is no list of texts")
    return name, AgentCriterionVerdict(
        passed, reason.strip(), tuple(q for q in evidence if q.strip())
    )


# Texts that are too long are shortened, and say so where something is missing.


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


# Whether a quotation is in what was judged: the transcript, the diff, a file or its name.

_TEXT_BYTES = 4 << 20


class Quotations:
    """Looks for quotations; spaces, newlines and case do not count. Texts are read when needed."""

    def __init__(
        self,
        subject: JudgedPart,
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
    subject: JudgedPart, read_file: Callable[[FileState], bytes | None]
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
