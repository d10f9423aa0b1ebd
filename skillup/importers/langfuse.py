"""Langfuse dataset items: a message, what is expected, and the conversation before it."""

from __future__ import annotations

from typing import Any

from skillup.errors import InvalidFilesError, Problem
from skillup.importers.draft import CaseDraft, SuiteDraft, TurnDraft
from skillup.importers.messages import is_messages, read_messages
from skillup.importers.promptfoo.values import SourceValue, as_text
from skillup.importers.source import SourceFile

_ORIGIN = "left out: it says where the item came from"
EXPLANATIONS = {
    "createdAt": _ORIGIN,
    "updatedAt": _ORIGIN,
    "datasetId": _ORIGIN,
    "sourceTraceId": _ORIGIN,
    "sourceObservationId": _ORIGIN,
    "created_at": _ORIGIN,
    "updated_at": _ORIGIN,
    "dataset_id": _ORIGIN,
    "source_trace_id": _ORIGIN,
    "source_observation_id": _ORIGIN,
    "meta": "left out: it counts pages",
}
_SAID = ("query", "question", "prompt", "message", "user_input", "input", "text", "content")
_EXPECTED = ("response", "answer", "output", "expected", "text", "content")
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant",
          "bot": "assistant", "model": "assistant"}  # fmt: skip


def convert(sources: list[SourceFile]) -> SuiteDraft:
    """The dataset in `sources`: a list of items, an export of the API, or a line for each item."""
    draft = SuiteDraft(sources[0].path.stem)
    problems: list[Problem] = []
    for node in [item for source in sources for item in _items(SourceValue.top(source))]:
        status = node.get("status")
        if status is not None and status.text().upper() == "ARCHIVED":
            node.note("an archived item", "left out")
            continue
        name = node.get("datasetName", "dataset_name")
        if name is not None and draft.name in (sources[0].path.stem, name.value):
            draft.name = name.text()
        try:
            draft.cases.append(_case(node, len(draft.cases) + 1))
        except InvalidFilesError as error:
            problems.extend(error.problems)
    if problems:
        raise InvalidFilesError(problems)
    return draft


def _items(top: SourceValue) -> list[SourceValue]:
    listed = top.get("items", "data") if isinstance(top.value, dict) else None
    return listed.elements() if listed is not None else top.elements()


def _case(node: SourceValue, number: int) -> CaseDraft:
    given = node.get("input")
    if given is None:
        raise node.refuse("an item without `input`", "add it")
    label = node.get("id")
    case = CaseDraft(node, label.text() if label is not None else f"item-{number}", [])
    said = _said(given, case)
    if not said.strip():
        raise given.refuse("there is no user message", f"it is looked for in {', '.join(_SAID)}")
    turn = TurnDraft(said)
    case.turns.append(turn)
    expected = node.get("expected_output", "expectedOutput")
    if expected is not None:
        turn.expected_output = _expected(expected)
    metadata = node.get("metadata")
    if metadata is not None and isinstance(metadata.value, dict):
        _metadata(metadata, case)
    return case


def _said(node: SourceValue, case: CaseDraft) -> str:
    value = node.value
    if isinstance(value, dict) and not is_messages(value):
        for key in ("messages", "history", "chat_history"):
            if is_messages(value.get(key)):
                inner = node.get(key)
                earlier = _said(inner, case) if inner is not None else ""
                if not any(name in value for name in _SAID):
                    return earlier
                # The message stands beside the list: all of the list came before it.
                case.history = _history(inner, None) if inner is not None else []
        system = node.get("system", "system_prompt")
        if system is not None:
            case.system = system.text()
        said = node.get(*_SAID)
        if said is not None:
            return _said(said, case) if isinstance(said.value, dict | list) else said.message()
        return ""
    if is_messages(value):
        spoken = read_messages(node.raw(), node, case.placed)
        case.system = spoken.system or case.system
        case.history = spoken.history
        return spoken.prompt
    return node.message()


def _expected(node: SourceValue) -> str:
    if isinstance(node.value, dict):
        inner = node.get(*_EXPECTED)
        if inner is not None:
            return inner.text()
    if is_messages(node.value):
        return "\n\n".join(
            as_text(item.get("content")) for item in _listed(node.take()) if isinstance(item, dict)
        )
    return node.text()


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _metadata(node: SourceValue, case: CaseDraft) -> None:
    history = node.get("history", "chat_history", "conversation_history", "messages")
    before = node.get("message_index")
    if history is not None:
        limit = before.number() if before is not None else None
        case.history = _history(history, limit)
    for key in ("tags", "tag"):
        if (tags := node.get(key)) is not None:
            case.tags.extend(tags.texts())
    if (title := node.get("title", "name")) is not None:
        case.title = title.text()
    if (described := node.get("description")) is not None:
        case.description = described.text()
    if (system := node.get("system_prompt", "system")) is not None:
        case.system = system.text()


def _history(node: SourceValue, before: float | None) -> list[dict[str, Any]]:
    """The messages as they are listed, or, as pairs of a question and an answer, one by one."""
    messages: list[dict[str, Any]] = []
    for item in node.elements():
        if isinstance(item.value, list):
            said = zip(("user", "assistant"), item.texts(), strict=False)
            messages.extend({"role": role, "content": text} for role, text in said)
            continue
        index = item.get("message_index", "index")
        number = index.number() if index is not None else None
        if before is not None and number is not None and number >= before:
            item.note("it is the message under test, or comes after it", "left out")
            continue
        for message in _message(item):
            placed = {"message_index": int(number)} if number is not None else {}
            messages.append({**message, **placed})
    return messages


def _message(item: SourceValue) -> list[dict[str, Any]]:
    role = item.get("role", "type", "sender")
    content = item.get("content", "text", "message")
    if role is not None and content is not None:
        who = _ROLES.get(role.text().casefold())
        if who is None:
            item.note(f"a message of the role `{role.text()}`", "left out")
            return []
        text = content.value if isinstance(content.value, str) else None
        if text is None and isinstance(content.value, list):
            parts = [part.get("text") for part in content.elements()]
            text = "\n\n".join(part.text() for part in parts if part is not None)
        content.use()
        return [{"role": who, "content": as_text(content.value) if text is None else text}]
    asked = item.get("query", "question", "user", "human", "input")
    answered = item.get("response", "answer", "assistant", "ai", "output")
    if asked is None and answered is None:
        item.note("not a message", "left out")
    pairs = (("user", asked), ("assistant", answered))
    return [{"role": who, "content": n.text()} for who, n in pairs if n is not None]
