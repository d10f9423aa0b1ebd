"""The data that a report carries, read back out of it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any


def data_of(report: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The index and the conversations that are in a report."""
    page = report.read_text("utf-8")
    index = json.loads(re.search(r'id="sk-index">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    found = re.findall(r'id="sk-trial-(\d+)">(.*?)</script>', page, re.DOTALL)
    return index, {n: json.loads(gzip.decompress(base64.b64decode(data))) for n, data in found}
