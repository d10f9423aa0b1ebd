"""From what a run is asked to do to its plan, and what of it must never be shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillup.adapters import ADAPTERS, NOT_RUN
from skillup.dataclass import frozen
from skillup.errors import InvalidFilesError, Problem, RunDirectoryError, SkillupError, UsageError
from skillup.load.discover import (
    ADDRESS,
    ALLOW,
    address_problem,
    is_trusted,
    leaves,
    workspace_root,
)
from skillup.load.model import LoadedSuite, judge_models
from skillup.load.profiles import expand_all, load_profile, profile_files
from skillup.load.suites import load_paths, sampled
from skillup.load.yaml_reader import Document
from skillup.plan import Job, Plan, Selection, make_plan
from skillup.redaction.secrets import NO_SECRETS, Secrets, texts_in
from skillup.reports.text import listed, listed_ids
from skillup.schema.case import Case
from skillup.schema.judge import JudgeConfig
from skillup.schema.judge_model import JudgeModel
from skillup.schema.profile import DESCRIBED, CustomEngine, Profile
from skillup.schema.suite import SANDBOX, EngineRef, Suite, UserSimulator

FALLBACK_VARIABLE = "SKILLUP_JUDGE_MODEL"  # Names the model of judges for cases that name none
_RAN = ("suite", "skill", "engine", "sandbox", "judge")
_OPEN = "none: agents can read and do what you can, this suite's answers included"
_OWN_ADDRESS = re.compile(r"\$\{(\w+)(?::?[-?][^}]*)?\}(?=/|$)")
_NAME = re.compile(r"\w[\w.-]*")
_SECONDS = Profile.model_fields["timeout_seconds"].default
DEFAULT_ENGINE = "scripted"  # Embedded: it needs no network and no key


@frozen
class RunRequest:
    """The options of `skillup run` that decide what is run; a run keeps them."""

    paths: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    model: str | None = None
    parallel: int | None = None
    trials: int | None = None
    trials_from_turn: int | None = None
    cases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()  # Of the trials that the rest asks for only these; none: all
    item: str | None = None
    sample_size: int | None = None
    shard: str | None = None  # `I/N`: the I-th of N parts of what the rest asks for
    seed: int = 0
    variables: tuple[str, ...] = ()
    baseline: bool = False
    max_fail: int | None = None
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    time_limit: float | None = None  # In seconds
    until_decided: bool = False
    pass_rate: float | None = None  # Of `until_decided`; None: the suite's gate, else a default
    rate_limit_wait: float | None = None  # Seconds; None: the default
    executor: str = "local"
    scheduler: str | None = None
    reports: tuple[str, ...] = ()  # Besides result.json, and besides those that the suites ask for
    judge_model: str | None = None
    judge_model_fallback: str | None = None  # For cases that name no model of their own
    no_judge_cache: bool = False
    keep_traffic: bool = False
    label: str = ""
    directory: str = ""  # Where the paths are relative to

    @property
    def base(self) -> Path:
        return Path(self.directory or ".")


def request_from(data: dict[str, Any]) -> RunRequest:
    """The request that a run knows of. Raises RunDirectoryError if it knows of none."""
    from pydantic import TypeAdapter, ValidationError

    stored = data.get("request")
    with suppress(ValidationError):
        if isinstance(stored, dict) and set(stored) <= {field.name for field in fields(RunRequest)}:
            return TypeAdapter(RunRequest).validate_python(stored)
    what = "what it was asked to do is damaged, or was written by another version"
    raise RunDirectoryError(what, hint="start a new run instead")


def parse_vars(given: Sequence[str] | None) -> dict[str, str]:
    """``["a=1"]`` → ``{"a": "1"}``. Raises UsageError for anything else."""
    values: dict[str, str] = {}
    for item in given or []:
        name, separator, value = item.partition("=")
        if not separator or not name:
            raise UsageError(f"--var {item}: not NAME=VALUE", hint="for example --var folder=data")
        values[name] = value
    return values


def default_paths(paths: Sequence[Path] | None) -> Sequence[Path]:
    """What was given; else the suites of this folder. Raises UsageError if there are none."""
    usual = [path for path in map(Path, ("eval.yaml", "evals", "cases")) if path.exists()]
    if paths or usual:
        return paths or usual[:1]
    what = f"no suite given, and no eval.yaml, evals/ or cases/ in {Path.cwd()}"
    raise UsageError(what, hint="name a suite, or change to a folder that has one")


def refuse(problems: Mapping[str, bool], hint: str) -> None:
    """Raises UsageError for the first of `problems` that is one."""
    for problem, is_so in problems.items():
        if is_so:
            raise UsageError(problem, hint=hint)


# The plan.


def plan_of(request: RunRequest) -> tuple[Plan, int]:
    """The plan that `request` asks for, and how many trials at once the suites in it allow.

    Raises UsageError and InvalidFilesError; warnings go to stderr.
    """
    _check_until_decided(request)
    variables = parse_vars(request.variables)
    loaded = load_paths([request.base / path for path in request.paths], variables=variables)
    warnings = list(loaded.warnings)
    if not loaded.errors:
        suites = sampled(loaded.suites, request.item, request.sample_size, request.seed)
        suites = [
            with_judge_models(suite, request.judge_model, request.judge_model_fallback)
            for suite in suites
        ]
        plan = make_plan(
            suites,
            profiles_for(suites, request.engines, request.model, request.base),
            Selection(
                case_globs=request.cases,
                tags=request.tags,
                trials=request.trials,
                trials_from_turn=request.trials_from_turn,
                variants=("with_skill", "without_skill") if request.baseline else ("with_skill",),
            ),
        )
        if request.jobs:
            chosen = set(request.jobs)
            plan = replace(plan, jobs=tuple(job for job in plan.jobs if job.id in chosen))
        if request.shard is not None:
            plan = shard_of(plan, request.shard, by_case=request.until_decided)
        if not plan.jobs:
            known = listed_ids([case.id for suite in suites for case in suite.cases])
            shard = f" and --shard {request.shard}" if request.shard is not None else ""
            what = f"no case matches the selection{shard}"
            raise UsageError(what, hint=f"the cases are: {known or 'none'}")
        # Files that hold only cases which are not run are of no interest here.
        files = {case.path for suite in loaded.suites for case in suite.cases}
        left_out = files - {job.loaded.path for job in plan.jobs}
        warnings = [warning for warning in warnings if warning.file not in left_out]
    if warnings:
        from skillup.reports.text import problem_line, say

        say(*map(problem_line, warnings))
    loaded.or_raise()
    require_scripts(plan)
    parallel = {job.suite.path: job.suite.suite.cases.parallelism for job in plan.jobs}
    # A suite's number is what it can stand: with several, none is exceeded.
    return plan, min(filter(None, parallel.values()), default=os.cpu_count() or 2)


def with_judge_models(suite: LoadedSuite, model: str | None, fallback: str | None) -> LoadedSuite:
    """`suite` with `model` as the judge of its cases, `fallback` of those that name none."""
    if not model and not fallback:
        return suite
    from skillup.judges.models import with_judge_model

    likes = {id(loaded.like): loaded.like for loaded in suite.cases}.items()
    made = {like: with_judge_model(case, model, fallback, suite.suite) for like, case in likes}
    cases = (replace(loaded, like=made[id(loaded.like)]) for loaded in suite.cases)
    return replace(suite, cases=tuple(cases))


def _check_until_decided(request: RunRequest) -> None:
    """Raises UsageError if `--until-decided` and what belongs to it do not go together."""
    rate, decided = request.pass_rate, request.until_decided
    few, share = (request.trials or 0) < 2, (request.trials_from_turn or 1) > 1
    given = f"--pass-rate {rate}"
    problems = {
        f"{given}: it says what --until-decided compares with": rate is not None and not decided,
        f"{given}: must be between 0 and 1, without them": rate is not None and not 0 < rate < 1,
        "--until-decided needs the most trials that a case may have: --trials": decided and few,
        "--until-decided does not go with --trials-from-turn: trials that share turns run "
        "together, so none can be left out": decided and share,
    }
    refuse(problems, "for example --trials 50 --until-decided --pass-rate 0.9")


def shard_of(plan: Plan, shard: str, *, by_case: bool) -> Plan:
    """The part ``INDEX/COUNT`` of `plan`: the same one wherever the plan is made.

    Trials that share turns or depend on each other, and with `by_case` a case's, are in one.
    """
    index, _, count = shard.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise UsageError(f"--shard {shard}: no part of the run", hint="for example 1/8, up to 8/8")
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for job in plan.jobs:
        case = f"case {job.suite.path} {job.loaded.family}" if by_case else job.id
        for other in (*job.depends_on, f"family {job.family}" if job.family else job.id, case):
            leader[find(other)] = find(job.id)
    groups: dict[str, list[Job]] = {}
    for job in plan.jobs:
        groups.setdefault(find(job.id), []).append(job)
    sizes = [0] * int(count)
    taken: set[str] = set()
    for group in groups.values():
        smallest = sizes.index(min(sizes))
        sizes[smallest] += len(group)
        if smallest == int(index) - 1:
            taken |= {job.id for job in group}
    jobs = tuple(job for job in plan.jobs if job.id in taken)
    return replace(plan, jobs=jobs, whole=plan.jobs)


def check_executor(request: RunRequest, *, keep: bool) -> None:
    """Raises UsageError for what does not go together, SkillupError if the extra is missing."""
    executor, scheduler = request.executor, request.scheduler
    local = executor == "local"
    address = re.fullmatch(r"(tcp|tls|ucx|wss?)://\S+:\d+", scheduler or "")
    kept = "--keep-workspaces cannot be used with --executor dask: workspaces are on the workers"
    problems = {
        f"--executor {executor}: the executors are local, dask": executor not in ("local", "dask"),
        f"--scheduler {scheduler} is for --executor dask only": local and scheduler is not None,
        "--executor dask needs the address of a Dask scheduler": not local and not address,
        kept: keep and not local,
    }
    refuse(problems, "for example --executor dask --scheduler tcp://host:8786")
    if not local and find_spec("distributed") is None:
        what = "--executor dask needs the extra `cluster`, which is not installed"
        raise SkillupError(what, hint="pip install 'skillup-eval[cluster]'")


# Which engine runs which suite's cases.


def root_with_engines(base: Path, suite: Path) -> Path:
    """The workspace whose `engines/` counts: that of `base`, if it has any, else the suite's."""
    here = workspace_root(base)
    return here if profile_files(here) else workspace_root(suite)


def profile_for(base: Path, environment: Mapping[str, str], name: str, suite: Path) -> Profile:
    """The profile `name` there. Raises UsageError if there is none, InvalidFilesError."""
    return load_profile(name, root_with_engines(base, suite), environment)


def profiles_for(
    suites: Sequence[LoadedSuite], engines: Sequence[str], model: str | None, base: Path
) -> dict[str, list[Profile]]:
    """By suite file, the profiles that run its cases: those asked for, else the suite's own.

    Raises UsageError for an engine that is not known here, and InvalidFilesError for variables of a
    suite that would send a real agent's requests, and its key, elsewhere.
    """
    chosen: dict[str, list[Profile]] = {}
    for suite in suites:
        root = root_with_engines(base, suite.path)
        profiles = [load_profile(name, root, os.environ) for name in engines]
        profiles = profiles or [own_profile(suite, root)]
        mine = leaves(str(root), suite.root) or is_trusted(os.environ)
        theirs = [one.name for one in profiles if not mine and (one.command or one.env)]
        if theirs and os.environ.get(SANDBOX):
            what = f"the profile {theirs[0]} of {root / 'engines'} names what runs outside, too"
            raise UsageError(f"{what}, and {SANDBOX} asks for a sandbox", hint=ALLOW)
        if model is not None:
            profiles = [profile.model_copy(update={"model": model}) for profile in profiles]
        if not is_trusted(os.environ) and any(p.engine != DEFAULT_ENGINE for p in profiles):
            what = "{} would send the agent's key to an address that the suite names"
            problems = [
                suite.document.problem(("environment", "env", name), what.format(name), ALLOW)
                for name in suite.suite.environment.env
                if ADDRESS.search(name)
            ]
            if problems:
                raise InvalidFilesError(problems)
        names = [profile.name for profile in profiles]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"--engine {twice} is given twice", hint="name each profile once")
        chosen[str(suite.path)] = profiles
    return chosen


def own_profile(suite: LoadedSuite, root: Path) -> Profile:
    """The suite's own engine. Raises InvalidFilesError if there is none of that name."""
    own = suite.suite.engine
    if own is None:
        return load_profile(DEFAULT_ENGINE, root, os.environ)
    try:
        profile = load_profile(own.name, root, os.environ)
    except UsageError as unknown:
        if own.custom is not None and own.name not in NOT_RUN:
            return _custom_profile(suite.document, own, own.custom)
        fix = f"choose one with --engine: {', '.join(ADAPTERS)}"
        problem = suite.document.problem(("engine", "name"), unknown.message, fix)
        raise InvalidFilesError([problem]) from None
    updates: dict[str, str] = {}
    if own.model.name not in (None, "auto"):
        updates["model"] = str(own.model.name)
    address = own.model.base_url
    if address:
        loc = ("engine", "model", "base_url")
        why = address_problem(".".join(loc), address, os.environ, profile.base_url)
        if why is not None and profile.engine != DEFAULT_ENGINE:
            raise InvalidFilesError([suite.document.problem(loc, why)])
        updates["base_url"] = address
    return profile.model_copy(update=updates)


def _custom_profile(document: Document, own: EngineRef, custom: CustomEngine) -> Profile:
    """The profile of a suite's custom engine. Raises InvalidFilesError.

    An address that the suite names gets nothing of the user's variables, unless it is trusted.
    """
    loc, http, problems = ("engine", "custom"), custom.http, list[Problem]()
    environment = {name: value for name, value in os.environ.items() if value}
    data = custom.model_dump(exclude_unset=True)
    made = expand_all(data, environment, document, problems, loc)
    if http is not None and not is_trusted(os.environ):
        lead = _OWN_ADDRESS.match(http.url)
        rest = http.url[lead.end() :] if lead else http.url
        sent = [rest, http.headers, http.request_body, custom.kwargs]
        is_own = lead is not None and lead[1] in environment
        expanded = expand_all(sent, environment, document, [], loc)
        if not is_own and ("${api_key}" in str(sent) or sent != expanded):
            what = "variables of yours would be sent to an address that the suite names"
            problems.append(document.problem((*loc, "http"), what, ALLOW))
    if not _NAME.fullmatch(own.name):
        what, fix = f"`{own.name}` is no name for an engine", "letters, digits, `-`, `_`, `.`"
        problems.append(document.problem(("engine", "name"), what, fix))
    if problems:
        raise InvalidFilesError(problems)
    provider = custom.provider or own.model.provider
    key = f"{re.sub(r'[^A-Za-z0-9]', '_', provider or 'model').upper()}_API_KEY"
    try:
        return Profile(
            name=own.name,
            engine=DESCRIBED,
            model=own.model.name if own.model.name != "auto" else None,
            api_key_env=key if "${api_key}" in str(data) else None,
            timeout_seconds=custom.timeout_seconds or _SECONDS,
            custom=CustomEngine.model_validate({**made, "provider": provider}),
        )
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        problem = document.problem(loc, why, "see what its variables hold")
        raise InvalidFilesError([problem]) from None


def require_scripts(plan: Plan) -> None:
    """Raises InvalidFilesError naming each case that the scripted engine has no script for."""
    played = [job.loaded for job in plan.jobs if job.profile.engine == "scripted"]
    # Where a transcript is judged no agent is asked.
    missing = [c for c in played if c.like.scripted is None and c.like.input.transcript is None]
    what = "the scripted engine has no script for this case"
    fix = "add `scripted:`, or choose a real agent: --engine claude_code"
    paths = dict.fromkeys(loaded.path for loaded in missing)
    if paths:
        raise InvalidFilesError([Problem(p, 1, 1, "scripted", what, fix) for p in paths])


# Secrets.


def secrets_of_plan(plan: Plan, base: Path, environment: Mapping[str, str]) -> Secrets:
    """What nothing of a run may show. Raises UsageError for a key that cannot be masked."""
    loaded = {job.suite.path: job.suite for job in plan.jobs}.values()
    suites = [suite.suite for suite in loaded]
    cases = list({id(job.loaded.like): job.loaded.like for job in plan.jobs}.values())
    profiles = list({job.profile.name: job.profile for job in plan.jobs}.values())
    for suite in loaded:
        user = suite.suite.user_simulator
        with suppress(SkillupError):  # the cases that need it say what is wrong
            if user is not None and user.engine is not None:
                profiles.append(profile_for(base, environment, user.engine, suite.root))
    names = keys_of([*profiles, *models_of(suites, cases)])
    secrets = collect_secrets(environment, profiles, suites, cases)
    secrets = secrets.sparing(names_of_run(plan, base))
    for name in secrets.spared:
        if name in names:
            what = f"{name}, which `api_key_env` names, holds an ordinary word"
            hint = "a record is made of such words; set the variable to a key"
            raise UsageError(f"{what}; it cannot be masked", hint=hint)
    return secrets


def models_of(
    suites: Iterable[Suite], cases: Iterable[Case]
) -> list[JudgeModel | JudgeConfig | UserSimulator]:
    """Who judges the cases, and who plays users in the suites."""
    users = [suite.user_simulator for suite in suites]
    judges = [
        one for case in cases for one in (case.judge_model, *judge_models(case), *case.all_judges())
    ]
    return [one for one in (*judges, *users) if one is not None]


def keys_of(models: Iterable[Profile | JudgeModel | JudgeConfig | UserSimulator]) -> set[str]:
    """The variables that hold the keys of agents, judges and simulated users."""
    return {one.api_key_env for one in models if one.api_key_env is not None}


def collect_secrets(
    environment: Mapping[str, str],
    profiles: Sequence[Profile],
    suites: Sequence[Suite],
    cases: Sequence[Case],
    names: Iterable[str] = (),
) -> Secrets:
    """The credentials in `environment` and in the files; those in the variables `names`, too."""
    from skillup.engines.registry import tokens_of

    models = models_of(suites, cases)
    keys = {*names, *keys_of(profiles)}
    secrets = NO_SECRETS.also_of(environment, keys)
    for profile in profiles:
        secrets = secrets.also_of(profile.env, keys)
        if (custom := profile.custom) is not None:
            headers = custom.http.headers if custom.http else {}
            bare = {name: text.rpartition(" ")[2] for name, text in headers.items()}
            for given in (custom.env, headers, bare):
                secrets = secrets.also_of(given)
        for name, text in texts_in([about.env, about.files] if (about := profile.agent) else []):
            if not {"{", "$"} & set(text):  # else it has a placeholder
                secrets = secrets.also_of({name: text}, keys)
        secrets = secrets.also(tokens_of(profile, environment))
    for suite in suites:
        # Those that take their value from elsewhere (`${NAME}`) have it from the environment.
        secrets = secrets.also_of(suite.environment.env, keys)
    secrets = secrets.also_of(environment, keys | keys_of(models))
    # Addresses of models as files write them: some hold a password.
    urls = sorted({one.base_url for one in (*models, *profiles) if one.base_url})
    return secrets.also_of({f"base_url.{n}": url for n, url in enumerate(urls, start=1)})


def names_of_run(plan: Plan, base: Path) -> set[str]:
    """By which the run's files name its trials and find its suites again."""
    paths = {str(job.suite.path.absolute()) for job in plan.jobs}
    return {str(base.absolute()), *paths, *(job.id for job in plan.jobs)}


def what_ran(plan: Plan, skills: Iterable[str]) -> str:
    """In a line for people: suites, skills, engines with their models, and who judges."""
    cases = {id(job.loaded.like): job.loaded.like for job in plan.jobs}.values()
    judges = [str(model.model) for case in cases for model in judge_models(case)]
    judges += [j.engine or j.type for c in cases for j in c.all_judges() if j.type == "agent_judge"]
    model = "no model" if judges else "no model is asked"
    suites, engines = [job.suite.name for job in plan.jobs], []
    for name, own in {job.profile.name: job.profile for job in plan.jobs}.items():
        asked = model if own.engine == DEFAULT_ENGINE else own.model or "its default model"
        engines.append(f"{name} ({asked})")
    boxes = [
        asked if asked != "none" else _OPEN
        for job in plan.jobs
        if (asked := job.suite.suite.environment.asked(os.environ)) != "none"
        or job.profile.engine != DEFAULT_ENGINE
    ]
    parts = []
    for word, names in zip(_RAN, (suites, skills, engines, boxes, judges), strict=True):
        once = list(dict.fromkeys(names))
        parts += [f"{word}{'s' * (len(once) > 1)} {listed(once[:6], len(once))}"] * bool(once)
    return " · ".join(parts)


def warn_of_spared(secrets: Secrets, warn: Callable[[str], None]) -> None:
    """A line for each variable whose value will not be masked."""
    for name in secrets.spared:
        warn(f"{name} holds an ordinary word; it cannot be masked")
