"""A worker's log does not grow with each message of a trial."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from skillup.executors.cluster.on_worker import forget, pass_in, send
from skillup.executors.cluster.worker_log import log_no_messages

LOGGER = logging.getLogger("distributed.worker")


@pytest.fixture
def in_a_worker() -> Iterator[None]:
    """As in the process of one: its log is written, and what we add to it ends with the test."""
    kept = LOGGER.level, list(LOGGER.filters)
    LOGGER.setLevel(logging.INFO)
    log_no_messages()
    yield
    LOGGER.setLevel(kept[0])
    LOGGER.filters[:] = kept[1]


@pytest.mark.usefixtures("in_a_worker")
@pytest.mark.parametrize(
    ("function", "arguments", "lines"),
    [(pass_in, ("no unit", "x"), 0), (send, ("no unit", "no job", []), 0), (forget, ("none",), 1)],
)
def test_dask_writes_no_line_for_what_is_called_in_each_turn(
    function: Callable[..., Any], arguments: tuple[Any, ...], lines: int
) -> None:
    from distributed import worker
    from distributed.protocol import pickle

    written: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: written.append(record.getMessage())  # type: ignore[method-assign]
    LOGGER.addHandler(handler)
    run: Any = worker.run  # without types
    packed: Any = pickle.dumps
    try:
        asyncio.run(run(None, None, packed(function), packed(arguments)))
    finally:
        LOGGER.removeHandler(handler)
    assert len(written) == lines, written
