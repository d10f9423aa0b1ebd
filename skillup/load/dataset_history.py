"""The messages of a dataset item in the wire forms that are found, as a case's `input.history`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_ROLES = {
    "user": "user", "human": "user", "customer": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
    "agent": "assistant", "tool": "tool", "function": "tool",
}  # fmt: skip
_ASKED = ("query", "question", "user", "human", "input")
_ANSWERED = ("response", "answer", "assistant", "ai", "output")


class NotAnItemError(Exception):
    """A value that no case can be made of: what is wrong with it, and what would be right."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Said:
    """What an item's `input` holds."""

    query: str
    history: list[dict[str, Any]] = field(default_factory=list)
    system: str | None = None
    apart: bool = False
    """The query stands beside the history, which may hold it again."""

    @classmethod
    def of_messages(cls, messages: list[dict[str, Any]], system: str | None) -> Said:
        """The last user message is the one under test; what stands before it is history."""
        for place in range(len(messages) - 1, -1, -1):
            if messages[place]["role"] == "user":
                return cls(messages[place]["content"], messages[:place], system)
        return cls("", messages, system)


def messages_of(value: Any) -> list[dict[str, Any]]:
    """Messages with a role, or pairs of a question and an answer; what is neither is passed over.

    Raises NotAnItemError for what is no list.
    """
    if not isinstance(value, list):
        raise NotAnItemError("the history is not a list", "write a list of {role, content}")
    return [message for entry in value for message in _messages(entry)]


def place_of(messages: list[dict[str, Any]], query: str, expected: str | None) -> int | None:
    """The `message_index` of the message under test among those before it; None: it is not there.

    Recorded histories often go on to its answer, or to the conversation's end. It is the last user
    message if that says the same, or the last one with the expected answer right behind it; a short
    message that was said in another place, too, is none.
    """
    last = True
    for place in range(len(messages) - 1, -1, -1):
        if messages[place]["role"] != "user":
            continue
        answer = next((m for m in messages[place + 1 :] if m["role"] != "tool"), None)
        answered = expected is not None and answer is not None and _same(answer, expected)
        if _same(messages[place], query) and (last or answered):
            index: int = messages[place].get("message_index", place)
            return index
        last = False
    return None


def _same(message: dict[str, Any], text: str) -> bool:
    return " ".join(message["content"].split()) == " ".join(text.split())


def _messages(entry: Any) -> Iterator[dict[str, Any]]:
    if isinstance(entry, list):
        pairs = zip(("user", "assistant"), entry, strict=False)
        yield from ({"role": role, "content": text} for role, text in pairs if _is_text(text))
        return
    if not isinstance(entry, dict):
        return
    index = entry.get("message_index", entry.get("index"))
    placed = {"message_index": index} if isinstance(index, int) else {}
    who = entry.get("role", entry.get("type", entry.get("sender")))
    role = _ROLES.get(str(who).casefold()) if who is not None else None
    if role is not None:
        yield {**_message(role, entry), **placed}
        return
    for kind, names in (("user", _ASKED), ("assistant", _ANSWERED)):
        text = next((entry[name] for name in names if _is_text(entry.get(name))), None)
        if text is not None:
            yield {"role": kind, "content": text, **placed}


def _message(role: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    content = _text(entry.get("content", entry.get("text", entry.get("message"))))
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "tool":
        call_id = entry.get("tool_call_id", entry.get("call_id"))
        return {**message, "call_id": str(call_id)} if call_id else message
    calls = entry.get("tool_calls")
    if role == "assistant" and isinstance(calls, list):
        made = [_call(call) for call in calls if isinstance(call, dict)]
        message["tool_calls"] = [call for call in made if call is not None]
    return message


def _call(call: Mapping[str, Any]) -> dict[str, Any] | None:
    """A call as OpenAI's chat API writes it, or as a case does."""
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    name, arguments = inner.get("name"), inner.get("arguments", inner.get("input", {}))
    if not _is_text(name):
        return None
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {"input": arguments}
    kept = arguments if isinstance(arguments, dict) else {"input": arguments}
    made = {"name": name, "arguments": kept}
    return {"id": str(call["id"]), **made} if call.get("id") else made


def _text(content: Any) -> str:
    """A text; of a list of blocks, the texts among them."""
    if isinstance(content, list):
        texts = [b.get("text") if isinstance(b, dict) else b for b in content]
        return "\n\n".join(text for text in texts if isinstance(text, str))
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
