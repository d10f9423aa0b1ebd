"""What a run of `proposals/new.py` must look like when it worked, and when it refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.proposal_files import stated_in_files, stated_in_index

# -I and -S leave nothing but the standard library.
PLAIN_PYTHON = [sys.executable, "-I", "-S"]

# Root passes over permissions by a capability; without it a test of permissions means the same
# for everyone. 24 is PR_CAPBSET_DROP; 1 and 2 are CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
WITHOUT_ROOT_RIGHTS = """
import ctypes, os, sys
if sys.platform == "linux" and os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(24, 1, 0, 0, 0) == libc.prctl(24, 2, 0, 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-I", "-S", *sys.argv[1:]])
"""

# No file can be written past its tenth byte, as on a disk that has just become full.
WITH_A_FULL_DISK = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
os.execv(sys.executable, [sys.executable, "-I", "-S", *sys.argv[1:]])
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr
    for word in words:
        assert word in done.stderr


def assert_made(done: subprocess.CompletedProcess[str], folder: Path, name: str) -> Path:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    path = Path(done.stdout.removesuffix("\n"))
    assert path.name == name
    assert path.parent.resolve() == folder.resolve()
    assert stated_in_index(folder) == stated_in_files(folder)
    assert not list(folder.glob(".*"))
    return path
