"""`skillup judge`: grade records again, without the agent."""

from __future__ import annotations

from skillup.cli import options as o
from skillup.errors import UsageError


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
    quiet: o.Quiet = False,
    as_json: o.AsJson = False,
) -> int:
    """Judge again what was recorded: offline, with the recorded or with edited cases.

    Exit code: 0 all passed (skips too), 1 a case failed, 2 usage or invalid files, 3 an ERROR or
    trials that were not run (unless --max-fail stopped the run; outranks 1), 130 interrupted. Of a
    comparison of judges: 0 it was made, 3 a judge failed on something.
    """
    from skillup.app.rejudge.cases import CaseSelection
    from skillup.app.rejudge.command import judge_again
    from skillup.app.rejudge.judging import RejudgeRequest
    from skillup.app.rejudge.panel import compare_judges
    from skillup.app.rejudge.sources import NO_CASE, open_source

    panel = bool(against or labels or write_labels)
    if panel and judge_model:
        hint = f"name it as one of them: --against {judge_model}"
        raise UsageError("--judge-model is not for comparisons of judges", hint=hint)
    with open_source(target, workspace=workspace, skill_dir=skill_dir) as source:
        if source.kind == "session" and not cases:
            raise NO_CASE
        request = RejudgeRequest(
            source,
            tuple(cases or ()),
            CaseSelection(tuple(case or ()), tuple(tag or ())),
            quiet,
            as_json,
            judge_model,
        )
        if panel:
            return compare_judges(request, tuple(against or ()), labels, write_labels)
        return judge_again(request)
