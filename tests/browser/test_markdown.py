"""Markdown in answers is drawn from elements of a fixed list, and never does anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillup.reports.html.build import packed, page_html
from tests.browser.conftest import Opener
from tests.browser.data import data_of
from tests.browser.made import large_report
from tests.browser.pages import Opened, address_of

ALLOWED = {
    *("p", "div", "span", "pre", "code", "ul", "ol", "li", "blockquote", "hr", "strong", "em"),
    *("table", "thead", "tbody", "tr", "th", "td", "a", "mark"),
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
    "`" * 3000 + "a" + "`" * 2999,
    "**" * 5000 + "a",
    "[" * 20000 + "](" * 2000,
    "> " * 3000 + "x",
    "- " * 3000 + "x\n" + "  - x\n" * 500,
    ("|a" * 300 + "|\n" + "|-" * 300 + "|\n" + "|b" * 300 + "|\n") * 3,
    "* * *\n- - -\n_ _ _\n" * 200 + "*a **b *c **d " * 300,
    "\\* \\` \\[ \\| \\\\",
    "# \u202e\u2066evil\u200b **\x1b[31m**",
)  # fmt: skip


def write(path: Path, answer: str, evidence: list[tuple[int, int]] | None = None) -> str:
    """A report of one conversation with this answer, which a check found at the places."""
    large_report(path, 1, turns=1)
    index, details = data_of(path)
    detail: dict[str, Any] = details["1"]
    turn = detail["turns"][0]
    turn["response"] = turn["items"][1]["text"] = answer
    check = turn["checks"][0]
    places = [{**check["evidence"], "start": a, "end": b} for a, b in evidence or []]
    check["evidence"] = {**places[0], "more": places[1:]} if places else None
    path.write_bytes(page_html(index, [("1", packed(detail))], title="markdown"))
    return address_of(path)


@pytest.mark.parametrize(
    "line", ["'~'.repeat(59000) + '`'", "'a|b\\n' + ' '.repeat(58000) + 'x-|'",
             "'a|b\\n|-' + ' '.repeat(58000) + 'x'"],
)  # fmt: skip
def test_a_line_as_long_as_the_message_holds_nobody_up(
    open_page: Opener, tmp_path: Path, line: str
) -> None:
    """Where a pattern tries all of it from every place on, a minute goes by, and this times out."""
    with open_page(write(tmp_path / "r.html", "x")) as seen:
        drawn = f"() => Array.from({{ length: 8 }}, () => SK.markdown({line})).length === 8"
        assert seen.page.wait_for_function(drawn).json_value() is True


def shown(seen: Opened) -> None:
    seen.go("#/trial/1")
    seen.page.wait_for_selector(".answer")


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_markdown_is_only_text(open_page: Opener, tmp_path: Path, text: str) -> None:
    with open_page(write(tmp_path / "r.html", text)) as seen:
        shown(seen)
        tags = seen.page.evaluate(
            "[...document.querySelectorAll('.answer *')].map((n) => n.localName)"
        )
        assert set(tags) <= ALLOWED
        names = seen.page.evaluate(
            """[...document.querySelectorAll('.answer *')].flatMap((n) =>
               [...n.attributes].map((a) => a.name))"""
        )
        assert set(names) <= {
            *("class", "role", "aria-level", "aria-label", "tabindex", "value", "title"),
            *("href", "rel", "target"),
        }
        for link in seen.page.locator(".answer a").all():
            href = link.get_attribute("href")
            assert href == link.inner_text(), "nobody is led where they do not see"
            assert href.startswith(("http://", "https://"))
            assert "@" not in href.split("/")[2]
            assert href.isascii()
            assert link.get_attribute("rel") == "noopener noreferrer"
        assert seen.page.evaluate("window.hacked") is None
        if seen.page.locator(".as-written").count():
            seen.page.click(".as-written")
        whole = seen.page.evaluate("document.querySelector('.answer').textContent")
        assert len(whole) >= len(text)
        assert "<script" not in text or "<script" in whole


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


def test_it_is_drawn(open_page: Opener, tmp_path: Path) -> None:
    with open_page(write(tmp_path / "r.html", DOCUMENT)) as seen:
        shown(seen)
        assert seen.texts(".answer [role=heading]") == ["Release notes"]
        assert seen.texts(".answer td") == ["dark mode", "done"]
        values = "[...document.querySelectorAll('.answer ol > li')].map((n) => n.value)"
        assert seen.page.evaluate(values) == [3, 7]
        assert seen.texts(".answer ol ul code") == ["code"]
        assert seen.texts(".answer blockquote") == ["quoted"]
        assert seen.texts(".answer pre") == ["print('**no**')"]
        last = seen.page.locator(".answer p").last.inner_text()
        assert last == (
            "Two lines,\none paragraph: docs (https://example.com/a_b), 2 * 3 * 4, snake_case_name."
        )


def test_it_can_be_seen_as_it_was_written(open_page: Opener, tmp_path: Path) -> None:
    with open_page(write(tmp_path / "r.html", DOCUMENT)) as seen:
        shown(seen)
        seen.page.click(".as-written")
        assert seen.page.inner_text(".answer") == DOCUMENT
        assert seen.page.get_attribute(".as-written", "aria-pressed") == "true"
        seen.page.click(".as-written")
        assert seen.page.locator(".answer table").count() == 1
        seen.page.keyboard.press("w")
        assert seen.page.inner_text(".answer") == DOCUMENT


def test_a_text_without_markdown_has_no_such_button(open_page: Opener, tmp_path: Path) -> None:
    with open_page(write(tmp_path / "r.html", "Hello - you.\nIt is 5 > 3, no?")) as seen:
        shown(seen)
        assert seen.page.locator(".as-written").count() == 0


def marks(seen: Opened) -> list[str]:
    return seen.texts(".answer mark")


def test_evidence_is_marked_where_it_stands_in_what_is_drawn(
    open_page: Opener, tmp_path: Path
) -> None:
    start = DOCUMENT.index("**notes**")
    mode = DOCUMENT.index("dark mode")
    lines = DOCUMENT.index("Two lines")
    places = [(start, start + 9), (mode, mode + 9), (lines, lines + 14)]
    with open_page(write(tmp_path / "r.html", DOCUMENT, places)) as seen:
        shown(seen)
        assert marks(seen) == ["notes", "dark mode", "Two lines,", "one"]
        seen.page.click(".check summary")
        assert seen.page.locator(".answer mark.lit").count() == 4
        seen.page.click(".as-written")
        assert marks(seen) == ["**notes**", "dark mode", "Two lines,\none"]


def test_evidence_on_signs_alone_has_the_message_shown_as_written(
    open_page: Opener, tmp_path: Path
) -> None:
    start = DOCUMENT.index("|---|")
    with open_page(write(tmp_path / "r.html", DOCUMENT, [(start, start + 5)])) as seen:
        shown(seen)
        assert marks(seen) == ["|---|"]
        assert seen.page.inner_text(".answer") == DOCUMENT


def test_nothing_of_an_answer_is_lost_but_its_signs(open_page: Opener, tmp_path: Path) -> None:
    text = (
        "| a | b |\n|---|---|\n| 1 | 2 | 3 | 4 |\n| 5 |\n\n```\nunclosed *fence*\n\n# not a heading"
    )
    with open_page(write(tmp_path / "r.html", text)) as seen:
        shown(seen)
        assert seen.texts(".answer td") == ["1", "2", "3", "4", "5"]
        assert seen.texts(".answer pre") == ["unclosed *fence*\n\n# not a heading"]
