"""An analysis in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from skillup.reports.analysis.sheets import sheets_of
from skillup.schema.analysis import Analysis

_LONGEST_LINE = 2000


def markdown_analysis(
    analysis: Analysis | None, escape: Callable[[str, int], str]
) -> Iterator[str]:
    """Lines; `escape` makes text of others harmless, and shortens it to so many characters."""
    for sheet in sheets_of(analysis) if analysis is not None else ():
        if sheet.title:
            yield ""
            yield f"## {escape(sheet.title, 200)}"
        if sheet.rows:
            yield ""
            yield _row([escape(head, 200) for head in sheet.heads])
            yield "|---|" + "---:|" * (len(sheet.heads) - 1)
            for row in sheet.rows:
                yield _row([escape(cell.text, 200) for cell in row])
        for number, line in enumerate(sheet.lines):
            if number == 0:
                yield ""
            yield f"- {escape(line.text, _LONGEST_LINE)}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
