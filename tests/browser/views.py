"""Which places of a report the tests of look and layout visit."""

from __future__ import annotations

from tests.browser.pages import Opened

CASES = ("tour", "closed", "remove/agree", "ladder", "renewal", "gate", "notes")


def places(seen: Opened) -> list[str]:
    """Addresses: the summary, a filtered table, pairs, and a conversation of each kind."""
    seen.go("#/")
    numbers = [
        seen.page.locator(f'#rows tr:has(.case-link:text-is("{case}"))').first.get_attribute(
            "data-n"
        )
        for case in CASES
    ]
    moody = seen.page.evaluate(
        """() => ['FAIL', 'PASS'].map((status) => SK.page.index.rows.find((row) =>
           row.case_id === 'moody' && row.status === status).n)"""
    )
    pairs = ["#/pair/0", f"#/trial/{moody[0]}/with/{moody[1]}"]
    return ["#/", "#/?status=FAIL&q=nothing-like-it", *pairs] + [
        f"#/trial/{number}" for number in numbers
    ]


def unfold(seen: Opened) -> None:
    """Open all that can be opened."""
    seen.page.evaluate(
        """() => {
          for (let round = 0; round < 3; round++)
            document.querySelectorAll("details, .foldable").forEach((one) => one.fold(true));
        }"""
    )
    seen.settled()
