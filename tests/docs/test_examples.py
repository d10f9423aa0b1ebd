"""Every YAML example of the documentation does what the page says."""

from __future__ import annotations

import pytest

from tests.docs.blocks import PAGES, blocks_of
from tests.docs.examples import RUNS, VALIDATES, Example, complete_files, examples_of, yaml_blocks
from tests.support.project import Project

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
EXAMPLES = examples_of(BLOCKS)


def _examples(verb: str) -> pytest.MarkDecorator:
    chosen = [example for example in EXAMPLES if example.verb == verb]
    return pytest.mark.parametrize("example", chosen, ids=[example.place for example in chosen])


def test_every_yaml_block_says_what_is_done_with_it() -> None:
    assert [block.place for block in yaml_blocks(BLOCKS) if block.marker is None] == []


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
