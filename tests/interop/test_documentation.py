"""The example of docs/importing.md is what really happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from skillup.cli.commands.import_suite import import_suite

PAGE = Path(__file__).resolve().parents[2] / "docs" / "importing.md"
BLOCK = re.compile(r"^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_example_becomes_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, wanted, report = BLOCK.findall(PAGE.read_text("utf-8"))
    monkeypatch.chdir(tmp_path)
    Path("questions.yaml").write_text(source, encoding="utf-8")
    app = typer.Typer()
    app.command()(import_suite)
    app(["questions.yaml", "--out", "limits"], standalone_mode=False)
    assert capsys.readouterr().err == report
    case = Path("limits/cases/knows-the-limit.yaml").read_text(encoding="utf-8")
    assert case.partition("\n")[2] == wanted
