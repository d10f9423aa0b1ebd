"""What a box costs: a resumed turn of each CLI behind the gateway, in a box and without one.

Run as `python -m tests.benchmarks.bench_sandbox [TURNS]`. The model answers at once. Turns of both
kinds take turns. It prints medians of seconds and of processor seconds, and the medians of ratios.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import anyio

from skillup.engines.base import TurnRequest
from skillup.engines.cli_runner import CliEngine
from skillup.gateway.server import Gateway, open_gateway
from skillup.process.tree import process_register
from skillup.sandbox.base import BoxPlan, installation
from skillup.sandbox.opening import open_box
from skillup.schema.profile import Profile
from skillup.schema.suite import Environment
from tests.e2e.conftest import CLIS, KEY, find_cli, with_variables
from tests.support.engine_turns import Conversation, make_trial
from tests.support.model_server import ModelServer, Text


async def begin(name: str, kind: str, base: Path, url: str, gateway: Gateway) -> Conversation:
    cli, command = CLIS[name], str(find_cli(name))
    own = {"engine": cli.engine.name, "command": [command], "base_url": f"{url}{cli.address}"}
    trial = make_trial(base / kind / name, Profile.model_validate({**own, **cli.keys}))
    trial.home.mkdir()
    trial.temporary.mkdir()
    plan = BoxPlan(
        writable=[trial.workspace, trial.home],
        temporary=trial.temporary,
        programs=installation([command], os.environ),
        port=gateway.port,
        socket=gateway.socket,
    )
    box = await open_box(kind, Environment(), plan)
    route = gateway.route(f"{url}{cli.address}")
    made = Conversation(cli.engine(), replace(trial, box=box, gateway=route))
    return with_variables(made, **{cli.key: KEY})


async def take(conversation: Conversation) -> tuple[float, float]:
    """Seconds and processor seconds of one more turn."""
    engine, trial, done = conversation.engine, conversation.trial, conversation.outcomes
    assert isinstance(engine, CliEngine)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    began, before = time.perf_counter(), used.ru_utime + used.ru_stime
    last = done[-1] if done else None
    session, previous = (last.session, last.fingerprint) if last else (None, None)
    turn = TurnRequest(len(done) + 1, "hello", previous=previous)
    made = await (engine.resume(session, turn, trial) if session else engine.start(turn, trial))
    assert made.error is None, made.error
    done.append(made)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - began, used.ru_utime + used.ru_stime - before


async def compare(base: Path, turns: int) -> None:
    with ModelServer(lambda _: Text("Hello.")) as server:
        async with open_gateway({}) as gateway:
            for name in CLIS:
                pair = [await begin(name, k, base, server.url, gateway) for k in KINDS]
                rows = [[await take(one) for one in pair] for _ in range(turns + 1)][1:]
                for at, what in enumerate(("seconds", "processor seconds")):
                    without, boxed = (median(row[kind][at] for row in rows) for kind in (0, 1))
                    ratio = median(row[1][at] / row[0][at] for row in rows)
                    print(f"{name}: {what} {without:.3f} without, {boxed:.3f} in it; {ratio:.2f}")


KINDS = ("none", "bubblewrap")

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        register = Path(place, "register")
        with process_register(register, own_process=True):
            anyio.run(compare, Path(place), int((sys.argv[1:] or ["20"])[0]))
