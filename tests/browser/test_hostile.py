"""Whatever agents, tools and users write is shown as text, and does nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.pages import Opened, address_of
from tests.browser.views import unfold

CORPUS = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "</script><script>window.hacked = 1</script>",
    "</textarea></title></style><svg onload=window.hacked=1>",
    "<!-- <script> --><iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "javascript:window.hacked=1",
    "data:text/html,<script>parent.hacked=1</script>",
    "\" onmouseover=\"window.hacked=1\" autofocus onfocus=\"window.hacked=1",
    "' onclick='window.hacked=1",
    "{{constructor.constructor('window.hacked=1')()}} ${window.hacked=1}",
    "\u202egnp.exe\u202c \u2066x\u2069 \u200bzero \U000e0061",
    "\x1b[31mred\x1b[0m \x1b]8;;http://example.com\x07link\x07 \x00\x08",
    "http://example.com/track.png <link rel=prefetch href=http://example.com/x>",
    "\u2028window.hacked=1\u2029 \ud83d\ude00 e\u0301",
    "__proto__",
    "**[x](javascript:window.hacked=1)** ![y](data:text/html,<script>parent.hacked=1</script>)",
    "| <svg onload=window.hacked=1> |\n|---|\n| `<img src=x onerror=window.hacked=1>` |",
    "<style>*{display:none}</style><base href=http://example.com/>",
)  # fmt: skip
# What the page's own code chooses by; an agent cannot write these.
CLOSED = frozenset(
    {"status", "type", "kind", "role", "source", "in", "part", "mode", "change", "stop"}
    | {"schema", "execution_mode", "variant", "verdict", "permission", "isolation"}
)


class Hostile:
    """Replaces each free text of a page's data by something from the corpus, in turn."""

    def __init__(self, corpus: tuple[str, ...]) -> None:
        self._corpus = corpus
        self._next = 0

    def of(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {self._name(name, key): self.of(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.of(inner, key) for inner in value]
        if not isinstance(value, str) or key in CLOSED or "started_at" in key:
            return value
        self._next += 1
        return self._corpus[self._next % len(self._corpus)]

    def _name(self, name: str, key: str) -> str:
        return name + "<img src=x onerror=window.hacked=1>" if key == "variables" else name


def write(path: Path, corpus: tuple[str, ...], runs: Path) -> str:
    """A report in which every text is hostile."""
    index, details = data_of(runs / "report.html")
    hostile = Hostile(corpus)
    pages = [(n, packed(hostile.of(detail))) for n, detail in details.items()]
    path.write_bytes(page_html(hostile.of(index), pages, title=corpus[-1]))
    return address_of(path)


BAD = """() => [...document.querySelectorAll('main *')].filter((node) =>
    node.matches('iframe, img, script, style, base, link')
    || [...node.attributes].some((one) => one.name.startsWith('on'))
  ).map((node) => node.outerHTML)"""
LEAVING = """() => [...document.querySelectorAll('a')].map((link) => link.href)
  .filter((href) => !href.startsWith('file:'))"""


def look_around(seen: Opened, numbers: list[str]) -> list[str]:
    """Every kind of page, unfolded, hovered and clicked: what is there that must not be."""
    found = []
    for place in ["#/", "#/pair/0", *(f"#/trial/{n}" for n in numbers)]:
        seen.go(place)
        unfold(seen)
        for selector in (".capture", ".show-evidence", ".copy"):
            if seen.page.locator(selector).count():
                seen.page.locator(selector).first.click()
        found += seen.page.evaluate(BAD) + seen.page.evaluate(LEAVING)
    return found


@pytest.mark.slow
def test_nothing_that_was_written_runs_or_asks_for_anything(
    open_page: Opener, runs: Path, tmp_path: Path
) -> None:
    _, details = data_of(runs / "report.html")
    with open_page(write(tmp_path / "hostile.html", CORPUS, runs)) as seen:
        assert look_around(seen, sorted(details)[:12] + sorted(details)[-4:]) == []
        assert seen.page.evaluate("window.hacked") is None


def test_it_is_shown_letter_by_letter(open_page: Opener, runs: Path, tmp_path: Path) -> None:
    text = CORPUS[2]
    with open_page(write(tmp_path / "literal.html", (text,), runs)) as seen:
        assert set(seen.cases()) == {text}
        seen.page.locator("#rows a").first.click()
        seen.page.wait_for_selector(".conversation")
        assert seen.page.locator(".text").first.inner_text().strip() == text
        assert seen.page.evaluate("window.hacked") is None


def test_signs_that_reorder_or_hide_text_are_made_visible(
    open_page: Opener, runs: Path, tmp_path: Path
) -> None:
    with open_page(write(tmp_path / "hidden.html", (CORPUS[10], CORPUS[11]), runs)) as seen:
        shown = seen.page.inner_text("#rows")
        assert "[U+202E]gnp.exe[U+202C]" in shown
        assert "[U+E0061]" in shown
        assert "\u241b[31mred" in shown
        for sign in "\u202e\u2066\x1b\x00\U000e0061":
            assert sign not in seen.page.evaluate("document.body.querySelector('main').textContent")


def test_a_hostile_filter_in_the_address_is_only_a_filter(open_page: Opener, report: str) -> None:
    with open_page(report) as seen:
        seen.go(
            "#/?q=%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E&sort=__proto__&status=constructor"
        )
        assert seen.cases() == []
        seen.go("#/")
        everything = seen.cases()
        seen.go("#/?sort=__proto__")
        assert seen.cases() == everything
        seen.go("#/trial/%3Cscript%3E/turn/x")
        assert "Not found" in seen.page.inner_text("h1")
        assert seen.page.evaluate("window.hacked") is None
