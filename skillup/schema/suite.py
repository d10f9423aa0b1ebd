"""A suite: `eval.yaml`, its skills, its defaults and its gates."""

import random
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field

from skillup.adapters import HOME_VARIABLES
from skillup.dataclass import frozen
from skillup.schema.base import (
    Bool,
    Checked,
    Confidence,
    Fraction,
    Model,
    NonEmptyText,
    NonNegative,
    NonNegativeInt,
    PositiveInt,
    Seconds,
    Short,
    Text,
    Texts,
)
from skillup.schema.case import Case, CaseDefaults, RetryPolicy, SimulationSettings, Turn
from skillup.schema.judge import JudgeConfig, SkillRef
from skillup.schema.judge_model import JudgeModel
from skillup.schema.profile import CustomEngine, ScriptOrReplies, VariableOfKey

Increase = Annotated[NonNegative, Field(allow_inf_nan=False)]


class CaseGates(Model):
    """Limits of each case; a case is slower or dearer only where that is significant."""

    max_time_increase: Increase | None = None  #: Of one case: 0.5 means 50 % more.
    max_cost_increase: Increase | None = None  #: Of one case: 0.5 means 50 % more.
    max_errors: NonNegativeInt | None = None  #: Of one case: trials with an ERROR.


class Gates(Model):
    """When a run as a whole is not acceptable; `null` takes a gate away."""

    max_new_failures: NonNegativeInt | None = 0  #: Regressed cases.
    max_fall: Fraction | None = 0  #: Of the pass rate of all cases together.
    max_errors: NonNegativeInt | None = 0  #: Trials with an ERROR.
    max_not_run: NonNegativeInt | None = 0  #: Trials that were not run.
    min_pass_rate: Fraction | None = None  #: The least mean of its cases' pass rates.
    max_time_increase: Increase | None = None  #: 0.5 means 50 % more.
    max_cost_increase: Increase | None = None  #: 0.2 means 20 % more.
    per_case: CaseGates = CaseGates.model_construct()  #: For each case.
    confidence: Confidence = 0.99  #: How sure a night's statements must be.


class ModelRef(Short):
    """A model, by name."""

    chief = "name"

    name: NonEmptyText | None = None  #: The model's name, as the CLI takes it.
    base_url: Text | None = None  #: Outranks the profile's.
    provider: Text | None = None  #: Of a custom engine's.


class EngineRef(Short):
    """The suite's default engine; `--engine` outranks it."""

    chief = "name"

    #: A profile's name, an adapter's name, or a path (`type` is read too).
    name: NonEmptyText = Field(validation_alias=AliasChoices("name", "type"))
    model: ModelRef = ModelRef.model_construct()  #: The model.
    custom: CustomEngine | None = None  #: skill-up's: the agent itself, where `name` is none.


class SetupStep(Model):
    """A command that prepares the workspace."""

    run: NonEmptyText  #: A shell command.


def _no_homes(env: dict[str, str]) -> dict[str, str]:
    moved = sorted(HOME_VARIABLES & env.keys())
    if moved:
        what = f"{', '.join(moved)} would move the agent out of its trial's own home"
        fix = "leave it out (a profile with `isolation: shared` may set it)"
        raise ValueError(f"{what} || {fix}")
    return env


AgentEnv = Annotated[dict[str, Text], AfterValidator(_no_homes)]


class Limits(Model):
    """Of what runs in a sandbox. Each holds for one process, but for `processes`."""

    processes: PositiveInt | None = None  #: At the same time; of one trial.
    memory_mb: PositiveInt | None = None  #: Of a process's data.
    file_mb: PositiveInt | None = None  #: The largest file that it may write.
    open_files: PositiveInt | None = None  #: At the same time.


SANDBOX = "SKILLUP_SANDBOX"
SandboxKind = Literal["none", "auto", "bubblewrap", "docker", "podman"]
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(:\d{1,5})?")


class Environment(Checked):
    """Where trials run. `none` means this machine, as it is."""

    type: SandboxKind | Literal["opensandbox"] = "none"  #: The sandbox.
    env: AgentEnv = {}  #: For the agent.
    setup_steps: list[SetupStep] = []  #: Run in order.
    #: Beside the model; default: what `allowed_egress` names.
    network_policy: Literal["deny_all", "allow_declared", "allow_all"] | None = None
    allowed_egress: list[NonEmptyText] = []  #: Hosts, by HTTPS.
    read: list[NonEmptyText] = []  #: Paths that may be read, besides.
    limits: Limits = Limits.model_construct()  #: Of what runs in there.
    image: Annotated[str, Field(pattern=r"^\w[\w./:@-]*$")] | None = None  #: Of a container.
    command: Texts = []  #: The CLI in the image; default: this machine's.

    def asked(self, variables: Mapping[str, str]) -> str:
        """The suite's sandbox; where that is `none`, the one that the user's variable names."""
        return variables.get(SANDBOX) or "none" if self.type == "none" else self.type

    def wrong(self) -> Iterator[str]:
        policy, hosts = self.network_policy, self.allowed_egress
        limits = self.limits.model_dump(exclude_none=True)
        needs = {"network_policy": policy, "allowed_egress": hosts, "read": self.read}
        asked = [name for name, value in {**needs, "limits": limits}.items() if value]
        if asked and self.type == "none":
            fix = "leave it out, or take a sandbox: `type: auto`"
            yield f"`{asked[0]}` with `type: none`, which cannot keep it || {fix}"
        if hosts and policy not in (None, "allow_declared"):
            yield f"`allowed_egress` with `network_policy: {policy}` || keep one of them"
        if policy == "allow_declared" and not hosts:
            yield "`network_policy: allow_declared` without `allowed_egress` || name hosts"
        wrong = [host for host in hosts if not _HOST.fullmatch(host)]
        if wrong:
            fix = "write a name, such as `pypi.org`, `*.pypi.org` or `pypi.org:8443`"
            yield f"`allowed_egress`: {wrong[0]!r} is no host || {fix}"
        if self.type in ("docker", "podman") and self.image is None:
            yield f"`type: {self.type}` without an `image` || name the image"


class Dataset(Short):
    """Items that a case is made of each, as Langfuse keeps them."""

    chief = "path"

    path: NonEmptyText  #: The items: a JSON list, or JSON lines.
    case: NonEmptyText | None = None  #: A case file with what the items' cases have besides.


class Cases(Model):
    """Which cases, and how they are run."""

    files: Texts | None = None  #: Paths and globs; default: all beside it.
    datasets: list[Dataset] = []  #: A case for each item.
    defaults: CaseDefaults = CaseDefaults.model_construct()  #: For every case.
    parallelism: PositiveInt | None = None  #: Trials at once; -j outranks it.
    retry_policy: RetryPolicy = RetryPolicy.model_construct()  #: For every case.


class Benchmark(Model):
    """The comparison with and without the skill."""

    enabled: Bool = False  #: Hold each case in both variants.


class Report(Model):
    """Which reports a run writes besides result.json."""

    formats: list[Literal["json", "html", "junit", "markdown", "benchmark"]] = []  #: What to write.


class UserSimulator(SimulationSettings, Checked):
    """Who plays the user: a model, or an engine."""

    model: Text | None = None  #: `anthropic:…`, `openai:…`, `scripted:FILE`.
    engine: NonEmptyText | None = None  #: A profile that plays the user, in place of a model.
    provider: Text | None = None  #: skill-up: anthropic or openai.
    protocol: Text | None = None  #: skill-up: anthropic or openai.
    base_url: Text | None = None  #: The model's address.
    api_key_env: VariableOfKey | None = None  #: The key's variable; default: the provider's.
    timeout_seconds: Seconds | None = None  #: For each message.
    scripted: ScriptOrReplies | None = None  #: With the scripted engine.

    def wrong(self) -> Iterator[str]:
        if self.engine is not None and self.model:
            yield "both `model` and `engine` || keep the one that plays the user"


class Suite(Checked):
    """The whole of an `eval.yaml`."""

    schema_version: Literal["v1alpha1"] | None = None  #: Of skill-up's files only.
    name: NonEmptyText | None = None  #: Default: the skill's or folder's name.
    description: Text | None = None  #: What the suite is about.
    skills: list[SkillRef] | None = None  #: Under test; default: the one around evals/.
    #: Skills installed in both variants (`neighbours` is read too).
    distractors: Texts = Field([], validation_alias=AliasChoices("distractors", "neighbours"))
    engine: EngineRef | None = None  #: Its name, or the keys below; `--engine` outranks it.
    cases: Cases = Cases.model_construct()  #: Which cases, and how.
    environment: Environment = Environment.model_construct()  #: Where they run.
    mcp: dict[str, Any] = {}  #: MCP servers: not run yet.
    user_simulator: UserSimulator | None = None  #: Who plays the user.
    judge: JudgeConfig | None = None  #: Defaults for the cases' judges.
    judges: list[JudgeConfig] | None = Field(None, min_length=1)  #: For cases without a judge.
    on_no_resume: Literal["error", "single_shot"] = "error"  #: Without resume.
    benchmark: Benchmark = Benchmark.model_construct()  #: With and without.
    gates: Gates = Gates.model_construct()  #: What the whole run must meet.
    report: Report = Report.model_construct()  #: Which reports.

    def wrong(self) -> Iterator[str]:
        if self.judge is not None and self.judges is not None:
            yield "both `judge` and `judges` || keep one of them"


# Which cases need a simulated user, what it is to do there, and which model plays it.

_PROTOCOLS = ("anthropic", "openai")


@frozen
class Lead:
    """A conversation that a simulated user leads."""

    max_turns: int  # The most turns, the first message of the case included
    must_end: bool = False
    """A user that wants to go on beyond `max_turns` is an error, not the conversation's end."""


def lead_of(case: Case) -> Lead | None:
    """How a simulated user leads `case`; None: its turns are written down.

    With skill-up's `scenario` beside a `prompt`, `max_turns` counts messages, not the agent's
    steps, where there is no `turn_limit`; a case that lacks both does not validate.
    """
    if case.input.conversation is not None:
        return Lead(case.input.conversation.max_turns)
    if case.user_simulator is not None and case.input.prompt is not None:
        most = case.turn_limit or case.max_turns or 1
        return Lead(most, must_end=case.turn_limit is not None)
    return None


def needs_simulator(case: Case) -> bool:
    return lead_of(case) is not None or any(map(_responds, case.input.all_turns()))


def _responds(turn: Turn) -> bool:
    later = (one for branch in turn.branches for one in branch.turns)
    return turn.respond is not None or any(map(_responds, later))


def as_played(case: Case, trial: int, seed: str) -> Case:
    """`case` as one trial plays and records it, with all that a led conversation is judged by.

    Its `personas` take turns, in an order drawn by `seed`.
    """
    led = case.input.conversation
    if led is None:
        return case
    if led.personas:
        order = [*led.personas]
        random.Random(seed).shuffle(order)  # noqa: S311
        drawn = order[(trial - 1) % len(order)]
        given = {name: getattr(drawn, name) for name in drawn.model_fields_set}
        led = led.model_copy(update={"persona": led.persona.model_copy(update=given)})
    update: dict[str, Any] = {"input": case.input.model_copy(update={"conversation": led})}
    if case.expected_output is None:  # which stands for itself
        update["assertions"] = case.checks()
    return case.model_copy(update=update)


def fidelity_of(case: Case) -> Literal["off", "flag", "error"]:
    """Whether a judge looks at what the user of `case` said; a written-down one only if asked."""
    led, model = case.input.conversation, case.judge_model
    if led is None:
        return "off"
    scripted = model is None or model.model.startswith("scripted:")
    return led.fidelity or ("off" if scripted else "flag")


def playing_model(given: UserSimulator | None, case: Case) -> JudgeModel | None:
    """The model that plays the user: the suite's own, else the one that judges; None: nobody."""
    if given is not None and given.model:
        return JudgeModel(
            model=_full_name(given.model, given),
            base_url=given.base_url or None,
            api_key_env=given.api_key_env,
            timeout_seconds=given.timeout_seconds,
        )
    if case.judge_model is None:
        return None
    own = given.timeout_seconds if given is not None else None
    timeout = own or case.judge_model.timeout_seconds
    alone: dict[str, Any] = {"repeat": 1, "panel": [], "temperature": None}
    return case.judge_model.model_copy(update={**alone, "timeout_seconds": timeout})


def _full_name(model: str, given: UserSimulator) -> str:
    if ":" in model:
        return model
    for protocol in (given.protocol, given.provider):
        if protocol in _PROTOCOLS:
            return f"{protocol}:{model}"
    provider, slash, name = model.partition("/")
    return f"{provider}:{name}" if slash and provider in _PROTOCOLS else model
