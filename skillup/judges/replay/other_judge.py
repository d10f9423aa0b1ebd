"""The same case, judged by another model."""

from __future__ import annotations

from pathlib import Path

from skillup.checks.describe import expected, title
from skillup.judges.models.choice import with_judge_model
from skillup.judges.needed import checks_of
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.judge import JudgeConfig
from skillup.schema.suite import Suite

_SCRIPTED = "scripted:"
_OF_APIS = ("openai-responses:", "openai-chat:")


def read_by(case: Case, model: str, here: Path, suite: Suite | None = None) -> Case:
    """`case` of `suite` with `model` as what reads for its checks, as `--judge-model` wants it.

    A file of `scripted:FILE` that is there from `here` is meant; else the suite's.
    """
    return with_judge_model(case, _from_here(model, here), suite=suite)


def judged_by(case: Case, model: str, here: Path) -> Case:
    """As :func:`read_by`, and with `model` as the model of its agent judges.

    Agents cannot be asked for a judge of a `scripted:FILE`, and keep their model.
    """
    if case.judge_model is None or case.judge_model.model != model:
        case = read_by(case, model, here)
    if model.startswith(_SCRIPTED):
        return case
    name = model
    for api in _OF_APIS:
        name = name.removeprefix(api)
    return case.model_copy(
        update={
            "judge": _of_agent(case.judge, name) if case.judge is not None else None,
            "judges": [_of_agent(judge, name) for judge in case.judges] if case.judges else None,
        }
    )


def measured_checks(case: Case) -> frozenset[str]:
    """The names of checks that no judge model has a say in: those by embeddings."""
    by_embeddings = [
        check
        for check in checks_of(case)
        if isinstance(check, Check) and check.similar and check.similar.embedding_model
    ]
    return frozenset(
        check.name or title("similar", expected("similar", check.similar), check)
        for check in by_embeddings
    )


def _from_here(model: str, here: Path) -> str:
    file = here / model.removeprefix(_SCRIPTED)
    return f"{_SCRIPTED}{file}" if model.startswith(_SCRIPTED) and file.is_file() else model


def _of_agent(judge: JudgeConfig, model: str) -> JudgeConfig:
    return judge.model_copy(update={"model": model}) if judge.type == "agent_judge" else judge
