"""The event loop of a run: it goes on until all is held, or until a signal comes."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import anyio

from skillup.cli.departure import Departure
from skillup.errors import InterruptedRunError, SkillupError, UsageError

_RESUME = "skillup run --resume"


def run_until_stopped(
    hold: Callable[[], Awaitable[None]], departure: Departure, go_on: str
) -> bool:
    """Await `hold`, which is cancelled when a signal comes; whether one did.

    A run directory that fails in the middle is infrastructure, not a wrong use of skillup: what
    its error says of resuming is said with `go_on`, the command that does it.
    """
    begun = False

    async def watched() -> bool:
        nonlocal begun
        begun = True
        return await until_signalled(hold, departure.signalled)

    try:
        return anyio.run(watched)
    except KeyboardInterrupt:
        if not begun:  # asyncio may be half imported: no report of the run could be written
            hint = f"go on with: {go_on}"
            raise InterruptedRunError("interrupted before the first trial", hint=hint) from None
        # Another Ctrl-C, in the moment after the first was obeyed: whatever has finished counts.
        _ignore_signals()
        return True
    except BaseExceptionGroup as group:
        refused = first_refusal(group)
        if refused is None:
            raise
        if isinstance(refused, UsageError):
            raise refused from group
        raise SkillupError(refused.message, hint=_with_command(refused.hint, go_on)) from group


def _with_command(hint: str | None, go_on: str) -> str | None:
    """`hint`, which may end with the bare option or the bare command."""
    if hint is None:
        return None
    for end in (f"`{_RESUME}`", "--resume"):
        if hint.endswith(end):
            return f"{hint.removesuffix(end)}`{go_on}`"
    return hint


def first_refusal(group: BaseExceptionGroup[BaseException]) -> SkillupError | None:
    """The error in `group` that a user can act on."""
    for error in group.exceptions:
        found = first_refusal(error) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, SkillupError):
            return found
    return None


async def until_signalled(
    hold: Callable[[], Awaitable[None]], signalled: Callable[[], None] = lambda: None
) -> bool:
    """Await `hold`, or cancel it when a signal comes; whether one did.

    `signalled` is called for each signal. Afterwards none is obeyed any more.
    """
    interrupted = False
    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:

            async def watch() -> None:
                nonlocal interrupted
                with anyio.open_signal_receiver(*_stopping_signals()) as signals:
                    async for _ in signals:
                        interrupted = True
                        signalled()
                        scope.cancel()

            group.start_soon(watch)
            await hold()
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
