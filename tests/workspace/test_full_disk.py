"""What counts as a full disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skillup.errors import ExitCode, FullDiskError
from skillup.workspace.failures import refuse_full_disk, refuse_without_room


def ends_the_run(refuse: Callable[[], None]) -> bool:
    try:
        refuse()
    except FullDiskError:
        return True
    return False


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_no_room_ends_the_run_as_trouble_of_the_machine(number: int) -> None:
    refused = OSError(number, os.strerror(number), "/work/big.bin")
    with pytest.raises(FullDiskError) as stopped:
        refuse_full_disk(refused)
    assert "/work/big.bin" in stopped.value.message
    assert os.strerror(number) in stopped.value.message
    assert stopped.value.hint is not None
    assert "--resume" in stopped.value.hint
    assert stopped.value.exit_code == ExitCode.ERROR


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.EIO])
def test_other_refusals_are_left_to_whoever_met_them(number: int) -> None:
    refused = OSError(number, os.strerror(number))
    assert not ends_the_run(lambda: refuse_full_disk(refused, Path("/work")))


def test_where_the_system_names_no_file_the_place_is_told() -> None:
    with pytest.raises(FullDiskError, match="/work/raw"):
        refuse_full_disk(OSError(errno.ENOSPC, "No space left on device"), Path("/work/raw"))


def test_a_disk_with_room_and_a_place_that_is_gone_are_no_trouble(tmp_path: Path) -> None:
    assert not ends_the_run(lambda: refuse_without_room(tmp_path))
    assert not ends_the_run(lambda: refuse_without_room(tmp_path / "gone"))
