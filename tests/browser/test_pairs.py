"""Two runs side by side, and two trials of one case: what differs, and by which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Opener
from tests.browser.made import made
from tests.browser.pages import Opened
from tests.support.pages import Page, page_of


def changes(seen: Opened) -> list[str | None]:
    """The changes of the cases that are listed, not folded away."""
    rows = seen.page.locator(".sides > .scroll tbody tr").all()
    return [row.get_attribute("data-change") for row in rows]


def test_where_nothing_changed_one_line_says_so_and_the_cases_are_a_click_away(
    show: Opener, runs: Path
) -> None:
    page = page_of(runs / "report.html")
    for row in page.index["sides"]["rows"]:
        row["change"] = "same"
    with show(page) as seen:
        assert seen.page.inner_text(".sides .nothing") == "No case came out otherwise."
        assert changes(seen) == []
        seen.page.click(".sides .same > summary")
        assert seen.page.is_visible(".sides-table")


def test_what_changed_is_listed_and_a_pair_stands_in_two_columns_aligned_by_turn(
    show: Opener, runs: Path
) -> None:
    """`tour` failed only in the second run; others, of eight trials, came out in each way."""
    report = page_of(runs / "report.html")
    index, details = report.index, report.details
    index["sides"]["summary"] = ["1 case regressed (tour)"]
    index["sides"]["changed"] = ["The model of claude changed from a to b"]
    tour, *others = (r for r in index["sides"]["rows"] if r["b"] and r["a"])
    tour.update(
        next(r for r in index["sides"]["rows"] if r["case_id"] == "tour" and r["a"]),
        change="regressed", how_sure="p 0.0143", case_changed=True,
    )  # fmt: skip
    here = tour["b"]["n"]
    tour["a"] = {**tour["a"], "status": "PASS", "n": 900}
    for row, (status, passed) in zip(others, (("PASS", 8), ("FAIL", 6), ("FAIL", 0)), strict=False):
        row.update(
            change="fewer_passes", b={**row["b"], "status": status, "passed": passed, "judged": 8}
        )
    for row in others[3:]:
        row["change"] = "same"
    index["sides"]["rows"] = [tour, *others]
    details[900] = {**details[here], "n": 900, "turns": details[here]["turns"][:2]}
    with show(report) as seen:
        page = seen.page
        assert changes(seen) == ["regressed", *["fewer_passes"] * 3]
        lines = ["The model of claude changed from a to b.", "1 case regressed (tour)."]
        assert seen.texts(".sides-summary li") == lines
        first = page.locator('[data-change="regressed"] td').first.inner_text()
        assert first.split("\n") == ["▼ regressed", "p 0.0143"]
        cells = [
            row.locator("td").nth(2).inner_text()
            for row in page.locator('[data-change="fewer_passes"]').all()
        ]
        for cell, said in zip(cells, ("● passed 8/8", "◐ flaky 6/8", "✗ failed 0/8"), strict=True):
            assert cell.startswith(said)
        with seen.arriving():
            page.click('[data-change="regressed"] .case-link')
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


def test_what_changed_since_the_nights_before_stands_first(show: Opener) -> None:
    lines = ["The model of claude changed from a to b", "1 case regressed (one)"]
    with show(made(2, compared=lines)) as seen:
        assert seen.texts(".sides li") == [f"{line}." for line in lines]


@pytest.fixture
def trials() -> Page:
    """One case with four trials of three turns; the second failed, by its answer."""
    page = made(4, turns=3)
    details = page.details
    for n, row in enumerate(page.index["rows"], start=1):
        row.update(case_id="one", trial=n, status="FAIL" if n == 2 else "PASS")
        detail = details[n]
        detail.update(case_id="one", trial=n)
        detail["grade"].update(status=row["status"], reason="turn 2: not found")
    answer(details[2], 2, "It opens at **nine**, as ever.")
    answer(details[3], 2, "It opens at **ten**, as ever.")
    details[2]["turns"][2]["items"][0]["arguments"]["command"] = "rm loans.csv"
    details[2]["turns"][1]["checks"][0].update(passed=False, evidence=None)
    return page


def answer(detail: dict[str, Any], number: int, text: str) -> None:
    turn = detail["turns"][number - 1]
    turn["response"] = turn["items"][1]["text"] = text
    turn["checks"][0]["evidence"] = None


def test_trials_are_offered_compared_walked_and_left(show: Opener, trials: Page) -> None:
    with show(trials) as seen:
        seen.go("#/trial/2")
        offered = [" ".join(text.split()) for text in seen.texts(".compare a")]
        assert offered == [f"● trial {n} passed" for n in (1, 3, 4)], (
            "the nearest that passed first"
        )
        with seen.arriving():
            seen.page.keyboard.press("c")
        assert "#/trial/2/with/1" in seen.page.url
        seen.go("#/trial/2/with/3")
        first = seen.page.inner_text(".first-difference")
        assert first == "First difference: turn 2 (answer, verdict); 2 turns differ"
        assert seen.texts(".side-A .differs") == ["nine"]
        assert seen.texts(".side-B .differs") == ["ten"]
        assert seen.page.locator(".pair-row.differing").count() == 2
        tops = [
            seen.page.locator(f'.side-{side} .turn[data-turn="3"]').bounding_box() for side in "AB"
        ]
        assert tops[0] is not None
        assert tops[1] is not None
        assert tops[0]["y"] == tops[1]["y"]
        seen.page.click(".first-difference a")
        seen.page.wait_for_function("() => document.activeElement.dataset.turn === '2'")
        assert seen.page.url.endswith("#/trial/2/with/3/turn/2")
        with seen.arriving():
            seen.page.keyboard.press("Escape")
        assert seen.page.url.endswith("#/trial/2")
        seen.go("#/trial/1/with/4")
        assert "are the same" in seen.page.inner_text(".first-difference")
        assert seen.page.locator(".differs, .differing").count() == 0
        seen.go("#/trial/2/with/99")
        assert "no such other trial" in seen.page.inner_text(".notice")
