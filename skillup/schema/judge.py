"""How a case names its judges (skill-up's form, with ours as a superset); a written-down judge."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from skillup.schema.base import (
    Bool,
    Checked,
    Choice,
    Fraction,
    Model,
    NonEmptyText,
    NonNegative,
    PositiveInt,
    Regexes,
    Short,
)
from skillup.schema.checks import Check, Criteria
from skillup.schema.judge_model import AskedModels, ModelOrPanel, with_panel
from skillup.schema.profile import ScriptOrReplies

Showing = Literal["include", "truncate", "file_ref", "omit"]
"""include: as a file, and in the question if it is short enough; truncate: as a file, and its
beginning and end in the question; file_ref: as a file; omit: not at all."""


class ContextLimits(Model):
    """How much is shown; what is left out is said."""

    max_bytes: PositiveInt = 65_536  #: Characters of each part in the question.
    max_file_bytes: PositiveInt = 4_194_304  #: Characters of each file.
    transcript_max_turns: PositiveInt | None = None  #: Only so many turns, the last ones.
    workspace_diff_max_lines: PositiveInt | None = None  #: Only the first lines of it.


class Attachment(Model):
    """A file of the suite that is put among what the judge is shown."""

    path: NonEmptyText  #: Relative to the suite root.
    label: NonEmptyText | None = None  #: What it is called; default: its name.


class JudgeContext(Model):
    """What an agent_judge is shown, beside its copy of the workspace."""

    profile: Literal["minimal", "standard"] = "standard"  #: minimal: only a short answer.
    final_message: Showing | None = None  #: The agent's last answer.
    transcript: Showing | None = None  #: All that was said and done.
    workspace_diff: Showing | None = None  #: What changed in the workspace.
    generated_files: Literal["include", "index", "omit"] | None = None  #: index: a list of them.
    limits: ContextLimits = ContextLimits.model_construct()  #: How much.
    attachments: list[Attachment] = []  #: More files.

    def shows(self, part: Literal["final_message", "transcript", "workspace_diff"]) -> Showing:
        """How a part is shown: as said, else as the profile has it."""
        own: Showing | None = getattr(self, part)
        if part == "final_message":
            return own or ("truncate" if self.profile == "minimal" else "include")
        return own or ("omit" if self.profile == "minimal" else "file_ref")


class SkillRef(Short):
    """A skill on disk, and which of its files are installed."""

    chief = "path"
    source: Literal["local_path", "registry"] = "local_path"  #: Where from.
    path: NonEmptyText  #: Its directory, relative to the suite root.
    name: NonEmptyText | None = None  #: Default: the name in its `SKILL.md`, else the folder's.
    target: NonEmptyText | None = None  #: Another place to install it to.
    include: list[NonEmptyText] = []  #: Globs; default: all.
    exclude: list[NonEmptyText] = []  #: Globs to leave out.
    as_is: Bool = False  #: Install the folder even if it holds no `SKILL.md`.


class JudgeConfig(AskedModels, Checked):
    """One judge. `rule_based` is made of checks; the others read."""

    id: NonEmptyText | None = None  #: A short name for reports.
    type: Literal["rule_based", "script", "agent_judge"] | None = None  #: Default: rule_based.
    success: list[Check] = []  #: rule_based: checks that must all hold.
    failure: list[Check] = []  #: If one of these passes, the case fails.
    otherwise: Literal["fail", "pass"] = "fail"  #: rule_based: if no rule decides.
    script_path: NonEmptyText | None = None  #: script: the program.
    exit_code_decides: Bool = False  #: script: 0 is a pass; what it prints is no verdict.
    timeout_seconds: NonNegative | None = None  #: How long it may take.
    model: ModelOrPanel | None = None  #: The model, also of an agent_judge's engine.
    engine: NonEmptyText | None = None  #: agent_judge: its profile; default: the trial's.
    criteria: Criteria = []  #: agent_judge: what is looked at.
    pass_threshold: Fraction | None = None  #: The least score to pass.
    context: JudgeContext | None = None  #: agent_judge: what it is shown.
    skills: list[SkillRef] = []  #: agent_judge: its skills.
    scripted: ScriptOrReplies | None = None  #: Of an agent_judge with the scripted engine.
    required: Bool = True  #: The case fails if this judge says no.

    _panel = model_validator(mode="before")(with_panel)

    def wrong(self) -> Iterator[str]:
        kind = self.type or "rule_based"
        given = (self.panel, self.combine, self.examples, self.temperature)
        if kind == "agent_judge" and any(one not in (None, []) for one in given):
            what = "`model: […]`, `combine`, `examples` or `temperature` in an agent_judge"
            yield f"{what} || name several `judges`, each with its model"
        if any(criterion.scale for criterion in self.criteria):
            yield "a `scale` in an agent_judge || use a `rubric` among `assertions`"
        if kind == "script" and self.script_path is None:
            yield "a script judge without a script || add `script_path`"
        if kind == "rule_based" and self.criteria:
            yield "`criteria` in a rule_based judge || set `type: agent_judge`"
        if kind != "rule_based" and (self.success or self.failure):
            yield f"`success`/`failure` in a {kind} judge || set `type: rule_based`"


# A written-down judge, for `model: scripted:FILE`: it answers offline all that is asked of models,
# checks that read and the messages of a simulated user.


class JudgeWhen(Short):
    """Which questions a rule answers. A text alone is a regex for the `prompt`."""

    chief = "prompt"

    system: Regexes = []  #: The same, for what the model is told of its task.
    prompt: Regexes = []  #: Regexes that all match the question; case is ignored.
    answer: Regexes = []  #: Regexes that all match the latest answer.
    repetition: PositiveInt | None = None  #: Only the n-th time of the same question.


class JudgeRule(Choice):
    """Which questions, and what is answered. The first rule that applies is taken."""

    what = "a rule"
    choices = ("answer", "error")

    when: JudgeWhen = JudgeWhen.model_construct()  #: Default: every question.
    answer: dict[str, Any] | None = None  #: The answer; one of another form does not apply.
    error: NonEmptyText | None = None  #: In place of an answer: fail with this message.


class JudgeCriterion(Choice):
    """How criteria are decided, each by itself: by regexes on the answer that is judged."""

    what = "a criterion"
    choices = ("found", "not_found")
    several = True

    when: Regexes = []  #: Regexes that all match the criterion.
    found: Regexes = []  #: Met only if each of them matches the answer.
    not_found: Regexes = []  #: Met only if none of them finds anything there.


class JudgeScript(Choice):
    """The whole file of a written-down judge."""

    what = "a judge"
    choices = ("rules", "criteria")
    several = True

    rules: list[JudgeRule] = Field([], min_length=1)  #: The first that applies wins.
    criteria: list[JudgeCriterion] = Field([], min_length=1)  #: If no rule answers; the first wins.


# Judge prompts of the user's own: ``{{input}}``, ``{{output}}`` and the like are filled in.

PROMPT_VARIABLES = ("input", "output", "criteria", "expected_output")
"""What may stand between double braces in the `prompt` of a check that a model reads."""

_VARIABLE = re.compile(r"\{\{\s*(?P<name>[^{}]*?)\s*\}\}")


def unknown_variables(prompt: str) -> list[str]:
    """What stands between double braces in `prompt` and means nothing, in order, each once."""
    names = (match["name"] for match in _VARIABLE.finditer(prompt))
    return list(dict.fromkeys(name for name in names if name not in PROMPT_VARIABLES))


def uses(prompt: str, name: str) -> bool:
    return any(match["name"] == name for match in _VARIABLE.finditer(prompt))


def fill(prompt: str, value: Callable[[str], str]) -> str:
    """`prompt` with each variable replaced by its `value`; all other braces stay."""

    def filled(match: re.Match[str]) -> str:
        return value(match["name"]) if match["name"] in PROMPT_VARIABLES else match[0]

    return _VARIABLE.sub(filled, prompt)
