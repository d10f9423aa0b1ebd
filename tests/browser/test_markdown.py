"""Markdown in answers is drawn from elements of a fixed list, and never does anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.made import large_report
from tests.browser.pages import address_of

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


def write(path: Path, answers: list[str], evidence: list[tuple[int, int]] | None = None) -> str:
    """A report of one conversation with these answers; a check found the first at the places."""
    index, details = data_of(large_report(path, 1, turns=len(answers)))
    detail: dict[str, Any] = details["1"]
    for turn, answer in zip(detail["turns"], answers, strict=True):
        turn["response"] = turn["items"][1]["text"] = answer
        turn["checks"] = turn["checks"][: turn["turn_number"] == 1]
    check = detail["turns"][0]["checks"][0]
    places = [{**check["evidence"], "start": a, "end": b} for a, b in evidence or []]
    check["evidence"] = {**places[0], "more": places[1:]} if places else None
    path.write_bytes(page_html(index, [("1", packed(detail))], title="markdown"))
    return address_of(path)


def test_hostile_markdown_is_only_text(open_page: Opener, tmp_path: Path) -> None:
    with open_page(write(tmp_path / "r.html", list(HOSTILE))) as seen:
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


def test_it_is_drawn_with_its_evidence_and_can_be_seen_as_it_was_written(
    open_page: Opener, tmp_path: Path
) -> None:
    notes, mode, lines = map(DOCUMENT.index, ("**notes**", "dark mode", "Two lines"))
    places = [(notes, notes + 9), (mode, mode + 9), (lines, lines + 14)]
    path = write(tmp_path / "r.html", [DOCUMENT, RAGGED, "Hello - you.\nIt is 5 > 3, no?"], places)
    first = '.turn[data-turn="1"] '
    with open_page(path) as seen:
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


def test_evidence_on_signs_alone_has_the_message_shown_as_written(
    open_page: Opener, tmp_path: Path
) -> None:
    start = DOCUMENT.index("|---|")
    with open_page(write(tmp_path / "r.html", [DOCUMENT], [(start, start + 5)])) as seen:
        seen.go("#/trial/1")
        assert seen.texts(".answer mark") == ["|---|"]
        assert seen.page.inner_text(".answer") == DOCUMENT
