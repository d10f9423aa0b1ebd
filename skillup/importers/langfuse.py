"""Langfuse dataset items: a message, what is expected, and the conversation before it."""

from __future__ import annotations

from typing import Any

from skillup.errors import InvalidFilesError, Problem
from skillup.importers.messages import ROLES, is_messages, read_messages
from skillup.importers.source import SourceFile
from skillup.importers.values import SourceValue, as_text
from skillup.importers.write import CaseDraft, SuiteDraft

_ORIGINS = (
    "createdAt", "updatedAt", "datasetId", "sourceTraceId", "sourceObservationId", "created_at",
    "updated_at", "dataset_id", "source_trace_id", "source_observation_id",
)  # fmt: skip
EXPLANATIONS = {
    **dict.fromkeys(_ORIGINS, "left out: it says where the item came from"),
    "meta": "left out: it counts pages",
}
_MESSAGE = ("query", "question", "prompt", "message", "user_input", "input", "text", "content")
_EXPECTED = ("response", "answer", "output", "expected", "text", "content")
_HISTORY = ("history", "chat_history", "conversation_history", "messages")


def convert(sources: list[SourceFile]) -> SuiteDraft:
    """The dataset in `sources`: a list of items, an export of the API, or a line for each item."""
    draft = SuiteDraft("")
    problems: list[Problem] = []
    tops = [SourceValue.top(source) for source in sources]
    for node in [item for top in tops for item in (top.get("items", "data") or top).elements()]:
        if node.get("status").text().upper() == "ARCHIVED":
            node.drop("an archived item")
            continue
        draft.name = node.get("datasetName", "dataset_name").text() or draft.name
        try:
            draft.cases.append(_case(node, len(draft.cases) + 1))
        except InvalidFilesError as error:
            problems.extend(error.problems)
    if problems:
        raise InvalidFilesError(problems)
    draft.name = draft.name or sources[0].path.stem
    return draft


def _case(node: SourceValue, number: int) -> CaseDraft:
    given, metadata = node.get("input"), node.get("metadata")
    if not given:
        raise node.refuse("an item without `input`", "add it")
    case = CaseDraft(node, node.get("id").text() or f"item-{number}")
    prompt = _message_under_test(given, case)
    if not prompt.strip():
        fix = f"it is looked for in {', '.join(_MESSAGE)}"
        raise given.refuse("there is no user message", fix)
    expected = _expected(node.get("expected_output", "expectedOutput"))
    case.turns.append({"content": prompt, "expected_output": expected})
    if history := metadata.get(*_HISTORY):
        case.history = _history(history, metadata.get("message_index").number())
    case.tags = [*metadata.get("tags").texts(), *metadata.get("tag").texts()]
    case.title = metadata.get("title", "name").text()
    case.description = metadata.get("description").text()
    case.system = metadata.get("system_prompt", "system").text() or case.system
    return case


def _message_under_test(node: SourceValue, case: CaseDraft) -> str:
    if is_messages(node.value):
        found = read_messages(node.raw(), node, case.placed)
        case.system, case.history = found.system or case.system, found.history
        return found.prompt
    if not isinstance(node.value, dict):
        return node.message()
    earlier, message = node.get("messages", "history", "chat_history"), node.get(*_MESSAGE)
    case.system = node.get("system", "system_prompt").text()
    if message:
        # The message stands beside the list: all of the list came before it.
        case.history = _history(earlier, None)
        structured = isinstance(message.value, dict | list)
        return _message_under_test(message, case) if structured else message.message()
    return _message_under_test(earlier, case) if is_messages(earlier.value) else ""


def _expected(node: SourceValue) -> str:
    if is_messages(node.value):
        value = node.take()
        listed = value if isinstance(value, list) else [value]
        return "\n\n".join(as_text(item.get("content")) for item in listed)
    return (node.get(*_EXPECTED) or node).text()


def _history(node: SourceValue, before: float | None) -> list[dict[str, Any]]:
    """The messages as they are listed, or, as pairs of a question and an answer, one by one."""
    messages: list[dict[str, Any]] = []
    for item in node.elements():
        number = item.get("message_index", "index").number()
        if before is not None and number is not None and number >= before:
            item.drop("it is the message under test, or comes after it")
            continue
        index = {"message_index": int(number)} if number is not None else {}
        messages.extend({"role": r, "content": text, **index} for r, text in _messages(item))
    return messages


def _messages(item: SourceValue) -> list[tuple[str, str]]:
    if isinstance(item.value, list):
        return list(zip(("user", "assistant"), item.texts(), strict=False))
    role, content = item.get("role", "type", "sender"), item.get("content", "text", "message")
    if role and content:
        who = ROLES.get(role.text().casefold())
        if who not in ("user", "assistant"):
            item.drop(f"a message of the role `{role.text()}`")
            return []
        parts = content.elements() if isinstance(content.value, list) else [content]
        return [(who, "\n\n".join((part.get("text") or part).text() for part in parts))]
    asked = item.get("query", "question", "user", "human", "input")
    answered = item.get("response", "answer", "assistant", "ai", "output")
    if not asked and not answered:
        item.drop("not a message")
    pairs = (("user", asked), ("assistant", answered))
    return [(who, value.text()) for who, value in pairs if value]
