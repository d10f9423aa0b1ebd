"""The command's entry; does as little as it can before it knows what is wanted."""

from __future__ import annotations

import gc
import sys
from types import ModuleType
from typing import Any


def main() -> None:
    """Run the command line and exit with its code."""
    arguments = sys.argv[1:]
    try:
        if arguments in (["--version"], ["-V"]):
            # What reads command lines would take longer than the answer.
            from skillup import __version__

            sys.stdout.write(f"skillup {__version__}\n")
            sys.exit(0)
        # Modules, models and records have few circles: to look for them at the usual pace takes a
        # tenth of a start, and a fifth of judging a large run again.
        gc.set_threshold(150_000, 20, 20)
        # So long the event loop may wait for a thread that looks at a workspace; else 5 ms.
        sys.setswitchinterval(0.0005)
        from skillup.cli.entry import run_app

        # Looking through all that is installed for plug-ins of pydantic takes as long again. (It
        # has a variable against that, which the agents would inherit.)
        no_plugins: Any = ModuleType("pydantic.plugin._loader")
        no_plugins.get_plugins = tuple
        sys.modules[no_plugins.__name__] = no_plugins
        code = run_app(arguments)
        # All of it is given back with the process: to look through it once more takes long.
        gc.freeze()
    except KeyboardInterrupt:
        # In the moments in which nothing of ours looks after it.
        sys.stderr.write("interrupted\n")
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
