"""The browser that the tests drive: the system's own Chromium or Chrome; none is downloaded."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

NAME = "SKILLUP_TEST_CHROMIUM"
"""Its path, or a name on PATH. Where this is set, as on CI, tests fail without it."""

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_APPS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


class NoChromiumError(Exception):
    """There is none; the message says what to do."""


def chromium() -> str | None:
    """The browser's path; None: there is none, and none is asked for.

    Raises NoChromiumError if `SKILLUP_TEST_CHROMIUM` names one that is not there.
    """
    wanted = os.environ.get(NAME)
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise NoChromiumError(f"{NAME}={wanted}: there is no such browser; install Chromium")
        return found
    for name in _NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    return next((app for app in _APPS if Path(app).is_file()), None)
