"""What a run costs beside its agents, side by side with what else starts the same agents.

    python -m tests.benchmarks.bench_run [ROUNDS]

The agent is a small C program that answers at once in Claude Code's protocol (`cc` compiles it), so
that nearly all that is measured is the programs': seconds, and processor time and peak memory of
each without its agents. The others are a bare asyncio script, which keeps nothing; pydantic-evals,
if it can be imported; and AgentV (npm), if it is on the PATH: both have the agent's text checked,
as we do. They take turns, and of several rounds the least counts: a busy machine slows all alike.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# Keeps the session of one conversation, as lines of JSON, below its CLAUDE_CONFIG_DIR.
AGENT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define ANSWER "{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"none\"," \
  "\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"stop_reason\":\"end_turn\"," \
  "\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}"

int main(int count, char **given) {
  const char *id = "none", *home = getenv("CLAUDE_CONFIG_DIR");
  char path[4096], taken[4096];
  for (int i = 1; i < count; i++) {
    if (!strcmp(given[i], "--version")) return puts("2.1.197 (Claude Code)") < 0;
    if ((!strcmp(given[i], "--session-id") || !strcmp(given[i], "--resume")) && i + 1 < count)
      id = given[++i];
  }
  while (read(0, taken, sizeof taken) > 0) {}
  usleep(MILLISECONDS * 1000);
  if (home) {
    snprintf(path, sizeof path, "%s/projects", home);
    mkdir(path, 0777);
    strcat(path, "/here");
    mkdir(path, 0777);
    snprintf(path + strlen(path), 200, "/%.100s.jsonl", id);
    FILE *session = fopen(path, "a");
    if (!session) return 1;
    fprintf(session, "{\"type\":\"user\",\"sessionId\":\"%s\",\"message\":"
            "{\"role\":\"user\",\"content\":\"say it\"}}\n", id);
    fprintf(session, "{\"type\":\"assistant\",\"sessionId\":\"%s\",\"message\":%s}\n", id, ANSWER);
    fclose(session);
  }
  printf("{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"%s\",\"tools\":[],"
         "\"mcp_servers\":[],\"model\":\"none\",\"uuid\":\"i\"}\n", id);
  printf("{\"type\":\"assistant\",\"message\":%s,\"session_id\":\"%s\",\"uuid\":\"a\"}\n",
         ANSWER, id);
  printf("{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,"
         "\"result\":\"done\",\"session_id\":\"%s\",\"total_cost_usd\":0.001,"
         "\"usage\":{\"input_tokens\":9,\"output_tokens\":1},\"uuid\":\"r\"}\n", id);
  return 0;
}
"""

# How both scripts start the agent.
TRIAL = """
import asyncio, json, os, subprocess, sys
agent, trials, turns, parallel = sys.argv[1], *map(int, sys.argv[2:])
pipe = subprocess.PIPE
async def trial(number):
    for turn in range(turns):
        process = await asyncio.create_subprocess_exec(
            agent, "-p", "--resume" if turn else "--session-id", str(number),
            stdin=pipe, stdout=pipe, stderr=pipe, env={"CLAUDE_CONFIG_DIR": os.getcwd()})
        written, _ = await process.communicate(b"say it")
    return written
"""
BARE = f"""{TRIAL}
async def main():
    places = asyncio.Semaphore(parallel)
    async def placed(number):
        async with places:
            await trial(number)
    await asyncio.gather(*map(placed, range(trials)))
"""
PYDANTIC_EVALS = f"""{TRIAL}
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains
async def answer(number: int) -> str:
    return json.loads((await trial(number)).splitlines()[-1])["result"]
def main():
    checks = [Contains("done")]
    cases = [Case(name=f"c{{n:05}}", inputs=n, evaluators=checks) for n in range(trials)]
    report = Dataset(name="many", cases=cases).evaluate_sync(
        answer, max_concurrency=parallel, progress=False)
    assert len(report.cases) == trials and report.averages().assertions == 1
"""
OURS = """
import sys
from skillup.__main__ import main
sys.argv = ["skillup", "run", ".", "-q", "-e", "instant", "-j", *sys.argv[1:]]
"""
# The program itself, and the agents that it started.
USED = """
try:
    {main}
finally:
    import resource
    for one in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(one)
        peak = used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
        print("\\n", used.ru_utime + used.ru_stime, peak, file=sys.stderr)
"""


class Work(NamedTuple):
    trials: int
    turns: int = 1
    parallel: int = 8
    milliseconds: int = 0  # Of the agent

    def __str__(self) -> str:
        agent = f", {self.milliseconds} ms" if self.milliseconds else ""
        return f"{self.trials} x {self.turns}, -j {self.parallel}{agent}"


WORKS = (Work(1), Work(200), Work(1000), Work(300, 3), Work(1920, 1, 32, 200))


class Took(NamedTuple):
    seconds: float
    processor_seconds: float
    megabytes: float
    agents: float = 0.0  # Processor seconds of theirs


def measured(program: str, main: str, arguments: Sequence[object], folder: Path) -> Took:
    """What a Python program takes in `folder`; it ends with the call `main`."""
    # Nothing of a session that this is run from, and a key, so that no login is looked for.
    own = {"ANTHROPIC_API_KEY": "sk-ant-none", "PYTHONPATH": os.pathsep.join(sys.path)}
    env = {**os.environ, **own}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", program + USED.format(main=main), *map(str, arguments)]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}\n{done.stderr}")
    used, peak, agents, _ = map(float, done.stderr.split()[-4:])
    return Took(seconds, used, peak, agents)


def compiled(folder: Path, milliseconds: int) -> Path:
    """The agent, which thinks for so long."""
    agent = folder / f"agent-{milliseconds}"
    command = ["cc", "-O2", "-w", f"-DMILLISECONDS={milliseconds}", "-xc", "-", "-o", str(agent)]
    subprocess.run(command, input=AGENT, text=True, check=True)
    return agent


def of_bare(folder: Path, agent: Path, work: Work) -> Took:
    return measured(BARE, "asyncio.run(main())", [agent, *work[:3]], folder)


def of_pydantic_evals(folder: Path, agent: Path, work: Work) -> Took:
    return measured(PYDANTIC_EVALS, "main()", [agent, *work[:3]], folder)


def of_ours(folder: Path, agent: Path, work: Work, again: int = 1) -> Took:
    files = {"eval.yaml": "name: many\n"}
    files["engines/instant.yaml"] = f"engine: claude_code\ncommand: [{agent}]\n"
    for number in range(work.trials):
        contents = ", ".join(["{content: say it}"] * work.turns)
        one = f"{{input: {{prompt: say it {number}}}, assertions: [{{contains: done}}]}}"
        more = f"{{input: {{turns: [{contents}]}}, expect: {{must_contain: [done]}}}}"
        files[f"cases/c{number:05}.yaml"] = one if work.turns == 1 else more
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return measured(OURS, "main()", [work.parallel, "--trials", again], folder)


def of_agentv(folder: Path, agent: Path, work: Work) -> Took | None:
    """Its processor time is with its agents' here. None: it sends several messages as one."""
    if work.turns > 1:
        return None
    target = {"name": "instant", "provider": "claude-cli", "executable": str(agent)}
    # Keys are taken from variables only.
    judge = {"name": "judge", "provider": "openai"}
    judge |= dict.fromkeys(("api_key", "model"), "${{ NO_KEY }}")
    check = {"type": "contains", "value": "done"}
    tests = [
        {"id": f"c{number:05}", "input": "say it", "assertions": [check]}
        for number in range(work.trials)
    ]
    many = {"description": "many", "execution": {"target": "instant"}, "tests": tests}
    (folder / ".agentv").mkdir(parents=True)
    targets = {"targets": [judge, {**target, "grader_target": "judge"}]}
    (folder / ".agentv" / "targets.yaml").write_text(json.dumps(targets))
    (folder / "many.eval.yaml").write_text(json.dumps(many))
    command = ["agentv", "eval", "many.eval.yaml", "--workers", str(work.parallel)]
    start = time.perf_counter()
    with (folder / "said").open("w") as said:
        child = subprocess.Popen(
            command, cwd=folder, stdout=said, stderr=said, env={**os.environ, "NO_KEY": "none"}
        )
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit((folder / "said").read_text())
    peak = used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return Took(time.perf_counter() - start, used.ru_utime + used.ru_stime, peak)


Program = Callable[[Path, Path, Work], Took | None]


def programs() -> dict[str, Program]:
    """Those that are here, by name; a line about each that is not is printed."""
    found: dict[str, Program] = {"bare script": of_bare, "skillup": of_ours}
    if importlib.util.find_spec("pydantic_evals") is not None:
        found["pydantic-evals"] = of_pydantic_evals
    else:
        print("pydantic-evals cannot be imported: left out")
    if shutil.which("agentv") is not None:
        found["AgentV"] = of_agentv
    else:
        print("agentv is not on the PATH: left out")
    return found


def least(
    programs: Mapping[str, Program], work: Work, folder: Path, rounds: int
) -> dict[str, Took]:
    """By program, the least that it took in each respect."""
    agent, took = compiled(folder, work.milliseconds), dict[str, list[Took]]()
    for number in range(rounds):
        for name, program in programs.items():
            place = folder / f"{name}-{number}-{work}"
            place.mkdir()
            one = program(place, agent, work)
            if one is not None:
                took.setdefault(name, []).append(one)
            shutil.rmtree(place)
    found = {name: Took(*map(min, zip(*those, strict=True))) for name, those in took.items()}
    if (agentv := found.get("AgentV")) is not None:
        own = agentv.processor_seconds - found["bare script"].agents
        found["AgentV"] = agentv._replace(processor_seconds=own)
    return found


def line(name: str, work: Work, took: Took, bare: Took) -> str:
    each = took.processor_seconds * 1000 / work.trials
    return (
        f"  {name:15}{took.seconds:8.2f} s {took.seconds / bare.seconds:6.2f} x"
        f"{each:9.2f} ms {took.processor_seconds / bare.processor_seconds:6.2f} x"
        f"{took.megabytes:8.0f} MB {took.megabytes / bare.megabytes:6.2f} x"
    )


def main(rounds: int) -> None:
    found = programs()
    print("whole run, processor time of a trial, memory; each as a ratio to the bare script's")
    took: dict[Work, dict[str, Took]] = {}
    for work in WORKS:
        with tempfile.TemporaryDirectory() as folder:
            took[work] = least(found, work, Path(folder), rounds)
        ideal = work.trials * work.milliseconds / 1000 / work.parallel
        print(f"{work}{f'; ideal {ideal:.2f} s' if ideal else ''}")
        for name, one in took[work].items():
            rest = f"{one.seconds / ideal:7.2f} x the ideal" if ideal else ""
            print(line(name, work, one, took[work]["bare script"]) + rest)
    _, few, many, *_ = WORKS
    print("a further trial")
    for name, more in took[many].items():
        fewer, trials = took[few][name], many.trials - few.trials
        used = (more.processor_seconds - fewer.processor_seconds) * 1000 / trials
        memory = (more.megabytes - fewer.megabytes) * 1000 / trials
        print(f"  {name:15}{used:8.2f} ms of the processor, {memory:.0f} KB")
    with tempfile.TemporaryDirectory() as folder:
        agent = compiled(Path(folder), 0)
        peaks = [of_ours(Path(folder) / f"{n}", agent, few, n).megabytes for n in (1, 10)]
    kept = peaks[1] - peaks[0]
    per_trial = kept * 1000 / few.trials / 9
    print(f"each case ten times: {kept:.1f} MB more, {per_trial:.1f} KB for a further trial")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
