"""report.html of large runs: below its limit, with ordinary conversations whole."""

from __future__ import annotations

from pathlib import Path

from skillup.reports.html.build import html_report
from tests.support.large_runs import write_large_run
from tests.support.pages import page_of


def test_five_hundred_cases_of_five_turns_are_below_ten_megabytes(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "r", 500, turns=5, tools=5, output=300)

    html = html_report(run)

    assert len(html) < 10_000_000
    assert len(html) > 5_000_000, "no more is left out than has to be"
    page = page_of(html)
    assert len(page.details) == len(page.index["rows"]) == 500
    turn = page.details[500]["turns"][4]
    assert "left out; whole in the raw stream" in turn["items"][2]["result"]["content"]
    assert turn["checks"][0]["evidence"] is None, "it found nothing"
    assert page.details[499]["turns"][4]["checks"][0]["evidence"] is not None


def test_an_ordinary_run_is_whole_and_the_longest_give_way_first(tmp_path: Path) -> None:
    small = write_large_run(tmp_path / "small", 20)
    assert b"left out" not in b"".join(
        str(detail).encode() for detail in page_of(html_report(small)).details.values()
    )


def test_the_same_run_gives_the_same_report(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "r", 3)
    assert html_report(run) == html_report(run)


def test_secrets_are_masked_once_more(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "r", 2)
    for file in run.rglob("*.json"):
        file.write_text(file.read_text().replace("confirmed", "hunter2-secret"))

    html = html_report(run, mask=lambda text: text.replace("hunter2-secret", "***KEY***"))

    page = page_of(html)
    assert b"hunter2" not in html
    assert "***KEY***" in page.details[1]["turns"][0]["response"]
    assert "hunter2" not in str(page.details)
