"""Which marker a tag becomes."""

from __future__ import annotations

import pytest

from skillup.pytest_plugin.plugin import marker_of_tag


@pytest.mark.parametrize(
    ("tag", "marker"),
    [
        ("safety", "safety"),
        ("multi-turn", "multi-turn"),
        ("needs review", "needs_review"),
        ("a:b(c)", "a_b_c_"),
        ("größe", "größe"),
        ("skip", "tag_skip"),
        ("xfail", "tag_xfail"),
        ("not", "tag_not"),
        ("skillup", "tag_skillup"),
        ("_private", "tag__private"),
        ("!", "tag__"),
    ],
)
def test_a_tag_becomes_a_name_that_pytest_takes_and_gives_no_meaning_to(
    tag: str, marker: str
) -> None:
    assert marker_of_tag(tag) == marker
