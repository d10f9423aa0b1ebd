"""How long a turn takes with `session: live`, as a multiple of the CLI's own protocol.

Run as `python tests/benchmarks/bench_live.py [TURNS [ROUNDS]]`, with `claude` and `codex` on the
PATH. The model answers at once. It prints the median of the turns after the first, in seconds, the
median of the rounds' ratios, and the same with a process a turn.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import anyio

from skillup.engines.base import TurnRequest
from skillup.engines.cli_runner import CliEngine
from skillup.process.run import Child
from skillup.process.tree import ProcessTree, process_register
from skillup.schema.profile import Profile
from tests.e2e.conftest import CLIS, KEY, find_cli, with_variables
from tests.support.engine_turns import Conversation, make_trial
from tests.support.model_server import ModelServer, Text


def of_protocol(engine: CliEngine, conversation: Conversation, turns: int) -> float:
    """Messages written and events read, and nothing else done."""
    trial, first = conversation.trial, TurnRequest(1, "hello")
    login = engine.login(trial)
    argv = [*engine.command(trial.profile), *engine.arguments(first, trial, None, login)]
    pipe, seconds = subprocess.PIPE, []
    env = engine.environment(trial, login)
    with subprocess.Popen(
        argv, env=env, cwd=trial.workspace, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert trial.live is not None
        for number in range(1, turns + 1):
            began = time.perf_counter()
            parser = engine.parser(TurnRequest(number, "hello"), trial, None)
            while not parser.closed:
                child.stdin.write(parser.outgoing)
                child.stdin.flush()
                parser.outgoing = b""
                parser.feed(child.stdout.readline())
            trial.live.parser = parser
            trial.live.process = Child(child.pid, ProcessTree(""), -1, -1)
            seconds.append(time.perf_counter() - began)
    return median(seconds[1:])


async def of_turns(engine: CliEngine, conversation: Conversation, turns: int) -> float:
    trial, seconds = conversation.trial, []
    session, previous = "", None
    for number in range(1, turns + 1):
        began = time.perf_counter()
        turn = TurnRequest(number, "hello", previous=previous)
        made = await (engine.resume(session, turn, trial) if session else engine.start(turn, trial))
        assert made.error is None, made.error
        session, previous = made.session or "", made.fingerprint
        seconds.append(time.perf_counter() - began)
    if trial.live is not None:
        await trial.live.end()
    return median(seconds[1:])


def main(arguments: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as place, process_register(Path(place), own_process=True):
        compare(*map(int, arguments), *(20, 5)[len(arguments) :])


def compare(turns: int, rounds: int) -> None:
    for name, cli in CLIS.items():
        engine, command = cli.engine(), find_cli(name)
        ratios: list[float] = []
        with ModelServer(lambda _: Text("Hello.")) as server, tempfile.TemporaryDirectory() as base:

            def begin(folder: str, session: str) -> Conversation:
                own = {"engine": engine.name, "command": [str(command)], **cli.keys}  # noqa: B023
                own |= {"base_url": f"{server.url}{cli.address}", "session": session}  # noqa: B023
                trial = make_trial(Path(base, folder), Profile.model_validate(own))
                return with_variables(Conversation(engine, trial), **{cli.key: KEY})  # noqa: B023

            for number in range(rounds):
                raw = of_protocol(engine, begin(f"raw-{number}", "live"), turns)
                own = anyio.run(of_turns, engine, begin(f"own-{number}", "live"), turns)
                ratios.append(own / raw)
                print(f"{name}: protocol {raw:.3f}, live {own:.3f}, {own / raw:.2f} times")
            resumed = anyio.run(of_turns, engine, begin("resumed", "resume"), 3)
        print(f"{name}: live {median(ratios):.2f} times the protocol; resume {resumed:.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
