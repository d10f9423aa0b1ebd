"""How long the command takes to answer without doing anything, beyond `python -c pass`.

Run as `python tests/benchmarks/bench_startup.py [ROUNDS]`. It prints milliseconds and the ratio to
the bare interpreter, the fastest of several rounds each.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "skillup --version": ["-m", "skillup", "--version"],
    "skillup --help": ["-m", "skillup", "--help"],
    "skillup run --help": ["-m", "skillup", "run", "--help"],
    "skillup schema case": ["-m", "skillup", "schema", "case"],
}
_ROUNDS = 10


def milliseconds(arguments: Sequence[str], rounds: int) -> float:
    """The fastest of `rounds` runs of the interpreter with `arguments`."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        best = min(best, time.perf_counter() - start)
    return best * 1000


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    rounds = int(arguments[0]) if arguments else _ROUNDS
    bare = milliseconds(COMMANDS["python -c pass"], rounds)
    for name, command in COMMANDS.items():
        taken = milliseconds(command, rounds)
        print(f"{name:>20}: {taken:6.1f} ms, {taken - bare:6.1f} beyond, {taken / bare:.1f} x")


if __name__ == "__main__":
    main(sys.argv[1:])
