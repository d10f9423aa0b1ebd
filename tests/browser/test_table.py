"""The table of conversations and what stands around it: filter, sort, trials, engines, sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import Opener
from tests.browser.made import made
from tests.browser.pages import Opened, address_of
from tests.support.project import Project


def test_words_narrow_the_table_and_the_count_says_so(seen: Opened) -> None:
    everything = seen.cases()
    trials = seen.texts("#shown")[0].split()[0]
    seen.page.fill("#filter-text", "moody trial")
    assert seen.cases() == []
    assert seen.page.is_visible("#nothing")
    seen.page.fill("#filter-text", "MOODY")
    assert set(seen.cases()) == {"moody"}
    assert seen.texts("#shown") == [f"12 of {trials} trials, 1 case"]
    seen.page.fill("#filter-text", "-moody")
    assert "moody" not in seen.cases()
    assert len(seen.cases()) == len(everything) - 1
    seen.page.fill("#filter-text", "passed")
    assert seen.cases() == [], "not looked for in what all rows say"
    seen.page.click('[data-status="FAIL"]')
    seen.page.click("#clear")
    assert seen.cases() == everything
    assert seen.page.input_value("#filter-text") == ""


def test_conversations_are_searched_on_request(seen: Opened, open_page: Opener) -> None:
    seen.page.fill("#filter-text", "a book please.")
    assert seen.cases() == []
    seen.page.check("#filter-deep")
    seen.page.wait_for_selector("#rows tr")
    assert set(seen.cases()) == {"moody"}
    address = seen.page.url.removeprefix(seen.base)
    with open_page(seen.base) as other:
        other.go(address)
        other.page.wait_for_selector("#rows tr")
        assert set(other.cases()) == {"moody"}
        other.page.uncheck("#filter-deep")
        assert other.cases() == []


def test_statuses_tags_and_variants_are_choices_and_a_link_has_them(
    seen: Opened, open_page: Opener
) -> None:
    for status, cases in (("ERROR", {"closed"}), ("SKIP", {"closed", "gate"})):
        seen.page.click(f'[data-status="{status}"]')
        assert set(seen.cases()) == cases
        assert seen.page.get_attribute(f'[data-status="{status}"]', "aria-pressed") == "true"
    seen.page.click('[data-status="ERROR"]')
    assert set(seen.cases()) == {"gate"}
    seen.page.click("#clear")
    seen.page.select_option("#filter-tag", "branches")
    assert set(seen.cases()) == {"remove", "remove/refuse", "remove/agree"}
    seen.page.select_option("#filter-variant", "without_skill")
    assert len(seen.cases()) == 3
    seen.page.click(".bar-name.status-FAIL")
    assert seen.page.input_value("#filter-variant") == "with_skill"
    # A link reproduces the view.
    seen.page.click("#clear")
    seen.page.fill("#filter-text", "remove")
    seen.page.click('[data-status="FAIL"]')
    seen.page.click(".column-case button")
    shown = seen.cases()
    address = seen.page.url.removeprefix(seen.base)
    assert "q=remove" in address
    with open_page(seen.base) as other:
        other.go(address)
        assert other.cases() == shown
        assert other.page.input_value("#filter-text") == "remove"
        assert other.page.get_attribute('[data-status="FAIL"]', "aria-pressed") == "true"


def test_what_failed_comes_first_and_columns_sort_both_ways_and_back(seen: Opened) -> None:
    planned = seen.cases()
    for order, cases in (("ascending", sorted(planned)), ("descending", sorted(planned)[::-1])):
        seen.page.click(".column-case button")
        assert seen.cases() == cases
        assert seen.page.get_attribute("th.column-case", "aria-sort") == order
    seen.page.click(".column-case button")
    assert seen.cases() == planned
    seen.go("#/?variant=with_skill")
    words = [status.split()[-1] for status in seen.texts("#rows td.column-status .status")]
    order_of = ["failed", "flaky", "error", "skipped", "passed"].index
    assert words == sorted(words, key=order_of)
    # What is said is said by signs and words, not by colour.
    row = seen.page.locator("#rows tr", has_text="closed").first
    assert row.locator(".dot").all_inner_texts() == ["●", "!", "○"]
    said_aloud = row.locator(".dots").get_attribute("aria-label")
    assert said_aloud == "turn 1 ok, turn 2 error, turn 3 skipped"
    seen.go("#/")
    sentence = seen.page.inner_text("h1").replace("\u202f", " ")
    for said in (
        "passed with the skill",
        "95 % interval",
        "1 ended in an error (no verdict)",
        "1 skip",
    ):
        assert said in sentence
    assert seen.page.inner_text("#baseline").startswith("Without the skill ")


def test_the_first_lines_are_drawn_the_rest_on_request_and_a_filter_finds_all(show: Opener) -> None:
    with show(made(500)) as seen:
        assert len(seen.cases()) == 100
        assert seen.texts("#shown") == ["500 trials"]
        seen.page.fill("#filter-text", "number 499")
        assert seen.cases() == ["case-499"]
        seen.page.fill("#filter-text", "")
        assert seen.texts("#more") == ["Show 400 more"]
        seen.page.click("#more")
        seen.settled()
        assert seen.focused() == seen.cases()[100]
        assert len(set(seen.cases())) == 500
        elements = "document.querySelectorAll('*').length"
        before = seen.page.evaluate(elements)
        seen.go("#/trial/7")
        assert seen.page.evaluate(elements) < before
        assert seen.page.inner_text(".verdict") == "● passed score 1 all checks passed"
        assert seen.page.locator(".tool-inside").count() == 0
        seen.page.locator(".tool summary").first.click()
        assert seen.page.locator(".tool-inside").count() == 1


# What the first page has below the table: bars beside their numbers, and sums.


def test_the_first_page_of_a_real_run_has_its_charts_and_tables(seen: Opened) -> None:
    assert seen.page.locator("#trend tbody tr").count() == 3
    assert "%" in seen.page.inner_text("#trend")
    assert "points" in seen.page.inner_text("#uplift")
    assert seen.texts("#flaky a")[0] == "moody"
    assert seen.texts("#totals tbody th") == ["Agent", "Judges", "Simulated user"]
    assert "4 messages" in seen.page.inner_text("#totals")
    ran = seen.page.inner_text("#ran").split(" · ")
    assert [part.split()[0] for part in ran] == ["suite", "skill", "scripted"]


def test_where_conversations_first_fail_and_what_is_not_known(show: Opener) -> None:
    with show(made(4, trials=5, user_costs=(0.5, None))) as seen:
        assert seen.texts("#failures tbody th")[-2:] == ["turn 5", "end"]
        assert seen.texts("#failures td.number") == ["0", "0", "0", "0", "7", "5"]
        assert "of 20 with a verdict" in seen.page.inner_text("#failures .axis")
        assert seen.texts("#totals tbody tr:last-child td.number") == ["–", "–"]


# Cases that were held several times: a line each, unfolding to their trials.


def rate(passed: int, judged: int) -> dict[str, object]:
    return {"passed": passed, "judged": judged, "rate": passed / judged, "low": 0.2, "high": 0.9}


@pytest.fixture
def many(show: Opener) -> Iterator[Opened]:
    """100 cases of five trials; `case-1` and `case-3` failed always, `case-2` in trials 2 and 4."""
    cases = [
        {"suite": "large", "case_id": f"case-{n}", "engine": "scripted", "variant": "with_skill",
         "rate": rate(3 if n == 2 else 5, 5), "flaky": n == 2, "at_k": [], "turns": []}
        for n in range(1, 4)
    ]  # fmt: skip
    cases.append({**cases[0], "variant": "without_skill", "flaky": True})
    overall = {"passed": 488, "judged": 500, "rate": 0.976, "low": 0.5, "high": 0.99, "cases": 100}
    analysis = {"confidence": 0.95, "overall": overall, "cases": cases, "engines": []}
    warnings = ["the budget cannot be counted"]
    with show(made(100, trials=5, analysis=analysis, warnings=warnings)) as page:
        yield page


def test_a_case_is_one_line_that_says_how_often_it_passed_where_it_fails_and_why(
    many: Opened,
) -> None:
    sentence = many.page.inner_text("h1").replace("\u202f", " ")
    assert "488 of 500 trials passed" in sentence
    assert "(98 %; mean of 100 cases 98 %, 95 % interval 50–99 %)" in sentence
    assert many.page.inner_text(".warning") == "the budget cannot be counted"
    assert many.texts("#flaky h2") == ["Flaky (1)"], "what it does without the skill is no matter"
    assert many.cases()[:4] == ["case-1", "case-3", "case-2", "case-4"]
    failing, at_end, flaky = (many.page.locator("#rows tr").nth(at) for at in range(3))
    assert failing.locator(".status").inner_text() == "✗ failed"
    assert failing.locator(".trial-dots").inner_text().split() == ["0/5", *"✗✗✗✗✗"]
    assert failing.locator(".where").inner_text() == "turn 5 ✗5"
    assert failing.locator(".reason").all_inner_texts() == ["5 of 5 turn 5: not found"]
    assert flaky.locator(".status").inner_text() == "◐ flaky"
    assert flaky.locator(".trial-dots").inner_text().split() == ["3/5", *"●✗●✗●"]
    assert flaky.locator(".reason").all_inner_texts() == ["2 of 5 turn 5: not found"]
    assert many.texts("#shown") == ["500 trials, 100 cases"]
    # A failed check of the whole conversation has a mark at the end.
    assert at_end.locator(".where").inner_text() == "end ✗5"
    many.page.locator(".toggle").nth(1).click()
    dots = many.page.locator("#rows tr.trial .dots").first
    assert dots.inner_text().split() == [*"●●●●●", "✗", "end"]
    assert "a check of the whole conversation failed" in str(dots.get_attribute("aria-label"))
    # A part of the bar leaves its trials in the table, also of an unfolded case.
    many.page.click(".bar-name.status-FAIL")
    assert "status=FAIL" in many.page.url
    assert many.page.get_attribute('[data-status="FAIL"]', "aria-pressed") == "true"
    assert many.cases() == ["case-1", "case-3", "case-2"]
    assert many.texts("#shown") == ["12 of 500 trials, 3 cases"]
    many.page.locator(".toggle").nth(1).click()
    many.page.locator(".toggle").nth(2).click()
    assert many.texts("#rows tr.trial .trial-name") == ["trial 2", "trial 4"]
    hrefs = many.page.locator("#rows tr.trial a").evaluate_all("(all) => all.map((a) => a.hash)")
    assert all("status=FAIL" in href for href in hrefs)


def test_the_keyboard_unfolds_walks_and_folds_and_paper_has_each_reason_once(many: Opened) -> None:
    toggle = many.page.locator(".toggle").first
    many.page.keyboard.press("j")
    many.page.keyboard.press("ArrowRight")
    assert toggle.get_attribute("aria-expanded") == "true"
    assert many.texts("#rows tr.trial .trial-name") == [f"trial {n}" for n in range(1, 6)]
    many.page.keyboard.press("j")
    many.page.keyboard.press("j")
    assert many.focused() == "trial 2"
    with many.arriving():
        many.page.keyboard.press("Enter")
    assert "#/trial/2" in many.page.url
    with many.arriving():
        many.page.keyboard.press("Escape")
    assert many.focused() == "trial 2"
    many.page.keyboard.press("ArrowLeft")
    assert many.focused() == "case-1"
    assert many.page.locator("#rows tr.trial").count() == 0
    many.printed()
    assert [title.split()[0] for title in many.texts("#annex h1")] == ["case-1", "case-3", "case-2"]


# Two engines: each case has a line with a cell for each, on the screen, on paper, and for the keys.


def uplift(engine: str, case: str | None) -> dict[str, Any]:
    rates = {"with_skill": rate(1, 4), "without_skill": rate(0, 4)}
    numbers = {"uplift": 0.25, "low": 0.1, "high": 0.4, "p": 0.2, "cases": 1}
    took = dict.fromkeys(("turns", "tokens", "cost_usd", "duration_ms"))
    return {"suite": "large", "engine": engine, "case_id": case, **rates, **numbers, **took}


@pytest.fixture
def both(show: Opener) -> Iterator[Opened]:
    """Three cases of four trials on two engines: one fails always, one at times, one at its end."""
    engines = {"free": None, "priced": 0.00020}
    uplifts = [uplift(engine, case) for engine in engines for case in (None, "case-1")]
    analysis = {"confidence": 0.95, "overall": None, "cases": [], "engines": [], "uplift": uplifts}
    summary = {"cost_usd": 0.0176, "usage": {}, "duration_ms": 1000, "judging": None}
    page = made(3, trials=4, engines=engines, analysis=analysis, summary=summary)
    with show(page) as seen:
        yield seen


def test_lines_cases_statuses_and_costs_of_each_engine(both: Opened) -> None:
    assert both.texts("#shown") == ["24 trials, 3 cases"]
    statuses = "all => all.map(c => c.dataset.status)"
    names = both.page.eval_on_selector_all(".chip[data-status]", statuses)
    counts = dict(zip(names, map(int, both.texts(".chip-count")), strict=True))
    assert counts == {"PASS": 4, "FAIL": 20, "FLAKY": 1}
    assert both.texts('.chip[data-status="FLAKY"]') == ["◐ flaky case 1"]
    both.page.locator("#uplift summary").click()
    assert both.texts("#uplift details tbody th") == ["case-1, free", "case-1, priced"]
    assert "≥ $0.018" in both.page.inner_text("#totals"), "one engine does not tell"
    assert "$0.00020" in both.page.inner_text("#rows")
    # A line for each case, a cell for each engine; a trial stands below its own.
    assert both.texts("#rows th .case-link") == ["case-1", "case-3", "case-2"]
    assert both.texts("thead .column-side") == ["free", "priced"]
    passed = [cell.split()[0] for cell in both.texts("#rows .column-side")]
    assert passed == ["0/4", "0/4", "0/4", "0/4", "2/4", "2/4"]
    assert both.texts("#rows .column-status") == ["✗ failed", "✗ failed", "◐ flaky"]
    both.page.locator(".toggle").first.click()
    assert both.texts("#rows .trial-name")[3:5] == ["free, trial 4", "priced, trial 1"]
    both.page.locator("#rows .column-side:nth-child(4) .dot").first.click()
    shown = "SK.page.index.rows.find((row) => row.n === SK.page.route.n).engine"
    both.page.wait_for_selector(".case-head")
    assert both.page.evaluate(shown) == "priced"
    both.go("#/?q=case-1")
    engines = []
    for _ in range(2):
        with both.arriving():
            both.page.keyboard.press("n")
        engines.append(both.page.evaluate(shown))
    assert engines == ["free", "priced"]
    both.page.keyboard.press("n")
    assert both.texts("#status") == ["No more failing cases"]


def test_no_number_is_cut_off(both: Opened) -> None:
    cut = """() => [...document.querySelectorAll('.cases-table .number')]
      .filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)"""
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert both.page.evaluate(cut) == []
    assert both.page.evaluate(wide) == 0
    both.page.set_viewport_size({"width": 400, "height": 900})
    assert both.page.evaluate(wide) == 0
    both.go("#/?engine=priced")
    cell = "getComputedStyle(document.querySelector('#rows .column-cost'), '::before').content"
    assert both.page.evaluate(cell) == '"cost "', "a narrow table says what is the cost"
    both.page.set_viewport_size({"width": 688, "height": 970})  # A4 without its margins
    both.printed()
    assert both.page.evaluate(cut) == []
    assert both.page.evaluate(wide) == 0


# `--until-decided`: what was decided of each case, beside its rate, and of all.


ALWAYS = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report: eight trials at most, and surely above 50 % are five passes."""
    project = Project(tmp_path_factory.mktemp("decided"))
    sometimes = ALWAYS.replace("{say: fine}", "{say: fine, probability: 0.5}, {say: bad}")
    project.write(
        {
            "eval.yaml": "name: d\n",
            "always.yaml": ALWAYS,
            "never.yaml": ALWAYS.replace("say: fine", "say: bad"),
            "sometimes.yaml": sometimes,
        }
    )
    options = ("--until-decided", "--trials", "8", "--pass-rate", "0.5", "-j", "1", "--quiet")
    project.run("run", ".", *options, "--report", "html", "--out", "out")
    return address_of(project.root / "out/report.html")


def line_of(seen: Opened, case: str) -> str:
    """The cell of a case that has its rate."""
    cell = seen.page.locator(f'#rows tr:has(.case-link:text-is("{case}")) .column-turns')
    return " ".join(cell.inner_text().replace("\u202f", " ").split())


def test_what_was_decided_of_each_case_and_of_all(open_page: Opener, decided: str) -> None:
    with open_page(decided) as seen:
        page = seen.page
        assert line_of(seen, "always") == (
            "5/5 ● ● ● ● ● surely above 50 % after 5 trials, 3 not needed"
        )
        assert line_of(seen, "never").startswith(
            "0/5 ✗ ✗ ✗ ✗ ✗ surely below 50 % after 5 trials, 3 not needed"
        )
        assert "undecided at 50 % after 8 trials" in line_of(seen, "sometimes")
        assert page.inner_text("#deciding") == (
            "Decided after 5 trials; 6 of 24 trials were not needed; 1 case not decided. "
            "Rates of decided cases lie further from the threshold than the truth, on average."
        )
        assert page.inner_text("h1").endswith("; 6 not needed.")
        # What was not needed is neither failed nor missing.
        assert "not run" not in page.inner_text("main")
        assert seen.texts("#shown") == ["18 trials, 3 cases"]
        assert page.locator(".bar-part.status-NOT_NEEDED").count() == 0
        always = page.locator('#rows tr:has(.case-link:text-is("always"))')
        assert always.locator(".status").inner_text() == "● passed"
        assert always.locator(".column-score").get_attribute("title") == "mean of 5 trials"
        always.locator(".toggle").click()
        assert seen.texts("#rows tr.trial .trial-name") == [f"trial {n}" for n in range(1, 6)]
        always.locator(".toggle").click()
        # Those trials are shown on request.
        page.click('.chip[data-status="NOT_NEEDED"]')
        assert sorted(seen.cases()) == ["always", "never"]
        assert seen.texts("#shown") == ["6 of 24 trials, 2 cases"]
        page.locator(".toggle").first.click()
        assert seen.texts("#rows tr.trial .trial-name") == [f"trial {n}" for n in range(6, 9)]
        with seen.arriving():
            page.click("#rows tr.trial .trial-name >> nth=0")
        said = " ".join(page.inner_text(".verdict").split())
        assert said == "· not needed its case was decided without it"


def test_it_is_legible_and_in_its_place(open_page: Opener, decided: str) -> None:
    with open_page(decided, scheme="dark", width=360) as seen:
        assert seen.wrong() == []


def test_while_a_run_goes_on_its_lines_say_what_is_decided(show: Opener) -> None:
    case = {"suite": "large", "engine": "scripted", "variant": "with_skill", "case_id": "case-1"}
    decision = {"verdict": "below", "threshold": 0.5, "error_rate": 0.05, "trials": 5, "saved": 3}
    with show(made(3, trials=5, decided=[{**case, "decision": decision}])) as page:
        assert "surely below 50 % after 5 trials, 3 not needed" in line_of(page, "case-1")
        assert "surely" not in line_of(page, "case-2")
