"""Pages in the browser, watched: a report makes no request, no dialog and no error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from playwright.sync_api import Browser, ConsoleMessage, Page, Request

COUNTED = "window.changesOfAddress = 0; addEventListener('hashchange', () => changesOfAddress++);"
HERE = Path(__file__).parent
OUTSIDE, OVERLAPPING, TOO_FAINT = (
    (HERE / f"{name}.js").read_text("utf-8") for name in ("outside", "overlapping", "too_faint")
)
CASES = ("tour", "closed", "remove/agree", "ladder", "renewal", "gate", "notes")
NAME = "SKILLUP_TEST_CHROMIUM"
"""The browser's path, or a name on PATH. Where this is set, as on CI, tests fail without it."""
_PROGRAMS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
TWO_FRAMES = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(done)))"""


def chromium() -> str | None:
    """The path of the system's own browser: none is downloaded. None: there is none."""
    wanted = os.environ.get(NAME)
    found = next(filter(None, map(shutil.which, [wanted] if wanted else _PROGRAMS)), None)
    assert found or not wanted, f"{NAME}={wanted}: there is no such browser; install Chromium"
    return found


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

    def wrong(self) -> list[str]:
        """What sticks out of the page as it stands, overlaps, or is too faint."""
        scrolled = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        found = ["the whole page"] * (self.page.evaluate(scrolled) > 0)
        for script in (OUTSIDE, OVERLAPPING, TOO_FAINT):
            found += self.page.evaluate(script)
        return found

    def unfold(self) -> None:
        """Open all that can be opened."""
        self.page.evaluate(
            """() => {
              for (let round = 0; round < 3; round++)
                document.querySelectorAll("details, .foldable").forEach((one) => one.fold(true));
            }"""
        )
        self.settled()

    def printed(self) -> None:
        """As the browser has the page when it prints."""
        # A function around it, as the browser's driver calls what comes out of a script.
        print_it = "window.print = () => dispatchEvent(new Event('beforeprint'));"
        self.page.evaluate(f"() => {{ {print_it} }}")
        self.page.emulate_media(media="print")
        self.page.keyboard.press("Control+p")
        self.page.wait_for_selector("#annex .conversation")

    def places(self) -> list[str]:
        """Addresses: the summary, a filtered table, pairs, and a conversation of each kind."""
        self.go("#/")
        rows = [self.page.locator(f'#rows tr:has(.case-link:text-is("{c}"))') for c in CASES]
        numbers = [row.first.get_attribute("data-n") for row in rows]
        moody = self.page.evaluate(
            """() => ['FAIL', 'PASS'].map((status) => SK.page.index.rows.find((row) =>
               row.case_id === 'moody' && row.status === status).n)"""
        )
        pairs = ["#/pair/0", f"#/trial/{moody[0]}/with/{moody[1]}"]
        trials = [f"#/trial/{number}" for number in numbers]
        return ["#/", "#/?status=FAIL&q=nothing-like-it", *pairs, *trials]


_LEFT: WeakKeyDictionary[Browser, list[Page]] = WeakKeyDictionary()
"""Tabs that nobody uses any more: to begin a new one takes as long as all that is done in it."""


@contextmanager
def _tab(browser: Browser, width: int, scheme: Any, more: dict[str, Any]) -> Iterator[Page]:
    """An empty one of that size; the page keeps nothing in the browser's profile."""
    left = _LEFT.setdefault(browser, [])
    if more or not left:
        context = browser.new_context(**more)
        context.add_init_script(COUNTED)
        page = context.new_page()
        page.set_default_timeout(60_000)
    else:
        page = left.pop()
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    try:
        yield page
    except BaseException:
        page.context.close()
        raise
    if more:
        page.context.close()
    else:
        page.unroute_all()
        page.mouse.move(0, 0)
        page.emulate_media(media="null")
        page.goto("about:blank")
        left.append(page)


@contextmanager
def opened(
    browser: Browser, base: str, *, width: int = 1280, scheme: Any = "light", **more: Any
) -> Iterator[Opened]:
    """The page `base` in a tab of that size; complains at the end of what went wrong."""
    with _tab(browser, width, scheme, more) as page:
        seen = Opened(page, base)
        listeners = _listeners(seen)
        for event, listener in listeners.items():
            page.on(event, listener)
        try:
            seen.go("")
            yield seen
        finally:
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
    assert not seen.complaints
    if base.startswith("file:"):
        assert not seen.requests, "a report must not ask for anything"


def _listeners(seen: Opened) -> dict[Any, Callable[[Any], None]]:
    """What writes down what happens."""

    def on_request(request: Request) -> None:
        if request.url.split("#")[0] != seen.base:
            seen.requests.append(request.url)

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            seen.complaints.append(message.text)

    def on_error(error: object) -> None:
        seen.complaints.append(str(error))

    def on_dialog(dialog: Any) -> None:
        seen.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    return {
        "request": on_request, "console": on_console, "pageerror": on_error, "dialog": on_dialog
    }  # fmt: skip


def address_of(path: Path) -> str:
    """The address of a file, as the browser writes it."""
    return path.resolve().as_uri()
