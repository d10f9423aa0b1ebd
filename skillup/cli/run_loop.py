"""The event loop of a run: it goes on until all is held, or until a signal comes."""

from __future__ import annotations

import signal

import anyio

from skillup.errors import SkillupError
from skillup.executors import RunObserver, RunOptions, run_locally
from skillup.judges.models.client import Models
from skillup.plan import Plan
from skillup.schema.grade import Grade
from skillup.store import RunDirectory


def run_until_stopped(
    plan: Plan,
    directory: RunDirectory,
    options: RunOptions,
    observer: RunObserver,
    models: Models,
    grades: dict[str, Grade],
) -> bool:
    """Hold the plan; whether it was interrupted. `grades` has what finished in both cases.

    A run directory that fails in the middle is infrastructure, not a wrong use of skillup.
    """
    try:
        return anyio.run(_hold, plan, directory, options, observer, models, grades)
    except KeyboardInterrupt:
        # Another Ctrl-C, in the moment after the first was obeyed: whatever has finished counts.
        _ignore_signals()
        return True
    except BaseExceptionGroup as group:
        refused = _first_refusal(group)
        if refused is None:
            raise
        raise SkillupError(refused.message, hint=refused.hint) from group


def _first_refusal(group: BaseExceptionGroup[BaseException]) -> SkillupError | None:
    for error in group.exceptions:
        found = _first_refusal(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, SkillupError):
            return found
    return None


async def _hold(
    plan: Plan,
    directory: RunDirectory,
    options: RunOptions,
    observer: RunObserver,
    models: Models,
    grades: dict[str, Grade],
) -> bool:
    """Run until it is done or a signal comes; `grades` has what finished in both cases."""
    interrupted = False

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:

            async def watch() -> None:
                nonlocal interrupted
                with anyio.open_signal_receiver(*_stopping_signals()) as signals:
                    async for _ in signals:
                        interrupted = True
                        scope.cancel()

            group.start_soon(watch)
            try:
                await run_locally(plan, directory, options, observer, grades)
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
