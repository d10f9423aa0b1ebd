"""Whoever goes on before an answer has come sees what they went to, not what they had left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Route

from tests.browser.conftest import Opener
from tests.browser.pages import TWO_FRAMES, Opened


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
        one, two = seen.page.evaluate(
            """() => ['tour', 'gate'].map((name) =>
               SK.page.index.rows.find((row) => row.case_id === name).n)"""
        )
        with late(seen, f"**/trials/{one}.json"):
            with seen.page.expect_request("**/trials/*.json"):
                seen.page.evaluate(f"location.hash = '#/run/{run}/trial/{one}'")
            seen.go(f"#/run/{run}/trial/{two}")
        assert seen.page.title().startswith("gate ")
        assert seen.page.inner_text("h1").startswith("gate")
