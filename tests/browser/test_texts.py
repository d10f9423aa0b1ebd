"""What agents, tools and users wrote: drawn from a fixed list of elements, and doing nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Opener
from tests.browser.made import made
from tests.browser.pages import Opened
from tests.support.pages import Page, page_of

ALLOWED = {
    *("p", "div", "span", "pre", "code", "ul", "ol", "li", "blockquote", "hr", "strong", "em"),
    *("table", "thead", "tbody", "tr", "th", "td", "a", "mark"),
}
NAMES = {
    *("class", "role", "aria-level", "aria-label", "tabindex", "value", "title"),
    *("href", "rel", "target"),
}
HOSTILE = (
    "[a](javascript:alert(1)) **x**",
    "[a](data:text/html;base64,PHNjcmlwdD4) `x`",
    "[a](JaVaScRiPt:alert(1)) ![b](javascript:alert(1))",
    "![img](http://example.com/track.png)",
    "[a](https://good.example@evil.example/) [b](//evil.example) [c](\\\\evil.example)",
    "[a](http://e\u202ev.example/) [b](https://ex\u0430mple.com/)",
    "[https://good.example](https://evil.example)",
    "<a href='javascript:alert(1)'>x</a> **<img src=x onerror=window.hacked=1>**",
    "| <script>window.hacked=1</script> | b |\n|---|---|\n| `<b>` | [x](vbscript:x) | extra |",
    "```html\n<script>window.hacked=1</script>\n```\n# <svg onload=window.hacked=1>",
    "```\" onload=\"window.hacked=1\nx\n```",
    "- <style>*{display:none}</style>\n  1. <base href=http://example.com>\n> <iframe src=x>",
    "[x]: javascript:alert(1)\n[x]\n<javascript:alert(1)>\nhttp://example.com",
    "**" * 5000 + "a",
    ("|a" * 300 + "|\n" + "|-" * 300 + "|\n" + "|b" * 300 + "|\n") * 3,
    "\\* \\` \\[ \\| \\\\",
    "# \u202e\u2066evil\u200b **\x1b[31m**",
)  # fmt: skip


def answered(*answers: str, evidence: list[tuple[int, int]] | None = None) -> Page:
    """A conversation with these answers; a check found the first at the places."""
    page = made(1, len(answers))
    turns = page.details[1]["turns"]
    for turn, answer in zip(turns, answers, strict=True):
        turn["response"] = turn["items"][1]["text"] = answer
        turn["checks"] = turn["checks"][: turn["turn_number"] == 1]
    check = turns[0]["checks"][0]
    places = [{**check["evidence"], "start": a, "end": b} for a, b in evidence or []]
    check["evidence"] = {**places[0], "more": places[1:]} if places else None
    return page


def test_hostile_markdown_is_only_text(show: Opener) -> None:
    with show(answered(*HOSTILE)) as seen:
        seen.go("#/trial/1")
        everything = "[...document.querySelectorAll('.answer *')]"
        assert set(seen.page.evaluate(f"{everything}.map((n) => n.localName)")) <= ALLOWED
        names = f"{everything}.flatMap((n) => [...n.attributes].map((a) => a.name))"
        assert set(seen.page.evaluate(names)) <= NAMES
        for link in seen.page.locator(".answer a").all():
            href = link.get_attribute("href")
            assert href == link.inner_text(), "nobody is led where they do not see"
            assert href.startswith(("http://", "https://"))
            assert "@" not in href.split("/")[2]
            assert href.isascii()
            assert link.get_attribute("rel") == "noopener noreferrer"
        for button in seen.page.locator(".as-written").all():
            button.click()
        written = "[...document.querySelectorAll('.answer')].map((n) => n.textContent)"
        for text, shown in zip(HOSTILE, seen.page.evaluate(written), strict=True):
            assert len(shown) >= len(text)
            assert "<script" not in text or "<script" in shown
        assert seen.page.evaluate("window.hacked") is None


DOCUMENT = """\
## Release **notes**

| Feature | Status |
|---|:-:|
| dark mode | done |

3. Third *thing*
7. Seventh
   - nested `code`

> quoted

```python
print('**no**')
```
Two lines,
one paragraph: [docs](https://example.com/a_b), 2 * 3 * 4, snake_case_name."""
RAGGED = "| a | b |\n|---|---|\n| 1 | 2 | 3 | 4 |\n| 5 |\n\n```\nunclosed *fence*\n\n# no heading"


def test_it_is_drawn_with_its_evidence_and_can_be_seen_as_it_was_written(show: Opener) -> None:
    notes, mode, lines = map(DOCUMENT.index, ("**notes**", "dark mode", "Two lines"))
    places = [(notes, notes + 9), (mode, mode + 9), (lines, lines + 14)]
    page = answered(DOCUMENT, RAGGED, "Hello - you.\nIt is 5 > 3, no?", evidence=places)
    first = '.turn[data-turn="1"] '
    with show(page) as seen:
        seen.go("#/trial/1")
        assert seen.texts(".answer [role=heading]") == ["Release notes"]
        assert seen.texts(f"{first}.answer td") == ["dark mode", "done"]
        values = "[...document.querySelectorAll('.answer ol > li')].map((n) => n.value)"
        assert seen.page.evaluate(values) == [3, 7]
        assert seen.texts(".answer ol ul code") == ["code"]
        assert seen.texts(".answer blockquote") == ["quoted"]
        assert seen.texts(".answer pre")[0] == "print('**no**')"
        assert seen.page.locator(f"{first}.answer p").last.inner_text() == (
            "Two lines,\none paragraph: docs (https://example.com/a_b), 2 * 3 * 4, snake_case_name."
        )
        second = '.turn[data-turn="2"] .answer '
        assert seen.texts(f"{second}td") == ["1", "2", "3", "4", "5"], "nothing is lost but signs"
        assert seen.texts(f"{second}pre") == ["unclosed *fence*\n\n# no heading"]
        assert seen.page.locator('.turn[data-turn="3"] .as-written').count() == 0
        assert seen.texts(".answer mark") == ["notes", "dark mode", "Two lines,", "one"]
        seen.page.click(".check summary")
        assert seen.page.locator(".answer mark.lit").count() == 4
        seen.page.click(f"{first}.as-written")
        assert seen.page.inner_text(f"{first}.answer") == DOCUMENT
        assert seen.page.get_attribute(".as-written", "aria-pressed") == "true"
        assert seen.texts(".answer mark") == ["**notes**", "dark mode", "Two lines,\none"]


def test_evidence_on_signs_alone_has_the_message_shown_as_written(show: Opener) -> None:
    start = DOCUMENT.index("|---|")
    with show(answered(DOCUMENT, evidence=[(start, start + 5)])) as seen:
        seen.go("#/trial/1")
        assert seen.texts(".answer mark") == ["|---|"]
        assert seen.page.inner_text(".answer") == DOCUMENT


# Words that were searched for in conversations are marked in the one that is opened.

SHOWN = """() => [...CSS.highlights.get('sk-hit') || []].map((range) => range.toString())"""
IN_VIEW = """() => {
  const box = [...CSS.highlights.get('sk-hit')][0].getBoundingClientRect();
  return box.height > 0 && box.top > 0 && box.bottom < innerHeight;
}"""


def test_hits_are_marked_and_the_first_is_shown(show: Opener) -> None:
    """A word stands in a folded call's result, and in markup."""
    page = made(1)
    turns = page.details[1]["turns"]
    turns[2]["items"][0]["result"]["content"] = "line\n" * 60 + "the Zebra is here"
    turns[3]["response"] = turns[3]["items"][1]["text"] = "A <img src=x onerror=zebra()> **x**."
    turns[3]["checks"] = []
    with show(page) as seen:
        seen.go("#/trial/1?q=zebra+-absent+(question&deep=1")
        assert set(seen.page.evaluate(SHOWN)) == {"Zebra", "zebra"}
        seen.page.wait_for_function(IN_VIEW)
        assert seen.page.locator('.turn[data-turn="3"] .tool[open]').count() == 1
        assert seen.page.locator("main img").count() == 0
        seen.go("#/trial/1/turn/2?q=nowhere&deep=1")
        assert seen.page.evaluate(SHOWN) == []
        seen.go("#/trial/1?q=case")
        assert seen.page.evaluate(SHOWN) == []


# Whatever they write, in every text of a report of a real run.

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


def hostile(runs: Path, *corpus: str) -> Page:
    """A report in which every text is."""
    page, texts = page_of(runs / "report.html"), Hostile(corpus)
    details = {n: texts.of(detail) for n, detail in page.details.items()}
    return Page(texts.of(page.index), details)


BAD = """() => [...document.querySelectorAll('main *')].filter((node) =>
    node.matches('iframe, img, script, style, base, link')
    || [...node.attributes].some((one) => one.name.startsWith('on'))
  ).map((node) => node.outerHTML)"""
LEAVING = """() => [...document.querySelectorAll('a')].map((link) => link.href)
  .filter((href) => !href.startsWith('file:'))"""


def look_around(seen: Opened, numbers: list[int]) -> list[str]:
    """Every kind of page, unfolded, hovered and clicked: what is there that must not be."""
    found = []
    for place in ["#/", "#/pair/0", *(f"#/trial/{n}" for n in numbers)]:
        seen.go(place)
        seen.unfold()
        for selector in (".capture", ".show-evidence", ".copy"):
            if seen.page.locator(selector).count():
                seen.page.locator(selector).first.click()
        found += seen.page.evaluate(BAD) + seen.page.evaluate(LEAVING)
    return found


@pytest.mark.slow
def test_nothing_that_was_written_runs_or_asks_for_anything(show: Opener, runs: Path) -> None:
    page = hostile(runs, *CORPUS)
    with show(page, CORPUS[-1]) as seen:
        assert look_around(seen, sorted(page.details)[:12] + sorted(page.details)[-4:]) == []
        assert seen.page.evaluate("window.hacked") is None


def test_signs_that_reorder_or_hide_text_are_made_visible(show: Opener, runs: Path) -> None:
    with show(hostile(runs, CORPUS[10], CORPUS[11])) as seen:
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
