"""The two schemas of JUnit's XML that readers check against, as far as reports can break them.

Written after what they say, element by element: Ant's JUnit.xsd
(https://github.com/windyroad/JUnit-Schema) and junit-10.xsd of Jenkins' xunit plug-in
(https://github.com/jenkinsci/xunit-plugin).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_DECIMAL = r"[+-]?(\d+(\.\d*)?|\.\d+)"
_SECONDS = r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?"
_INT, _ANY, _TOKEN = r"[+-]?\d+", r"(?s).*", r"(?s).*\S.*"


@dataclass(frozen=True)
class Rule:
    required: Mapping[str, str] = field(default_factory=dict)
    """Attributes, each with the pattern of its values."""
    optional: Mapping[str, str] = field(default_factory=dict)
    children: str = ""
    """A pattern over the children's names, each with a blank behind it."""


Schema = Mapping[str, Rule]


def _any(names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), _ANY)


_BOTH = {"properties": Rule(children="(property )*"), "system-out": Rule(), "system-err": Rule()}
_COUNTS = dict.fromkeys(("id", "tests", "failures", "errors"), _INT)
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
_NAMES = {"name": _TOKEN, "hostname": _TOKEN, "package": _ANY, "timestamp": _TIME}

ANT: Schema = {
    **_BOTH,
    "testsuites": Rule(children="(testsuite )*"),
    "testsuite": Rule(
        {**_NAMES, **_COUNTS, "time": _DECIMAL},
        {"skipped": _INT},
        "properties (testcase )*system-out system-err ",
    ),
    "property": Rule({"name": _TOKEN, "value": _ANY}),
    "testcase": Rule(
        _any("name classname") | {"time": _DECIMAL}, {}, "(skipped |error |failure )?"
    ),
    "skipped": Rule({}, _any("message")),
    "error": Rule(_any("type"), _any("message")),
    "failure": Rule(_any("type"), _any("message")),
}
_SUITE = "(testsuite |properties |testcase |system-out |system-err )*"
_OPTIONAL = _any("group skipped timestamp hostname id package file log") | {"time": _SECONDS}

JENKINS: Schema = {
    **_BOTH,
    "testsuites": Rule(
        {}, {"time": _SECONDS, **_any("name tests failures errors")}, "(testsuite )*"
    ),
    "testsuite": Rule(_any("name tests failures errors"), _OPTIONAL, _SUITE),
    "property": Rule(_any("name value")),
    "testcase": Rule(
        _any("name"),
        _any("time classname group"),
        "(skipped |error |failure |system-out |system-err )*",
    ),
    **dict.fromkeys(("skipped", "error", "failure"), Rule({}, _any("type message"))),
}


def problems(element: ET.Element, schema: Schema) -> Iterator[str]:
    """Everything in the tree that `schema` does not allow."""
    rule = schema.get(element.tag)
    if rule is None:
        yield f"{element.tag}: not known"
        return
    for name in rule.required.keys() - element.attrib.keys():
        yield f"{element.tag}: without {name}"
    known = {**rule.required, **rule.optional}
    for name, value in element.attrib.items():
        if name not in known or not re.fullmatch(known[name], value):
            yield f"{element.tag}: attribute {name}={value!r}"
    held = "".join(f"{child.tag} " for child in element)
    if not re.fullmatch(rule.children, held):
        yield f"{element.tag}: child {held}"
    for child in element:
        yield from problems(child, schema)
