"""Which model reads for a case: the one asked for, else the case's own, else the fallback."""

from __future__ import annotations

from skillup.schema.case import Case
from skillup.schema.judge import JudgeModel

FALLBACK_VARIABLE = "SKILLUP_JUDGE_MODEL"
"""Names the model for cases that name none."""


def with_judge_model(case: Case, asked: str | None, fallback: str | None = None) -> Case:
    """`case` as it is judged; what its record then says is enough to judge it again.

    `asked` outranks the case's own model. The address and the key of that are not the other's.
    """
    own = case.judge_model
    if asked:
        settings = {"timeout_seconds": own.timeout_seconds, "repeat": own.repeat} if own else {}
        return _with(case, JudgeModel.model_validate({"model": asked, **settings}))
    if own is None and fallback:
        return _with(case, JudgeModel(model=fallback))
    return case


def _with(case: Case, model: JudgeModel) -> Case:
    return case.model_copy(update={"judge_model": model})
