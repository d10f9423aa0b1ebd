"""The page: a run, its cases' trends, another run beside it, and all of it in one file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast, get_args

from skillup.errors import IndexTroubleError, RunDirectoryError
from skillup.history.comparison import Comparison
from skillup.history.index import all_runs
from skillup.history.reference import Reference, started
from skillup.history.runs import CaseKey, CaseTally, fields_of, key_of, read_run
from skillup.history.trends import histories, only_of
from skillup.reports import past_runs
from skillup.reports.html import page_data
from skillup.reports.html.detail import ORDINARY, TIGHTER, PageLimits
from skillup.reports.html.page_data import PageRow, SideRow
from skillup.reports.html.run_data import RunData, case_of
from skillup.reports.html.run_files import shown_bytes
from skillup.schema.grade import CaseStatus
from skillup.schema.line import grouped
from skillup.schema.past_runs import CaseHistoryData, SuiteRun
from skillup.store.files import Mask, no_mask, to_json

# Made of viewer/src by viewer/build.mjs.
_BUNDLE = ("viewer.css", "viewer.js")


def page_html(
    index: Mapping[str, Any], details: Mapping[int, bytes], *, title: str, mask: Mask = no_mask
) -> bytes:
    """The page with its data in it; `details`: by the trial's `n`, what :func:`packed` made."""
    text = to_json(index, mask, indent=None).decode().rstrip()
    # Without a `<` nothing in it can end the script it stands in, or begin a comment.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    parts = [f'<script type="application/json" id="sk-index">{text}</script>']
    for n, data in details.items():
        parts.append(f'<script type="text/plain" id="sk-trial-{n}">{data.decode("ascii")}</script>')
    skeleton, script = _assets()
    before, after = skeleton.split("<!-- data -->")
    filled = [before.replace("<!-- title -->", html.escape(mask(title))), *parts]
    page = "\n".join(filled) + after.replace("<!-- script -->", script)
    return page.encode("utf-8", "replace")


def packed(detail: Mapping[str, Any], mask: Mask = no_mask) -> bytes:
    """One conversation as it stands in the page: base64 of gzip of JSON."""
    return _packed(to_json(detail, mask, indent=None))


def _packed(text: bytes) -> bytes:
    # No time in it: the same conversation gives the same bytes. Level 9 takes twice the time of 6.
    return base64.b64encode(gzip.compress(text, 6, mtime=0))


@lru_cache(maxsize=1)
def _assets() -> tuple[str, str]:
    """The skeleton with all but title, data and script filled in; and the script."""
    folder = files(__package__) / "viewer"
    skeleton = (folder / "page.html").read_text("utf-8")
    style, script = ((folder / "dist" / name).read_text("utf-8") for name in _BUNDLE)
    script = script.replace("</script", "<\\/script").strip("\n")
    skeleton = skeleton.replace("<!-- style -->", style.replace("</style", "<\\/style"))
    digest = hashlib.sha256(f"\n{script}\n".encode()).digest()
    name = f"'sha256-{base64.b64encode(digest).decode()}'"
    # Only this very script may run, whatever else gets into the page.
    return skeleton.replace("script-src 'unsafe-inline'", f"script-src {name}"), script


# How the run's cases fared before, from the index of past runs, where there is one.

_RUNS = 20  # The newest so many of each suite, this one included


def history_data(run: Path, index: str | None) -> list[page_data.PageCaseHistory] | None:
    """The runs up to this one, for each of its cases; None: there is no index that can be read."""
    url = past_runs.index_of(run, index)
    if not url or ("://" not in url and not Path(url).is_file()):
        return None
    try:
        outcomes = read_run(run)
        keys = {trial.key for trial in outcomes.trials}
        indexed = all_runs(url, outcomes.about.repository, outcomes.about.branch)
    except (IndexTroubleError, RunDirectoryError):
        return None
    before = [only_of(earlier, keys) for earlier in indexed if started(earlier) < started(outcomes)]
    found = histories([*before, outcomes], _RUNS)
    return [_case_history(suite.runs, case) for suite in found.suites for case in suite.cases]


def _case_history(runs: Sequence[SuiteRun], case: CaseHistoryData) -> page_data.PageCaseHistory:
    since: dict[str, Any] | None = None
    if failing := case.failing_since:
        since = {**failing.first.model_dump(), "runs": failing.runs}
    marks = [
        {
            **fields_of(run, "run_id", "started_at"),
            **fields_of(tally, "passed", "judged", "score"),
            "error": tally.errors,
        }
        for run, tally in zip(runs, case.runs, strict=True)
        if tally.state != "absent"
    ]
    found = {**key_of(case)._asdict(), "marks": marks, "failing_since": since}
    return cast("page_data.PageCaseHistory", found)


def compared_lines(run: Path, index: str | None) -> list[str]:
    """The gates that failed, what changed since the nights before this run, and then what became
    of its cases.
    """
    beside = past_runs.beside_its_nights(run, index)
    if beside is None:
        return []
    found, gates = beside
    failed = [f"✗ {past_runs.gate_name(gate)}: {gate.finding}" for gate in gates if not gate.passed]
    return [
        *failed,
        *past_runs.changed_lines(found),
        past_runs.in_a_sentence(found).removesuffix("."),
    ]


# Two runs side by side: what became of each case, and which conversations to put together.

_STATUS: dict[str, page_data.Status] = {
    "pass": "PASS",
    "fail": "FAIL",
    "mixed": "FAIL",
    "error": "ERROR",
    "skip": "SKIP",
    "not_started": "NOT_RUN",
}


def sides_of(a: RunData, b: RunData, *, shift: int, index: str | None = None) -> page_data.Sides:
    """Run A, the earlier one, beside B, whose page it is; A's trial 1 is called `shift` + 1.

    As by `skillup compare`: where A is the newest night of B's reference in `index`, with all of
    that. Raises RunDirectoryError if one of them holds nothing that can be compared.
    """
    earlier, beside = read_run(a.path), past_runs.beside_its_nights(b.path, index)
    if beside is not None and beside[0].nights[-1].run_id == earlier.run_id:
        found = beside[0]
    else:  # two directories can be compared without an index
        found = Comparison(Reference((earlier,), ""), read_run(b.path))
    rows_a, rows_b = _by_case(a.rows), _by_case(b.rows)
    rows: list[SideRow] = []
    edited = {change.name for change in found.changed if change.kind == "case"}
    for case in found.cases:
        of_a, of_b = rows_a.get(case.key, ()), rows_b.get(case.key, ())
        row_a, row_b = _representative(of_a), _representative(of_b)
        lost = case.change in ("not_run", "skipped") and case.a.state == case.b.state
        row = {
            **case.key._asdict(),
            "a": _side(case.a, row_a, shift),
            "b": _side(case.b, row_b, 0),
            "change": "same" if lost else case.change,
            "case_changed": "/".join(case.key[:2]) in edited,
            "how_sure": "; ".join(
                past_runs.how_sure(one, beside_counts=True) for one in case.statements
            ),
        }
        rows.append(cast("SideRow", row))
    order = [*past_runs.TITLES]
    rows.sort(key=lambda row: order.index(row["change"]))
    return {
        "a": {"run_id": a.run_id, "started_at": a.started_at, "path": str(a.path)},
        "b": {"run_id": b.run_id, "started_at": b.started_at, "path": str(b.path)},
        "reference": past_runs.reference_words(found),
        "changed": past_runs.changed_lines(found),
        "summary": [past_runs.in_a_sentence(found).removesuffix(".")],
        "rows": rows,
    }


def _by_case(rows: Sequence[PageRow]) -> dict[CaseKey, list[PageRow]]:
    """Of the trials that have ended."""
    ended = (row for row in rows if row["status"] in get_args(CaseStatus))
    return grouped(ended, case_of)


def _representative(own: Sequence[PageRow]) -> PageRow | None:
    """Of several trials the one to look at: the first that did not pass, where any did not."""
    bad = [row for status in ("FAIL", "ERROR") for row in own if row["status"] == status]
    return next(iter([*bad, *own]), None)


def _side(tally: CaseTally, row: PageRow | None, shift: int) -> page_data.Side | None:
    if tally.state == "absent":
        return None
    side = fields_of(tally, "score", "passed", "judged", "reason")
    side |= {"status": _STATUS[tally.state], "n": None if row is None else row["n"] + shift}
    return cast("page_data.Side", side)


# report.html: a run, all of it, in one file.

_LARGEST = 9_900_000  # Bytes of the whole file
_PICTURES = 4_000_000
"""Bytes of the pictures of all conversations, those of the first ones first: that there are many
must not make packing them, only to leave them out, take minutes."""
_EACH = 12_000  # A run of very many trials may take so much for each of them
_TAG = 60  # Bytes around each of the conversations


def html_report(
    path: Path, *, mask: Mask = no_mask, index: str | None = None, against: Path | None = None
) -> bytes:
    """The page of the run in `path`; beside `against`, an earlier run, if that is given.

    `index` is the index of runs for the trends, as `--index`. Records are read one at a time.
    Raises RunDirectoryError if one of the two is no run.
    """
    data = RunData(path)
    shift, shown = len(data.rows), data.recorded()
    earlier = sides = None
    if against is not None:
        earlier = RunData(against)
        sides = sides_of(earlier, data, shift=shift, index=index)
        shown += [a["n"] for row in sides["rows"] if (a := row["a"]) and a["n"] is not None]
    lines = compared_lines(path, index) if against is None else []
    whole = data.index("report", history_data(path, index), sides, lines)
    pictures, sizes = _PICTURES, dict[int, int]()

    def pack(n: int, limits: PageLimits) -> bytes:
        nonlocal pictures
        if limits is ORDINARY:
            limits = replace(limits, images=min(limits.images, pictures))
        run, before = (data, 0) if earlier is None or n <= shift else (earlier, shift)
        detail = run.detail(n - before, limits, shift=before)
        pictures -= shown_bytes(detail)
        text = to_json(detail, mask, indent=None)
        same, sizes[n] = sizes.get(n) == len(text), len(text)
        return b"" if same else _packed(text)  # Empty: nothing more was shortened

    title = f"skillup: {data.run_id}"
    bare = len(page_html(whole, {}, title=title, mask=mask))
    details = _fitting(shown, pack, max(_LARGEST - bare - _TAG * len(shown), _EACH * len(shown)))
    return page_html(whole, details, title=title, mask=mask)


def _fitting(
    shown: Sequence[int], pack: Callable[[int, PageLimits], bytes], room: int
) -> dict[int, bytes]:
    """The conversations, packed; where they are too large together, the largest are shortened."""
    found = {n: pack(n, ORDINARY) for n in shown}
    for limits in TIGHTER:
        if sum(map(len, found.values())) <= room:
            break
        most = room // len(found)
        for n in [n for n, data in found.items() if len(data) > most]:
            found[n] = min(found[n], pack(n, limits) or found[n], key=len)
    return found
