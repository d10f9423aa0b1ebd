"""Other spellings of one check: bare strings, and the ``type:``/``value:`` form of the neighbours.

AgentV and promptfoo write ``{type: icontains, value: x}``. Each such type maps to one key of ours;
``negate: true`` and the prefix ``not-`` turn it round, which is ``none_of`` here. A type without a
counterpart is left as it is and reported as unknown. The rule for letter case is ours: ``contains``
means what ``icontains`` does, unless ``case_sensitive`` stands beside it, as importers write it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text_at(form: str, value: Any) -> Any:
    """A pattern for a text at one end of the answer: as a text it ignores case."""
    return form.format(re.escape(value)) if isinstance(value, str) else value


def _schema(value: Any) -> dict[str, Any]:
    return {"exists": True} if value is None else {"schema": value}


_BY_TYPE: dict[str, Callable[[Any], dict[str, Any]]] = {
    "contains": lambda v: {"contains": {"all": _as_list(v)}},
    "icontains": lambda v: {"contains": {"all": _as_list(v)}},
    "contains-any": lambda v: {"contains": {"any": _as_list(v)}},
    "contains-all": lambda v: {"contains": {"all": _as_list(v)}},
    "icontains-any": lambda v: {"contains": {"any": _as_list(v)}},
    "icontains-all": lambda v: {"contains": {"all": _as_list(v)}},
    "not-contains": lambda v: {"contains": {"none": _as_list(v)}},
    "not-icontains": lambda v: {"contains": {"none": _as_list(v)}},
    "regex": lambda v: {"matches": v},
    "not-regex": lambda v: {"matches": {"none": _as_list(v)}},
    "starts-with": lambda v: {"matches": _text_at(r"(?i)\A\s*{}", v)},
    "ends-with": lambda v: {"matches": _text_at(r"(?i){}\s*\Z", v)},
    "equals": lambda v: {"equals": v},
    "is-json": lambda v: {"json": {"whole": True, **_schema(v)}},
    "contains-json": lambda v: {"json": _schema(v)},
    "cost": lambda v: {"max_cost_usd": v},
    "latency": lambda v: {"max_duration_seconds": v / 1000 if isinstance(v, int | float) else v},
    "llm-rubric": lambda v: {"rubric": v},
    "rubrics": lambda v: {"rubric": v},
    "skill-used": lambda v: {"skill_used": v},
    "not-skill-used": lambda v: {"skill_not_used": v},
}


def widen_check(value: Any) -> Any:
    """The full form of a check as written; what is no known short form comes back as it is."""
    if isinstance(value, str):
        return {"rubric": value}
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return value
    kind = value["type"].replace("_", "-")
    negated = value.get("negate") is True
    if kind not in _BY_TYPE and kind.startswith("not-"):
        kind, negated = kind.removeprefix("not-"), not negated
    if kind not in _BY_TYPE:
        return value
    spelled = _BY_TYPE[kind](value.get("value", value.get("threshold")))
    rest = {k: v for k, v in value.items() if k not in ("type", "value", "threshold")}
    if isinstance(rest.get("negate"), bool):
        del rest["negate"]
    if kind in ("regex", "not-regex") and rest.get("flags") == "i":
        del rest["flags"]
        spelled = {"matches": _ignoring_case(spelled["matches"])}
    elif kind in ("starts-with", "ends-with") and rest.get("case_sensitive") is True:
        spelled = {"matches": str(spelled["matches"]).removeprefix("(?i)")}
    if not negated:
        return {**spelled, **rest}
    if "case_sensitive" in rest:
        spelled["case_sensitive"] = rest.pop("case_sensitive")
    return {"none_of": [spelled], **rest}


def _ignoring_case(patterns: Any) -> Any:
    if isinstance(patterns, dict):
        return {how: _ignoring_case(listed) for how, listed in patterns.items()}
    if isinstance(patterns, list):
        return [_ignoring_case(pattern) for pattern in patterns]
    return f"(?i){patterns}" if isinstance(patterns, str) else patterns
