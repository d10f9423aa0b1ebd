from __future__ import annotations

import pytest

from skillup.load.profiles import BadReferenceError, MissingVariableError, expand

SET = {"A": "one", "EMPTY": "", "DOLLAR": "${A}"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("${A}", "one"),
        ("<${A}-${A}>", "<one-one>"),
        ("${A:-other}", "one"),
        ("${A-other}", "one"),
        ("${NONE:-other}", "other"),
        ("${NONE-other}", "other"),
        ("${NONE:-}", ""),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY-other}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY?needed}", ""),
        ("${A?needed}", "one"),
        ("${NONE:-http://h:1/p?q=1}", "http://h:1/p?q=1"),
        ("$A $ 5$", "$A $ 5$"),
        ("$${A}", "${A}"),
        ("$$$$", "$$"),
        ("${DOLLAR}", "${A}"),
    ],
)
def test_references_are_replaced_as_a_shell_does(text: str, expanded: str) -> None:
    assert expand(text, SET) == expanded


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${NONE}", "the variable NONE is not set"),
        ("${NONE?set it to the address}", "set it to the address"),
        ("${NONE:?it is needed}", "it is needed"),
        ("${EMPTY:?it is needed}", "it is needed"),
        ("${NONE?}", "the variable NONE is not set"),
    ],
)
def test_a_variable_that_is_not_set_is_told(text: str, said: str) -> None:
    with pytest.raises(MissingVariableError) as caught:
        expand(text, SET)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "text", ["${", "${A", "${}", "${1}", "${A:=x}", "${A B}", "${NONE:-${A}}", "${9secret}"]
)
def test_what_only_looks_like_a_reference_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(BadReferenceError) as caught:
        expand(text, SET)
    assert "secret" not in str(caught.value)
