"""Which reports there are beside `result.json`, and what each is written to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from skillup.errors import UsageError
from skillup.schema.grade import RunResult
from skillup.store.files import write_atomic
from skillup.store.journal import Mask, no_mask

HTML = "html"


@dataclass(frozen=True, slots=True)
class ReportSource:
    """What reports are made of."""

    directory: Path
    """The run's, which reports are written into."""
    result: RunResult | None
    """None: the run has none yet, which only `html` can do without."""
    mask: Mask = no_mask
    index: str | None = None
    """The index of past runs, as `--index`; None: the usual one."""
    against: Path | None = None
    """Another run, to stand beside this one in `html`."""


def _junit(source: ReportSource) -> bytes:
    from skillup.reports.junit import junit_xml

    return _masked(junit_xml(_result(source)), source)


def _markdown(source: ReportSource) -> bytes:
    from skillup.reports.markdown import markdown

    return _masked(markdown(_result(source)).encode("utf-8", "replace"), source)


def _benchmark(source: ReportSource) -> bytes:
    from skillup.reports.benchmark import benchmark_json

    return _masked(benchmark_json(_result(source)), source)


def _html(source: ReportSource) -> bytes:
    from skillup.reports.html.report import html_report

    # Masked text by text: the page's conversations are compressed.
    return html_report(
        source.directory, mask=source.mask, index=source.index, against=source.against
    )


def _masked(report: bytes, source: ReportSource) -> bytes:
    return source.mask(report.decode("utf-8")).encode("utf-8", "replace")


def _result(source: ReportSource) -> RunResult:
    if source.result is None:
        raise UsageError(
            f"{source.directory} has no result.json: the run goes on, or was killed",
            hint=f"finish it with `skillup run --resume {source.directory}`; `--report html` and "
            "`skillup export` show what there is",
        )
    return source.result


FORMATS: Mapping[str, tuple[str, Callable[[ReportSource], bytes]]] = {
    "junit": ("junit.xml", _junit),
    "markdown": ("summary.md", _markdown),
    "benchmark": ("benchmark.json", _benchmark),
    HTML: ("report.html", _html),
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
    result: RunResult | None,
    names: Iterable[str],
    directory: Path,
    mask: Callable[[str], str],
    *,
    index: str | None = None,
    against: Path | None = None,
) -> list[Path]:
    """Writes the reports `names` into `directory`, in place of older ones; the files.

    `index`: the index of past runs, for trends. `against`: an earlier run to stand beside this one.
    Raises UsageError for a report that needs the run's result where `result` is None.
    """
    source = ReportSource(directory, result, mask, index, against)
    written: list[Path] = []
    for name in dict.fromkeys(names):
        if name not in FORMATS:
            continue
        file, write = FORMATS[name]
        write_atomic(directory / file, write(source))
        written.append(directory / file)
    return written
