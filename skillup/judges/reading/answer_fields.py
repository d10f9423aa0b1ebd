"""Fields of models' answers that are taken at their word: no text is a number, no blank a reason.

What a model is told of the form stays as it is; this is about what is taken for an answer.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict


class AnswerForm(BaseModel):
    """The form of a model's answer: these keys and no others."""

    model_config = ConfigDict(extra="forbid")


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")  # noqa: TRY004  pydantic reports no other
    return value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


Number = BeforeValidator(_number)
"""Neither a text nor a boolean; some models write 4.0 for 4, or 1 for 1.0, which is fine."""
Reason = Annotated[str, AfterValidator(_not_blank)]
"""Why: a text that says something."""
