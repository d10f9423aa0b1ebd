"""`benchmark.json`: a run in the shape of Anthropic's skill-creator.

Source of the format: skills/skill-creator/references/schemas.md and what
scripts/aggregate_benchmark.py makes of a directory of runs, in https://github.com/anthropics/skills.
Trials without a verdict are no runs there, and are named in the notes.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from skillup.reports.result import total_tokens
from skillup.schema.grade import Grade, RunResult

CONFIGURATIONS = ("with_skill", "without_skill")
GRADED = ("PASS", "FAIL")
_METRICS = {"pass_rate": "+.2f", "time_seconds": "+.1f", "tokens": "+.0f"}
"""Name, and the form of a difference."""

Run = tuple[Grade, dict[str, Any]]  # A trial, and what `runs` has of it


def benchmark_json(result: RunResult) -> str:
    known = [grade for grade in result.cases if grade.variant in CONFIGURATIONS]
    data = benchmark(runs_of(known), timestamp=result.started_at)
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def runs_of(grades: Sequence[Grade]) -> list[Run]:
    """Every trial as a run; where a case ran on several engines, its runs go on."""
    several = len({grade.suite for grade in grades}) > 1
    ids: dict[str, int] = {}
    taken: Counter[tuple[int, str]] = Counter()
    found: list[Run] = []
    for grade in grades:
        name = f"{grade.suite}/{grade.case_id}" if several else grade.case_id
        key = (ids.setdefault(name, len(ids) + 1), grade.variant)
        taken[key] += 1
        expected = _expectations(grade)
        passed, total = sum(bool(e["passed"]) for e in expected), len(expected)
        tokens = total_tokens(grade.usage)
        unknown = ["the engine did not tell how many tokens it took"] if tokens is None else []
        run = {
            "eval_id": key[0],
            "eval_name": name,
            "configuration": grade.variant,
            "run_number": taken[key],
            "result": {
                "pass_rate": round(passed / total, 4) if total else 0.0,
                "passed": passed,
                "failed": total - passed,
                "total": total,
                "time_seconds": round(grade.duration_ms / 1000, 3),
                "tokens": tokens or 0,
            },
            "expectations": expected,
            "notes": [*grade.warnings, *unknown],
        }
        found.append((grade, run))
    return found


def _expectations(grade: Grade) -> list[dict[str, Any]]:
    """Every check that decided: ``{text, passed, evidence}``."""
    checks = [
        (f"turn {turn.turn_number}: " if len(grade.turns) > 1 else "", check)
        for turn in grade.turns
        for check in turn.deciding_checks()
    ]
    return [
        {
            "text": where + check.name,
            "passed": check.passed,
            "evidence": "\n".join(filter(None, (check.error or check.found, check.excerpt))),
        }
        for where, check in [*checks, *(("", check) for check in grade.assertions)]
    ]


def benchmark(
    runs: Sequence[Run],
    *,
    timestamp: str,
    skill_name: str = "",
    skill_path: str = "",
    model: str = "",
) -> dict[str, Any]:
    """What `aggregate_benchmark.py` would write, and the names of the evals."""
    graded = [run for grade, run in runs if grade.status in GRADED]
    graded.sort(key=lambda run: (run["eval_id"], run["run_number"]))
    graded.sort(key=lambda run: CONFIGURATIONS.index(run["configuration"]))
    engines = list(dict.fromkeys(grade.engine for grade, _ in runs))
    notes = [
        f"Eval {run['eval_id']} ({grade.case_id}), {grade.variant}, run {run['run_number']} was "
        f"not graded: {grade.status}: {grade.reason}"
        for grade, run in runs
        if grade.status not in GRADED
    ]
    if len(engines) > 1:
        what = f"The runs of {len(engines)} engines ({', '.join(engines)}) stand together here; "
        notes.insert(0, what + "`skillup export` sets them apart.")
    return {
        "metadata": {
            "skill_name": skill_name or ", ".join(dict.fromkeys(g.suite for g, _ in runs)),
            "skill_path": skill_path,
            "executor_model": model or ", ".join(engines),
            "analyzer_model": "",
            "timestamp": timestamp[:19] + "Z",
            "evals_run": sorted({run["eval_id"] for run in graded}),
            "runs_per_configuration": max((run["run_number"] for run in graded), default=0),
        },
        "runs": graded,
        "run_summary": _summary(graded),
        "notes": notes,
    }


def _summary(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean, sample standard deviation and range of each configuration, and how the two differ
    (with one alone `delta` is empty, which the viewer shows as a dash).
    """
    found: dict[str, Any] = {}
    for name in CONFIGURATIONS:
        results = [run["result"] for run in runs if run["configuration"] == name]
        for metric in _METRICS if results else ():
            values = [float(result[metric]) for result in results]
            # Not by `statistics`, which is more exact: the fourth digit is to be the aggregator's.
            mean = sum(values) / len(values)
            spare = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
            numbers = (mean, math.sqrt(spare), min(values), max(values))
            names = ("mean", "stddev", "min", "max")
            rounded = (round(number, 4) for number in numbers)
            found.setdefault(name, {})[metric] = dict(zip(names, rounded, strict=True))
    sides = list(found.values())
    found["delta"] = {}
    if len(sides) == 2:
        for metric, form in _METRICS.items():
            change = sides[0][metric]["mean"] - sides[1][metric]["mean"]
            found["delta"][metric] = f"{change:{form}}"
    return found
