"""`skillup run`: hold the conversations and judge them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skillup.cli.options import (
    AsJson,
    CaseGlobs,
    IndexUrl,
    Item,
    JudgeModelName,
    NoJudgeCache,
    Paths,
    SampleSize,
    Tags,
    Trust,
    Vars,
    parse_out,
    parse_seconds,
)


def run(
    paths: Paths = None,
    engine: Annotated[
        list[str] | None,
        typer.Option("--engine", "-e", help="A profile, an adapter or a file; repeatable."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Outranks the profile's model.")] = None,
    parallel: Annotated[
        int | None, typer.Option("--parallel", "-j", min=1, max=256, help="Trials at once.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="How often to hold each case.")
    ] = None,
    trials_from_turn: Annotated[
        int | None,
        typer.Option(min=1, help="The trials of a case share the turns before this one."),
    ] = None,
    case: CaseGlobs = None,
    tag: Tags = None,
    item: Item = None,
    sample_size: SampleSize = None,
    seed: Annotated[
        int, typer.Option(help="Of --sample-size, and of what the scripted engine draws.")
    ] = 0,
    var: Vars = None,
    trust: Trust = False,  # noqa: ARG001 - its callback does it
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Hold each case without the skill, too.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", parser=parse_out, help="The run directory. Default: .skillup/runs/…"
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Go on with this run (a directory, an id, or `last`); finished trials are kept.",
        ),
    ] = None,
    retry_errors: Annotated[
        bool,
        typer.Option("--retry-errors", help="With --resume: trials with an ERROR are held again."),
    ] = False,
    max_fail: Annotated[
        int | None, typer.Option(min=1, help="Start no more trials after so many bad ones.")
    ] = None,
    max_cost_usd: Annotated[
        float | None,
        typer.Option("--max-cost-usd", min=0, help="Start no more trials once so much is spent."),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Start no more trials after so many tokens.")
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option(help="Start no more trials after so long: 90s, 45m, 8h.")
    ] = None,
    until_decided: Annotated[
        bool,
        typer.Option("--until-decided", help="Stop repeating a case whose pass rate is sure."),
    ] = False,
    pass_rate: Annotated[
        float | None,
        typer.Option(help="What --until-decided compares with. Default: the suite's gate, or 0.8."),
    ] = None,
    rate_limit_wait: Annotated[
        str | None,
        typer.Option(
            help="How long agents, judges and simulated users wait out rate limits and overload: "
            "10m; 0: not at all."
        ),
    ] = None,
    executor: Annotated[str, typer.Option(help="local, or dask: on a cluster.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="The Dask scheduler's address: tcp://host:8786.")
    ] = None,
    judge_model: JudgeModelName = None,
    no_judge_cache: NoJudgeCache = False,
    report: Annotated[
        list[str] | None,
        typer.Option(
            "--report",
            help="Also write: html, junit, markdown, benchmark, json; with commas, or repeated.",
        ),
    ] = None,
    keep_workspaces: Annotated[
        bool, typer.Option("--keep-workspaces", help="Leave each trial's scratch directory.")
    ] = False,
    index: IndexUrl = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the closing table.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the conversations as they are held.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Run suites, single cases, or a skill's evals/.

    Exit code: 0 all passed (skips too), 1 a case failed, 2 usage or invalid files, 3 an ERROR or
    trials that were not run (unless --max-fail stopped the run; outranks 1), 130 interrupted.
    """
    from skillup.app.request import RunRequest, requested_again
    from skillup.app.resume import check_retrying
    from skillup.app.run import run_session
    from skillup.app.run_lookup import run_path
    from skillup.app.xdist import join_workers
    from skillup.reports.formats import parse_formats

    request = RunRequest(
        paths=tuple(str(path) for path in paths or ()),
        engines=tuple(engine or ()),
        model=model,
        parallel=parallel,
        trials=trials,
        trials_from_turn=trials_from_turn,
        cases=tuple(case or ()),
        tags=tuple(tag or ()),
        item=item,
        sample_size=sample_size,
        seed=seed,
        variables=tuple(var or ()),
        baseline=baseline,
        max_fail=max_fail,
        max_cost_usd=max_cost_usd,
        max_tokens=max_tokens,
        time_limit=parse_seconds(time_limit, "--time-limit"),
        until_decided=until_decided,
        pass_rate=pass_rate,
        rate_limit_wait=parse_seconds(rate_limit_wait, "--rate-limit-wait"),
        executor=executor,
        scheduler=scheduler,
        reports=parse_formats(report or ()),
        judge_model=judge_model,
        no_judge_cache=no_judge_cache,
    )
    check_retrying(retry_errors=retry_errors, resume=resume)
    unfinished = None if resume is None else run_path(resume, joined=False)
    if unfinished is not None:
        join_workers(unfinished)
        request = requested_again(unfinished, request, out)
    return run_session(
        request,
        out=out,
        resume=unfinished,
        retry_errors=retry_errors,
        quiet=quiet,
        verbose=verbose,
        as_json=as_json,
        keep=keep_workspaces,
        index=index,
    )
