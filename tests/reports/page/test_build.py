"""Putting the page together: one file, and nothing in the data can get out of its place."""

from __future__ import annotations

import base64
import hashlib
import re

from skillup.reports.html.build import packed, page_html
from tests.support.pages import page_of

NASTY = "</script><script>alert(1)</script><!--<script>\u2028\u2029]]>&lt;\ud800\x00"


def test_data_comes_out_as_it_went_in() -> None:
    page = page_of(page_html({"a": ["é", 1, None]}, [("7", packed({"n": 7}))], title="x"))
    assert page.index == {"a": ["é", 1, None]}
    assert page.details == {7: {"n": 7}}


def test_no_text_ends_the_script_it_stands_in() -> None:
    html = page_html({"a": NASTY, NASTY: 1}, [("1", packed({"b": NASTY}))], title=NASTY)
    quiet = page_html({"a": 1}, [("1", packed({"b": 1}))], title="x")

    assert html.count(b"<script") == quiet.count(b"<script")
    assert html.count(b"</script") == quiet.count(b"</script")
    assert html.count(b"<!--") == quiet.count(b"<!--")
    assert b"alert(1)&lt;/script" in html.partition(b"<style>")[0], "the title is escaped"
    assert page_of(html).index["a"] == NASTY.replace("\ud800", "\ufffd")


def test_only_the_pages_own_script_may_run() -> None:
    html = page_html({}, [], title="x").decode()
    script = html.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy[1]
    assert "default-src 'none'" in policy[1]


def test_nothing_is_loaded_from_elsewhere() -> None:
    html = page_html({}, [], title="x").decode()
    assert not re.search(r"<(script|img|iframe|link)[^>]+(src|href)=\"(?!data:)", html)
    assert "@import" not in html
    assert "<!-- " not in html.replace("<!-- data -->", "x"), "every marker was filled in"


def test_secrets_are_masked_wherever_they_stand() -> None:
    def mask(text: str) -> str:
        return text.replace("hunter2", "***")

    html = page_html(
        {"a": "hunter2"}, [("1", packed({"b": "hunter2"}, mask))], title="hunter2", mask=mask
    )
    assert b"hunter2" not in html
    assert page_of(html).details[1] == {"b": "***"}


def test_the_same_data_gives_the_same_page() -> None:
    assert packed({"a": "b" * 1000}) == packed({"a": "b" * 1000})
