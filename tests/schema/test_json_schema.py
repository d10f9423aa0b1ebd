"""The JSON Schemas in docs/schema, and what they say of the files that ship."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, ValidationError

from skillup.load.yaml_reader import parse_yaml, read_yaml
from skillup.schema import SCHEMAS, json_schema
from skillup.schema.case import Case
from skillup.schema.profile import Profile
from skillup.schema.suite import Suite
from tests.load.broken import CASES, PROFILES, SUITES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "schema"
MODELS: dict[str, type[BaseModel]] = {"case": Case, "suite": Suite, "profile": Profile}
VALIDATORS = {
    name: jsonschema.Draft202012Validator(json_schema(name))
    for name in ("case", "suite", "profile", "judge")
}
HEADER = re.compile(r"# yaml-language-server: \$schema=(\S+)")


def shipped() -> Iterator[Path]:
    for folder in ("cases", "engines"):
        for path in sorted((ROOT / folder).rglob("*.yaml")):
            if "fixtures" not in path.parts and "skills" not in path.parts:
                yield path


SHIPPED = list(shipped())


def kind_of(path: Path) -> str:
    if path.is_relative_to(ROOT / "engines"):
        return "profile"
    if path.parent.name == "judges":
        return "judge"
    return "suite" if path.name == "eval.yaml" else "case"


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_committed_schema_is_the_one_that_is_made(name: str) -> None:
    assert json_schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    committed = (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
    made = json.dumps(json_schema(name), indent=2, ensure_ascii=False) + "\n"
    assert committed == made, "run: skillup schema --out docs/schema"


@pytest.mark.parametrize("path", SHIPPED, ids=[p.relative_to(ROOT).as_posix() for p in SHIPPED])
def test_a_shipped_file_names_its_schema_and_fits_it(path: Path) -> None:
    kind = kind_of(path)
    match = HEADER.fullmatch(path.read_text(encoding="utf-8").splitlines()[0])
    assert match is not None, "its first line tells editors where the schema is"
    assert (path.parent / match[1]).resolve() == FOLDER / f"{kind}.schema.json"
    errors = [error.message for error in VALIDATORS[kind].iter_errors(read_yaml(path).data)]
    assert errors == []


def undescribed(node: Any, where: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in (node.get("properties") or {}).items():
            if isinstance(value, dict) and not value.get("description"):
                yield f"{where}.{name}"
        for key, value in node.items():
            yield from undescribed(value, key if where in ("", "$defs") else where)
    elif isinstance(node, list):
        for value in node:
            yield from undescribed(value, where)


def test_every_key_has_a_description() -> None:
    found = {f"{name}{key}" for name in SCHEMAS for key in undescribed(json_schema(name))}
    assert sorted(found) == []


def agrees(kind: str, data: Any) -> tuple[bool, bool]:
    """Whether the schema takes `data`, and whether we do."""
    try:
        MODELS[kind].model_validate(data)
    except ValidationError:
        ours = False
    else:
        ours = True
    return VALIDATORS[kind].is_valid(data), ours


SPELLINGS = [
    ("case", "input: {prompt: a}\nassertions: [{contians: x}]", False),
    ("case", "input: {prompt: true}", True),
    ("case", "input: {turns: [a, {content: b}]}", True),
    ("case", "input: {prompt: a}\nassertions: [{contains: x}, {contains: [x, 1]}, a rubric]", True),
    ("case", "input: {prompt: a}\nassertions: [{type: icontains, value: x}]", True),
    ("case", "input: {prompt: a}\nassertions: [{tool_called: B}, {tool_called: {name: C}}]", True),
    ("case", "input: {prompt: a}\nassertions: [{matches: 'a+'}, {matches: {none: ['b']}}]", True),
    ("case", "input: {prompt: a}\nassertions: [{file_contains: {path: a, content: b}}]", True),
    ("case", "input: {prompt: a}\nassertions: [{json: {path: $.a, equals: null}}]", True),
    ("case", "input: {prompt: a}\nassertions: [{golden_file: a}, {script: b}, {similar: c}]", True),
    ("case", "input: {prompt: a}\nassertions: [{rubric: a}, {rubric: [a, {outcome: b}]}]", True),
    ("case", "input: {prompt: a}\nscripted: {replies: [{say: x}]}", True),
    ("case", "input: {prompt: a}\ndepends_on: b\ntags: c", True),
    ("case", "input: {prompt: a}\nretry_policy: {retry_on: crash}", True),
    ("case", "input: {prompt: a}\ncontext: {repo_fixture: f, setup: make}", True),
    ("case", "input: {prompt: a}\njudge: {criteria: [x], type: agent_judge}", True),
    ("suite", "name: 7\nengine: codex", True),
    ("suite", "engine: {type: codex, model: m}", True),
    ("suite", "engine: {name: codex, model: {name: m}}", True),
    ("suite", "cases: {files: a.yaml}", True),
    ("profile", "engine: codex\ncommand: [codex, -x]\nargs: [1, true]", True),
    ("profile", "engine: codex\nprices: {input: 1, output: 2}", True),
    ("profile", "engine: codex\nprices: {m: {input: 1, output: 2}}", True),
]  # fmt: skip


def test_the_schema_takes_every_spelling_that_we_take() -> None:
    for kind, text, taken in SPELLINGS:
        assert agrees(kind, parse_yaml(text, Path("x.yaml")).data) == (taken, taken), text


def test_the_schema_takes_no_less_than_we_do() -> None:
    """It may take more: it cannot know what excludes what, nor what is a regex."""
    for kind, rows in (("case", CASES), ("suite", SUITES), ("profile", PROFILES)):
        for text, _, _ in rows:
            theirs, ours = agrees(kind, parse_yaml(text, Path("x.yaml")).data)
            assert theirs or not ours, text
