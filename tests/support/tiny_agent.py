"""A small CLI agent that asks a Chat Completions model: one that a user would describe in YAML.

`tiny_agent.py --id ID | --resume ID [--read-only] [--system TEXT]`, the message on standard input,
the model at $TINY_URL with $TINY_KEY; sessions are `~/.tiny/ID.jsonl`, skills in `.agents/skills`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PARAMETERS: dict[str, Any] = {"type": "object", "required": ["command"]}
PARAMETERS |= {"properties": {"command": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "shell", "parameters": PARAMETERS}}


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(exit_on_error=False)
    for name in ("--id", "--resume", "--system", "--model"):
        parser.add_argument(name)
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--version", action="version", version="1.0.0")
    given = parser.parse_args()
    file = Path.home() / ".tiny" / f"{given.resume or given.id}.jsonl"
    if given.resume and not file.exists():
        print("no such session", file=sys.stderr)
        return 4
    file.parent.mkdir(exist_ok=True)
    messages = [json.loads(line) for line in file.read_text().splitlines()] if given.resume else []
    told = [path.read_text() for path in Path(".agents/skills").glob("*/SKILL.md")]
    system = {"role": "system", "content": "\n".join([given.system or "", *told])}

    def keep(message: dict[str, Any]) -> None:
        messages.append(message)
        with file.open("a") as lines:
            lines.write(json.dumps(message) + "\n")

    say(type="hello", session=given.resume or given.id)
    keep({"role": "user", "content": sys.stdin.read()})
    while True:
        body = {"model": given.model, "messages": [system, *messages], "tools": [TOOL]}
        headers = {"content-type": "application/json"}
        headers["authorization"] = f"Bearer {os.environ['TINY_KEY']}"
        url = f"{os.environ['TINY_URL']}/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as refused:
            say(type="error", text="the model refused", status=refused.code)
            return 1
        except OSError as broken:
            say(type="error", text=f"connection: {broken}")
            return 1
        except ValueError:
            say(type="error", text="the model's answer is no JSON")
            return 1
        used, message = found["usage"], found["choices"][0]["message"]
        say(type="used", input=used["prompt_tokens"], output=used["completion_tokens"])
        keep(message)
        if not message.get("tool_calls"):
            say(type="answer", text=message["content"])
            return 0
        for call in message["tool_calls"]:
            command = json.loads(call["function"]["arguments"])["command"]
            say(type="call", id=call["id"], tool="shell", given={"command": command})
            done = None
            if not given.read_only:
                done = subprocess.run(command, shell=True, capture_output=True, text=True)
            output = done.stdout + done.stderr if done else "refused"
            say(type="result", id=call["id"], output=output, ok=bool(done and not done.returncode))
            keep({"role": "tool", "tool_call_id": call["id"], "content": output})


if __name__ == "__main__":
    sys.exit(main())
