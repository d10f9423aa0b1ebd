"""The verb itself, as the command line calls it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from skillup.cli.commands.suites import import_suite
from skillup.cli.entry import run_app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "importing.md"
BLOCK = re.compile(r"^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)


def run(*arguments: str) -> int:
    app = typer.Typer()
    app.command()(import_suite)
    code = app(list(arguments), standalone_mode=False)
    return code if isinstance(code, int) else 0


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tests: [{id: a, mode: conversation}]", "suite.yaml:1:9: tests[0]: a conversation"),
        ("tests: [", "suite.yaml:1:"),
        ("apple: 1", "not a suite that is known here"),
    ],
)
def test_a_broken_file_is_a_message_and_exit_code_2(
    here: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (here / "suite.yaml").write_text(text)
    assert run_app(["import", "suite.yaml", "--out", "new"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
    assert not (here / "new").exists()


def test_the_example_becomes_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, wanted, report = BLOCK.findall(PAGE.read_text("utf-8"))
    monkeypatch.chdir(tmp_path)
    Path("questions.yaml").write_text(source, encoding="utf-8")
    run("questions.yaml", "--out", "limits")
    assert capsys.readouterr().err == report
    case = Path("limits/cases/knows-the-limit.yaml").read_text(encoding="utf-8")
    assert case == wanted
