"""Files with mistakes in them, as `skillup validate` tells them: only located lines, exit 2."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from skillup.cli.main import app_for
from tests.load.broken import CASES, PROFILES, SUITES
from tests.support.project import Project
from tests.support.trees import make_tree

LOCATED = re.compile(r"[^\s:][^:]*\.yaml:\d+:\d+:( warning:)?( [^\s:]+:)? \S.*")
COUNTED = re.compile(
    r"([1-9]\d* (suite|case|profile)s?(, |: ))*not valid \(\d+ errors?, \d+ warnings?\)"
)
GOOD = "input: {prompt: hi}\nassertions: [{contains: x}]\n"


def validate(root: Path, monkeypatch: pytest.MonkeyPatch, *paths: str) -> list[str]:
    """The lines that are told; checks that there is nothing else, and that it ends with 2."""
    monkeypatch.chdir(root)
    result = CliRunner().invoke(app_for(["validate"]), ["validate", *paths], standalone_mode=False)
    assert result.exception is None
    assert result.return_value == 2
    assert result.stdout == ""
    *lines, counted = result.stderr.splitlines()
    assert COUNTED.fullmatch(counted), counted
    for line in lines:
        assert LOCATED.fullmatch(line), line
        assert "Traceback" not in line
        assert "pydantic" not in line
    return [line for line in lines if " warning: " not in line]


def unexpected(lines: list[str], rows: list[tuple[str, str, str]], file: str) -> list[str]:
    """What differs from one line for each row, whose file is in a folder of the row's number."""
    found = []
    for number, (text, place, phrase) in enumerate(rows):
        own = [line for line in lines if line.startswith(f"{number}/")]
        start = f"{number}/{file}:{place}: "
        if len(own) != 1 or not own[0].startswith(start) or phrase not in own[0]:
            found.append(f"{text!r}: {own}, and not {place} {phrase!r}")
    return found


@pytest.mark.parametrize(
    ("rows", "file", "beside"),
    [
        (CASES, "c.yaml", {"eval.yaml": "cases: {files: [c.yaml]}\n"}),
        (SUITES, "eval.yaml", {"c.yaml": GOOD}),
        (PROFILES, "engines/p.yaml", {"cases/eval.yaml": "{}\n", "cases/c.yaml": GOOD}),
    ],
    ids=("cases", "suites", "profiles"),
)
def test_each_mistake_is_one_located_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: Any, file: str, beside: dict[str, str]
) -> None:
    for number, (text, _, _) in enumerate(rows):
        make_tree(tmp_path / str(number), {**beside, file: text})
    folders = [f"{n}/{file}" if file.startswith("engines") else str(n) for n in range(len(rows))]
    assert unexpected(validate(tmp_path, monkeypatch, *folders), rows, file) == []


def test_all_mistakes_of_all_files_are_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(
        tmp_path,
        {
            "cases/eval.yaml": "nmae: x\ncases: {parallelism: 0}\n",
            "cases/a.yaml": "id: a\nimput: 1\n",
            "cases/b.yaml": "a: [\n",
            "cases/c.yaml": 'input: {prompt: "<<gone>>"}\nassertions: [{contains: x, turn: 2}]\n',
            "engines/p.yaml": "engine: nope\n",
            "engines/q.yaml": "engine: codex\nretries: many\n",
        },
    )
    places = [line.split(": ")[0] for line in validate(tmp_path, monkeypatch)]
    assert places == [
        "cases/eval.yaml:1:1",
        "cases/eval.yaml:2:22",
        "cases/a.yaml:2:1",
        "cases/b.yaml:2:1",
        "cases/c.yaml:1:17",
        "cases/c.yaml:2:34",
        "engines/p.yaml:1:9",
        "engines/q.yaml:2:10",
    ]


def test_a_file_of_another_shape_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["input: 3\n", "- a\n", "", "input:\n", "1: 2\n", "judge: []\ninput: [x]\n"]
    make_tree(tmp_path, {"eval.yaml": "name: d\n"})
    make_tree(tmp_path, {f"{number}.yaml": text for number, text in enumerate(texts)})
    files = {line.partition(":")[0] for line in validate(tmp_path, monkeypatch, ".")}
    assert files == {f"{number}.yaml" for number in range(len(texts))}


def test_the_same_is_told_by_the_command_itself(project: Project) -> None:
    project.write({"cases/eval.yaml": "nmae: x\n", "cases/c.yaml": "input: {prompt: [1]}\n"})
    outcome = project.run("validate")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.splitlines()[0].startswith("cases/eval.yaml:1:1: nmae: unknown key")
    told = project.run("run").stderr.splitlines()
    assert told[:-1] == outcome.stderr.splitlines()[:-1]
    assert told[-1] == "2 problems found"
