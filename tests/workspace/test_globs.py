"""Globs over paths."""

from __future__ import annotations

import pytest

from skillup.workspace.globs import matches_any_glob, matches_glob


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("**", "a/b/c", True),
        ("*", "a/b", False),
        ("*.md", "x/a.md", False),
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/a.md", True),
        ("a/**", "a/b", True),
        ("a/**", "a", False),
        ("a/**/z", "a/z", True),
        ("a/**/z", "a/b/c/z", True),
        ("a/**/z", "a/bz", False),
        ("a**z", "abcz", True),
        ("a**z", "a/z", False),
        ("?.txt", "a.txt", True),
        ("?.txt", "/.txt", False),
        ("[a-c].txt", "b.txt", True),
        ("[!a-c].txt", "x.txt", True),
        ("[!a]b", "/b", False),
        ("[]].txt", "].txt", True),
        ("[", "[", True),
        ("*.{py,sh}", "a.sh", True),
        ("{a,b/*}/c", "b/x/c", True),
        ("{", "{", True),
        (r"\*", "*", True),
        ("./a", "a", True),
        ("*", "a\nb", True),
        ("A", "a", False),
        ("", "a", False),
        ("a/**/b/**/c", "a/b/x/b/y/c", True),
        ("*a*b", "xaybzb", True),
        ("a{b,{c,d}}e", "ade", True),
        ("a{,b}", "a", True),
        (r"\{a\}", "{a}", True),
        ("[a/b]", "a", True),
    ],
)
def test_globs(pattern: str, path: str, matches: bool) -> None:
    assert matches_glob(path, pattern) is matches


@pytest.mark.parametrize("pattern", ["drafts", "drafts/", "drafts/**", "**/drafts", "dr*"])
def test_a_directory_means_what_is_below_it(pattern: str) -> None:
    assert matches_any_glob("drafts/deep/a.md", [pattern])
    assert not matches_any_glob("final/a.md", [pattern])
