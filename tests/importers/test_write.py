from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from skillup.errors import InvalidFilesError, UsageError
from skillup.importers.convert import import_files
from skillup.importers.write import to_yaml
from skillup.load.suites import load_paths
from skillup.load.yaml_reader import parse_yaml
from tests.support.project import Project

SUITE = "metadata: {name: n, model: m}\nevals:\n  - {prompt: One, checks: [{match: '*x*'}]}\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "suite.yaml"
    path.parent.mkdir()
    path.write_text(SUITE)
    return path


def test_what_is_there_is_not_touched_without_force(source: Path, tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    (out / "cases").mkdir(parents=True)
    (out / "cases" / "one.yaml").write_text("mine")
    elsewhere.write_text("mine")
    (out / "eval.yaml").symlink_to(elsewhere)
    with pytest.raises(UsageError, match="already there") as refused:
        import_files([source], out)
    assert "--force" in (refused.value.hint or "")
    assert (out / "cases" / "one.yaml").read_text() == "mine"
    import_files([source], out, force=True)
    assert "prompt: One" in (out / "cases" / "one.yaml").read_text()
    assert elsewhere.read_text() == "mine", "a link is replaced, and not followed"
    with pytest.raises(UsageError, match="cannot write"):
        import_files([source], elsewhere)


def test_several_files_get_a_folder_each_unless_one_is_broken(source: Path, tmp_path: Path) -> None:
    other, broken = source.with_name("other.yaml"), source.with_name("broken.yaml")
    other.write_text(SUITE)
    broken.write_text("metadata: {name: n}\nevals: [{prompt: x}]\n")
    with pytest.raises(InvalidFilesError):
        import_files([source, broken], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    first, second = import_files([source, other], tmp_path / "out")
    assert (first.directory.name, second.directory.name) == ("n", "n-2")
    assert len(load_paths([tmp_path / "out"]).suites) == 2


def test_names_that_differ_in_case_only_get_files_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    tests = [{"id": name, "input": "x", "criteria": "c"} for name in ("A b", "a-b", "../../x", "é")]
    path.write_text(json.dumps(tests))
    (imported,) = import_files([path], tmp_path / "out")
    names = [case.file for case in imported.draft.cases]
    assert names == ["cases/a-b.yaml", "cases/a-b-2.yaml", "cases/x.yaml", "cases/case.yaml"]
    assert [case.id for case in imported.draft.cases] == ["A b", "a-b", "../../x", "é"]


def test_tests_that_wait_for_each_other_are_told_where_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "tests.yaml"
    path.write_text(
        "- {id: a, input: x, criteria: c, depends_on: [b]}\n"
        "- {id: b, input: x, criteria: c, depends_on: [a]}\n"
    )
    with pytest.raises(InvalidFilesError) as circle:
        import_files([path], tmp_path / "out")
    (problem,) = circle.value.problems
    assert (problem.file, problem.line) == (path, 1)
    assert "a → b → a" in problem.message
    assert not (tmp_path / "out").exists()


HERE = Path("written.yaml")
TRICKY = [
    "yes", "on", "NO", "null", "~", "", "1e3", "0o17", "0x1F", "1_000", "1:30", "2026-01-02",
    "=", "<<", "- a", "a: b", "# no", "{{ x }}", "<<name>>", "*alias", "&anchor", "!tag", "@at",
    "a\nb\n", "a\n\n\nb", " leading\nline", "trailing \nline", "tab\there", "\ttab first\nline",
    "\nfirst line empty", "a\r\nb", "\x85\u2028\u2029", "\x07bell", "\ufeffmark", "😀", "'\"`",
    "%x",
    "| pipe", "> fold", "x" * 300 + " y" * 80, "...", "---", "a #b", "k: |\n  v\n",
]  # fmt: skip

texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(TRICKY)
values = st.recursive(
    texts | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(texts, values, min_size=1, max_size=4))
def test_our_reader_reads_back_what_was_written(data: dict[str, Any]) -> None:
    assert parse_yaml(to_yaml(data), HERE).data == data


@pytest.mark.parametrize("text", TRICKY)
def test_readers_of_yaml_1_1_read_the_same_text(text: str) -> None:
    written = to_yaml({"a": text, "b": [text]})
    assert yaml.safe_load(written) == {"a": text, "b": [text]}
    assert parse_yaml(written, HERE).data == {"a": text, "b": [text]}


# The verb itself, as the command line calls it.

PAGE = Path(__file__).resolve().parents[2] / "docs" / "importing.md"
BLOCK = re.compile(r"^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tests: [{id: a, mode: conversation}]", "suite.yaml:1:9: tests[0]: a conversation"),
        ("tests: [", "suite.yaml:1:"),
        ("apple: 1", "not a suite that is known here"),
    ],
)
def test_a_broken_file_is_a_message_and_exit_code_2(project: Project, text: str, said: str) -> None:
    outcome = project.write({"suite.yaml": text}).run("import", "suite.yaml", "--out", "new")
    assert (outcome.exit_code, said in outcome.stderr) == (2, True), outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert not (project.root / "new").exists()


def test_the_example_becomes_what_the_page_shows(project: Project) -> None:
    source, wanted, report = BLOCK.findall(PAGE.read_text("utf-8"))
    project.write({"questions.yaml": source})
    assert project.run("import", "questions.yaml", "--out", "limits").stderr == report
    assert (project.root / "limits/cases/knows-the-limit.yaml").read_text("utf-8") == wanted
