"""`skillup view` in the browser: the list of runs, two of them together, a run that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Route

from skillup.errors import RunDirectoryError
from skillup.store import RunDirectory
from tests.browser.conftest import Opener
from tests.browser.pages import TWO_FRAMES, Opened
from tests.support.project import Project
from tests.support.viewing import viewing


def test_runs_are_listed_opened_put_side_by_side_and_left(open_page: Opener, viewed: str) -> None:
    with open_page(viewed) as seen:
        page = seen.page
        assert seen.texts("#shown") == ["2 runs"]
        assert "library-desk" in page.inner_text("#rows")
        page.keyboard.press("j")
        with seen.arriving():
            page.keyboard.press("Enter")
        assert "trials passed" in page.inner_text("h1")
        with seen.arriving():
            page.locator("#rows .case-link", has_text="tour").first.click()
        assert page.locator(".conversation").count() == 1
        link = page.locator(".turn .raw a", has_text="stdout.jsonl").first
        href = link.evaluate("(node) => node.href")
        text = page.evaluate("async (href) => (await fetch(href)).text()", href)
        assert "session_started" in text
        assert "record.json" in seen.texts(".facts a")
        with seen.arriving():
            page.keyboard.press("Escape")
        assert "trials passed" in page.inner_text("h1")
        with seen.arriving():
            page.select_option("#against", index=1)
        page.click(".sides .same > summary")
        with seen.arriving():
            rows = page.locator(".sides-table tr", has_text="tour")
            rows.filter(has_not_text="without").locator(".case-link").click()
        assert page.locator('.side-A .turn[data-turn="3"]').count() == 1
        assert page.locator('.side-B .turn[data-turn="3"]').count() == 1
        for title in ("trials passed", "Runs"):
            with seen.arriving():
                page.keyboard.press("Escape")
            assert title in page.inner_text("h1")


def test_the_list_is_asked_for_anew_when_its_stamp_is_another(
    open_page: Opener, viewed: str
) -> None:
    with open_page(viewed) as seen:
        seen.page.route("**/api/stamp", lambda route: route.fulfill(json={"stamp": "another"}))
        with seen.page.expect_request(lambda request: request.url.endswith("/api/runs")):
            pass


# Whoever goes on before an answer has come sees what they went to, not what they had left.


@contextmanager
def late(seen: Opened, address: str) -> Iterator[None]:
    """What the page asks for by `address` is answered when this is left."""
    held: list[Route] = []
    seen.page.route(address, lambda route: held.append(route))
    yield
    with seen.page.expect_response(address):
        held[0].continue_()
    seen.page.evaluate(TWO_FRAMES)


def test_a_run_that_comes_late_does_not_take_the_place_of_another(
    open_page: Opener, viewed: str
) -> None:
    with open_page(viewed) as seen:
        first, second = seen.texts("#rows .case-link")
        with late(seen, f"**/runs/{first}/index.json"):
            with seen.page.expect_request("**/index.json"):
                seen.page.locator("#rows a").first.click()
            seen.go(f"#/run/{second}/")
        seen.go(f"#/run/{second}/?sort=case")
        assert seen.page.evaluate("SK.page.index.run.run_id") == second


def test_a_conversation_that_comes_late_leaves_keys_and_title_alone(
    open_page: Opener, viewed: str
) -> None:
    with open_page(viewed) as seen:
        run = seen.texts("#rows .case-link")[0]
        seen.go(f"#/run/{run}/")
        one, two, closed = seen.page.evaluate(
            """() => ['tour', 'gate', 'closed'].map((name) =>
               SK.page.index.rows.find((row) => row.case_id === name).n)"""
        )
        with late(seen, f"**/trials/{one}.json"):
            with seen.page.expect_request("**/trials/*.json"):
                seen.page.evaluate(f"location.hash = '#/run/{run}/trial/{one}'")
            seen.go(f"#/run/{run}/trial/{two}")
        assert seen.page.title().startswith("gate ")
        assert seen.page.inner_text("h1").startswith("gate")
        seen.go(f"#/run/{run}/trial/{closed}")
        assert seen.texts(".error-box .error-raw a")[-1] == "turn-02.stdout.jsonl"


# A trial that is looked at while it is held fills in by itself, without an error on the way.

CASE = """
    tags: [slow]
    input:
      turns:
        - Hello.
        - {content: "Wait a little.", assertions: [{contains: waited}]}
        - Goodbye.
    scripted:
      - {turn: 1, steps: [{run: ls}], say: "Hello, **you**."}
      - {turn: 2, steps: [{run: "while [ ! -e %s ]; do sleep 0.1; done"}], say: "I waited."}
      - {turn: 3, say: "Bye."}
    """


@pytest.fixture
def go(project: Project) -> Path:
    """The file that lets the run go on, once it is there."""
    return project.root / "go"


def _turn_of_a(runs: Path) -> int:
    for file in runs.glob("2*/run.sqlite"):
        with suppress(RunDirectoryError), RunDirectory.open(file.parent) as run:
            return run.turn_under_way("a/scripted/with_skill/1")
    return 0


@pytest.fixture
def live(project: Project, open_page: Opener, go: Path) -> Iterator[Opened]:
    """The page of a run whose case `a` is in its second turn, and waits; `b` is not begun."""
    cases = {f"cases/{name}.yaml": CASE % go for name in ("a", "b")}
    project.write({"cases/eval.yaml": "name: slow\n", **cases})
    runs = project.root / ".skillup" / "runs"
    with project.start("run", "cases", "-j", "1", "--quiet") as run:
        while run.poll() is None and _turn_of_a(runs) < 2:
            run.poll()
        with viewing(project, str(runs)) as viewer, open_page(viewer.url) as page:
            with page.arriving():
                page.page.locator("#rows a").first.click()
            yield page
        go.touch()
        run.wait(timeout=60)


def test_a_run_that_goes_on_updates_without_losing_the_filter_or_the_focus(
    live: Opened, go: Path
) -> None:
    live.page.fill("#filter-text", "a ")
    live.page.wait_for_selector("#rows .status-RUNNING")
    go.touch()
    live.page.wait_for_selector("#rows .status-PASS")
    assert live.cases() == ["a"]
    assert live.page.input_value("#filter-text") == "a "
    assert live.page.evaluate("document.activeElement.id") == "filter-text"
    live.page.wait_for_selector("h1:has-text('2 of 2 trials passed')")


def test_a_run_is_told_as_it_goes_on_and_turns_appear_as_they_end(live: Opened, go: Path) -> None:
    live.page.wait_for_selector("#rows .status-RUNNING")
    assert live.page.inner_text("h1") == "No trial has a verdict; 1 running; 1 waiting."
    assert live.texts("#rows .status") == ["◌ running", "– waiting"]
    assert "not run" not in live.page.inner_text("main")
    dots = live.page.locator("#rows .status-row-RUNNING .dots")
    assert dots.get_attribute("title") == "turn 1 not judged yet"
    assert dots.inner_text() == "·"
    live.page.select_option("#filter-tag", "slow")
    assert live.cases() == ["a", "b"], "trials that are not over are found by their tags"
    with live.arriving():
        live.page.click('#rows .case-link:text-is("b")')
    assert "not started yet" in live.page.inner_text(".verdict")
    with live.arriving():
        live.page.keyboard.press("Escape")
    with live.arriving():
        live.page.click('#rows .case-link:text-is("a")')
    assert live.page.inner_text('.turn[data-turn="1"] .answer') == "Hello, you."
    assert "not judged yet" in live.page.inner_text('.turn[data-turn="1"]')
    assert "turn 2 is running" in live.page.inner_text(".live-end")
    live.page.click('.turn[data-turn="1"] .tool summary')
    live.page.evaluate("document.body.style.paddingBottom = '2000px'; scrollTo(0, 120)")
    go.touch()
    live.page.wait_for_selector('.turn[data-turn="2"] .check-PASS')
    assert live.page.evaluate("scrollY") == 120
    assert live.page.locator('.turn[data-turn="1"] .tool[open]').count() == 1
    assert live.page.locator(".live-end").count() == 0
    assert "passed" in live.page.inner_text(".verdict")
