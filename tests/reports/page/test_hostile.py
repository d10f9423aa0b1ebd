"""Whatever an agent writes, its conversation can be shown, and the page stays what it is."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from skillup.judges import grade_record
from skillup.reports.html.build import packed, page_html
from skillup.reports.html.detail import detail_of
from skillup.reports.html.limits import ORDINARY
from skillup.reports.html.run_files import RawFiles
from tests.support.pages import marked, page_of
from tests.support.records import call, make_record, make_turn, read_file

PIECES = [
    *("</script>", "<script>alert(1)</script>", "<!--", "-->", "]]>", "<img src=x onerror=x>"),
    *("\x00", "\x1b[31m", "\u202e", "\u2028", "\ud800", "\udfff", "\U0001f600", "e\u0301"),
    *("\u1112\u1161", "\u212b", "\x85"),
    *("…", "⏎", '"', "'", "\\", "found ", "{{x}}", "<<x>>", "\r\n", "\t", "(", ")", ": ", ", "),
    *("javascript:alert(1)", "a" * 300, " " * 70, "\u0301" * 5, "ß", "İ", "ﬁ"),
]  # fmt: skip
CASE = {
    "id": "c",
    "vars": {"x": "</script>"},
    "input": {
        "turns": [
            {
                "content": "<<x>>",
                "capture": [{"variable": "y", "pattern": "(?s)(.{1,5})"}],
                "assertions": [
                    {"contains": {"any": ["a", "e", " ", "<", "…"]}},
                    {"matches": r"(?s)\S.{0,80}"},
                    {"not_contains": ["script"]},
                    {"tool_called": {"kind": "shell", "args": {"command": {"matches": r"\S+"}}}},
                    {"tool_called": {"name": "Bash"}},
                    {"json": {"path": "$", "matches": "."}},
                ],
            }
        ]
    },
}


@pytest.mark.parametrize("seed", range(60))
def test_any_conversation_can_be_shown(seed: int) -> None:
    lots = random.Random(seed)

    def text() -> str:
        return "".join(lots.choices(PIECES, k=lots.randint(0, 25)))

    turn = make_turn(
        text() or "x",
        content=text(),
        calls=[call("Bash", "shell", command=text(), more=[{text(): text()}]) for _ in range(3)],
        results=[text(), text()],
        captures={"y": text()},
        notes=[text()],
    )
    record = make_record(turn, case=CASE, case_id=text(), variables={"x": text()}).record
    grade = grade_record(record, read_file)

    detail = detail_of(
        1, text(), record, grade, limits=ORDINARY, raw=RawFiles(Path("/nowhere"), {})
    )

    html = page_html({"rows": [{"reason": text()}]}, [("1", packed(detail))], title=text())
    plain = page_html({"rows": []}, [("1", packed({}))], title="x")
    for dangerous in (b"<script", b"</script", b"<!--", b"<img"):
        assert html.count(dangerous) == plain.count(dangerous)
    shown = page_of(html).details[1]
    for check in shown["turns"][0]["checks"]:
        evidence = check["evidence"]
        if evidence is not None and (evidence["part"], evidence["argument"]) != ("arguments", None):
            assert marked(shown, evidence), check["found"]
