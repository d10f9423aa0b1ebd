"""The tables of `docs/trials.md` are what its example prints."""

from __future__ import annotations

from itertools import takewhile

from tests.docs.blocks import ROOT
from tests.docs.test_examples import EXAMPLES
from tests.support.project import Project

_LAST = "## Several engines"


def _shown_lines() -> list[list[str]]:
    """What stands indented before the engines' section, in words; times differ each time."""
    page = (ROOT / "docs" / "trials.md").read_text("utf-8").splitlines()
    start = page.index("    $ skillup run . --quiet") + 1
    lines = takewhile(lambda line: line != _LAST, page[start:])
    shown = [line.split() for line in lines if line.startswith("    ")]
    return [words for words in shown if words[0] != "time"]


def test_the_tables_are_those_of_the_example(project: Project) -> None:
    (example,) = [each for each in EXAMPLES if each.options.get("name") == "nightly"]
    project.write(example.files)

    printed = [line.split() for line in project.run("run", ".", "--quiet").stderr.splitlines()]

    shown = _shown_lines()
    assert len(shown) > 15
    assert [words for words in shown if words not in printed] == []
