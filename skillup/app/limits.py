"""When a run holds no more trials: from the request to what counts them, and what is said of it."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from skillup.app.request import RunRequest
from skillup.errors import UsageError
from skillup.executors.budgets import RunLimits, StopPolicy
from skillup.executors.early_stopping import EarlyStopping
from skillup.executors.ratelimit import Paces
from skillup.plan import Plan
from skillup.ratelimit.slow_down import PATIENCE_SECONDS
from skillup.schema.grade import Stop
from skillup.stats.sequential import fewest_trials

_PASSWORD = re.compile(r"^([^:]+://[^:@/]*:).*@")
"""In the URL of an index: what comes before it, and it."""


def check_deciding(request: RunRequest) -> None:
    """Raises UsageError if `--until-decided` and what belongs to it do not go together."""
    rate = request.pass_rate
    if rate is not None and not request.until_decided:
        raise UsageError(
            f"--pass-rate {rate:g}: it says what --until-decided compares with",
            hint="give both, or leave it out",
        )
    if rate is not None and not 0 < rate < 1:
        raise UsageError(
            f"--pass-rate {rate:g}: must be between 0 and 1, without them",
            hint="for example 0.9: is a case surely above or below 90 %?",
        )
    if not request.until_decided:
        return
    if request.trials is None or request.trials < 2:
        raise UsageError(
            "--until-decided needs the most trials that a case may have",
            hint="say it with --trials, for example --trials 50",
        )
    if (request.trials_from_turn or 1) > 1:
        raise UsageError(
            "--until-decided does not go with --trials-from-turn: trials that share turns are held "
            "together, so none can be left out",
            hint="leave one of them out",
        )


def stopping_of(request: RunRequest, warn: Callable[[str], None]) -> StopPolicy:
    """What counts the request's budgets; `warn` hears of what they cannot count."""
    limits = RunLimits(
        max_fail=request.max_fail,
        max_cost_usd=request.max_cost_usd,
        max_tokens=request.max_tokens,
        time_limit_seconds=request.time_limit,
    )
    return StopPolicy(limits, warn)


def paces_of(request: RunRequest, stopping: StopPolicy) -> Paces:
    """How the run waits for providers that refuse; one that goes on refusing ends it."""
    return Paces(patience_of(request), stopping.end_for_quota)


def patience_of(request: RunRequest) -> float:
    """For how many seconds it waits for one that accepts nothing."""
    wait = request.rate_limit_wait
    return PATIENCE_SECONDS if wait is None else wait


def deciding_of(
    request: RunRequest, plan: Plan, run_info: Mapping[str, Any], warn: Callable[[str], None]
) -> EarlyStopping | None:
    """The cases' tests; None if none are asked for. `warn` hears of those that cannot come out.

    `run_info` is the run's `run.json`.
    """
    if not request.until_decided:
        return None
    deciding = EarlyStopping(plan.jobs, run_info)
    most = request.trials or 0
    for threshold in sorted({test.threshold for test in deciding.tests()}):
        above, below = fewest_trials(threshold)
        if most < above:
            warn(
                f"with {most} trials no case can be surely above {threshold:g}: that takes {above} "
                f"passes in a row (surely below takes {below} failures)"
            )
        if most < below:
            warn(
                f"with {most} trials no case can be surely below {threshold:g}: that takes {below} "
                f"failures in a row (surely above takes {above} passes)"
            )
    return deciding


def go_on_command(run: Path, request: RunRequest, index: str | None) -> str:
    """The command that holds the rest of the run at `run`, where it was held and indexed.

    `index` is `--index` as it was given; its password, if it has one, is not shown.
    """
    words = ["skillup", "run", "--resume", str(run)]
    if request.executor != "local":
        words += ["--executor", request.executor]
        words += ["--scheduler", request.scheduler] if request.scheduler is not None else []
    words += ["--index", _PASSWORD.sub(r"\1***@", index)] if index is not None else []
    return shlex.join(words)


def go_on_with(command: str, stop: Stop | None, stopping: StopPolicy) -> str:
    """`command`; where a limit was reached, with as much of it again."""
    limits, (usd, tokens) = stopping.limits, stopping.spent()
    more = ""
    if stop is not None and stop.kind == "max_cost_usd" and limits.max_cost_usd:
        more = f" --max-cost-usd {_amount(usd + limits.max_cost_usd)}"
    elif stop is not None and stop.kind == "max_tokens" and limits.max_tokens:
        more = f" --max-tokens {tokens + limits.max_tokens}"
    elif stop is not None and stop.kind == "time_limit" and limits.time_limit_seconds:
        more = f" --time-limit {limits.time_limit_seconds:g}s"
    return command + more


def _amount(usd: float) -> str:
    """Never less than `usd`: a limit that is spent already would hold nothing."""
    digits = 2 if usd >= 1 else 4
    return f"{math.ceil(usd * (1 - 1e-9) * 10**digits) / 10**digits:.{digits}f}"
