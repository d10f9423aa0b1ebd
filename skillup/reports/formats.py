"""Which reports there are beside `result.json`, and what each is written to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from skillup.errors import UsageError
from skillup.schema.grade import RunResult
from skillup.store.atomic import write_atomic


def _junit(result: RunResult) -> bytes:
    from skillup.reports.junit import junit_xml

    return junit_xml(result)


def _markdown(result: RunResult) -> bytes:
    from skillup.reports.markdown import markdown

    return markdown(result).encode("utf-8", "replace")


FORMATS: Mapping[str, tuple[str, Callable[[RunResult], bytes]]] = {
    "junit": ("junit.xml", _junit),
    "markdown": ("summary.md", _markdown),
}
"""By name: the file in the run directory, and what writes it. `json` is always there."""


def parse_formats(given: Iterable[str]) -> tuple[str, ...]:
    """``["junit,markdown"]`` → ``("junit", "markdown")``; `json` needs no writing.

    Raises UsageError for a format that is not known.
    """
    names = dict.fromkeys(
        name.strip() for part in given for name in part.split(",") if name.strip()
    )
    for name in names:
        if name != "json" and name not in FORMATS:
            known = ", ".join(["json", *FORMATS])
            raise UsageError(f"--report {name}: no such format", hint=f"the formats are: {known}")
    return tuple(name for name in names if name != "json")


def write_reports(
    result: RunResult, names: Iterable[str], directory: Path, mask: Callable[[str], str]
) -> list[Path]:
    """Writes the reports `names` into `directory`, in place of older ones; the files."""
    written: list[Path] = []
    for name in dict.fromkeys(names):
        if name not in FORMATS:
            continue
        file, write = FORMATS[name]
        text = mask(write(result).decode("utf-8")).encode("utf-8", "replace")
        write_atomic(directory / file, text)
        written.append(directory / file)
    return written
