"""The reference names every key, and no key that does not exist."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import AliasChoices, BaseModel

from skillup.engines.claude_code import engine as claude_arguments
from skillup.engines.codex import engine as codex_arguments
from skillup.schema.case import Case
from skillup.schema.checks import CheckKeys
from skillup.schema.judge_script import JudgeScript
from skillup.schema.profile import Permission, Profile
from skillup.schema.record import ErrorKind
from skillup.schema.suite import Suite
from tests.docs.blocks import PAGES, Table, tables_of

TABLES = [table for page in PAGES for table in tables_of(page)]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _models_in(part)


def _reachable(*roots: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Every model that a file can hold, by name; `module.name` where two have the same."""
    found: list[type[BaseModel]] = [CheckKeys]
    waiting = list(roots)
    while waiting:
        model = waiting.pop()
        if model not in found:
            found.append(model)
            for field in model.model_fields.values():
                waiting.extend(_models_in(field.annotation))
    names = [model.__name__ for model in found]
    return {
        name if names.count(name) == 1 else f"{model.__module__.rpartition('.')[2]}.{name}": model
        for name, model in zip(names, found, strict=True)
    }


MODELS = _reachable(Case, Suite, Profile, JudgeScript)


def _keys(model: type[BaseModel]) -> set[str]:
    """The keys as written in YAML, by every name; those of checks count for CheckKeys only."""
    inherited = set(CheckKeys.model_fields) if model is not CheckKeys else set()
    keys: set[str] = set()
    for name, field in model.model_fields.items():
        if name in inherited and issubclass(model, CheckKeys):
            continue
        if isinstance(field.validation_alias, AliasChoices):
            keys.update(str(choice) for choice in field.validation_alias.choices)
        else:
            keys.add(field.alias or name)
    return keys


def _tables(action: str) -> dict[str, list[Table]]:
    """By what the marker says they are about."""
    found: dict[str, list[Table]] = {}
    for table in TABLES:
        if table.marker.action == action:
            found.setdefault(table.marker.value, []).append(table)
    return found


@pytest.mark.parametrize(("about", "tables"), _tables("keys").items(), ids=_tables("keys"))
def test_a_table_names_exactly_the_keys_of_its_models(about: str, tables: list[Table]) -> None:
    told = {name.rpartition(".")[2] for table in tables for name in table.names()}
    expected = {key for name in about.split() for key in _keys(MODELS[name])}
    assert told == expected, [table.place for table in tables]


def test_every_model_that_people_write_has_a_table() -> None:
    told = {name for about in _tables("keys") for name in about.split()}
    assert set(MODELS) - told == set()


def test_every_error_kind_has_a_row() -> None:
    (table,) = _tables("kinds")["ErrorKind"]
    assert table.names() == list(typing.get_args(ErrorKind))


def test_permissions_are_as_the_adapters_pass_them_on() -> None:
    (table,) = (table for table in TABLES if table.marker.action == "permissions")
    assert {name.strip("`"): (claude, codex) for name, _, claude, codex in table.rows} == {
        name: (
            f"`--permission-mode {claude_arguments._PERMISSION_MODES[name]}`",
            f"`-s {codex_arguments._SANDBOX_MODES[name]}`",
        )
        for name in typing.get_args(Permission)
    }
