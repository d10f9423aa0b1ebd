"""The folders in which claude looks for sessions; what it really made, the end-to-end tests see."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.engines.claude_code.session import project_folder, slug_of


@pytest.mark.parametrize(
    ("directory", "slug"),
    [
        ("/tmp/x/My Project_1.2", "-tmp-x-My-Project-1-2"),
        ("/ü/é", "----"),
        ("/e\u0301", "-e-"),
        ("/\U0001f600", "---"),
        ("/" + "a" * 199, "-" + "a" * 199),
        # Hashes by the same arithmetic in node, over charCodeAt.
        ("b" * 201, "b" * 200 + "-l74tcu"),
        ("/ü\U0001f600" * 80, "-" * 200 + "-v1ukn4"),
    ],
)
def test_the_slug_of_a_directory(directory: str, slug: str) -> None:
    assert slug_of(directory) == slug
    assert project_folder(Path("/home"), Path(directory)) == Path("/home/projects") / slug


@given(st.text(min_size=201))
def test_long_slugs_are_cut_and_stay_file_names(directory: str) -> None:
    slug = slug_of(directory)

    assert len(slug) <= 200 + 1 + 6
    assert slug.isascii()
    assert slug.replace("-", "a").isalnum()
