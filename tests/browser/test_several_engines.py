"""Two engines: each case has a line for each, on the screen, on paper, and for the keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Opener
from tests.browser.made import large_report
from tests.browser.pages import Opened, address_of
from tests.browser.test_print import printed


def _rate(passed: int, judged: int) -> dict[str, float]:
    return {"passed": passed, "judged": judged, "rate": passed / judged, "low": 0.1, "high": 0.9}


def _uplift(engine: str, case: str | None) -> dict[str, Any]:
    rates = {"with_skill": _rate(1, 4), "without_skill": _rate(0, 4)}
    numbers = {"uplift": 0.25, "low": 0.1, "high": 0.4, "p": 0.2, "cases": 1}
    took = dict.fromkeys(("turns", "tokens", "cost_usd", "duration_ms"))
    return {"suite": "large", "engine": engine, "case_id": case, **rates, **numbers, **took}


@pytest.fixture
def seen(open_page: Opener, tmp_path: Path) -> Iterator[Opened]:
    """Three cases of four trials on two engines: one fails always, one at times, one at its end."""
    engines = {"free": None, "priced": 0.00020}
    uplift = [_uplift(engine, case) for engine in engines for case in (None, "case-1")]
    analysis = {"confidence": 0.95, "overall": None, "cases": [], "engines": [], "uplift": uplift}
    path = large_report(
        tmp_path / "report.html", 3, trials=4, engines=engines, analysis=analysis,
        summary={"cost_usd": 0.0176, "usage": {}, "duration_ms": 1000, "judging": None},
    )  # fmt: skip
    with open_page(address_of(path)) as page:
        yield page


def test_lines_cases_statuses_and_costs_of_each_engine(seen: Opened) -> None:
    assert seen.texts("#shown") == ["24 trials, 3 cases"]
    statuses = "all => all.map(c => c.dataset.status)"
    names = seen.page.eval_on_selector_all(".chip[data-status]", statuses)
    counts = dict(zip(names, map(int, seen.texts(".chip-count")), strict=True))
    assert counts == {"PASS": 4, "FAIL": 20, "FLAKY": 1}
    assert seen.texts('.chip[data-status="FLAKY"]') == ["◐ flaky case 1"]
    seen.page.locator("#uplift summary").click()
    assert seen.texts("#uplift details tbody th") == ["case-1, free", "case-1, priced"]
    assert "$0.018" in seen.page.inner_text("#totals")
    assert "$0.00020" in seen.page.inner_text("#rows")
    seen.go("#/?q=case-1")
    engines = []
    for _ in range(2):
        with seen.arriving():
            seen.page.keyboard.press("n")
        shown = "SK.page.index.rows.find((row) => row.n === SK.page.route.n).engine"
        engines.append(seen.page.evaluate(shown))
    assert engines == ["free", "priced"]
    seen.page.keyboard.press("n")
    assert seen.texts("#status") == ["No more failing cases"]


def test_no_number_is_cut_off(seen: Opened) -> None:
    cut = """() => [...document.querySelectorAll('.cases-table .number')]
      .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"""
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert seen.page.evaluate(cut) == []
    assert seen.page.evaluate(wide) == 0
    seen.page.set_viewport_size({"width": 400, "height": 900})
    cell = "getComputedStyle(document.querySelector('#rows .column-cost'), '::before').content"
    assert seen.page.evaluate(cell) == '"cost "', "a narrow table says what is the cost"
    seen.page.set_viewport_size({"width": 688, "height": 970})  # A4 without its margins
    printed(seen)
    assert seen.page.evaluate(cut) == []
    assert seen.page.evaluate(wide) == 0
