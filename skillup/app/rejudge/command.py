"""One judging from the request to the screen or to `--json`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from skillup import __version__
from skillup.analysis import analyse
from skillup.app.rejudge.judging import Judged, RejudgeRequest, Rejudging
from skillup.errors import UsageError
from skillup.reports.rejudging import (
    JUDGEMENT_VERSION,
    RejudgeCounts,
    counts_line,
    failure_lines,
    flip_lines,
    grade_line,
    judgement_json,
    took_words,
)
from skillup.reports.terminal.layout import make_console, print_line
from skillup.reports.text import shown_id
from skillup.schema.record import utc_now
from skillup.store import RunDirectory


def judge_again(request: RejudgeRequest) -> int:
    """Judge and show; the exit code.

    Raises InvalidFilesError for edited cases that do not validate, and UsageError if nothing was
    there to judge.
    """
    judging, source = Rejudging(request), request.source
    counts = RejudgeCounts(stopped_by_failures=source.stopped_by_failures)
    judged = judging.judge(counts)
    if request.as_json:
        _write_json(judged, request, judging, counts)
    else:
        _show(judged, request, counts)
    if counts.total or counts.damaged:
        return counts.exit_code()
    if counts.left_out and judging.edited is not None:
        known = ", ".join(shown_id(item.case.id) for item in judging.edited[:10])
        raise UsageError("no record is of a case in --cases", hint=f"the cases there are: {known}")
    if request.is_selection:
        raise UsageError("no record matches the selection", hint="see -k and --tag")
    raise UsageError(
        f"{source.path} holds no finished trial", hint="go on with skillup run --resume"
    )


def _write_json(
    judged: Iterator[Judged], request: RejudgeRequest, judging: Rejudging, counts: RejudgeCounts
) -> None:
    head: dict[str, Any] = {
        "schema_version": JUDGEMENT_VERSION,
        "judged_at": utc_now(),
        "skillup_version": __version__,
        "source": str(request.source.path),
        "by": [str(path) for path in request.cases],
        "case_globs": list(request.selection.case_globs),
        "tags": list(request.selection.tags),
        "judge_model": request.judge_model,
    }
    source, rows, analysis = request.source, list(judged), None
    if source.kind == "run":
        info, grades = RunDirectory.open(source.path).run_info(), [grade for _, grade, _ in rows]
        if request.is_selection or request.cases:  # what is missing was not chosen
            analysis = analyse(grades, info)
        else:
            missing = sorted(source.planned - {job_id for job_id, _, _ in rows})
            saved = sorted(source.not_needed)
            analysis = analyse(grades, info, not_run=missing, not_needed=saved)
    sys.stdout.write(judgement_json(judging.secrets.mask_data(head), rows, counts, analysis))


def _show(judged: Iterator[Judged], request: RejudgeRequest, counts: RejudgeCounts) -> None:
    console, source = make_console(), request.source
    # What differs among the jobs of the run; a case's own id may hold slashes.
    columns = zip(*(job.rsplit("/", 3)[1:] for job in source.planned), strict=False)
    different = [len(set(column)) > 1 for column in columns]
    if source.kind == "session" and source.path.is_dir():
        different = [False, False, True]
    for job_id, grade, change in judged:
        if request.quiet and not change and change is not None:
            continue
        case, *rest = job_id.rsplit("/", 3)
        parts = [part for part, differs in zip(rest, different, strict=False) if differs]
        label = " ".join(map(shown_id, [case, *parts]))
        print_line(console, grade_line(label, grade, change))
        # With nothing to compare with, what failed is what one wants to see.
        for line in failure_lines(grade) if change is None else flip_lines(change):
            print_line(console, line)
    if counts.total:
        compared = source.kind not in ("session", "input")
        console.print()
        console.print(counts_line(counts, compared=compared), soft_wrap=True)
        if counts.took is not None:
            calls, stored, total, cost = took_words(counts.took.model_dump())
            words = f"calls {calls}, of them stored {stored}, tokens {total}, cost {cost}"
            console.print(f"judges that read: {words}", soft_wrap=True)
