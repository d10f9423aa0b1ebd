"""The written-down judge, `scripted:FILE`: answers by rules, offline, and without a key."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError

from skillup.errors import InvalidFilesError
from skillup.judges.models.failures import CannotAskError
from skillup.judges.models.question import ModelAnswer, ModelQuestion
from skillup.judges.models.scripted_criteria import find, verdicts_on
from skillup.judges.models.scripted_texts import latest_answer
from skillup.load.problems import problems_from
from skillup.load.yaml_reader import read_yaml
from skillup.schema.judge_script import JudgeScript, JudgeWhen

_SHOWN = 160


class ScriptedModels:
    """Reads each script once for as long as its file stays the same."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[tuple[int, int], JudgeScript]] = {}

    def ask(self, question: ModelQuestion, file: Path) -> ModelAnswer:
        """What the script in `file` answers; what is wrong with it is in the answer."""
        name = question.model.model
        try:
            return ModelAnswer(self._answer(question, file), model=name)
        except CannotAskError as problem:
            return ModelAnswer(None, str(problem), model=name)

    def script(self, file: Path) -> JudgeScript:
        """The script in `file`. Raises CannotAskError: it is not there, or it is not one."""
        try:
            found = file.stat()
        except OSError:
            raise CannotAskError(f"there is no judge script {file}") from None
        stamp = (found.st_mtime_ns, found.st_size)
        known = self._read.get(file)
        if known is None or known[0] != stamp:
            known = (stamp, _read_script(file))
            self._read[file] = known
        return known[1]

    def _answer(self, question: ModelQuestion, file: Path) -> BaseModel:
        misfits: list[str] = []
        for number, rule in enumerate(self.script(file).rules, start=1):
            if not _applies(rule.when, question):
                continue
            if rule.error is not None:
                raise CannotAskError(f"rule {number} of {file.name}: {rule.error}")
            try:
                return question.answer.model_validate(rule.answer)
            except ValidationError as error:
                misfits.append(f"rule {number}: {_first_of(error)}")
        if (verdicts := verdicts_on(question, self.script(file).criteria)) is not None:
            return question.answer.model_validate({"verdicts": verdicts})
        asked = " ".join(question.prompt.split())[:_SHOWN]
        if misfits:
            raise CannotAskError(
                f"no rule of {file.name} has an answer of the form asked for "
                f"({_form(question.answer)}); {'; '.join(misfits)}"
            )
        raise CannotAskError(
            f"no rule of {file.name} applies; add one whose answer has "
            f"{_form(question.answer)}, for: {asked}"
        )


def _read_script(file: Path) -> JudgeScript:
    try:
        document = read_yaml(file)
    except InvalidFilesError as error:
        raise CannotAskError(str(error.problems[0])) from None
    try:
        return JudgeScript.model_validate(document.data)
    except ValidationError as error:
        problems = problems_from(error, document, model=JudgeScript)
        raise CannotAskError(str(problems[0])) from None


def _applies(when: JudgeWhen, question: ModelQuestion) -> bool:
    return (
        when.repetition in (None, question.sample + 1)
        and all(find(pattern, question.system) for pattern in when.system)
        and all(find(pattern, question.prompt) for pattern in when.prompt)
        and all(find(pattern, latest_answer(question.prompt)) for pattern in when.answer)
    )


def _form(answer: type[BaseModel]) -> str:
    """``verdicts (a list), reason``: the keys of an answer; those that may be left out too."""
    return ", ".join(
        f"`{field.alias or name}`" + ("" if field.is_required() else " (optional)")
        for name, field in answer.model_fields.items()
    )


def _first_of(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
