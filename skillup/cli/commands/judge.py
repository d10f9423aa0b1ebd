"""`skillup judge`: grade records again, without the agent."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from skillup.cli import options as o
from skillup.cli.entry import report
from skillup.errors import SkillupError, UsageError

if TYPE_CHECKING:
    from skillup.app.rejudge.judging import RejudgeRequest

_LOOK_SECONDS = 0.5


def judge(
    target: o.JudgeTarget,
    cases: o.EditedCases = None,
    case: o.CaseGlobs = None,
    tag: o.Tags = None,
    judge_model: o.JudgeModelName = None,
    trust: o.Trust = False,  # noqa: ARG001 - its callback does it
    against: o.Against = None,
    labels: o.Labels = None,
    write_labels: o.WriteLabels = None,
    workspace: o.InputWorkspace = None,
    skill_dir: o.InputSkillDir = None,
    watch: o.Watch = False,
    quiet: o.Quiet = False,
    as_json: o.AsJson = False,
) -> int:
    """Judge again what was recorded: offline, with the recorded or with edited cases.

    Exit code: 0 all passed (skips too), 1 a case failed, 2 usage or invalid files, 3 an ERROR or
    trials that were not run (unless --max-fail stopped the run; outranks 1), 130 interrupted. Of a
    comparison of judges: 0 it was made, 3 a judge failed on something.
    """
    from skillup.app.rejudge.command import judge_again
    from skillup.app.rejudge.judging import RejudgeRequest
    from skillup.app.rejudge.panel import compare_judges
    from skillup.app.rejudge.sources import NO_CASE, open_source
    from skillup.plan import Selection

    panel = bool(against or labels or write_labels)
    if panel and judge_model:
        hint = f"name it as one of them: --against {judge_model}"
        raise UsageError("--judge-model is not for comparisons of judges", hint=hint)
    if watch and (panel or as_json or not cases):
        hint = "with --cases, and without --json, --against, --labels and --write-labels"
        raise UsageError("--watch shows what edited cases change", hint=hint)
    with open_source(target, workspace=workspace, skill_dir=skill_dir) as source:
        if source.kind == "session" and not cases:
            raise NO_CASE
        request = RejudgeRequest(
            source,
            tuple(cases or ()),
            Selection(tuple(case or ()), tuple(tag or ())),
            quiet,
            as_json,
            judge_model,
            {} if watch else None,
        )
        if panel:
            return compare_judges(request, tuple(against or ()), labels, write_labels)
        return _judge_on_changes(request) if watch else judge_again(request)


def _judge_on_changes(request: RejudgeRequest) -> int:
    """Judge now and after each change, until Ctrl-C, which is a KeyboardInterrupt."""
    from skillup.app.rejudge.cases import file_stamps
    from skillup.app.rejudge.command import judge_again

    seen = None
    while True:
        # Looked at before it is read: what changes meanwhile is noticed the next time.
        if (stamps := file_stamps(request.cases)) != seen:
            seen = stamps
            try:
                judge_again(request)
            except SkillupError as error:  # a file may just be half written
                report(error)
            sys.stderr.write("watching the files of --cases; Ctrl-C ends\n")
        time.sleep(_LOOK_SECONDS)
