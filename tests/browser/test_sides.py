"""Two runs side by side: what flipped, and both conversations, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.pages import Opened, address_of


@pytest.fixture
def flipped(open_page: Opener, runs: Path, tmp_path: Path) -> Iterator[Opened]:
    """The real report, but `tour` failed only in the second run; with both its conversations."""
    index, details = data_of(runs / "report.html")
    rows = [r for r in index["sides"]["rows"] if r["b"] and r["a"]]
    tour = next(r for r in rows if r["case_id"] == "tour")
    here = str(tour["b"]["n"])
    tour.update(change="newly_failing", a={**tour["a"], "status": "PASS", "n": 900})
    tour["case_changes"] = ["checks of turn 2", "context"]
    index["sides"]["rows"] = rows
    other = {**details[here], "n": 900, "turns": details[here]["turns"][:2]}
    pages = [(n, packed(one)) for n, one in {**details, "900": other}.items()]
    path = tmp_path / "flipped.html"
    path.write_bytes(page_html(index, pages, title="two runs"))
    with open_page(address_of(path)) as seen:
        yield seen


@pytest.fixture
def alike(open_page: Opener, runs: Path, tmp_path: Path) -> Iterator[Opened]:
    """The real report, in which every case came out as before."""
    index, details = data_of(runs / "report.html")
    for row in index["sides"]["rows"]:
        row["change"] = "same"
    path = tmp_path / "alike.html"
    path.write_bytes(page_html(index, [(n, packed(one)) for n, one in details.items()], title="-"))
    with open_page(address_of(path)) as seen:
        yield seen


def test_where_nothing_changed_one_line_says_so_and_the_cases_are_a_click_away(
    alike: Opened,
) -> None:
    assert alike.page.inner_text(".sides .nothing") == "No case came out otherwise."
    assert not alike.page.is_visible(".sides-table")
    alike.page.click('button[data-change="same"]')
    assert alike.page.is_visible(".sides-table")
    assert set(changes(alike)) == {"same"}
    assert not alike.page.is_visible(".sides .nothing")


def changes(seen: Opened) -> list[str | None]:
    """The changes of the cases that are listed."""
    rows = seen.page.locator(".sides-table tbody tr").all()
    return [row.get_attribute("data-change") for row in rows]


def test_what_changed_is_listed_and_what_did_not_on_request(flipped: Opened) -> None:
    assert "newly_failing" in changes(flipped)
    assert "same" not in changes(flipped)
    flipped.page.click('[data-change="newly_failing"]')
    assert changes(flipped) == ["newly_failing"]
    assert "change=newly_failing" in flipped.page.url
    flipped.page.click('button[data-change="same"]')
    assert set(changes(flipped)) == {"newly_failing", "same"}


def test_of_several_trials_the_count_is_of_what_the_word_beside_it_says(
    open_page: Opener, runs: Path, tmp_path: Path
) -> None:
    index, details = data_of(runs / "report.html")
    row = next(r for r in index["sides"]["rows"] if r["a"] and r["b"])
    path = tmp_path / "counted.html"
    pages = [(n, packed(one)) for n, one in details.items()]
    for status, passed, said in (
        ("PASS", 8, "● passed 8 of 8"),
        ("FAIL", 6, "◐ passed 6 of 8"),
        ("FAIL", 0, "✗ failed 8 of 8"),
    ):
        row.update(change="changed", b={**row["b"], "status": status, "passed": passed, "held": 8})
        path.write_bytes(page_html(index, pages, title="two runs"))
        with open_page(address_of(path)) as seen:
            cell = seen.page.locator('[data-change="changed"] td').nth(2)
            assert cell.inner_text().startswith(said)


def test_a_pair_stands_in_two_columns_aligned_by_turn(flipped: Opened) -> None:
    with flipped.arriving():
        flipped.page.click('[data-change="newly_failing"] .case-link')
    said = "The case was changed between the two runs: checks of turn 2, context."
    assert flipped.page.inner_text(".case-changes") == said
    for number in (1, 2):
        boxes = [
            flipped.page.locator(f'.side-{side} .turn[data-turn="{number}"]').bounding_box()
            for side in "AB"
        ]
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[0]["y"] == boxes[1]["y"]
        assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    assert flipped.page.locator('.side-A .turn[data-turn="3"]').count() == 0
    last = flipped.page.locator(".pair-row").last
    for side in "AB":
        checks = last.locator(f".side-{side} .conversation-checks")
        assert "files_exist loans.csv" in checks.inner_text()
    flipped.page.locator(".side-B .check summary").first.click()
    flipped.page.wait_for_selector(".side-B mark.lit")
    assert flipped.page.locator(".side-A .lit").count() == 0, "evidence is shown on its own side"


def test_what_it_comes_to_stands_above_the_cases_and_how_sure_each_is_beside_it(
    open_page: Opener, runs: Path, tmp_path: Path
) -> None:
    index, details = data_of(runs / "report.html")
    assert index["sides"]["summary"][0].startswith("no case got worse")
    index["sides"]["summary"] = ["1 case is newly failing, surely", "pass rate: lower in 1"]
    moody = next(row for row in index["sides"]["rows"] if row["case_id"] == "moody")
    moody.update(change="newly_failing", how_sure="surely (p 0.0143)")
    path = tmp_path / "sure.html"
    pages = [(n, packed(one)) for n, one in details.items()]
    path.write_bytes(page_html(index, pages, title="two runs"))
    with open_page(address_of(path)) as seen:
        assert seen.texts(".sides-summary li") == [
            "1 case is newly failing, surely.",
            "Pass rate: lower in 1.",
        ]
        said = seen.page.locator('[data-change="newly_failing"] td').first.inner_text()
        assert said.split("\n") == ["▼ newly failing", "surely (p 0.0143)"]
