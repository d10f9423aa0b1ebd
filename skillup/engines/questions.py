"""What an agent asks its user in the middle of a turn, and what the case answers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from skillup.engines.events import Transcript, as_dict, as_list, as_text
from skillup.frozen import frozen
from skillup.schema.base import compiled_pattern
from skillup.schema.case import UserAnswer

_SEARCH_SECONDS = 0.5
NOBODY = "nobody was there to answer"
_TRUTHS = {"true": True, "yes": True, "y": True, "false": False, "no": False, "n": False}
_MANY = "array"


@frozen
class FormField:
    """One question: a field of a form, say."""

    key: str
    text: str
    schema: Mapping[str, Any]  # What an answer has to be: JSON Schema of MCP's elicitations
    needed: bool = False
    other: str = ""  # The key for an answer that is none of the options; "": there must be none


def of_form(message: Any, form: Any) -> list[FormField]:
    """What a form asks; one without fields only whether one agrees."""
    found, form = list[FormField](), as_dict(form)
    fields = {key: as_dict(field) for key, field in as_dict(form.get("properties")).items()}
    for key, field in fields.items():
        texts = (message, field.get("title"), field.get("description"))
        text = "\n".join(dict.fromkeys(filter(None, map(as_text, texts))))
        # Claude's agent has a second one for each with options, for what is none of them.
        if not (key.endswith("_custom") and key.removesuffix("_custom") in fields):
            other = f"{key}_custom" if f"{key}_custom" in fields else ""
            needed = key in as_list(form.get("required"))
            found.append(FormField(key, text, field, needed, other))
    return found or [FormField("", as_text(message), {"type": "boolean"}, needed=True)]


def of_questions(questions: Any, key: str | None) -> list[FormField]:
    """Questions with options (`label`), as agents have them by a tool of their own.

    `key` names what the answer goes under; None: it is the question's place.
    """
    found = []
    for place, one in enumerate(map(as_dict, as_list(questions))):
        labels = [{"const": as_dict(each).get("label")} for each in as_list(one.get("options"))]
        schema: dict[str, Any] = {"oneOf": labels} if labels else {}
        if one.get("multiSelect"):
            schema = {"type": _MANY, "items": schema}
        own = str(place) if key is None else as_text(one.get(key))
        found.append(FormField(own, as_text(one.get("question")), schema, other=own))
    return found


def answered(
    transcript: Transcript, asked: Sequence[FormField], answers: Sequence[UserAnswer]
) -> dict[str, Any] | None:
    """The answers by their keys; None: all of it is declined. Both are in the transcript."""
    content: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for one in asked:
        try:
            given = next((list(a.answer) for a in answers if _is_for(one.text, a)), None)
            if given is not None:
                key, value = _fitting(one, given)
                content[key] = value
            elif one.needed:
                problems[one.key] = NOBODY
        except ValueError as trouble:
            problems[one.key] = f"the case's answer does not fit ({trouble})"
    for one in asked:
        value = content.get(one.key, content.get(one.other)) if not problems else None
        answer = None if value is None else texts_of(value)
        elsewhere = "another of its questions could not be answered" if problems else NOBODY
        why = problems.get(one.key, elsewhere if one.key in content else NOBODY)
        transcript.question(one.text, [title for _, title in _options(one.schema)], answer, why)
    return content if content and not problems else None


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


def _is_for(text: str, answer: UserAnswer) -> bool:
    if answer.question is None:
        return True
    try:
        found = compiled_pattern(answer.question, False).search(text, timeout=_SEARCH_SECONDS)
    except TimeoutError:
        raise ValueError(f"/{answer.question}/ took too long") from None
    return found is not None


def _options(schema: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """The values that can be chosen, and how they are shown."""
    schema = as_dict(schema.get("items")) or schema
    shown = [as_dict(one) for one in as_list(schema.get("oneOf") or schema.get("anyOf"))]
    pairs = [(one.get("const"), one.get("title") or one.get("const")) for one in shown]
    values, titles = as_list(schema.get("enum")), as_list(schema.get("enumNames"))
    pairs += [(v, titles[n] if n < len(titles) else v) for n, v in enumerate(values)]
    return [(value, as_text(title)) for value, title in pairs]


def _fitting(one: FormField, given: list[str]) -> tuple[str, Any]:
    """The key and the value of an answer. Raises ValueError: why it is none."""
    schema, options = one.schema, _options(one.schema)
    many = schema.get("type") == _MANY
    if len(given) > 1 and not many:
        raise ValueError(f"it takes one, not {len(given)}")
    chosen: list[Any] = []
    if options:
        by_name = {as_text(value).casefold(): value for value, _ in options}
        by_name |= {title.casefold(): value for value, title in options}
        chosen = [by_name.get(text.casefold()) for text in given]
        if None in chosen and not one.other:
            wrong = given[chosen.index(None)]
            raise ValueError(f"{wrong!r} is none of {', '.join(title for _, title in options)}")
        if None in chosen:
            return one.other, joined(given) if one.other != one.key or not many else given
    values = chosen if options else [_typed(text, schema) for text in given]
    for value in [values] if many else values:
        for problem in _beyond(value, schema):
            raise ValueError(problem)
    return one.key, values if many else values[0]


def _typed(text: str, schema: Mapping[str, Any]) -> Any:
    kind = schema.get("type")
    if kind == "boolean":
        if text.casefold() not in _TRUTHS:
            raise ValueError(f"{text!r} is neither yes nor no")
        return _TRUTHS[text.casefold()]
    if kind in ("number", "integer"):
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            raise ValueError(f"{text!r} is no {kind}") from None
    return text


def _beyond(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    """The limits of the schema that a value does not keep to."""
    size = len(value) if isinstance(value, str | list) else value
    kinds = {"Length": str, "Items": list}
    name = next((name for name, kind in kinds.items() if isinstance(value, kind)), "imum")
    least, most = schema.get(f"min{name}"), schema.get(f"max{name}")
    if isinstance(least, int | float) and size < least:
        yield f"{value!r} is less than its min{name}, {least}"
    if isinstance(most, int | float) and size > most:
        yield f"{value!r} is more than its max{name}, {most}"
