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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillup.reports.markdown import escape
from skillup.reports.view_model import total_tokens
from skillup.schema.grade import CheckResult, Grade, RunResult
from skillup.stats.proportions import percent

CONFIGURATIONS = ("with_skill", "without_skill")
Place = tuple[int, str, int]
"""Eval id, configuration, run number: what names a run in that shape."""


def benchmark_json(result: RunResult) -> bytes:
    """The whole run as one benchmark."""
    data = benchmark(result.cases, timestamp=result.started_at)
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
    order = configurations(variant for (_, variant, _), _ in runs)
    runs.sort(key=lambda run: (order.index(run[0][1]), run[0]))
    entries = [_run(place, grade, names, tool_calls) for place, grade in runs]
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
        "notes": list(_notes(grades)),
    }


def configurations(variants: Iterable[str]) -> list[str]:
    """Each once, those with and without the skill first: runs of other versions may have more."""
    found = list(dict.fromkeys(variants))
    ours = [name for name in CONFIGURATIONS if name in found]
    return ours + [name for name in found if name not in CONFIGURATIONS]


def eval_names(grades: Sequence[Grade]) -> list[str]:
    """The cases, in order; the first is eval 1. Named with their suite where there are several."""
    several = len({grade.suite for grade in grades}) > 1
    return list(dict.fromkeys(_name(grade, several) for grade in grades))


def places(grades: Sequence[Grade]) -> list[tuple[Place, Grade]]:
    """What each trial is in that shape; where several engines held a case, its runs go on."""
    several = len({grade.suite for grade in grades}) > 1
    ids = {name: number for number, name in enumerate(eval_names(grades), start=1)}
    taken: dict[tuple[int, str], int] = {}
    found: list[tuple[Place, Grade]] = []
    for grade in grades:
        key = (ids[_name(grade, several)], grade.variant)
        taken[key] = taken.get(key, 0) + 1
        found.append(((*key, taken[key]), grade))
    return found


def expectations(grade: Grade) -> list[dict[str, Any]]:
    """Every check that decided: ``{text, passed, evidence}``."""
    checks = [
        (f"turn {turn.turn_number}: " if len(grade.turns) > 1 else "", check)
        for turn in grade.turns
        for check in turn.deciding_checks()
    ]
    checks += [("", check) for check in grade.assertions]
    return [
        {"text": where + check.name, "passed": check.passed, "evidence": _evidence(check)}
        for where, check in checks
    ]


def counts(expected: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The `summary` of a grading.json: ``{passed, failed, total, pass_rate}``."""
    passed, total = sum(bool(e["passed"]) for e in expected), len(expected)
    rate = round(passed / total, 4) if total else 0.0
    return {"passed": passed, "failed": total - passed, "total": total, "pass_rate": rate}


def run_notes(grade: Grade) -> list[str]:
    """What whoever reads the numbers of a run should know."""
    notes = list(grade.warnings)
    if total_tokens(grade.usage) is None:
        notes.append("the engine did not tell how many tokens it took")
    return notes


def markdown_of(data: Mapping[str, Any]) -> str:
    """`benchmark.md`: the means of :func:`benchmark`, as a table."""
    about, summary = data["metadata"], data["run_summary"]
    names = [name for name in summary if name != "delta"]
    heads = [escape(name.replace("_", " ").title()) for name in names]
    heads += ["Delta"] if summary["delta"] else []
    lines = [
        f"# Skill Benchmark: {escape(about['skill_name'])}",
        "",
        f"**Model**: {escape(about['executor_model'])}",
        f"**Date**: {about['timestamp']}",
        f"**Evals**: {_evals(data['runs'], names)}",
        "",
        "## Summary",
        "",
        "| " + " | ".join(["Metric", *heads]) + " |",
        "|" + "---|" * (len(heads) + 1),
    ]
    for metric, title, scale, form, unit in (
        ("pass_rate", "Pass Rate", 100, ".0f", "%"),
        ("time_seconds", "Time", 1, ".1f", "s"),
        ("tokens", "Tokens", 1, ".0f", ""),
    ):
        cells = []
        for name in names:
            mean, spread = summary[name][metric]["mean"], summary[name][metric]["stddev"] * scale
            shown = percent(mean) if unit == "%" else f"{mean * scale:{form}}{unit}"
            cells.append(f"{shown} ± {spread:{form}}{unit}")
        if summary["delta"]:
            cells.append(summary["delta"][metric] + ("s" if metric == "time_seconds" else ""))
        lines.append("| " + " | ".join([title, *cells]) + " |")
    if data["notes"]:
        lines += ["", "## Notes", "", *(f"- {escape(note, 600)}" for note in data["notes"])]
    return "\n".join(lines)


def _evals(runs: Sequence[Mapping[str, Any]], configurations: Sequence[str]) -> str:
    """``1, 3 (4 runs each per configuration); 2 (1 run per configuration)``.

    By how many runs they have: `runs_per_configuration` is but the most that any of them has.
    """
    counted: dict[int, Counter[str]] = {}
    for run in runs:
        counted.setdefault(run["eval_id"], Counter())[run["configuration"]] += 1
    alike: dict[tuple[int, ...], list[int]] = {}
    for number in sorted(counted):
        counts = tuple(counted[number][name] for name in configurations)
        alike.setdefault(counts, []).append(number)
    return "; ".join(
        f"{', '.join(map(str, evals))} ({_run_counts(counts, configurations, len(evals))})"
        for counts, evals in alike.items()
    )


def _run_counts(counts: Sequence[int], configurations: Sequence[str], evals: int) -> str:
    each = " each" if evals > 1 else ""
    if len(set(counts)) == 1:
        return f"{counts[0]} run{'s' if counts[0] != 1 else ''}{each} per configuration"
    named = zip(counts, configurations, strict=True)
    return ", ".join(f"{n} {escape(name.replace('_', ' '))}" for n, name in named) + each


def _name(grade: Grade, several: bool) -> str:
    return f"{grade.suite}/{grade.case_id}" if several else grade.case_id


def _evidence(check: CheckResult) -> str:
    parts = [check.error or check.found, check.excerpt]
    return "\n".join(part for part in parts if part)


def _run(
    place: Place,
    grade: Grade,
    names: Sequence[str],
    tool_calls: Mapping[Place, tuple[int, int]] | None,
) -> dict[str, Any]:
    expected = expectations(grade)
    number, configuration, run = place
    summary = counts(expected)
    outcome = {
        **{name: summary[name] for name in ("pass_rate", "passed", "failed", "total")},
        "time_seconds": round(grade.duration_ms / 1000, 3),
        "tokens": total_tokens(grade.usage) or 0,
    }
    if tool_calls is not None:
        calls, failed = tool_calls[place]
        outcome |= {"tool_calls": calls, "errors": failed}
    return {
        "eval_id": number,
        "eval_name": names[number - 1],
        "configuration": configuration,
        "run_number": run,
        "result": outcome,
        "expectations": expected,
        "notes": run_notes(grade),
    }


def _summary(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean, sample standard deviation and range of each configuration, and how the two differ.

    With one configuration alone there is no difference: `delta` is empty, which the viewer shows as
    a dash. (The aggregator has the difference to nothing there.)
    """
    metrics = ("pass_rate", "time_seconds", "tokens")
    found: dict[str, Any] = {}
    for name in configurations(entry["configuration"] for entry in entries):
        results = [entry["result"] for entry in entries if entry["configuration"] == name]
        found[name] = {m: _spread([float(r[m]) for r in results]) for m in metrics}
    sides = [found[name] for name in CONFIGURATIONS if name in found]
    found["delta"] = {}
    if len(sides) < 2:
        return found
    change = {m: sides[0][m]["mean"] - sides[1][m]["mean"] for m in metrics}
    found["delta"] = {
        "pass_rate": f"{change['pass_rate']:+.2f}",
        "time_seconds": f"{change['time_seconds']:+.1f}",
        "tokens": f"{change['tokens']:+.0f}",
    }
    return found


def _spread(values: Sequence[float]) -> dict[str, float]:
    # Not by `statistics`, which is more exact: the fourth digit is to be the aggregator's.
    mean = sum(values) / len(values)
    spare = sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)
    return {
        "mean": round(mean, 4),
        "stddev": round(math.sqrt(spare), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }


def _notes(grades: Sequence[Grade]) -> list[str]:
    engines = list(dict.fromkeys(grade.engine for grade in grades))
    notes = []
    if len(engines) > 1:
        notes.append(
            f"The runs of {len(engines)} engines ({', '.join(engines)}) stand together here; "
            "`skillup export` sets them apart."
        )
    for (number, variant, run), grade in places(grades):
        if grade.status not in ("PASS", "FAIL"):
            notes.append(
                f"Eval {number} ({grade.case_id}), {variant}, run {run} was not graded: "
                f"{grade.status}: {grade.reason}"
            )
    return notes
