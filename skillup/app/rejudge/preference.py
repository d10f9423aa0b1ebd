"""`skillup judge A --prefer B`: trials of the same case in pairs, and which serves it better."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import anyio
from pydantic import Field

from skillup.app.rejudge.judging import RejudgeRequest, Rejudging, readers_for
from skillup.app.runs import run_path
from skillup.errors import ExitCode, UsageError
from skillup.judges.evaluate import UsageTracker, gather
from skillup.judges.material import Material, Part, exchanges_of, material, setting_of
from skillup.judges.question import PROMPTS, AnswerForm, ModelQuestion, Reason
from skillup.judges.reading import REASON, JudgePrompt
from skillup.judges.rejudge import Judges
from skillup.load.model import judge_models, read_by_model
from skillup.reports.rejudging import took_words
from skillup.reports.terminal.layout import make_console, print_line, print_table
from skillup.reports.text import count, one_line
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.record import Record
from skillup.stats import PassCounts, interval_over_cases, percent, stratified
from skillup.store import RunDirectory

_AT_ONCE = 8  # Pairs, of two questions each
_OUTCOMES = ("wins", "ties", "losses", "unknown", "unanswered")
_COUNTS = (*_OUTCOMES, "first", "second")


class PreferenceAnswer(AnswerForm):
    """Which of two conversations is better."""

    reason: Reason = Field(description=REASON)
    better: Literal["first", "second", "tie", "unknown"] = Field(description="Which is better.")


Pair = tuple[tuple[str, str], Case, Record, Record]
"""Two trials of a case with a verdict each: jobs, the first one's case, and records."""


def preference_prompt(case: Case, known: Mapping[str, str], first: Record, second: Record) -> str:
    """`known`: values of the case's variables; what came of answers stays in the material."""

    def filled(text: str) -> str:
        return "".join(piece for piece, _ in templates.pieces(text, known))

    lines = "\n".join(f"- {filled(line)}" for line in _criteria(case))
    task = PROMPTS["preference task"].format(title=filled(case.title or case.id))
    shown = Material((*_side("first", first), *_side("second", second)))
    target, answer = PROMPTS["preference target"], PROMPTS["preference answer"]
    prompt = JudgePrompt(target, task, answer, criteria=lines)
    pieces, rest = prompt.assembled(shown, (), "", ())
    return "".join([*pieces, rest])


def _side(name: str, record: Record) -> Iterator[Part]:
    setting = setting_of(record, record.variables_after(None))
    for part in material(exchanges_of(record, None), setting).parts:
        yield replace(part, label=f"{name} · {part.label}", exchange=name)


def _criteria(case: Case) -> Iterator[str]:
    for place, check in read_by_model(case):
        against = "Not so: " * (sum(key in ("failure", "none_of") for key in place) % 2)
        if place[-1] == "rubric" and check.rubric is not None:
            yield from (against + criterion.outcome for criterion in check.rubric.criteria)
        elif place[-1] == "expected_output":
            yield f"{against}It says what this says: {check.expected_output}"
    for judge in case.all_judges():
        yield from (criterion.outcome for criterion in judge.criteria)


def _engines(run: RunDirectory) -> list[str]:
    return list(dict.fromkeys(job.rsplit("/", 3)[1] for job in run.run_info().get("jobs") or ()))


def _sides(run: RunDirectory | None, prefer: str) -> tuple[RunDirectory, dict[str, str]]:
    """Where the other trials are, and of each engine the one that it is compared with."""
    if run is None:
        raise UsageError("--prefer compares trials of runs", hint="give a run")
    own = _engines(run)
    if prefer in own:
        return run, {name: prefer for name in own if name != prefer}
    other = RunDirectory.open(run_path(prefer))
    other.database.check_unchanged()
    theirs = _engines(other)
    alone = len(own) == len(theirs) == 1
    return other, {own[0]: theirs[0]} if alone else {one: one for one in own if one in theirs}


def _pairs(judging: Rejudging, prefer: str, counts: Counter[str]) -> Iterator[Pair]:
    """What has no partner, or no verdict, is counted, and where the cases differ."""
    other, engines = _sides(judging.source.run, prefer)
    left = other.finished_jobs()
    for subject, item in judging.items():
        name, engine, variant, trial = subject.job_id.rsplit("/", 3)
        if variant != "with_skill" or engine not in engines:
            continue
        job = f"{name}/{engines[engine]}/{variant}/{trial}"
        left.discard(job)
        a, b = item.record, other.finished_record(job)
        grades = subject.grade(None), other.read_grade(job)
        decided = all(one and one.status in ("PASS", "FAIL") for one in grades)
        if b is None or b.suite != a.suite or not decided:
            counts["unpaired"] += 1
            continue
        if item.case.judge_model is None and not judge_models(item.case):
            raise UsageError(f"{name}: no model is named to read", hint="give --judge-model")
        counts["differing"] += a.case != b.case
        yield (subject.job_id, job), item.case, a, b
    alone = [job.rsplit("/", 3)[1:3] for job in left if not judging.request.is_selection]
    counts["unpaired"] += sum(alone.count([one, "with_skill"]) for one in {*engines.values()})
    counts["damaged"] = judging.counts.damaged


async def _ask(pairs: Sequence[Pair], readers: Judges, usage: UsageTracker) -> list[dict[str, Any]]:
    async def ask(pair: Pair) -> dict[str, Any]:
        jobs, case, a, b = pair
        router: Any = await stack.enter_async_context(readers(a, case))
        own, asker = case.judge_model, router.models.asker(Path(a.suite_root))
        model = (own.members() if own is not None else judge_models(case))[0]
        prompts = [preference_prompt(case, a.initial_variables, *o) for o in ((a, b), (b, a))]
        system = PROMPTS["system"]
        questions = [ModelQuestion(model, system, text, PreferenceAnswer) for text in prompts]
        answers = await gather(asker, questions)
        for one in answers:
            usage.add(one.model, one.usage, one.cost_usd, cached=one.cached)
        said = tuple(one.value.better if one.value else None for one in answers)
        sure: dict[Any, str] = {("first", "second"): "wins", ("second", "first"): "losses"}
        outcome = "unknown" if "unknown" in said else sure.get(said, "ties")
        return {
            "case": jobs[0].rsplit("/", 3)[0],
            "jobs": jobs,
            "outcome": "unanswered" if None in said else outcome,
            "answers": said,
            "reasons": [one.value.reason for one in answers if one.value],
            "failures": [one.error for one in answers if one.error],
            "keys": [one.key for one in answers],
        }

    async with AsyncExitStack() as stack:
        return await gather(ask, pairs)


def prefer(request: RejudgeRequest, name: str) -> int:
    """Ask, and show; the exit code. Raises UsageError if there is no pair."""
    judging, usage = Rejudging(request), UsageTracker()
    counts = Counter(dict.fromkeys((*_COUNTS, "unpaired", "differing", "damaged"), 0))
    readers = readers_for(request, judging.secrets, compared=False)
    found, pairs = _pairs(judging, name, counts), list[dict[str, Any]]()
    while some := list(islice(found, _AT_ONCE)):
        pairs += anyio.run(_ask, some, readers, usage)
    if not pairs:
        hint = "a pair is the same case, engine and trial in both, each with a verdict"
        raise UsageError(f"--prefer {name}: nothing to compare", hint=hint)
    cases = defaultdict[str, Counter[str]](lambda: Counter(dict.fromkeys(_COUNTS, 0)))
    for one in pairs:
        places = [said for said in one["answers"] if said in ("first", "second")]
        cases[one["case"]].update([one["outcome"], *places])
        counts.update([one["outcome"], *places])
    margins = {case: found["wins"] - found["losses"] for case, found in cases.items()}
    signs = [PassCounts(int(m > 0), 1, int(m < 0), 1) for m in margins.values() if m]
    first = [(c["first"], c["first"] + c["second"]) for c in cases.values()]
    data: dict[str, Any] = {
        "schema_version": "skillup.preference/1",
        "source": str(request.source.path),
        "prefer": name,
        **counts,
        "first_interval": interval_over_cases([one for one in first if one[1]]),
        "p_value": stratified(signs),
        "cases": {case: cases[case] for case in sorted(cases, key=margins.__getitem__)},
        "pairs": pairs,
        "judging": usage.judging.model_dump(mode="json") if usage.judging else None,
    }
    if request.as_json:
        sys.stdout.write(json.dumps(data, indent=2) + "\n")
    else:
        _show(data, quiet=request.quiet)
    return ExitCode.ERROR if counts["unanswered"] or counts["damaged"] else ExitCode.PASSED


def _show(data: dict[str, Any], *, quiet: bool) -> None:
    shown, console = {"all": data, **({} if quiet else data["cases"])}, make_console()
    rows = [[one_line(case, 100), *(str(one[o]) for o in _OUTCOMES)] for case, one in shown.items()]
    print_table(console, rows, ["", *_OUTCOMES])
    lines = [f"sign test over cases: p = {data['p_value']:.2g}"]
    if data["first_interval"] is not None:
        of, around = data["first"] + data["second"], map(percent, data["first_interval"])
        share = f"{percent(data['first'] / of)} ({' to '.join(around)})"
        lines.append(f"the one shown first preferred: {share} of {count(of, 'answer')}")
    if data["unpaired"] or data["differing"]:
        trials, pairs = count(data["unpaired"], "trial"), count(data["differing"], "pair")
        lines.append(f"left out without a partner or verdict: {trials}; the case differs: {pairs}")
    failed = [why for one in data["pairs"] for why in one["failures"]]
    lines += dict.fromkeys(f"no answer: {one_line(why, 300)}" for why in failed)
    words = "calls {}, of them stored {}, tokens {}, cost {}"
    for line in [*lines, words.format(*took_words(data["judging"]))]:
        print_line(console, line)
