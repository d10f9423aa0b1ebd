"""A disk that is soon full: a small file system in memory, in a mount namespace of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.support.project import GUARD_SECONDS, Outcome, Project


def _ways() -> list[list[str]]:
    return [["unshare", "-rm"], ["unshare", "-m"]]


def namespace() -> list[str]:
    """The command that may mount, as root or as anybody where the kernel lets them."""
    if sys.platform == "linux" and shutil.which("unshare"):
        for way in _ways():
            tried = subprocess.run(
                [*way, "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False
            )
            if tried.returncode == 0:
                return way
    pytest.skip("nobody may mount here: neither root, nor others in a namespace of their own")


def run_with_small_disk(project: Project, script: str, *, megabytes: int) -> Outcome:
    """`sh -c SCRIPT` in the project, where `$DISK` is a file system of so many megabytes.

    It is gone afterwards. `$SKILLUP` is the command line.
    """
    (project.root / "disk").mkdir(exist_ok=True)
    mount = f'mount -t tmpfs -o size={megabytes}m none "$DISK" && '
    done = subprocess.run(
        [*namespace(), "sh", "-c", mount + script],
        cwd=project.root,
        env=project.environment(
            {"DISK": str(project.root / "disk"), "SKILLUP": f"{sys.executable} -m skillup"}
        ),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=GUARD_SECONDS,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())
