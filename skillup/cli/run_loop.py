"""The event loop of a run: it goes on until all is held, or until a signal comes."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import anyio

from skillup.cli.departure import Departure, Interrupted
from skillup.errors import SkillupError
from skillup.executors import RunOptions, run_locally
from skillup.judges.models.client import Models
from skillup.plan import Plan
from skillup.schema.grade import Grade
from skillup.store import RunDirectory

if TYPE_CHECKING:
    from skillup.executors.cluster import Cluster


def run_until_stopped(
    plan: Plan,
    directory: RunDirectory,
    options: RunOptions,
    observer: Interrupted,
    models: Models,
    grades: dict[str, Grade],
    cluster: Cluster | None = None,
) -> bool:
    """Hold the plan, here or by `cluster`; whether it was interrupted.

    `grades` has what finished in both cases.

    A run directory that fails in the middle is infrastructure, not a wrong use of skillup.
    """
    try:
        return anyio.run(_hold, plan, directory, options, observer, models, grades, cluster)
    except KeyboardInterrupt:
        # Another Ctrl-C, in the moment after the first was obeyed: whatever has finished counts.
        _ignore_signals()
        return True
    except BaseExceptionGroup as group:
        refused = first_refusal(group)
        if refused is None:
            raise
        hint = refused.hint
        if hint is not None and hint.endswith("--resume"):
            hint = f"{hint.removesuffix('--resume')}`skillup run --resume {directory.path}`"
        raise SkillupError(refused.message, hint=hint) from group


def first_refusal(group: BaseExceptionGroup[BaseException]) -> SkillupError | None:
    """The error in `group` that a user can act on."""
    for error in group.exceptions:
        found = first_refusal(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, SkillupError):
            return found
    return None


async def _hold(
    plan: Plan,
    directory: RunDirectory,
    options: RunOptions,
    observer: Interrupted,
    models: Models,
    grades: dict[str, Grade],
    cluster: Cluster | None = None,
) -> bool:
    """Run until it is done or a signal comes; `grades` has what finished in both cases."""
    interrupted = False
    departure = Departure(observer, directory.path)

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:

            async def watch() -> None:
                nonlocal interrupted
                with anyio.open_signal_receiver(*_stopping_signals()) as signals:
                    async for _ in signals:
                        interrupted = True
                        departure.signalled()
                        scope.cancel()

            group.start_soon(watch)
            try:
                if cluster is None:
                    await run_locally(plan, directory, options, observer, grades)
                else:
                    from skillup.executors.cluster import run_on_cluster

                    await run_on_cluster(cluster, plan, directory, options, observer, grades)
            finally:
                await models.close()
        group.cancel_scope.cancel()
    if interrupted:
        _ignore_signals()
    return interrupted


def _ignore_signals() -> None:
    """What is left to do takes a moment, and a second Ctrl-C would lose it."""
    for stopping in _stopping_signals():
        signal.signal(stopping, signal.SIG_IGN)


def _stopping_signals() -> list[signal.Signals]:
    """Ctrl-C, the usual way to stop a program, and a terminal that is closed (unless `nohup`)."""
    stopping = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        stopping.append(signal.SIGHUP)
    return stopping
