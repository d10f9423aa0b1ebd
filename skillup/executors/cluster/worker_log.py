"""What Dask is kept from writing into a worker's log."""

from __future__ import annotations

import logging

_OF_EACH_MESSAGE = {("pass_in",), ("send",)}
"""Our functions that are called once in a turn or more; see :mod:`.on_worker`."""


def log_no_messages() -> None:
    """From now on this worker's log has no line for each message of a trial.

    Dask writes one, at level INFO, whenever a client calls a function. Nobody reads what a worker
    of Dask's `SSHCluster` writes: after about 3 MB its writing blocks, and with it the worker.
    """
    logging.getLogger("distributed.worker").addFilter(_is_no_message)


def _is_no_message(record: logging.LogRecord) -> bool:
    called = str(record.msg).startswith("Run out-of-band function")
    return not (called and record.args in _OF_EACH_MESSAGE)
