"""Assertions on the answer's text: contained, matched, equal, JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from skillup.interop.assertion import Assertion, Check, Parts, one, together
from skillup.interop.node import as_text

_JS_GROUP = re.compile(r"\(\?<(?![=!])")
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
    made = _JS_GROUP.sub("(?P<", pattern)
    if "m" not in flags:
        # There, `$` is the very end; here it may also stand before a last line break.
        made = _JS_ESCAPED_END.sub(r"\1\\Z", made)
    wanted = "".join(flag for flag in "ims" if flag in flags)
    return f"(?{wanted}){made}" if wanted else made


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
        return one({"json": {"path": "$", "equals": wanted}})
    text = as_text(wanted)
    if assertion.background.promptfoo:
        assertion.node.changed("`equals` compares every blank", "here both sides are trimmed")
    return one({"equals": text, "case_sensitive": True})


def is_json(assertion: Assertion) -> Parts:
    """``is-json``, with what can be asked of a JSON Schema that stands beside it."""
    schema = assertion.value()
    checks: list[Check] = [{"json": {"path": "$", "exists": True}}]
    if assertion.negated:
        if schema is not None and assertion.argument is not None:
            assertion.argument.note("a JSON Schema", "left out: the answer must not be JSON at all")
        return one(checks[0])
    if isinstance(schema, dict):
        required = schema.get("required")
        names = required if isinstance(required, list) else []
        checks += [{"json": {"path": _child(name), "exists": True}} for name in names]
        if set(schema) - {"required"}:
            assertion.node.changed(
                "a JSON Schema",
                "the answer must be JSON and have the `required` keys; the rest is not checked",
            )
    return together(checks)


def _child(name: Any) -> str:
    text = as_text(name)
    return f"$.{text}" if re.fullmatch(r"[A-Za-z_]\w*", text) else f"$['{text}']"


def contains_json(assertion: Assertion) -> Parts:
    """``contains-json``: JSON anywhere in the answer."""
    if assertion.argument is not None:
        assertion.argument.note("a JSON Schema", "left out: any JSON will do")
    assertion.node.changed(
        "JSON anywhere in the answer", "here the answer as a whole must be readable as JSON"
    )
    return one({"json": {"path": "$", "exists": True}})


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
