"""report.html, taken apart again: its index, and each conversation by its number."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_INDEX = re.compile(rb'<script type="application/json" id="sk-index">(.*?)</script>', re.DOTALL)
_TRIAL = re.compile(rb'<script type="text/plain" id="sk-trial-(\d+)">(.*?)</script>', re.DOTALL)


@dataclass(frozen=True)
class Page:
    """What the page's own script reads."""

    index: dict[str, Any]
    details: dict[int, dict[str, Any]]

    def row(self, case_id: str, trial: int = 1) -> dict[str, Any]:
        rows: list[dict[str, Any]] = self.index["rows"]
        return next(r for r in rows if (r["case_id"], r["trial"]) == (case_id, trial))

    def detail(self, case_id: str, trial: int = 1) -> dict[str, Any]:
        return self.details[self.row(case_id, trial)["n"]]


def page_of(page: bytes | Path) -> Page:
    text = page.read_bytes() if isinstance(page, Path) else page
    found = _INDEX.search(text)
    assert found is not None, "the page has no index"
    details = {
        int(match[1]): json.loads(gzip.decompress(base64.b64decode(match[2])))
        for match in _TRIAL.finditer(text)
    }
    return Page(json.loads(found[1]), details)


def marked(detail: dict[str, Any], evidence: dict[str, Any]) -> str:
    """The text that the page marks for a piece of evidence: places are as JavaScript counts."""
    step = detail["turns"][evidence["turn"] - 1]
    if evidence["follow_up"] is not None:
        step = step["follow_ups"][evidence["follow_up"]]
    text = step["response"]
    if evidence["in"] == "item":
        item = step["items"][evidence["item"]]
        text = {
            "text": lambda: item["text"],
            "result": lambda: item["result"]["content"],
            "arguments": lambda: item["arguments"][evidence["argument"]],
        }[evidence["part"]]()
    units: bytes = text.encode("utf-16-le", "surrogatepass")
    return units[2 * evidence["start"] : 2 * evidence["end"]].decode("utf-16-le")
