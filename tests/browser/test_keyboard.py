"""Everything can be reached and left with the keyboard alone."""

from __future__ import annotations

from itertools import pairwise

from tests.browser.pages import Opened


def test_the_table_is_walked_opened_and_come_back_to(seen: Opened) -> None:
    press = seen.page.keyboard.press
    press("Tab")
    assert seen.focused() == "Skip to the content"
    before = seen.page.url
    press("Enter")
    assert seen.page.evaluate("document.activeElement.id") == "main"
    assert seen.page.url == before
    cases = seen.cases()
    press("j")
    assert seen.focused() == cases[0]
    outline = seen.page.evaluate("getComputedStyle(document.activeElement).outline")
    assert "solid 2px" in outline, "what has the focus is seen"
    press("?")
    assert "filter" in seen.page.inner_text("#help")
    press("Escape")
    seen.page.wait_for_selector("#help", state="detached")
    assert seen.focused() == cases[0]
    press("j")
    press("ArrowDown")
    assert seen.focused() == cases[2]
    press("k")
    assert seen.focused() == cases[1]
    row = seen.page.evaluate("document.activeElement.closest('tr').dataset.n")
    with seen.arriving():
        press("Enter")
    assert f"#/trial/{row}" in seen.page.url
    with seen.arriving():
        press("Escape")
    assert seen.page.evaluate("document.activeElement.closest('tr').dataset.n") == row
    press("/")
    seen.page.keyboard.type("jkn?/t")
    assert seen.page.input_value("#filter-text") == "jkn?/t", "letters are letters there"
    seen.page.fill("#filter-text", "tour")
    press("ArrowDown")
    assert seen.focused() == "tour"


def test_n_and_p_go_from_one_failing_case_to_the_next(seen: Opened) -> None:
    seen.go("#/?status=FAIL")
    places = []
    for key in ("n", "n", "p"):
        with seen.arriving():
            seen.page.keyboard.press(key)
        places.append((seen.page.url, seen.page.evaluate("SK.page.details[0].case_id")))
    assert places[0] == places[2]
    assert places[0][1] != places[1][1]
    assert all("status=FAIL" in url for url, _ in places)
    # Keys that are pressed in a hurry count, too.
    seen.go("#/?status=FAIL")
    numbers = seen.page.eval_on_selector_all("#rows tr", "all => all.map((row) => row.dataset.n)")
    first = dict(reversed([*zip(seen.cases(), map(int, numbers), strict=True)]))
    order = [first[case] for case in dict.fromkeys(seen.cases())]
    with seen.arriving():
        seen.page.keyboard.press("n")
    # Both before the browser has said that the address is another one.
    seen.page.evaluate(
        """() => { for (let at = 0; at < 2; at++) document.body.dispatchEvent(
             new KeyboardEvent('keydown', { key: 'n', bubbles: true })); }"""
    )
    seen.page.wait_for_function("(n) => SK.page.details[0].n === n", arg=order[2])
    assert f"/trial/{order[2]}?" in seen.page.url


def test_brackets_go_through_the_trials_of_a_case_and_keep_the_turn(seen: Opened) -> None:
    moody = seen.page.evaluate(
        "SK.page.index.rows.filter((r) => r.case_id === 'moody').map((r) => r.n)"
    )
    seen.go(f"#/trial/{moody[0]}")
    seen.page.wait_for_selector(".turn")
    second = """document.querySelector('.turn[data-turn="2"]')"""
    seen.page.evaluate("document.body.style.paddingBottom = '3000px'")
    seen.page.evaluate(f"{second}.scrollIntoView({{ behavior: 'instant' }})")
    for key, n in (("]", moody[1]), ("]", moody[2]), ("[", moody[1])):
        with seen.arriving():
            seen.page.keyboard.press(key)
        assert seen.page.evaluate("SK.page.details[0].n") == n
        assert seen.page.evaluate("document.activeElement.dataset.turn") == "2"
    seen.page.keyboard.press("?")
    assert "next trial of this case" in seen.page.inner_text("#help")


def test_tab_passes_through_a_conversation_without_being_caught(seen: Opened) -> None:
    tour = seen.page.locator("#rows tr", has_text="tour").first.get_attribute("data-n")
    seen.go(f"#/trial/{tour}")
    number = "[...document.querySelectorAll('a,button,summary,input,select')].indexOf"
    places = []
    for _ in range(25):
        seen.page.keyboard.press("Tab")
        places.append(seen.page.evaluate(f"{number}(document.activeElement)"))
    visited = [place for place in places if place >= 0]
    assert len(set(visited)) > 15
    assert all(later != earlier for earlier, later in pairwise(visited))


def test_landmarks_and_names_are_there(seen: Opened) -> None:
    for selector in ("header", "main", "nav[aria-label]", "[role=search]", "[role=status]"):
        assert seen.page.locator(selector).count() >= 1
    nameless = """[...document.querySelectorAll('button, a[href], input, select')]
      .filter((node) => !(node.getAttribute('aria-label') || node.textContent.trim()
        || node.labels && node.labels.length)).map((node) => node.outerHTML)"""
    assert seen.page.evaluate(nameless) == []
