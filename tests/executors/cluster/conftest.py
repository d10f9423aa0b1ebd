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
