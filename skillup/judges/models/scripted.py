"""The written-down judge, `scripted:FILE`: answers by rules, offline, and without a key."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from skillup.errors import InvalidFilesError
from skillup.judges.models.endpoint import CannotAskError
from skillup.judges.models.question import MalformedAnswerError, ModelQuestion
from skillup.load.problems import problems_from
from skillup.load.yaml_reader import read_yaml
from skillup.schema.judge_script import JudgeCriterion, JudgeScript
from skillup.schema.patterns import compiled_pattern

if TYPE_CHECKING:
    import regex

_SECONDS_PER_SEARCH = 1.0
_LONGEST_QUOTE = 300
_SHOWN = 160


@lru_cache(maxsize=64)
def _read(file: Path, _stamp: tuple[int, int]) -> JudgeScript:
    try:
        document = read_yaml(file)
    except InvalidFilesError as error:
        raise CannotAskError(str(error.problems[0])) from None
    try:
        return JudgeScript.model_validate(document.data)
    except ValidationError as error:
        problems = problems_from(error, document, JudgeScript)
        raise CannotAskError(str(problems[0])) from None


def script_of(file: Path) -> JudgeScript:
    """The script in `file`. Raises CannotAskError: it is not there, or it is not one."""
    try:
        found = file.stat()
    except OSError:
        raise CannotAskError(f"there is no judge script {file}") from None
    return _read(file, (found.st_mtime_ns, found.st_size))


def answer_to(question: ModelQuestion, file: Path) -> BaseModel:
    """What the script in `file` answers. Raises CannotAskError: it has no answer."""
    script = script_of(file)
    misfits: list[str] = []
    for number, rule in enumerate(script.rules, start=1):
        when = rule.when
        texts = (
            (when.system, question.system),
            (when.prompt, question.prompt),
            (when.answer, question.latest),
        )
        if when.repetition not in (None, question.sample + 1) or not all(
            _find(pattern, text) for patterns, text in texts for pattern in patterns
        ):
            continue
        if rule.error is not None:
            raise CannotAskError(f"rule {number} of {file.name}: {rule.error}")
        try:
            return question.read(rule.answer or {})
        except MalformedAnswerError as malformed:
            misfits.append(f"rule {number}: {malformed}")
    if script.criteria and question.criteria:
        verdicts = _verdicts(question, script.criteria)
        return question.form.model_validate({"verdicts": verdicts})
    # The keys of an answer; those that may be left out too.
    keys = ", ".join(
        f"`{field.alias or name}`" + ("" if field.is_required() else " (optional)")
        for name, field in question.form.model_fields.items()
    )
    if misfits:
        raise CannotAskError(
            f"no rule of {file.name} has an answer of the form asked for ({keys}); "
            + "; ".join(misfits)
        )
    asked = " ".join(question.prompt.split())[:_SHOWN]
    raise CannotAskError(
        f"no rule of {file.name} applies; add one whose answer has {keys}, for: {asked}"
    )


def _verdicts(question: ModelQuestion, known: Sequence[JudgeCriterion]) -> list[dict[str, str]]:
    """A verdict for each criterion. Raises CannotAskError for one that none of `known` is about."""
    verdicts = []
    for name, text in zip(question.ids, question.criteria, strict=True):
        rule = next((r for r in known if all(_find(p, text) for p in r.when)), None)
        if rule is None:
            model, shown = question.model.model, " ".join(text.split())
            raise CannotAskError(f"none of the `criteria` of {model} is about {name}: {shown}")
        verdicts.append({"id": name, **_verdict(rule, question.judged)})
    return verdicts


def _verdict(rule: JudgeCriterion, answer: str) -> dict[str, str]:
    reason, quote = "Nothing that must not be there is there.", ""
    for pattern in rule.found:
        match = _find(pattern, answer)
        if match is None:
            return {"verdict": "fail", "reason": f"Nothing matches /{pattern}/.", "quote": ""}
        reason, quote = f"This matches /{pattern}/.", _quoted(match)
    for pattern in rule.not_found:
        if match := _find(pattern, answer):
            reason, quote = f"This matches /{pattern}/.", _quoted(match)
            return {"verdict": "fail", "reason": reason, "quote": quote}
    return {"verdict": "pass", "reason": reason, "quote": quote}


def _find(pattern: str, text: str) -> regex.Match[str] | None:
    """Where `pattern` finds something; case is ignored. Raises CannotAskError: it took too long."""
    try:
        return compiled_pattern(pattern, True).search(text, timeout=_SECONDS_PER_SEARCH)
    except TimeoutError:
        raise CannotAskError(
            f"the pattern /{pattern}/ took too long; write it without nested repetition"
        ) from None


def _quoted(match: regex.Match[str]) -> str:
    """The line that it begins in: what stands on several lines may be of several messages."""
    text = match.string
    begin = text.rfind("\n", 0, match.start()) + 1
    line = text[begin:].partition("\n")[0].strip()
    return line if len(line) <= _LONGEST_QUOTE else match[0].partition("\n")[0][:_LONGEST_QUOTE]
