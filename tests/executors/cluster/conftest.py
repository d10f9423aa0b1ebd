"""Clusters for tests, which end with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.dask_cluster import DaskCluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    """A scheduler; the test starts the workers."""
    running = DaskCluster(tmp_path / "cluster")
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Two workers with a thread each, for all tests of a module that do not disturb them."""
    running = DaskCluster(tmp_path_factory.mktemp("dask") / "cluster")
    try:
        for name in ("one", "two"):
            running.start_worker(name, env={"LAB_TOKEN": "sk-of-the-worker"})
        yield running
    finally:
        running.close()
