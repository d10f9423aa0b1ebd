"""Which reports there are beside `result.json`, and what each is written to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from skillup.errors import UsageError
from skillup.store.files import write_atomic

if TYPE_CHECKING:
    from skillup.schema.grade import RunResult

HTML = "html"
FORMATS = {
    "junit": "junit.xml",
    "markdown": "summary.md",
    "benchmark": "benchmark.json",
    HTML: "report.html",
}
"""By name: the file in the run directory. `json` is always there."""


def _content(name: str, result: RunResult, run: Path, index: str | None) -> str:
    """Imported where it is needed: a run that writes no report waits for none of it."""
    if name == "junit":
        from skillup.reports.junit import junit_xml

        return junit_xml(result).decode()
    if name == "markdown":
        from skillup.reports.markdown import markdown
        from skillup.reports.past_runs import beside_its_nights

        return markdown(result, beside_its_nights(run, index, result))
    from skillup.reports.anthropic import benchmark_json

    return benchmark_json(result)


def parse_formats(given: Iterable[str]) -> tuple[str, ...]:
    """``["junit,markdown"]`` → ``("junit", "markdown")``. Raises UsageError for unknown formats."""
    names = dict.fromkeys(
        name.strip() for part in given for name in part.split(",") if name.strip()
    )
    for name in names:
        if name != "json" and name not in FORMATS:
            known = ", ".join(["json", *FORMATS])
            raise UsageError(f"--report {name}: no such format", hint=f"the formats are: {known}")
    return tuple(name for name in names if name != "json")


def write_reports(
    result: RunResult | None,
    names: Iterable[str],
    directory: Path,
    mask: Callable[[str], str],
    *,
    index: str | None = None,
    against: Path | None = None,
) -> list[Path]:
    """Writes the reports `names` into `directory`; the files. `index` is that of past runs;
    for `html`, `against` is an earlier one to stand beside this one. Raises UsageError where there
    is no `result` and a report other than `html` needs it.
    """
    written: list[Path] = []
    for name in (name for name in dict.fromkeys(names) if name in FORMATS):
        if name == HTML:
            from skillup.reports.html.build import html_report

            # Masked text by text: the page's conversations are compressed.
            content = html_report(directory, mask=mask, index=index, against=against)
        elif result is None:
            raise UsageError(
                f"{directory} has no result.json: the run goes on, or was killed",
                hint=f"finish it with `skillup run --resume {directory}`; `--report html` and "
                "`skillup export` show what there is",
            )
        else:
            content = mask(_content(name, result, directory, index)).encode("utf-8", "replace")
        written.append(directory / FORMATS[name])
        write_atomic(written[-1], content)
    return written
