"""The written-down judge, `scripted:FILE`: answers by rules, offline, and without a key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from skillup.errors import InvalidFilesError
from skillup.judges.models.endpoint import CannotAskError
from skillup.judges.models.question import ModelAnswer, ModelQuestion
from skillup.load.problems import problems_from
from skillup.load.yaml_reader import read_yaml
from skillup.schema.judge_script import JudgeCriterion, JudgeScript, JudgeWhen
from skillup.schema.patterns import compiled_pattern

if TYPE_CHECKING:
    import regex


# The agent's answers in a question, for the written-down judge.

_FENCED = re.compile(
    r"^=====\[ (?P<code>\w+) (?:BEGIN MATERIAL|THE CONVERSATION SO FAR) \]=====\n"
    r"(?P<text>.*?)\n?"
    r"^=====\[ (?P=code) END (?:MATERIAL|OF THE CONVERSATION SO FAR) \]=====$",
    re.MULTILINE | re.DOTALL,
)
_ANSWER = re.compile(r" answer(?: \(empty\))?$|^THE ASSISTANT SAID$")
_WHOLE = "Judge the conversation as a whole"


def without_texts(prompt: str) -> str:
    """What is asked, without the texts that it is about."""
    return _FENCED.sub("", prompt)


def latest_answer(prompt: str) -> str:
    """The last answer in it, which is the one in question; empty if there is none."""
    return next(reversed([text for _, text in _answers(prompt)]), "")


def judged_answer(prompt: str) -> str:
    """The latest answer; of a whole conversation, the answers of all its turns."""
    if _WHOLE not in without_texts(prompt):
        return latest_answer(prompt)
    # What stands before the first turn is context.
    return "\n\n".join(text for label, text in _answers(prompt) if label.startswith("turn "))


def _answers(prompt: str) -> Iterator[tuple[str, str]]:
    """Each answer, after its label: `turn 2 · answer`."""
    for fenced in _FENCED.finditer(prompt):
        heading = re.compile(rf"^-----\[ {fenced['code']} (.*) \]-----$", re.MULTILINE)
        pieces = heading.split(fenced["text"])
        for label, text in zip(pieces[1::2], pieces[2::2], strict=True):
            if _ANSWER.search(label):
                yield label, text.strip("\n")


# The written-down judge's verdicts on criteria: each decided by itself, by regexes on the answer.

_PER_SEARCH = 1.0
"""Seconds that a regex may take."""
_LONGEST_QUOTE = 300
_CRITERION = re.compile(r"^(?P<id>c\d+): (?P<text>.*(?:\n   .*)*)", re.MULTILINE)


def verdicts_on(
    question: ModelQuestion, known: Sequence[JudgeCriterion]
) -> list[dict[str, str]] | None:
    """A verdict for each criterion of `question`; None: it is not about criteria, or none is known.

    Raises CannotAskError for a criterion that none of `known` is about.
    """
    if not known or set(question.answer.model_fields) != {"verdicts"}:
        return None
    answer = judged_answer(question.prompt)
    verdicts: list[dict[str, str]] = []
    for match in _CRITERION.finditer(without_texts(question.prompt)):
        rule = next((r for r in known if all(find(p, match["text"]) for p in r.when)), None)
        if rule is None:
            shown = " ".join(match["text"].split())
            name = question.model.model
            raise CannotAskError(
                f"none of the `criteria` of {name} is about {match['id']}: {shown}"
            )
        verdicts.append({"id": match["id"], **_verdict(rule, answer)})
    return verdicts


def find(pattern: str, text: str) -> regex.Match[str] | None:
    """Where `pattern` finds something; case is ignored. Raises CannotAskError: it took too long."""
    try:
        return compiled_pattern(pattern, True).search(text, timeout=_PER_SEARCH)
    except TimeoutError:
        raise CannotAskError(
            f"the pattern /{pattern}/ took too long; write it without nested repetition"
        ) from None


def _verdict(rule: JudgeCriterion, answer: str) -> dict[str, str]:
    reason, quote = "Nothing that must not be there is there.", ""
    for pattern in rule.found:
        match = find(pattern, answer)
        if match is None:
            return {"verdict": "fail", "reason": f"Nothing matches /{pattern}/.", "quote": ""}
        reason, quote = f"This matches /{pattern}/.", _quoted(match)
    for pattern in rule.not_found:
        if match := find(pattern, answer):
            reason, quote = f"This matches /{pattern}/.", _quoted(match)
            return {"verdict": "fail", "reason": reason, "quote": quote}
    return {"verdict": "pass", "reason": reason, "quote": quote}


def _quoted(match: regex.Match[str]) -> str:
    """The line that it begins in: what stands on several lines may be of several messages."""
    text = match.string
    begin = text.rfind("\n", 0, match.start()) + 1
    line = text[begin:].partition("\n")[0].strip()
    return line if len(line) <= _LONGEST_QUOTE else match[0].partition("\n")[0][:_LONGEST_QUOTE]


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
        problems = problems_from(error, document, JudgeScript)
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
