"""Assertions on the answer's text: contained, matched, equal, JSON."""

from __future__ import annotations

import re
from collections.abc import Callable

from skillup.errors import InvalidFilesError
from skillup.importers.promptfoo.assertion import (
    Assertion,
    Check,
    Parts,
    one,
)
from skillup.importers.promptfoo.values import as_text
from skillup.importers.source import parse_source

_JS_ESCAPED_END = re.compile(r"(?<!\\)((?:\\\\)*)\$\Z")


def contains(how: str, *, fold: bool) -> Callable[[Assertion], Parts]:
    """``contains``, ``contains-any`` and ``contains-all``, and their case-blind brothers."""

    def convert(assertion: Assertion) -> Parts:
        texts = [text for text in assertion.texts() if text]
        if not texts:
            return assertion.drop("there is no text to look for", "left out")
        if not assertion.negated:
            return one(_cased(_looked_for("contains", how, texts), fold=fold))
        if how == "any" or len(texts) == 1:
            assertion.takes_negation()
            return one(_cased(_looked_for("contains", "none", texts), fold=fold))
        return one(_cased(_looked_for("contains", "all", texts), fold=fold))

    return convert


def _looked_for(key: str, how: str, texts: list[str]) -> Check:
    """The shortest spelling: a single text that must be there needs no more than itself."""
    return {key: texts[0]} if how in ("all", "any") and len(texts) == 1 else {key: {how: texts}}


def _cased(check: Check, *, fold: bool) -> Check:
    return check if fold else {**check, "case_sensitive": True}


def regex(assertion: Assertion) -> Parts:
    """``regex``: JavaScript's flavour, and flags beside it."""
    texts = assertion.texts()
    if not texts:
        return assertion.drop("there is no pattern", "left out")
    flags_node = assertion.node.get("flags")
    flags = flags_node.text() if flags_node is not None else ""
    patterns = []
    for text in texts:
        pattern = python_pattern(text, flags)
        problem = _does_not_compile(pattern)
        if problem:
            assertion.node.changed(
                f"a pattern that is not read here ({problem})", "left as it is: correct it"
            )
        patterns.append(pattern)
    how = "none" if assertion.takes_negation() else "all"
    return one(_looked_for("matches", how, patterns))


def python_pattern(pattern: str, flags: str = "") -> str:
    """A JavaScript pattern as Python spells it."""
    if "m" not in flags:
        # There, `$` is the very end; here it may also stand before a last line break.
        pattern = _JS_ESCAPED_END.sub(r"\1\\Z", pattern)
    wanted = "".join(flag for flag in "ims" if flag in flags)
    return f"(?{wanted}){pattern}" if wanted else pattern


def _does_not_compile(pattern: str) -> str | None:
    import regex as engine

    try:
        engine.compile(pattern)
    except engine.error as error:
        return str(error)
    return None


def begins(assertion: Assertion) -> Parts:
    """``starts-with``"""
    return _edge(assertion, lambda text: rf"\A{_blank(assertion)}{re.escape(text)}")


def ends(assertion: Assertion) -> Parts:
    """``ends-with``"""
    return _edge(assertion, lambda text: rf"{re.escape(text)}{_blank(assertion)}\Z")


def _blank(assertion: Assertion) -> str:
    return "" if assertion.background.promptfoo else r"\s*"


def _edge(assertion: Assertion, pattern: Callable[[str], str]) -> Parts:
    texts = assertion.texts()
    if not texts:
        return assertion.drop("there is no text to look for", "left out")
    if not assertion.background.promptfoo:
        texts = [text.strip() for text in texts]
    how = "none" if assertion.takes_negation() else "all"
    return one(_looked_for("matches", how, [pattern(t) for t in texts]))


def equals(assertion: Assertion) -> Parts:
    """``equals``: a text, or a value that the answer is read as."""
    wanted = assertion.value()
    if wanted is None:
        return assertion.drop("there is nothing to compare with", "left out")
    if isinstance(wanted, dict | list):
        return one({"json": {"path": "$", "equals": wanted}, "case_sensitive": True})
    text = as_text(wanted)
    if assertion.background.promptfoo:
        assertion.node.changed("`equals` compares every blank", "here both sides are trimmed")
    return one({"equals": text, "case_sensitive": True})


_DRAFT_OF_AJV = "http://json-schema.org/draft-07/schema#"
_ANYTHING: Check = {"exists": True}


def is_json(assertion: Assertion) -> Parts:
    """``is-json``: the answer is JSON and nothing else, by the JSON Schema beside it."""
    return one({"json": {"whole": True, **_schema(assertion)}})


def contains_json(assertion: Assertion) -> Parts:
    """``contains-json``: JSON anywhere in the answer."""
    assertion.node.changed(
        "JSON anywhere in the answer",
        "here it is the whole answer, its last fenced block, or what braces or brackets enclose",
    )
    return one({"json": _schema(assertion)})


def _schema(assertion: Assertion) -> Check:
    """The condition for the value beside ``is-json``; what is no schema lets nothing pass."""
    from pydantic import TypeAdapter, ValidationError

    from skillup.schema.check_specs import JsonSchema

    node = assertion.argument
    if node is None or node.value in (None, ""):
        return _ANYTHING
    found = assertion.value()
    try:
        if isinstance(found, str):
            found = parse_source(found, node.source.path).data
        if isinstance(found, dict):
            found = {"$schema": _DRAFT_OF_AJV, **found}
        TypeAdapter(JsonSchema).validate_python(found)
    except (ValidationError, InvalidFilesError):
        node.changed(
            "this is no JSON Schema that can be read here",
            "nothing passes the check until it is written under `json: {schema: …}`",
        )
        return {"schema": False}
    return {"schema": found}


def word_count(assertion: Assertion) -> Parts:
    """``word-count``: exactly so many words, or a range."""
    wanted = assertion.value()
    assertion.knows("min", "max")
    bounds = wanted if isinstance(wanted, dict) else {"min": wanted, "max": wanted}
    try:
        least = int(bounds.get("min") or 0)
        most = None if bounds.get("max") is None else int(bounds["max"])
    except (TypeError, ValueError):
        return assertion.drop("not a number of words", "left out")
    if most == 0:
        return one({"matches": r"\A\s*\Z"})
    rest = f"{{{max(least - 1, 0)},{'' if most is None else most - 1}}}"
    words = rf"\S+(?:\s+\S+){rest}"
    return one({"matches": rf"\A\s*{words if least else f'(?:{words})?'}\s*\Z"})


def similar(default: float, note: str = "") -> Callable[[Assertion], Parts]:
    """``similar``, and measures of likeness that have no counterpart."""

    def convert(assertion: Assertion) -> Parts:
        texts = assertion.texts()
        threshold = assertion.number("threshold")
        if not texts:
            return assertion.drop("there is nothing to compare with", "left out")
        if threshold is None or not 0 <= threshold <= 1:
            threshold = default
        if note:
            assertion.node.changed(note, f"became `similar` with the threshold {threshold}")
        checks: list[Check] = [{"similar": {"to": t, "threshold": threshold}} for t in texts]
        return one(checks[0] if len(checks) == 1 else {"any_of": checks})

    return convert
