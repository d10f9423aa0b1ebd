"""`skillup view` in the browser: the list of runs, two of them together, a run that goes on."""

from __future__ import annotations

from tests.browser.conftest import Opener, served
from tests.support.project import Project


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


def test_a_run_that_goes_on_updates_without_losing_the_filter_or_the_focus(
    project: Project, open_page: Opener
) -> None:
    go = project.root / "go"
    case = """
        input: {prompt: Hello!}
        assertions: [{contains: hello}]
        scripted: [{steps: [{run: "while [ ! -e %s ]; do sleep 0.1; done"}], say: "Hello."}]
        """
    project.write(
        {
            "cases/eval.yaml": "name: slow\n",
            "cases/a.yaml": (case % "/dev/null").replace("while", "true; while"),
            "cases/b.yaml": case % go,
        }
    )
    with project.start("run", "cases", "-j", "1", "--quiet") as run:
        runs = project.root / ".skillup" / "runs"
        while run.poll() is None and not list(runs.glob("2*/trials/*/*/*/*/grading.json")):
            run.poll()
        for address in served(project, str(runs)):
            with open_page(address) as seen:
                with seen.arriving():
                    seen.page.locator("#rows a").first.click()
                seen.page.fill("#filter-text", "b ")
                seen.page.wait_for_selector("#rows .status-RUNNING")
                go.touch()
                seen.page.wait_for_selector("#rows .status-PASS")
                assert seen.cases() == ["b"]
                assert seen.page.input_value("#filter-text") == "b "
                assert seen.page.evaluate("document.activeElement.id") == "filter-text"
                seen.page.wait_for_selector("h1:has-text('2 of 2 trials passed')")
        run.wait(timeout=60)


SEEN = """(hidden) => {
  Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_a_tab_that_nobody_sees_lets_go_of_its_connection_and_catches_up(
    open_page: Opener, viewed: str
) -> None:
    with open_page(viewed) as seen:
        seen.page.evaluate(SEEN, True)
        with (
            seen.page.expect_request(lambda request: request.url.endswith("/api/runs")),
            seen.page.expect_request(lambda request: request.url.endswith("/api/events")),
        ):
            seen.page.evaluate(SEEN, False)
