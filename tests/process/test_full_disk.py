"""Raw copies that have no room: the process ends, and the caller is told."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import anyio
import pytest

from skillup.process import ProcessRequest, run_process

FULL = Path("/dev/full")  # every write to it finds the disk full

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


@pytest.mark.parametrize("length", [10, 1_000_000], ids=["in memory until the end", "at once"])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_it_raises_what_the_disk_said_and_does_not_wait_for_ever(
    tmp_path: Path, stream: str, length: int
) -> None:
    request = ProcessRequest(
        argv=(sys.executable, "-c", f"import sys; print('x' * {length}, file=sys.{stream})"),
        cwd=tmp_path,
        env={},
        timeout_seconds=60,
        stdout_path=FULL if stream == "stdout" else tmp_path / "out",
        stderr_path=FULL if stream == "stderr" else tmp_path / "err",
    )

    async def run() -> None:
        with anyio.fail_after(30):
            await run_process(request)

    with pytest.raises(OSError, match="No space left") as refused:
        anyio.run(run)
    assert refused.value.errno == errno.ENOSPC
