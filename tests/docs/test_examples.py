"""Every YAML example of the documentation does what the page says.

Before each block stands a marker, ``<!-- ACTION: VALUE, KEY: VALUE -->``:

``run: pass|fail|skip|error``   the block is a file; ``skillup run .`` must come out like that
``validate: ok|warning|wrong``  the same with ``skillup validate .``
``also``, ``also: PATH``        another file of the example before it
``output``                      each line is in what the command of the example before it says
``case: OUTCOME, with: NAME``   top-level keys, put into the one case of the example NAME
``suite: OUTCOME, with: NAME``  the same, put into its eval.yaml
``assertions: OUTCOME, with: NAME``  a list of checks, in place of that case's `assertions`
``profile: PATH``               a profile that must validate
``workflow: NAME``              of a CI system; run by tests/docs/test_ci.py

Options: ``name`` (for ``with``), ``score``, ``kind`` (of the error). A YAML file's path is in its
first line, ``# cases/a.yaml``. An example without an eval.yaml gets the smallest there is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from skillup.load.yaml_reader import parse_yaml
from tests.docs.blocks import PAGES, ROOT, Block, blocks_of
from tests.support.project import Project

RUNS = {"pass": 0, "fail": 1, "skip": 0, "error": 3}
"""What `run:` may expect, and the exit code of it."""
VALIDATES = {"ok": 0, "warning": 0, "wrong": 2}
_FRAGMENTS = ("case", "suite", "assertions")
_PATH_LINE = re.compile(r"# (?P<path>[\w./-]+\.ya?ml)\b")


@dataclass(frozen=True)
class Example:
    place: str
    verb: str
    """``run``, ``validate`` or ``profile``."""
    outcome: str
    files: dict[str, str]
    options: dict[str, str] = field(default_factory=dict)
    output: tuple[str, ...] = ()
    """Lines that the command prints."""


class BadExampleError(Exception):
    """A block whose marker cannot be followed; the message begins with its place."""


def examples_of(blocks: Iterable[Block]) -> list[Example]:
    """The examples of all pages, in order. Raises BadExampleError."""
    found: list[Example] = []
    named: dict[str, Example] = {}
    for block in blocks:
        marker = block.marker
        if marker is None or marker.action == "workflow":
            continue
        if marker.action in ("also", "output"):
            if not found:
                raise BadExampleError(f"{block.place}: `{marker.action}` comes first")
            found[-1] = _with(found[-1], block)
            if "name" in found[-1].options:
                named[found[-1].options["name"]] = found[-1]
            continue
        base = _base(block, named)
        found.append(_example(block, base))
        if "name" in marker.options:
            named[marker.options["name"]] = found[-1]
    return found


def _base(block: Block, named: dict[str, Example]) -> dict[str, str]:
    assert block.marker is not None
    name = block.marker.options.get("with")
    if name is None:
        return {}
    if name not in named:
        raise BadExampleError(f"{block.place}: there is no example `{name}` before it")
    return dict(named[name].files)


def _example(block: Block, base: dict[str, str]) -> Example:
    marker = block.marker
    assert marker is not None
    if marker.action == "run" and marker.value in RUNS:
        return Example(block.place, "run", marker.value, base | _file(block), marker.options)
    if marker.action == "validate" and marker.value in VALIDATES:
        return Example(block.place, "validate", marker.value, base | _file(block), marker.options)
    if marker.action == "profile":
        return Example(block.place, "profile", "ok", {marker.value: block.text}, marker.options)
    if marker.action in _FRAGMENTS and marker.value in {*RUNS, *VALIDATES}:
        verb = "run" if marker.value in RUNS else "validate"
        files = base | _merged(block, base)
        return Example(block.place, verb, marker.value, files, marker.options)
    raise BadExampleError(f"{block.place}: what does `{marker.action}: {marker.value}` mean?")


def _with(example: Example, block: Block) -> Example:
    assert block.marker is not None
    if block.marker.action == "output":
        return replace(example, output=tuple(block.text.splitlines()))
    return replace(example, files=example.files | _file(block))


def _file(block: Block) -> dict[str, str]:
    """The block as a file: the path is in the marker (`also: PATH`) or in the first line."""
    marker = block.marker
    assert marker is not None
    path = marker.value if marker.action == "also" else ""
    if not path:
        first = _PATH_LINE.match(block.text)
        if first is None:
            raise BadExampleError(f"{block.place}: its first line should be `# PATH.yaml`")
        path = first["path"]
    return {path: block.text}


def _merged(block: Block, base: dict[str, str]) -> dict[str, str]:
    """The one case of `base` (or its suite) with the block's top-level keys put into it."""
    assert block.marker is not None
    target = _suite_path(base) if block.marker.action == "suite" else _case_path(block, base)
    data: dict[str, Any] = _data(base[target]) if target in base else {}
    given = _data(("assertions:\n" if block.marker.action == "assertions" else "") + block.text)
    return {target: json.dumps(data | given, indent=1)}


def _data(text: str) -> Any:
    return parse_yaml(text, Path("example.yaml")).data


def _case_path(block: Block, base: dict[str, str]) -> str:
    cases = [path for path in base if path.endswith(".yaml") and not path.endswith("eval.yaml")]
    if len(cases) != 1:
        raise BadExampleError(f"{block.place}: `with` names an example of {len(cases)} cases")
    return cases[0]


def _suite_path(files: dict[str, str]) -> str:
    """Where the suite is, or belongs."""
    given = next((path for path in files if path.endswith("eval.yaml")), None)
    inside = any(path.startswith("evals/") for path in files)
    return given or ("evals/eval.yaml" if inside else "eval.yaml")


def complete_files(example: Example) -> dict[str, str]:
    """The example's files, with the smallest suite if it shows none."""
    return {_suite_path(example.files): "name: example\n", **example.files}


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
EXAMPLES = examples_of(BLOCKS)


def _examples(verb: str) -> pytest.MarkDecorator:
    chosen = [example for example in EXAMPLES if example.verb == verb]
    return pytest.mark.parametrize("example", chosen, ids=[example.place for example in chosen])


def test_every_yaml_block_says_what_is_done_with_it() -> None:
    assert [b.place for b in BLOCKS if b.language in ("yaml", "yml") and b.marker is None] == []


def test_the_documentation_has_examples_of_every_kind() -> None:
    assert {example.verb for example in EXAMPLES} == {"run", "validate", "profile"}
    assert {example.outcome for example in EXAMPLES} >= {"pass", "fail", "skip", "error", "wrong"}


@_examples("run")
def test_an_example_that_is_run_comes_out_as_the_page_says(
    example: Example, project: Project
) -> None:
    project.write(complete_files(example))
    outcome = project.run("run", ".", "--json")
    assert outcome.exit_code == RUNS[example.outcome], outcome.stderr or outcome.stdout
    assert " warning:" not in outcome.stderr, outcome.stderr
    grades = outcome.data["cases"]
    assert example.outcome.upper() in {grade["status"] for grade in grades}
    if "score" in example.options:
        assert [grade["score"] for grade in grades] == [float(example.options["score"])]
    if "kind" in example.options:
        assert [grade["error"]["kind"] for grade in grades] == [example.options["kind"]]
    told = "\n".join(grade["reason"] for grade in grades) + outcome.stderr
    _expect_output(example, told)


@_examples("validate")
def test_an_example_that_is_validated_comes_out_as_the_page_says(
    example: Example, project: Project
) -> None:
    project.write(complete_files(example))
    outcome = project.run("validate", ".")
    assert outcome.exit_code == VALIDATES[example.outcome], outcome.stderr
    assert (" warning:" in outcome.stderr) == (example.outcome == "warning"), outcome.stderr
    _expect_output(example, outcome.stderr)


@_examples("profile")
def test_an_example_of_a_profile_is_valid(example: Example, project: Project) -> None:
    project.write(example.files)
    outcome = project.run("validate", *example.files)
    assert outcome.exit_code == 0, outcome.stderr
    assert " warning:" not in outcome.stderr, outcome.stderr


def _expect_output(example: Example, told: str) -> None:
    missing = [line for line in example.output if line.strip() not in told]
    assert not missing, told


# The tables of `docs/trials.md` are what its example prints.


def _shown_lines() -> list[list[str]]:
    """What stands indented before the engines' section, in words; times differ each time."""
    page = (ROOT / "docs" / "trials.md").read_text("utf-8").splitlines()
    start = page.index("    $ skillup run .") + 1
    lines = takewhile(lambda line: line != "## Several engines", page[start:])
    shown = [line.split() for line in lines if line.startswith("    ")]
    return [words for words in shown if words[0] != "time"]


def test_the_tables_are_those_of_the_example(project: Project) -> None:
    (example,) = [each for each in EXAMPLES if each.options.get("name") == "nightly"]
    project.write(example.files)

    printed = [line.split() for line in project.run("run", ".").stderr.splitlines()]

    shown = _shown_lines()
    assert len(shown) > 15
    assert [words for words in shown if words not in printed] == []
