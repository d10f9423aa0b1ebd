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
_INT = r"[+-]?\d+"
_ANY = r"(?s).*"
_TOKEN = r"(?s).*\S.*"


@dataclass(frozen=True)
class Rule:
    """What an element may hold."""

    required: Mapping[str, str] = field(default_factory=dict)
    """Attributes, each with the pattern of its values."""
    optional: Mapping[str, str] = field(default_factory=dict)
    children: str = ""
    """A pattern over the children's names, each with a blank behind it."""


Schema = Mapping[str, Rule]

_PROPERTY = Rule({"name": _ANY, "value": _ANY})
_RESULT = {"message": _ANY}

ANT: Schema = {
    "testsuites": Rule(children="(testsuite )*"),
    "testsuite": Rule(
        {
            "name": _TOKEN,
            "package": _ANY,
            "id": _INT,
            "hostname": _TOKEN,
            "timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d",
            "time": _DECIMAL,
            **dict.fromkeys(("tests", "failures", "errors"), _INT),
        },
        {"skipped": _INT},
        "properties (testcase )*system-out system-err ",
    ),
    "properties": Rule(children="(property )*"),
    "property": Rule({"name": _TOKEN, "value": _ANY}),
    "testcase": Rule(
        {"name": _ANY, "classname": _ANY, "time": _DECIMAL}, {}, "(skipped |error |failure )?"
    ),
    "skipped": Rule({}, _RESULT),
    "error": Rule({"type": _ANY}, _RESULT),
    "failure": Rule({"type": _ANY}, _RESULT),
    "system-out": Rule(),
    "system-err": Rule(),
}

_SUREFIRE_TIME = r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?"

JENKINS: Schema = {
    "testsuites": Rule(
        {},
        {
            "time": _SUREFIRE_TIME,
            **dict.fromkeys(("name", "tests", "failures", "errors"), _ANY),
        },
        "(testsuite )*",
    ),
    "testsuite": Rule(
        dict.fromkeys(("name", "tests", "failures", "errors"), _ANY),
        {
            "time": _SUREFIRE_TIME,
            **dict.fromkeys(
                ("group", "skipped", "timestamp", "hostname", "id", "package", "file", "log"), _ANY
            ),
        },
        "(testsuite |properties |testcase |system-out |system-err )*",
    ),
    "properties": Rule(children="(property )*"),
    "property": _PROPERTY,
    "testcase": Rule(
        {"name": _ANY},
        dict.fromkeys(("time", "classname", "group"), _ANY),
        "(skipped |error |failure |system-out |system-err )*",
    ),
    "skipped": Rule({}, {"type": _ANY, "message": _ANY}),
    "error": Rule({}, {"type": _ANY, "message": _ANY}),
    "failure": Rule({}, {"type": _ANY, "message": _ANY}),
    "system-out": Rule(),
    "system-err": Rule(),
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
