"""What differs between what two runs used: named, what explains most first."""

from __future__ import annotations

from dataclasses import replace

from skillup.history.comparison import changes
from skillup.history.runs import About
from skillup.schema.past_runs import Change
from tests.support.outcomes import a_run

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
    cases={"demo/x": "1", "demo/y": "1", "demo/w": "1"},
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
    cases={"demo/x": "2", "demo/w": "1", "demo/z": "1"},
)


def changed(a: About, b: About, asked: str = "same") -> list[Change]:
    runs = [replace(a_run("r", {}), about=about, selection_key="same") for about in (a, b)]
    return list(changes(runs[0], replace(runs[1], selection_key=asked)))


def test_all_that_differs_is_named_what_explains_most_first() -> None:
    found = changed(BEFORE, AFTER)
    assert [(one.kind, one.name, one.before, one.after) for one in found] == [
        ("model", "claude", "sonnet-1", "sonnet-2"),
        ("cli", "claude", "2.0.1", "2.0.2"),
        ("skill", "gone", "g", ""),
        ("skill", "greeter", "s1", "s2"),
        ("case", "demo/x", "1", "2"),
        ("case", "demo/y", "1", ""),
        ("case", "demo/z", "", "1"),
        ("profile", "claude", "p1", "p2"),
        ("skillup", "", "1", "2"),
        ("host", "", "one", "two"),
        ("commit", "", "0123456789ab", "0123456789ab with uncommitted changes"),
    ]
    assert [one.files for one in found if one.files] == [["SKILL.md", "new.md", "old.md"]]


def test_what_is_the_same_or_not_known_is_no_change() -> None:
    assert not [*changed(BEFORE, BEFORE), *changed(About(), AFTER), *changed(AFTER, About())]
    # A run that was asked for other cases has lost none.
    cases = [one.name for one in changed(BEFORE, AFTER, "other") if one.kind == "case"]
    assert cases == ["demo/x"]
