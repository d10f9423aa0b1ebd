"""Profiles: what `--engine` means, and what may stand in their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.adapters import ADAPTERS
from skillup.errors import InvalidFilesError, UsageError
from skillup.load.profiles import MissingVariableError, check_profile, expand, load_profile
from skillup.schema.profile import Profile
from tests.support.trees import make_tree


def read(root: Path, text: str, **environment: str) -> Profile:
    make_tree(root, {"engines/p.yaml": text})
    return load_profile(str(root / "engines" / "p.yaml"), root, environment)


def refused(root: Path, text: str, **environment: str) -> list[str]:
    with pytest.raises(InvalidFilesError) as caught:
        read(root, text, **environment)
    return [str(problem).rpartition("p.yaml:")[2] for problem in caught.value.problems]


def test_a_name_means_the_file_in_engines_before_the_adapter(tmp_path: Path) -> None:
    make_tree(tmp_path, {"engines/codex.yaml": "engine: codex\nmodel: small\n"})
    assert load_profile("codex", tmp_path, {}).model == "small"
    assert load_profile("scripted", tmp_path, {}) == Profile(name="scripted", engine="scripted")


def test_a_home_may_be_named_where_the_users_own_is_used(tmp_path: Path) -> None:
    """V19: under `clean` it is refused (tests/load/broken.py)."""
    text = "engine: claude_code\nisolation: shared\nenv: {CLAUDE_CONFIG_DIR: /h}\n"
    assert read(tmp_path, text).env == {"CLAUDE_CONFIG_DIR": "/h"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cladue_code", "did you mean claude_code?"),
        ("fats", "did you mean fast?"),
        (
            "zzz",
            f"known here: {', '.join(sorted([*ADAPTERS, 'fast']))}; profiles are looked for in ",
        ),
        ("gone.yaml", "give a profile's path or name"),
    ],
)
def test_an_engine_that_is_not_known_is_a_mistake_with_a_way_out(
    tmp_path: Path, name: str, hint: str
) -> None:
    make_tree(tmp_path, {"engines/fast.yaml": "engine: codex\n"})
    with pytest.raises(UsageError) as caught:
        load_profile(name, tmp_path, {})
    assert caught.value.hint == hint + (f"{tmp_path}/engines" if hint.endswith(" in ") else "")


def test_references_are_filled_in_wherever_they_stand(tmp_path: Path) -> None:
    text = "engine: codex\nmodel: ${M}\nargs: ['--x=${M}']\nenv: {A: '${X:-}', C: $$x}\n"
    profile = read(tmp_path, text + "base_url: ${URL:-}\n", M="big")
    assert (profile.model, profile.args) == ("big", ["--x=big"])
    assert profile.env == {"A": "", "C": "$x"}
    assert profile.base_url is None, "an empty default means that the key is not set"


def test_every_reference_without_a_value_is_told_with_its_place(tmp_path: Path) -> None:
    text = "engine: codex\nmodel: ${M}\nenv:\n  A: ${B?set B to the region}\n"
    assert refused(tmp_path, text) == [
        "2:8: model: the variable M is not set; set it, or give a default: ${VAR:-default}",
        "4:6: env.A: set B to the region; set it, or give a default: ${VAR:-default}",
    ]


def test_when_only_validating_an_unset_variable_is_a_warning(tmp_path: Path) -> None:
    make_tree(tmp_path, {"p.yaml": "engine: codex\nmodel: ${M}\nargs: ['${']\n"})
    profile, problems = check_profile(tmp_path / "p.yaml", {}, lenient=True)
    assert profile is not None
    assert [problem.severity for problem in problems] == ["warning", "error"]


KEYS = ["sk-ant-api03-abcdefgh12345678", "AIzaSyA1b2C3d4E5f6G7h8I9j0", "ghp_0a1b2c3d4e5f6g7h8i9j0k"]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_place_of_a_variables_name_is_refused_and_not_repeated(
    tmp_path: Path, key: str
) -> None:
    (problem,) = refused(tmp_path, f"engine: codex\napi_key_env: {key}\n")
    assert problem.startswith("2:14: api_key_env: this is not the name of a variable")
    assert key not in problem
    (problem,) = refused(tmp_path, "engine: codex\napi_key_env: ${MY_KEY}\n", MY_KEY=key)
    assert key not in problem


SET = {"A": "one", "EMPTY": "", "DOLLAR": "${A}"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${A}", "one"),
        ("<${A}-${A}>", "<one-one>"),
        ("${A:-other}", "one"),
        ("${NONE:-other}", "other"),
        ("${NONE:-}", ""),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY-other}", ""),
        ("${EMPTY?needed}", ""),
        ("${A?needed}", "one"),
        ("$A $ 5$", "$A $ 5$"),
        ("$${A}", "${A}"),
        ("${DOLLAR}", "${A}"),
    ],
)
def test_references_are_replaced_as_a_shell_does(text: str, expanded: str) -> None:
    assert expand(text, SET) == expanded


NO_REFERENCE = "`${` begins no reference to a variable here"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${NONE}", "the variable NONE is not set"),
        ("${EMPTY:?it is needed}", "it is needed"),
        ("${NONE:-${A}}", "a reference within the reference to NONE"),
        *(
            (t, NO_REFERENCE)
            for t in ("${", "${A", "${}", "${1}", "${A:=x}", "${A B}", "${9secret}")
        ),
    ],
)
def test_a_reference_without_a_value_is_refused_without_repeating_it(text: str, said: str) -> None:
    with pytest.raises(MissingVariableError) as caught:
        expand(text, SET)
    assert caught.value.args[0] == said
