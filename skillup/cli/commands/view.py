"""`skillup view`: look at runs in a browser, also while they go on."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillup.cli.options import IndexUrl, option
from skillup.errors import UsageError

if TYPE_CHECKING:
    from skillup.reports.server.runs import Served


def view(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run's directory, its id or the beginning of it, `last`, or a folder of runs. "
            "Default: all runs of this workspace.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        option("Default: 7575, or any if that is in use; 0: any.", min=0, max=65535),
    ] = None,
    no_open: Annotated[bool, option("Do not open a browser.", "--no-open")] = False,
    index: IndexUrl = None,
) -> int:
    """Serve runs on 127.0.0.1 for a browser, with what happens in them, until Ctrl-C.

    Exit code: 0 ended by Ctrl-C, 2 no such run, or a port that cannot be had.
    """
    from skillup.reports.server.server import ViewServer
    from skillup.reports.text import plain

    served, first = _served(run, index)
    server = ViewServer(served, port, first)
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    what = f"run {first}" if served.only else f"the runs in {served.folder}"
    sys.stderr.write(plain(f"{what}; Ctrl-C ends it\n"))
    # A desktop whose browser can come up.
    display = any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if not no_open and (sys.platform == "darwin" or display):
        threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        server.stopping.set()
        server.server_close()
    return 0


def _served(run: str | None, index: str | None) -> tuple[Served, str | None]:
    """What is served, and the run that is shown first. Raises UsageError if it is not there."""
    from skillup.app.runs import run_path
    from skillup.load.discover import workspace_root
    from skillup.reports.server.runs import Served
    from skillup.store.places import RUN_FILE, runs_folder, runs_in

    usual = runs_folder(workspace_root(Path()))
    if run is None:
        return Served(usual, index=index), None
    path = run_path(run).absolute()
    if (path / RUN_FILE).is_file():
        if path.parent == usual.absolute():
            return Served(usual, index=index), path.name
        return Served(path.parent, only=path.name, index=index), path.name
    if not path.is_dir():
        raise UsageError(f"{run} is no run", hint="give a run's directory or id, or a folder")
    if not runs_in(path):
        raise UsageError(f"{run} holds no runs", hint="give a run's directory, or its folder")
    return Served(path, index=index), None
