"""Two runs side by side: what flipped, and both conversations, turn by turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.pages import Opened, address_of


def write(path: Path, index: dict[str, Any], details: dict[str, Any]) -> str:
    pages = [(n, packed(one)) for n, one in details.items()]
    path.write_bytes(page_html(index, pages, title="two runs"))
    return address_of(path)


def changes(seen: Opened) -> list[str | None]:
    """The changes of the cases that are listed, not folded away."""
    rows = seen.page.locator(".sides > .scroll tbody tr").all()
    return [row.get_attribute("data-change") for row in rows]


def test_where_nothing_changed_one_line_says_so_and_the_cases_are_a_click_away(
    open_page: Opener, runs: Path, tmp_path: Path
) -> None:
    index, details = data_of(runs / "report.html")
    for row in index["sides"]["rows"]:
        row["change"] = "same"
    with open_page(write(tmp_path / "alike.html", index, details)) as seen:
        assert seen.page.inner_text(".sides .nothing") == "No case came out otherwise."
        assert changes(seen) == []
        seen.page.click(".sides .same > summary")
        assert seen.page.is_visible(".sides-table")


def test_what_changed_is_listed_and_a_pair_stands_in_two_columns_aligned_by_turn(
    open_page: Opener, runs: Path, tmp_path: Path
) -> None:
    """`tour` failed only in the second run; others, of eight trials, came out in each way."""
    index, details = data_of(runs / "report.html")
    index["sides"]["summary"] = ["1 case is newly failing, surely", "pass rate: lower in 1"]
    tour, *others = (r for r in index["sides"]["rows"] if r["b"] and r["a"])
    tour.update(
        next(r for r in index["sides"]["rows"] if r["case_id"] == "tour" and r["a"]),
        change="newly_failing", how_sure="surely (p 0.0143)", case_changed=True,
    )  # fmt: skip
    here = str(tour["b"]["n"])
    tour["a"] = {**tour["a"], "status": "PASS", "n": 900}
    for row, (status, passed) in zip(others, (("PASS", 8), ("FAIL", 6), ("FAIL", 0)), strict=False):
        row.update(
            change="changed", b={**row["b"], "status": status, "passed": passed, "judged": 8}
        )
    for row in others[3:]:
        row["change"] = "same"
    index["sides"]["rows"] = [tour, *others]
    details["900"] = {**details[here], "n": 900, "turns": details[here]["turns"][:2]}
    with open_page(write(tmp_path / "flipped.html", index, details)) as seen:
        page = seen.page
        assert changes(seen) == ["newly_failing", *["changed"] * 3]
        lines = ["1 case is newly failing, surely.", "Pass rate: lower in 1."]
        assert seen.texts(".sides-summary li") == lines
        first = page.locator('[data-change="newly_failing"] td').first.inner_text()
        assert first.split("\n") == ["▼ newly failing", "surely (p 0.0143)"]
        cells = [
            row.locator("td").nth(2).inner_text()
            for row in page.locator('[data-change="changed"]').all()
        ]
        for cell, said in zip(cells, ("● passed 8/8", "◐ flaky 6/8", "✗ failed 0/8"), strict=True):
            assert cell.startswith(said)
        with seen.arriving():
            page.click('[data-change="newly_failing"] .case-link')
        assert page.inner_text(".case-changed") == "The case was changed between the two runs."
        for number in (1, 2):
            a, b = (
                page.locator(f'.side-{side} .turn[data-turn="{number}"]').evaluate(
                    "(node) => node.getBoundingClientRect()"
                )
                for side in "AB"
            )
            assert a["y"] == b["y"]
            assert a["right"] <= b["x"]
        assert page.locator('.side-A .turn[data-turn="3"]').count() == 0
        last = page.locator(".pair-row").last
        for side in "AB":
            checks = last.locator(f".side-{side} .conversation-checks")
            assert "files_exist loans.csv" in checks.inner_text()
        page.locator(".side-B .check summary").first.click()
        page.wait_for_selector(".side-B mark.lit")
        assert page.locator(".side-A .lit").count() == 0, "evidence is shown on its own side"
