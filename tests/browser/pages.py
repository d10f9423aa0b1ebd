"""Pages in the browser, watched: a report makes no request, no dialog and no error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Request

COUNTED = "window.changesOfAddress = 0; addEventListener('hashchange', () => changesOfAddress++);"
TWO_FRAMES = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""


@dataclass
class Opened:
    """What happened while a page was open."""

    page: Page
    base: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def go(self, address: str) -> None:
        """To an address within the page, such as `#/trial/3`."""
        here, place = self.page.url, self.base + address
        if here != place and here.split("#")[0] == self.base:
            with self.arriving():
                self.page.goto(place)
        else:
            self.page.goto(place)
            self.settled()

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """Around what changes the address: at the end the page has drawn what it says by then."""
        before = self.page.evaluate("changesOfAddress")
        yield
        self.page.wait_for_function("(before) => changesOfAddress > before", arg=before)
        self.settled()

    def settled(self) -> None:
        """Wait until the page has drawn what its address says, and has put the focus there."""
        self.page.wait_for_selector("main:not([aria-busy]) > *")
        self.page.evaluate(TWO_FRAMES)

    def open_case(self, case: str) -> None:
        """The first trial of the case in the table, with the skill."""
        row = self.page.locator(f'#rows tr:has(.case-link:text-is("{case}"))').first
        self.go(f"#/trial/{row.get_attribute('data-n')}")
        self.page.wait_for_selector(".conversation")

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that are found."""
        return [text.strip() for text in self.page.locator(selector).all_inner_texts()]

    def cases(self) -> list[str]:
        """The cases in the table, in order."""
        return self.texts("#rows tr .case-link")

    def focused(self) -> str:
        """The text of what has the focus."""
        return str(self.page.evaluate("document.activeElement.textContent.trim()"))


@contextmanager
def opened(
    browser: Browser, base: str, *, width: int = 1280, scheme: Any = "light", **more: Any
) -> Iterator[Opened]:
    """The page `base` in a fresh browser profile; complains at the end of what went wrong."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, **more
    )
    context.add_init_script(COUNTED)
    page = context.new_page()
    page.set_default_timeout(15_000)
    seen = Opened(page, base)

    def on_request(request: Request) -> None:
        if request.url.split("#")[0] != base:
            seen.requests.append(request.url)

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            seen.complaints.append(message.text)

    page.on("request", on_request)
    page.on("console", on_console)
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))

    def on_dialog(dialog: Any) -> None:
        seen.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", on_dialog)
    try:
        seen.go("")
        yield seen
    finally:
        context.close()
    assert not seen.complaints
    if base.startswith("file:"):
        assert not seen.requests, "a report must not ask for anything"


def address_of(path: Path) -> str:
    """The address of a file, as the browser writes it."""
    return path.resolve().as_uri()
