"""What an agent asks its user in the middle of a turn, and what the case answers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillup.dataclass import frozen
from skillup.engines.events import Transcript, as_dict, as_list, as_text
from skillup.schema.base import compiled_pattern
from skillup.schema.case import UserAnswer

_NOBODY = "nobody was there to answer"
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}
_READ: Mapping[Any, Callable[[str], Any]] = {
    "boolean": _TRUTHS.__getitem__,
    "integer": int,
    "number": float,
}


@frozen
class FormField:
    """One question."""

    key: str
    text: str
    schema: Mapping[str, Any]  # What an answer has to be, as in forms of MCP's
    needed: bool = False
    other: str = ""  # The key for an answer that is none of the options; "": there must be none


def of_form(message: Any, form: Any) -> list[FormField]:
    """What a form asks; one without fields only whether one agrees."""
    found, required = list[FormField](), as_list(as_dict(form).get("required"))
    fields = {k: as_dict(field) for k, field in as_dict(as_dict(form).get("properties")).items()}
    for key, field in fields.items():
        texts = map(as_text, (message, field.get("title"), field.get("description")))
        text = "\n".join(dict.fromkeys(filter(None, texts)))
        # Claude's agent has a second one for each with options, for what is none of them.
        if not (key.endswith("_custom") and key.removesuffix("_custom") in fields):
            other = f"{key}_custom" if f"{key}_custom" in fields else ""
            found.append(FormField(key, text, field, key in required, other))
    return found or [FormField("", as_text(message), {"type": "boolean"}, needed=True)]


def of_questions(questions: Any, key: str | None) -> list[FormField]:
    """Questions with options, as agents have them by a tool of their own; others may be answered.

    `key` names what an answer goes under; None: it is the question's place.
    """
    found = []
    for place, one in enumerate(map(as_dict, as_list(questions))):
        labels = [{"const": as_dict(each).get("label")} for each in as_list(one.get("options"))]
        schema: dict[str, Any] = {"oneOf": labels}
        schema = {"type": "array", "items": schema} if one.get("multiSelect") else schema
        own = str(place) if key is None else as_text(one.get(key))
        found.append(FormField(own, as_text(one.get("question")), schema, other=own))
    return found


def answered(
    transcript: Transcript, asked: Sequence[FormField], answers: Sequence[UserAnswer]
) -> dict[str, Any] | None:
    """The answers by their keys; None: all of it is declined. Both are in the transcript."""
    results = [(one, *_answer_to(one, answers)) for one in asked]
    declined = any(why and (why != _NOBODY or one.needed) for one, _, _, why in results)
    for one, _, value, why in results:
        answer = None if why or declined else texts_of(value)
        why = why or "another of its questions could not be answered"
        transcript.question(one.text, [title for _, title in _options(one.schema)], answer, why)
    return {key: value for _, key, value, why in results if not (why or declined)} or None


def reply_to_form(
    transcript: Transcript, params: Mapping[str, Any], answers: Sequence[UserAnswer]
) -> dict[str, Any]:
    """The result of an elicitation of MCP's or ACP's. An address is never opened."""
    asked = of_form(params.get("message"), params.get("requestedSchema"))
    content = answered(transcript, asked, answers if params.get("mode") != "url" else ())
    if content is None or content.pop("", True) is False:
        return {"action": "decline"}
    return {"action": "accept", "content": content}


def texts_of(value: Any) -> list[str]:
    """What was answered, a text for each choice."""
    return list(map(as_text, value if isinstance(value, list) else [value]))


def joined(value: Any, quote: Callable[[str], str] = str) -> str:
    """Several answers as one text."""
    return ", ".join(map(quote, value)) if isinstance(value, list) else as_text(value)


def _answer_to(one: FormField, answers: Sequence[UserAnswer]) -> tuple[str, Any, str]:
    """The key and the value, or why there is none."""
    try:
        for answer in answers:
            pattern = compiled_pattern(answer.question or "", False)
            if pattern.search(one.text, timeout=0.5):
                return *_fitting(one, answer.answer), ""
    except TimeoutError:
        return "", None, "a pattern of the case's took too long"
    except ValueError as trouble:
        return "", None, f"the case's answer does not fit ({trouble})"
    return "", None, _NOBODY


def _options(schema: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """The values that can be chosen, and how they are shown."""
    schema = as_dict(schema.get("items")) or schema
    shown = [as_dict(one) for one in as_list(schema.get("oneOf") or schema.get("anyOf"))]
    pairs = [(one.get("const"), one.get("title") or one.get("const")) for one in shown]
    values = as_list(schema.get("enum"))
    pairs += zip(values, as_list(schema.get("enumNames")) or values, strict=False)
    return [(value, as_text(title)) for value, title in pairs]


def _fitting(one: FormField, given: Sequence[str]) -> tuple[str, Any]:
    """The key and the value of an answer. Raises ValueError: why it is none."""
    schema, options, many = one.schema, _options(one.schema), one.schema.get("type") == "array"
    if len(given) > 1 and not many:
        raise ValueError(f"it takes one, not {len(given)}")
    names = {as_text(name).casefold(): pair[0] for pair in options for name in pair}
    wrong = [text for text in given if options and text.casefold() not in names]
    if wrong and not one.other:
        raise ValueError(f"{wrong[0]!r} is none of {', '.join(title for _, title in options)}")
    if wrong:
        many, key = many and one.other == one.key, one.other
        return key, [*given] if many else joined([*given])
    values = [names[text.casefold()] if options else _read(text, schema) for text in given]
    value = values if many else values[0]
    size = len(value) if isinstance(value, str | list) else value
    for name, limit in schema.items():
        sign = {"min": 1, "max": -1}.get(name[:3], 0)
        if isinstance(limit, int | float) and sign * (size - limit) < 0:
            raise ValueError(f"{value!r} does not keep to {name}, {limit}")
    return one.key, value


def _read(text: str, schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    try:
        return _READ[kind](text.casefold()) if kind in _READ else text
    except (KeyError, ValueError):
        raise ValueError(f"{text!r} is no {kind}") from None
