"""One judging from the request to the screen or to `--json`."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from skillup import __version__
from skillup.app.rejudge.cases import CaseSelection, EditedCases, files_beside, load_edited, watched
from skillup.app.rejudge.judging import Judged, JudgedRun, Rejudging, say_on_stderr
from skillup.app.rejudge.secrets import hidden_of, masked_cases
from skillup.app.rejudge.setup import routers_for
from skillup.app.rejudge.share import cores
from skillup.app.rejudge.sources import RecordSource
from skillup.errors import InvalidFilesError, SkillupError, UsageError
from skillup.judges.rejudge.regrade import Regrader
from skillup.reports.rejudging_json import JUDGEMENT_VERSION, RejudgeCounts, judgement_chunks
from skillup.reports.terminal.layout import make_console, print_folded
from skillup.reports.terminal.listing import problem_line, shown_path
from skillup.reports.terminal.rejudging import (
    counts_line,
    flip_lines,
    grade_line,
    took_words,
    unmet_lines,
)
from skillup.reports.text import plain, shown_id
from skillup.schema.grade import Grade
from skillup.trial.message import now

_MOST_PROCESSES = 4
"""More would mostly wait for the one that shows what they find."""


@dataclass(frozen=True, slots=True)
class RejudgeRequest:
    """What `skillup judge` was asked to do."""

    source: RecordSource
    cases: tuple[Path, ...] = ()
    selection: CaseSelection = field(default_factory=CaseSelection)
    quiet: bool = False
    as_json: bool = False
    judge_model: str | None = None
    """Who reads for the judges; None: whom the cases name."""
    parallel: int | None = None
    """Processes; None: as many as there are cores, up to four."""
    last: dict[str, Grade] | None = None
    """The grades of the time before, which the new ones take the place of."""


def judge_once(request: RejudgeRequest) -> int:
    """Judge and show; the exit code.

    Raises InvalidFilesError for edited cases that do not validate, and UsageError if nothing was
    there to judge.
    """
    edited = load_edited(request.cases) if request.cases else None
    hidden = hidden_of(request.source, edited)
    secrets = hidden.secrets(os.environ)
    if edited is not None and request.source.is_masked:
        edited = masked_cases(edited, secrets)
    judging = Rejudging(
        request.source,
        request.selection,
        Regrader(
            routers_for(request.source, secrets, edited=bool(request.cases or request.judge_model))
        ),
        edited,
        say=lambda note: say_on_stderr(secrets.mask(note)),
        judge_model=request.judge_model,
        hidden=hidden,
        workers=_processes(request),
        whole=request.as_json or not request.quiet,
        last=request.last,
    )
    tally = RejudgeCounts(stopped_by_failures=request.source.stopped_by_failures)
    judged = judging.judge(tally)
    run = _judged_run(request)
    if run is not None:
        judged = run.watch(judged)
    head = secrets.mask_data(_head(request))
    if request.as_json:
        analysis = run.analysis if run is not None else None
        for chunk in judgement_chunks(head, judged, tally, analysis):
            sys.stdout.write(chunk)
    else:
        _show(judged, request, tally, compared=request.source.kind not in ("session", "input"))
    if not tally.total and not tally.damaged:
        raise _nothing(request, edited, tally)
    return tally.exit_code()


def _processes(request: RejudgeRequest) -> int:
    if request.last is not None:
        return 1  # whoever compares with the time before has to have every grade whole
    return request.parallel or min(cores(), _MOST_PROCESSES)


def _judged_run(request: RejudgeRequest) -> JudgedRun | None:
    """Who makes the analysis of the run; None: it is no run, or nobody will see it."""
    source = request.source
    if source.is_single or source.run is None or not request.as_json:
        return None
    selected = bool(request.selection or request.cases)
    return JudgedRun(source, selected=selected)


def _head(request: RejudgeRequest) -> dict[str, Any]:
    return {
        "schema_version": JUDGEMENT_VERSION,
        "judged_at": now(),
        "skillup_version": __version__,
        "source": str(request.source.path),
        "by": [str(path) for path in request.cases],
        "case_globs": list(request.selection.globs),
        "tags": list(request.selection.tags),
        "judge_model": request.judge_model,
    }


def _show(
    judged: Iterator[Judged], request: RejudgeRequest, tally: RejudgeCounts, *, compared: bool
) -> None:
    console, label = make_console(), _labels(request)
    for job_id, grade, change in judged:
        if request.quiet and not change and change is not None:
            continue
        print_folded(console, grade_line(label(job_id), grade, change))
        # With nothing to compare with, what failed is what one wants to see.
        for line in unmet_lines(grade) if change is None else flip_lines(change):
            print_folded(console, line)
    if tally.total:
        console.print()
        console.print(counts_line(tally, compared=compared), soft_wrap=True)
        if tally.took is not None:
            calls, stored, total, cost = took_words(tally.took)
            words = f"calls {calls}, of them stored {stored}, tokens {total}, cost {cost}"
            console.print(f"judges that read: {words}", soft_wrap=True)


def _labels(request: RejudgeRequest) -> Callable[[str], str]:
    """What tells a job from the others of its run, in a few words."""
    if request.source.kind == "session" and request.source.path.is_dir():
        return lambda job_id: " ".join([shown_id(p) for p in job_id.rsplit("/", 3)[::3]])
    # A case's own id may hold slashes.
    planned = [job.rsplit("/", 3)[1:] for job in request.source.planned]
    different = [len(set(column)) > 1 for column in zip(*planned, strict=False)]

    def label(job_id: str) -> str:
        case, *rest = job_id.rsplit("/", 3)
        told = [part for part, differs in zip(rest, different, strict=False) if differs]
        return " ".join([shown_id(case), *told])

    return label


def _nothing(
    request: RejudgeRequest, edited: EditedCases | None, tally: RejudgeCounts
) -> UsageError:
    if tally.left_out and edited is not None:
        known = ", ".join(shown_id(item.case.id) for item in edited.cases[:10])
        return UsageError("no record is of a case in --cases", hint=f"the cases there are: {known}")
    if request.selection:
        return UsageError("no record matches the selection", hint="see -k and --tag")
    return UsageError(
        f"{request.source.path} holds no finished trial", hint="go on with skillup run --resume"
    )


# Judging again whenever somebody saves a case.

_SECONDS = 0.25


def judge_on_changes(request: RejudgeRequest) -> int:
    """Judge now and after each change, until Ctrl-C, which is a KeyboardInterrupt.

    What is wrong with a file is said, no more: it may just be half written.
    """
    # A shell that starts it in the background has Ctrl-C ignored; here it is the only way to end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen, beside = None, files_beside(request.cases)
    request = replace(request, last={})
    while True:
        # Looked at before it is read: what changes meanwhile is noticed the next time.
        state = watched(request.cases, beside)
        if state != seen:
            beside = files_beside(request.cases)
            seen = watched(request.cases, beside)
            _judge(request)
            names = ", ".join(shown_path(path) for path in request.cases)
            now = datetime.now().astimezone()
            sys.stderr.write(plain(f"{now:%H:%M:%S}  watching {names} (Ctrl-C ends)\n\n"))
        time.sleep(_SECONDS)


def _judge(request: RejudgeRequest) -> None:
    try:
        judge_once(request)
    except InvalidFilesError as error:
        for problem in error.problems:
            sys.stderr.write(problem_line(problem) + "\n")
    except SkillupError as error:
        hint = f"\n  hint: {error.hint}" if error.hint else ""
        sys.stderr.write(plain(f"error: {error.message}{hint}\n"))
