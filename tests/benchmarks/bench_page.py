"""What report.html of a large run costs, and how long its reader waits, in the system's Chromium.

    python -m tests.benchmarks.bench_page [CASES]

Cases of five turns. Its size; its time as a ratio to reading and JSON-parsing the same records; the
peak of memory. Milliseconds until the table is there, from a key stroke in the filter to the
next frame, and from opening a conversation until it is there; the median and the slowest of
several. Long tasks are those above 50 ms, by which a page feels slow.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from skillup.reports.html.build import html_report
from tests.benchmarks.bench_judge import peak_megabytes, read_and_parse
from tests.browser.pages import chromium
from tests.support.large_runs import write_large_run

_FILTER = """async (word) => {
  const field = document.getElementById('filter-text');
  const started = performance.now();
  field.value = word;
  field.dispatchEvent(new Event('input'));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - started;
}"""
_OPEN = """async (n) => {
  const started = performance.now();
  location.hash = `#/trial/${n}`;
  while (!document.querySelector('.conversation')) await new Promise((done) => setTimeout(done));
  const took = performance.now() - started;
  location.hash = '#/';
  while (!document.querySelector('#rows tr')) await new Promise((done) => setTimeout(done));
  return took;
}"""
_LONG = """() => { window.long = 0; new PerformanceObserver((list) => {
  window.long += list.getEntries().length; }).observe({type: 'longtask', buffered: true}); }"""


def told(name: str, took: list[float]) -> None:
    print(f"{name}: median {statistics.median(took):.0f} ms, slowest {max(took):.0f} ms")


def measure(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("#rows tr")
    told("opened", [page.evaluate("performance.now()")])
    page.evaluate(_LONG)
    words = ("c", "ca", "cas", "case", "case 1", "", "-case", "fail", "")
    told("a letter in the filter", [page.evaluate(_FILTER, word) for word in words * 3])
    told("a conversation opened", [page.evaluate(_OPEN, n) for n in range(1, 21)])
    print(f"long tasks: {page.evaluate('window.long')}")


def main(cases: int) -> None:
    path = chromium()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        run = write_large_run(Path(folder, "run"), cases, turns=5)
        report = Path(folder, "report.html")
        began = time.perf_counter()
        records = read_and_parse(run)
        between = time.perf_counter()
        size = report.write_bytes(html_report(run))
        ratio = (time.perf_counter() - between) / (between - began)
        print(
            f"{cases} cases of 5 turns ({records / 1e6:.1f} MB of records and grades): "
            f"{size / 1e6:.2f} MB, {ratio:.1f} x reading them, {peak_megabytes():.0f} MB at most"
        )
        if path is None:
            sys.exit("no Chromium or Chrome was found")
        browser = playwright.chromium.launch(executable_path=path)
        measure(browser.new_page(), report.as_uri())
        browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
