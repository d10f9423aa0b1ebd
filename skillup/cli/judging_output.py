"""One judging from the request to the screen or to `--json`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup import __version__
from skillup.cli.judging import Judged, Judging, say_on_stderr
from skillup.cli.judging_analysis import JudgedRun
from skillup.cli.judging_cases import EditedCases, Selection, load_edited
from skillup.cli.judging_desk import desks_for
from skillup.cli.judging_secrets import hidden_of, masked_cases
from skillup.cli.judging_share import cores
from skillup.cli.judging_sources import Source
from skillup.errors import UsageError
from skillup.judges.replay.regrade import Regrader
from skillup.reports.flips import counts_line, flip_lines, grade_line, unmet_lines
from skillup.reports.folding import print_folded
from skillup.reports.judgement import JUDGEMENT_VERSION, Tally, judgement_chunks
from skillup.reports.panel import took_words
from skillup.reports.stream_console import make_console
from skillup.reports.text import shown_id
from skillup.schema.grade import Grade
from skillup.trial.message import now

_MOST_PROCESSES = 4
"""More would mostly wait for the one that shows what they find."""


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """What `skillup judge` was asked to do."""

    source: Source
    cases: tuple[Path, ...] = ()
    selection: Selection = field(default_factory=Selection)
    quiet: bool = False
    as_json: bool = False
    judge_model: str | None = None
    """Who reads for the judges; None: whom the cases name."""
    parallel: int | None = None
    """Processes; None: as many as there are cores, up to four."""
    last: dict[str, Grade] | None = None
    """The grades of the time before, which the new ones take the place of."""


def judge_once(request: JudgeRequest) -> int:
    """Judge and show; the exit code.

    Raises InvalidFilesError for edited cases that do not validate, and UsageError if nothing was
    there to judge.
    """
    edited = load_edited(request.cases) if request.cases else None
    hidden = hidden_of(request.source, edited)
    secrets = hidden.secrets(os.environ)
    if edited is not None and request.source.is_masked:
        edited = masked_cases(edited, secrets)
    judging = Judging(
        request.source,
        request.selection,
        Regrader(
            desks_for(request.source, secrets, edited=bool(request.cases or request.judge_model))
        ),
        edited,
        say=lambda note: say_on_stderr(secrets.mask(note)),
        judge_model=request.judge_model,
        hidden=hidden,
        workers=_processes(request),
        whole=request.as_json or not request.quiet,
        last=request.last,
    )
    tally = Tally(stopped_by_failures=request.source.stopped_by_failures)
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


def _processes(request: JudgeRequest) -> int:
    if request.last is not None:
        return 1  # whoever compares with the time before has to have every grade whole
    return request.parallel or min(cores(), _MOST_PROCESSES)


def _judged_run(request: JudgeRequest) -> JudgedRun | None:
    """Who makes the analysis of the run; None: it is no run, or nobody will see it."""
    source = request.source
    if source.is_single or source.run is None or not request.as_json:
        return None
    selected = bool(request.selection or request.cases)
    return JudgedRun(source, selected=selected)


def _head(request: JudgeRequest) -> dict[str, Any]:
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


def _show(judged: Iterator[Judged], request: JudgeRequest, tally: Tally, *, compared: bool) -> None:
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


def _labels(request: JudgeRequest) -> Callable[[str], str]:
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


def _nothing(request: JudgeRequest, edited: EditedCases | None, tally: Tally) -> UsageError:
    if tally.left_out and edited is not None:
        known = ", ".join(shown_id(item.case.id) for item in edited.cases[:10])
        return UsageError("no record is of a case in --cases", hint=f"the cases there are: {known}")
    if request.selection:
        return UsageError("no record matches the selection", hint="see -k and --tag")
    return UsageError(
        f"{request.source.path} holds no finished trial", hint="go on with skillup run --resume"
    )
