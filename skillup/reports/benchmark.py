"""`benchmark.json`: a run in the shape of Anthropic's skill-creator.

Source of the format: skills/skill-creator/references/schemas.md and what
scripts/aggregate_benchmark.py makes of a directory of runs, in https://github.com/anthropics/skills.
There a run is graded or it is not: trials that met an error or were skipped are no runs of it, and
are named in its notes.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from skillup.reports.view_model import total_tokens
from skillup.schema.grade import Grade, RunResult

CONFIGURATIONS = ("with_skill", "without_skill")
Place = tuple[int, str, int]  # Eval id, configuration, run number: what names a run in that shape
_METRICS = {"pass_rate": "+.2f", "time_seconds": "+.1f", "tokens": "+.0f"}
"""Name, and the form of a difference."""


def benchmark_json(result: RunResult) -> bytes:
    known = [grade for grade in result.cases if grade.variant in CONFIGURATIONS]
    data = benchmark(known, timestamp=result.started_at)
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def benchmark(
    grades: Sequence[Grade],
    *,
    timestamp: str,
    skill_name: str = "",
    skill_path: str = "",
    model: str = "",
    tool_calls: Mapping[Place, tuple[int, int]] | None = None,
) -> dict[str, Any]:
    """What `aggregate_benchmark.py` would write, and the names of the evals.

    `tool_calls` are, for each run, its calls and those that failed; None: not known.
    """
    names = eval_names(grades)
    runs = [(place, grade) for place, grade in places(grades) if grade.status in ("PASS", "FAIL")]
    runs.sort(key=lambda run: (CONFIGURATIONS.index(run[0][1]), run[0]))
    entries = []
    for place, grade in runs:
        expected = expectations(grade)
        calls = (
            {}
            if tool_calls is None
            else dict(zip(("tool_calls", "errors"), tool_calls[place], strict=True))
        )
        outcome = {
            **counts(expected),
            "time_seconds": round(grade.duration_ms / 1000, 3),
            "tokens": total_tokens(grade.usage) or 0,
            **calls,
        }
        entries.append(
            {
                "eval_id": place[0],
                "eval_name": names[place[0] - 1],
                "configuration": place[1],
                "run_number": place[2],
                "result": outcome,
                "expectations": expected,
                "notes": run_notes(grade),
            }
        )
    return {
        "metadata": {
            "skill_name": skill_name or ", ".join(dict.fromkeys(g.suite for g in grades)),
            "skill_path": skill_path,
            "executor_model": model or ", ".join(dict.fromkeys(g.engine for g in grades)),
            "analyzer_model": "",
            "timestamp": timestamp[:19] + "Z",
            "evals_run": sorted({place[0] for place, _ in runs}),
            "runs_per_configuration": max((place[2] for place, _ in runs), default=0),
        },
        "runs": entries,
        "run_summary": _summary(entries),
        "notes": _notes(grades),
    }


def _names(grades: Sequence[Grade]) -> list[str]:
    """Of each grade's case; with its suite where there are several."""
    several = len({grade.suite for grade in grades}) > 1
    return [f"{g.suite}/{g.case_id}" if several else g.case_id for g in grades]


def eval_names(grades: Sequence[Grade]) -> list[str]:
    """The cases, in order; the first is eval 1."""
    return list(dict.fromkeys(_names(grades)))


def places(grades: Sequence[Grade]) -> list[tuple[Place, Grade]]:
    """What each trial is in that shape; where a case ran on several engines, its runs go on."""
    ids = {name: number for number, name in enumerate(eval_names(grades), start=1)}
    taken: Counter[tuple[int, str]] = Counter()
    found: list[tuple[Place, Grade]] = []
    for name, grade in zip(_names(grades), grades, strict=True):
        key = (ids[name], grade.variant)
        taken[key] += 1
        found.append(((*key, taken[key]), grade))
    return found


def expectations(grade: Grade) -> list[dict[str, Any]]:
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


def counts(expected: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The `summary` of a grading.json: ``{passed, failed, total, pass_rate}``."""
    passed, total = sum(bool(e["passed"]) for e in expected), len(expected)
    rate = round(passed / total, 4) if total else 0.0
    return {"passed": passed, "failed": total - passed, "total": total, "pass_rate": rate}


def run_notes(grade: Grade) -> list[str]:
    """What whoever reads the numbers of a run should know."""
    unknown = total_tokens(grade.usage) is None
    return [*grade.warnings, *["the engine did not tell how many tokens it took"] * unknown]


def _summary(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean, sample standard deviation and range of each configuration, and how the two differ.

    With one configuration alone there is no difference: `delta` is empty, which the viewer shows as
    a dash. (The aggregator has the difference to nothing there.)
    """
    found: dict[str, Any] = {}
    for name in CONFIGURATIONS:
        results = [entry["result"] for entry in entries if entry["configuration"] == name]
        if not results:
            continue
        found[name] = {}
        for metric in _METRICS:
            values = [float(result[metric]) for result in results]
            # Not by `statistics`, which is more exact: the fourth digit is to be the aggregator's.
            mean = sum(values) / len(values)
            spare = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
            numbers = (mean, math.sqrt(spare), min(values), max(values))
            names = ("mean", "stddev", "min", "max")
            rounded = (round(number, 4) for number in numbers)
            found[name][metric] = dict(zip(names, rounded, strict=True))
    sides = list(found.values())
    found["delta"] = {}
    if len(sides) == 2:
        for metric, form in _METRICS.items():
            change = sides[0][metric]["mean"] - sides[1][metric]["mean"]
            found["delta"][metric] = f"{change:{form}}"
    return found


def _notes(grades: Sequence[Grade]) -> list[str]:
    engines = list(dict.fromkeys(grade.engine for grade in grades))
    notes = [
        f"Eval {number} ({grade.case_id}), {variant}, run {run} was not graded: "
        f"{grade.status}: {grade.reason}"
        for (number, variant, run), grade in places(grades)
        if grade.status not in ("PASS", "FAIL")
    ]
    if len(engines) > 1:
        together = (
            f"The runs of {len(engines)} engines ({', '.join(engines)}) stand together here; "
        )
        notes.insert(0, together + "`skillup export` sets them apart.")
    return notes
