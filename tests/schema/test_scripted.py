"""The script language."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skillup.schema.scripted import Script


def test_a_plain_list_is_a_script() -> None:
    reply = {"when": "hi", "say": "hello", "steps": [{"write": {"path": "a", "content": 1}}]}
    script = Script.model_validate([reply])
    assert script == Script.model_validate({"replies": [reply]})
    assert Script.model_validate_json(script.model_dump_json()) == script


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"when": "(", "say": "x"}, "not a regular expression"),
        ({"steps": [{}]}, "a step needs one of `say`, `run`"),
        ({"steps": [{"run": "a", "read": "b"}]}, "`run` and `read`"),
        ({"steps": [{"remember": {}}]}, "at least 1 item"),
        ({"steps": [{"remember": {"a b": "x"}}]}, "match pattern"),
        ({"turn": 0}, "greater than or equal to 1"),
        ({"probability": 1.5}, "less than or equal to 1"),
        ({"misbehave": {"error": "bored"}}, "'auth', 'rate_limit'"),
        ({"says": "x"}, "Extra inputs"),
    ],
)
def test_what_is_no_reply(reply: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match="Script") as caught:
        Script.model_validate([reply])
    assert said in str(caught.value)


def test_a_script_has_a_reply() -> None:
    with pytest.raises(ValidationError):
        Script.model_validate([])
