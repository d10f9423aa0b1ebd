"""What a run costs beside its agents, as a ratio to a bare asyncio script that starts the same.

    python -m tests.benchmarks.bench_run [TRIALS]

The agent is a small C program that answers at once in Claude Code's protocol (`cc` compiles it), so
that nearly all that is measured is ours: seconds, and processor time and peak memory of the program
itself, without its agents. A further trial is what a long run takes more than a short one, by the
number of trials between them. With `agentv` (npm) on the PATH it runs the same cases, too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
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

BARE = """
import asyncio, os, subprocess, sys
agent, trials, turns, parallel = sys.argv[1], *map(int, sys.argv[2:])
async def main():
    places, pipe = asyncio.Semaphore(parallel), subprocess.PIPE
    async def trial(number):
        async with places:
            for turn in range(turns):
                process = await asyncio.create_subprocess_exec(
                    agent, "-p", "--resume" if turn else "--session-id", str(number),
                    stdin=pipe, stdout=pipe, stderr=pipe, env={"CLAUDE_CONFIG_DIR": os.getcwd()})
                await process.communicate(b"say it")
    await asyncio.gather(*map(trial, range(trials)))
"""
OURS = """
import sys
from skillup.__main__ import main
sys.argv = ["skillup", "run", ".", "-q", "-e", "instant", "-j", sys.argv[1]]
"""
# The program itself, not the agents that it started.
USED = """
try:
    {main}
finally:
    import resource
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    print("\\n", used.ru_utime + used.ru_stime, peak, file=sys.stderr)
"""


class Took(NamedTuple):
    seconds: float
    processor_seconds: float
    megabytes: float


def measured(program: str, main: str, arguments: Sequence[object], folder: Path) -> Took:
    """What a Python program takes in `folder`; it ends with the call `main`."""
    # Nothing of a session that this is run from, and a key, so that no login is looked for.
    own = {"ANTHROPIC_API_KEY": "sk-ant-none", "PYTHONPATH": os.pathsep.join(sys.path)}
    env = {**os.environ, **own}
    command = [sys.executable, "-c", program + USED.format(main=main), *map(str, arguments)]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}\n{done.stderr}")
    used, peak = done.stderr.split()[-2:]
    return Took(seconds, float(used), float(peak))


def compiled(folder: Path, milliseconds: int = 0) -> Path:
    """The agent, which thinks for so long."""
    agent = folder / f"agent-{milliseconds}"
    command = ["cc", "-O2", "-w", f"-DMILLISECONDS={milliseconds}", "-xc", "-", "-o", str(agent)]
    subprocess.run(command, input=AGENT, text=True, check=True)
    return agent


def suite(folder: Path, agent: Path, trials: int, turns: int = 1) -> Path:
    """A workspace of so many cases."""
    files = {"eval.yaml": "name: many\n"}
    files["engines/instant.yaml"] = f"engine: claude_code\ncommand: [{agent}]\n"
    for number in range(trials):
        contents = ", ".join(["{content: say it}"] * turns)
        one = "{input: {prompt: say it}, assertions: [{contains: done}]}"
        more = f"{{input: {{turns: [{contents}]}}, expect: {{must_contain: [done]}}}}"
        files[f"cases/c{number:05}.yaml"] = one if turns == 1 else more
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def of_agentv(folder: Path, agent: Path, trials: int) -> float | None:
    """Seconds that AgentV takes for the same cases; None: it is not here."""
    program = shutil.which("agentv")
    if program is None:
        return None
    target = {"name": "instant", "provider": "claude-cli", "executable": str(agent)}
    judge = {"name": "judge", "provider": "openai", "api_key": "none", "model": "none"}
    check = {"type": "contains", "value": "done"}
    tests = [
        {"id": f"c{number:05}", "input": "say it", "assertions": [check]}
        for number in range(trials)
    ]
    many = {"description": "many", "execution": {"target": "instant"}, "tests": tests}
    (folder / ".agentv").mkdir(parents=True)
    targets = {"targets": [judge, {**target, "grader_target": "judge"}]}
    (folder / ".agentv" / "targets.yaml").write_text(json.dumps(targets))
    (folder / "many.eval.yaml").write_text(json.dumps(many))
    start = time.perf_counter()
    command = [program, "eval", "many.eval.yaml", "--workers", "8"]
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return time.perf_counter() - start


def compare(folder: Path, agent: Path, trials: int, turns: int, parallel: int) -> tuple[Took, Took]:
    """Ours and the bare script, of so many trials; a line about them is printed."""
    place = suite(folder / f"{trials}-{turns}-{parallel}", agent, trials, turns)
    bare = measured(BARE, "asyncio.run(main())", [agent, trials, turns, parallel], folder)
    ours = measured(OURS, "main()", [parallel], place)
    print(
        f"{trials:6} x {turns} turns, -j {parallel:<3} {ours.seconds:7.2f} s "
        f"{ours.seconds / bare.seconds:6.2f} x the bare script ({bare.seconds:.2f} s); "
        f"{ours.processor_seconds:.2f} s of the processor, {ours.megabytes:.0f} MB"
    )
    return ours, bare


def main(trials: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        agent, slow = compiled(folder), compiled(folder, 200)
        few = max(1, trials // 5)
        short, bare_short = compare(folder, agent, few, 1, 8)
        long, bare_long = compare(folder, agent, trials, 1, 8)
        for what, one, other in (("ours", short, long), ("bare", bare_short, bare_long)):
            used = (other.processor_seconds - one.processor_seconds) / (trials - few)
            more = (other.megabytes - one.megabytes) / (trials - few)
            memory = f"{more * 1000:.1f} KB of memory"
            print(f"a further trial, {what}: {used * 1000:.2f} ms of the processor, {memory}")
        compare(folder, agent, max(1, trials * 3 // 10), 3, 8)
        at_once, rounds = 32, 5
        ours, _ = compare(folder, slow, at_once * rounds, 1, at_once)
        ideal = rounds * 0.2
        print(f"agents of 200 ms, -j {at_once}: {ours.seconds / ideal:.2f} x the ideal {ideal} s")
        seconds = of_agentv(folder / "agentv", agent, trials)
        if seconds is not None:
            print(
                f"AgentV, {trials} cases: {seconds:.2f} s; ours {long.seconds / seconds:.2f} x that"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
