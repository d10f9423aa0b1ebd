"""The scripted agent with moods: a file outside of every trial says how it misbehaves right now.

The mood is JSON, ``{"turn": 2, "misbehave": {"error": "quota"}}``; without the file there is none.
So a test can end the trouble between two starts of the same run.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from skillup.engines.scripted_agent import __file__ as agent_package
from tests.support.project import Project

AGENT = str(Path(agent_package).with_name("__main__.py"))


def set_mood(project: Project, turn: int | None = None, **misbehave: Any) -> Path:
    """Writes the profile `moody` and its mood; with `turn` None the agent behaves."""
    mood = project.root / "mood.json"
    command = json.dumps([sys.executable, str(Path(__file__)), str(mood)])
    environment = json.dumps({"PYTHONPATH": str(Path(__file__).parents[2])})
    project.write(
        {"engines/moody.yaml": f"engine: scripted\ncommand: {command}\nenv: {environment}\n"}
    )
    if turn is None:
        mood.unlink(missing_ok=True)
    else:
        mood.write_text(json.dumps({"turn": turn, "misbehave": misbehave}), encoding="utf-8")
    return mood


def main() -> None:
    mood, arguments = Path(sys.argv[1]), sys.argv[2:]
    if mood.exists():
        wanted = json.loads(mood.read_text(encoding="utf-8"))
        (at,) = [n for n, text in enumerate(arguments) if text.startswith("--script=")]
        script = json.loads(Path(arguments[at].partition("=")[2]).read_text(encoding="utf-8"))
        for reply in script["replies"]:
            if reply["turn"] == wanted["turn"]:
                reply["misbehave"] = wanted["misbehave"]
        # Beside the project, not in it: it goes with the test's directory.
        changed = mood.parents[1] / f"script-{os.getpid()}.json"
        changed.write_text(json.dumps(script), encoding="utf-8")
        arguments[at] = f"--script={changed}"
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-X", "utf8", AGENT, *arguments])


if __name__ == "__main__":
    main()
