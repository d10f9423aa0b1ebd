"""The command's entry; does as little as it can before it knows what is wanted."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    # Typer and what it brings would take ten times as long as the answer.
    if sys.argv[1:] in (["--version"], ["-V"]):
        from skillup import __version__

        sys.stdout.write(f"skillup {__version__}\n")
        return
    from skillup.cli.boundary import run_app

    sys.exit(run_app(sys.argv[1:]))


if __name__ == "__main__":
    main()
