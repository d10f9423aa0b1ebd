"""The connection to the scheduler, within a bounded time and with its own words kept quiet."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio

from skillup.errors import SkillupError, UsageError

_CONNECT_SECONDS = 15
_LEAVE_SECONDS = 5
_SCHEMES = ("tcp", "tls", "ucx", "ws", "wss")


def check_address(scheduler: str) -> None:
    """Raises UsageError if it cannot be the address of a scheduler."""
    parts = urlsplit(scheduler)
    try:
        right = parts.scheme in _SCHEMES and parts.hostname and parts.port is not None
    except ValueError:
        right = False
    if not right:
        raise UsageError(
            f"--scheduler {scheduler}: no address of a Dask scheduler",
            hint="it looks like tcp://host:8786; the scheduler says it when it starts",
        )


@asynccontextmanager
async def connected(scheduler: str) -> AsyncIterator[Any]:
    """A `distributed.Client` in this event loop. Raises SkillupError if nobody answers there."""
    import distributed

    make: Any = distributed.Client  # without types

    # What it logs of lost connections is said by us, in one line, where it matters.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":  # each has a level of its own
            logging.getLogger(name).setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other versions of packages that no trial needs
        client = make(scheduler, asynchronous=True, timeout=_CONNECT_SECONDS, set_as_default=False)
        try:
            with anyio.fail_after(_CONNECT_SECONDS + 5):
                await client
        except (OSError, TimeoutError, ValueError) as error:
            await _close(client)
            raise SkillupError(
                f"no Dask scheduler answers at {scheduler}: {_why(error)}",
                hint="is it running, and can it be reached from here? "
                "`dask scheduler` says its address when it starts",
            ) from error
        except BaseException:
            await _close(client)
            raise
    try:
        yield client
    finally:
        await _close(client)


async def _close(client: Any) -> None:
    with anyio.move_on_after(_LEAVE_SECONDS, shield=True):
        await client.close(timeout=_LEAVE_SECONDS)


def _why(error: BaseException) -> str:
    cause = error.__cause__ or error
    # Without the address of the object that failed.
    said = re.sub(r"^in <[^>]*>: ", "", " ".join(str(cause).split()))
    return said[:200] or type(cause).__name__
