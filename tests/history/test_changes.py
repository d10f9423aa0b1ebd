"""What differs between what two runs used: named, what explains most first."""

from __future__ import annotations

from skillup.history.changes import Change, changes
from skillup.history.runs import About

BEFORE = About(
    branch="main",
    commit="0123456789abcdef",
    repository="github.com/o/r",
    host="one",
    skillup_version="1",
    models={"claude": "sonnet-1", "codex": "gpt"},
    cli_versions={"claude": "2.0.1"},
    profiles={"claude": "p1"},
    skills={"greeter": "s1", "gone": "g"},
    skill_files={"greeter": {"SKILL.md": "a", "old.md": "b", "same.md": "c"}, "gone": {"x": "y"}},
    cases={"demo/x": "1", "demo/y": "1"},
)
AFTER = About(
    branch="other",
    commit="0123456789abcdef",
    dirty=True,
    repository="github.com/o/r",
    host="two",
    skillup_version="2",
    models={"claude": "sonnet-2", "new": "m"},
    cli_versions={"claude": "2.0.2"},
    profiles={"claude": "p2"},
    skills={"greeter": "s2"},
    skill_files={"greeter": {"SKILL.md": "A", "new.md": "b", "same.md": "c"}},
    cases={"demo/x": "2", "demo/y": "1", "demo/z": "1"},
)


def test_all_that_differs_is_named_what_explains_most_first() -> None:
    assert changes(BEFORE, AFTER) == [
        Change("model", "claude", "sonnet-1", "sonnet-2"),
        Change("cli", "claude", "2.0.1", "2.0.2"),
        Change("skill", "gone", "g", ""),
        Change("skill", "greeter", "s1", "s2", ("SKILL.md", "new.md", "old.md")),
        Change("case", "demo/x", "1", "2"),
        Change("profile", "claude", "p1", "p2"),
        Change("skillup", "", "1", "2"),
        Change("host", "", "one", "two"),
        Change("commit", "", "0123456789ab", "0123456789ab with uncommitted changes"),
    ]


def test_what_is_the_same_or_not_known_is_no_change() -> None:
    assert changes(BEFORE, BEFORE) == []
    assert changes(About(), AFTER) == changes(AFTER, About()) == []
