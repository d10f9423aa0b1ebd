from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from skillup.errors import Problem
from skillup.load.problems import problems_from
from skillup.load.yaml_reader import parse_yaml
from skillup.schema.case import Case
from skillup.schema.suite import Suite

FILE = Path("x.yaml")


def problems_in(text: str, model: type[BaseModel]) -> list[Problem]:
    document = parse_yaml(text, FILE)
    with pytest.raises(ValidationError) as caught:
        model.model_validate(document.data)
    return problems_from(caught.value, document, model)


def told(text: str, model: type[BaseModel]) -> list[str]:
    return [str(problem).removeprefix("x.yaml:") for problem in problems_in(text, model)]


TURNS = """\
id: a
input:
  turns:
    - content: "Delete"
      post_condition:
        must_contain_any: [sure]
        on_fail: skip
      capture:
        - variabel: n
          pattern: (x)
      assertions:
        - contians: x
        - contains: {any: [a], al: [b]}
        - tool_called: {kind: shel}
"""


def test_each_problem_of_a_case_is_told_in_the_order_of_the_file() -> None:
    assert told(TURNS, Case) == [
        (
            "7:18: input.turns[0].post_condition.on_fail: `skip` is not allowed here; "
            "did you mean `skip_remaining`? allowed: `fail`, `skip_remaining`, `judge`"
        ),
        (
            "9:11: input.turns[0].capture[0].variabel: unknown key `variabel`; "
            "did you mean `variable`?"
        ),
        (
            "12:11: input.turns[0].assertions[0].contians: unknown key `contians`; "
            "did you mean `contains`?"
        ),
        "13:32: input.turns[0].assertions[1].contains.al: unknown key `al`; did you mean `all`?",
        (
            "14:31: input.turns[0].assertions[2].tool_called.kind: `shel` is not allowed here; "
            "did you mean `shell`? allowed: `shell`, `read`, `write`, `edit`, `search`, `web`, "
            "`mcp`, `skill`, `agent`, `other`"
        ),
    ]


def test_a_missing_key_stands_where_its_mapping_does() -> None:
    text = "skills:\n    - {}\nenvironment:\n  setup_steps:\n    - {}\n"
    assert told(text, Suite) == [
        (
            "2:7: skills[0].path: `path` is missing; "
            "add it (its directory, relative to the suite root)"
        ),
        "5:7: environment.setup_steps[0].run: `run` is missing; add it (a shell command)",
    ]


def test_a_bound_is_told_to_its_last_digit() -> None:
    (said,) = told("gates: {confidence: 0.9999999999999999}\n", Suite)
    assert said.endswith("`0.9999999999999999` is out of range; it must be at most 0.999999999")
