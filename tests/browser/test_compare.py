"""Two trials of one case beside each other: where they went apart, and by which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.made import large_report
from tests.browser.pages import address_of


@pytest.fixture
def trials(tmp_path: Path) -> str:
    """A report of one case with four trials of three turns; the second failed, by its answer."""
    path = large_report(tmp_path / "r.html", 4, turns=3)
    index, details = data_of(path)
    for n, row in enumerate(index["rows"], start=1):
        row.update(case_id="one", trial=n, status="FAIL" if n == 2 else "PASS")
        detail = details[str(n)]
        detail.update(case_id="one", trial=n)
        detail["grade"].update(status=row["status"], reason="turn 2: not found")
    answer(details["2"], 2, "It opens at **nine**, as ever.")
    answer(details["3"], 2, "It opens at **ten**, as ever.")
    details["2"]["turns"][2]["items"][0]["arguments"]["command"] = "rm loans.csv"
    details["2"]["turns"][1]["checks"][0].update(passed=False, evidence=None)
    pages = [(n, packed(detail)) for n, detail in details.items()]
    path.write_bytes(page_html(index, pages, title="trials"))
    return address_of(path)


def answer(detail: dict[str, Any], number: int, text: str) -> None:
    turn = detail["turns"][number - 1]
    turn["response"] = turn["items"][1]["text"] = text
    turn["checks"][0]["evidence"] = None


def test_trials_are_offered_compared_walked_and_left(open_page: Opener, trials: str) -> None:
    with open_page(trials) as seen:
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
