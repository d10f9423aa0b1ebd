"""What skill-creator's own tools find in a directory: written after what its aggregator reads.

Source: skills/skill-creator/scripts/aggregate_benchmark.py and eval-viewer/generate_review.py in
https://github.com/anthropics/skills.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def runs_of(directory: Path) -> list[dict[str, Any]]:
    """The runs as the aggregator sees them, by configuration, in the order of the names."""
    found: dict[str, list[dict[str, Any]]] = {}
    for home in sorted(directory.glob("eval-*")):
        number = read(home / "eval_metadata.json")["eval_id"]
        for configuration in sorted(p for p in home.iterdir() if list(p.glob("run-*"))):
            runs = found.setdefault(configuration.name, [])
            for run in sorted(configuration.glob("run-*")):
                runs.append(_run(run, number, configuration.name))
    return [run for runs in found.values() for run in runs]


def _run(run: Path, number: int, configuration: str) -> dict[str, Any]:
    grading, timing = read(run / "grading.json"), {}
    seconds = grading.get("timing", {}).get("total_duration_seconds", 0.0)
    tokens = 0
    if seconds == 0.0 and (run / "timing.json").is_file():  # only then is this file looked at
        timing = read(run / "timing.json")
        seconds, tokens = timing.get("total_duration_seconds", 0.0), timing.get("total_tokens", 0)
    metrics = grading.get("execution_metrics", {})
    notes = grading["user_notes_summary"]
    summary = grading["summary"]
    return {
        "eval_id": number,
        "configuration": configuration,
        "run_number": int(run.name.split("-")[1]),
        "result": {
            **{name: summary[name] for name in ("pass_rate", "passed", "failed", "total")},
            "time_seconds": seconds,
            "tokens": tokens or metrics.get("output_chars", 0),
            "tool_calls": metrics.get("total_tool_calls", 0),
            "errors": metrics.get("errors_encountered", 0),
        },
        "expectations": grading["expectations"],
        "notes": [n for part in ("uncertainties", "needs_review", "workarounds")
                  for n in notes[part]],
    }  # fmt: skip


def summary_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for name in dict.fromkeys(run["configuration"] for run in runs):
        results = [run["result"] for run in runs if run["configuration"] == name]
        summary[name] = {
            metric: _spread([result[metric] for result in results])
            for metric in ("pass_rate", "time_seconds", "tokens")
        }
    first, *rest = summary.values()
    delta = {
        metric: first[metric]["mean"] - (rest[0][metric]["mean"] if rest else 0) for metric in first
    }
    forms = {"pass_rate": "+.2f", "time_seconds": "+.1f", "tokens": "+.0f"}
    summary["delta"] = {metric: format(delta[metric], form) for metric, form in forms.items()}
    return summary


def _spread(values: list[float]) -> dict[str, float]:
    mean, spare = sum(values) / len(values), 0.0
    if len(values) > 1:
        spare = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    spread = {"mean": mean, "stddev": spare,
              "min": min(values), "max": max(values)}  # fmt: skip
    return {name: round(value, 4) for name, value in spread.items()}
