"""What a promptfoo or AgentV suite says about all of its tests."""

from __future__ import annotations

import re
import shlex
from typing import Any

from skillup.errors import InvalidFilesError
from skillup.importers import references
from skillup.importers.draft import CreatedSession, SuiteDraft, slug
from skillup.importers.promptfoo.values import SourceValue, as_text

AGENTV_PASSES_FROM = 0.8

_CHOOSE = "choose the agent with --engine, the model with --model"
_JUDGE = "left out: the model that judges is chosen in the suite's `judge`"
_RUN = "left out: the workspace is prepared by `context` and `environment`"
_PAPERS = "left out: keep it in the description, if it matters"
_CODE = "left out: answers are judged as they are, no program changes them before"

EXPLANATIONS = {
    "providers": _CHOOSE, "target": _CHOOSE, "targets": _CHOOSE, "provider": _JUDGE,
    "model": _JUDGE, "temperature": _JUDGE, "max_steps": _JUDGE, "rubricPrompt": _JUDGE,
    "rubric_prompt": _JUDGE, "defaults": _JUDGE, "extensions": _RUN, "hooks": _RUN,
    "version": _PAPERS, "author": _PAPERS, "license": _PAPERS, "requires": _PAPERS,
    "category": _PAPERS, "metadata": _PAPERS, "suite": _PAPERS,
    "transform": _CODE, "transformVars": _CODE, "preprocessors": _CODE, "postprocess": _CODE,
    "contextTransform": _CODE,
    "assertScoringFunction": "left out: the score is the weighted mean",
    "assert_scoring_function": "left out: the score is the weighted mean",
    "derivedMetrics": "left out: results hold each check's score",
    "derived_metrics": "left out: results hold each check's score",
    "outputPath": "left out: choose with --out and --report",
    "output_path": "left out: choose with --out and --report",
    "budget_usd": "left out: give it with --max-cost-usd",
    "budgetUsd": "left out: give it with --max-cost-usd",
    "cache": "left out: answers are never taken from a cache",
    "vars": "left out: no text uses it",
    "max_concurrency": "choose it with --parallel",
    "conversation_id": "left out: a label without effect",
    "on_dependency_failure": "left out: a case is skipped if one it depends on did not pass",
    "execution": _CHOOSE, "max_duration_ms": "left out: a single call's duration is not checked",
    "maxDurationMs": "left out: a single call's duration is not checked",
    "cwd": _RUN, "after_each": _RUN, "after_all": _RUN, "repos": _RUN, "workspace": _RUN,
    "$schema": "the schema of the new files is named in their first line",
    "description": "left out",
}  # fmt: skip

_ENV = re.compile(r"\{\{-?\s*env\.([A-Za-z_]\w*)\s*-?\}\}")


def read_settings(top: SourceValue, draft: SuiteDraft, *, promptfoo: bool) -> list[str]:
    """Names, limits and numbers of the suite, put into `draft`; the tags for every case."""
    if (name := top.get("name", "suite")) is not None:
        draft.name = name.text()
    if (described := top.get("description")) is not None:
        draft.description = described.text()
        if promptfoo:
            draft.name = slug(draft.description, draft.name)
    options = top.get("evaluate_options", "evaluateOptions")
    run = top.get("execution", "experiment")
    places = [node for node in (top, options, run) if node is not None]
    threshold = _first(places, "threshold")
    if threshold is not None:
        draft.defaults["pass_threshold"] = threshold
    elif not promptfoo:
        draft.defaults["pass_threshold"] = AGENTV_PASSES_FROM
    for node in places:
        if (repeat := node.get("repeat", "runs", "trials")) is not None:
            count = repeat.get("count") if isinstance(repeat.value, dict) else repeat
            number = count.number() if count is not None else None
            if number is not None and number >= 1:
                draft.defaults["trials"] = int(number)
    seconds = _first(places, "timeout_seconds")
    milliseconds = _first(places, "timeout_ms", "timeoutMs")
    if seconds or milliseconds:
        draft.defaults["timeout_seconds"] = seconds or (milliseconds or 0) / 1000
    workers = _first(places, "max_concurrency", "maxConcurrency", "workers")
    if workers is not None and workers >= 1:
        draft.parallelism = int(workers)
    if (env := top.get("env")) is not None:
        _environment_variables(env, draft)
    return read_tags(top.get("tags"))


def _first(places: list[SourceValue], *names: str) -> float | int | None:
    for node in places:
        found = node.get(*names)
        if found is not None:
            return found.number()
    return None


def read_tags(node: SourceValue | None) -> list[str]:
    """Tags, from a list or from a mapping of labels."""
    if node is None:
        return []
    if isinstance(node.value, dict):
        return [f"{key}:{item.text()}" for key, item in node.items()]
    return [text for text in node.texts() if text]


def _environment_variables(node: SourceValue, draft: SuiteDraft) -> None:
    """Variables for the agent; ``{{ env.X }}`` is ``${X}`` here."""
    values = draft.environment.setdefault("env", {})
    for key, item in node.items():
        values[key] = _ENV.sub(lambda match: f"${{{match[1]}:-}}", as_text(item.value))
        item.use()


def read_environment(
    top: SourceValue, draft: SuiteDraft, placed: list[CreatedSession], setup: list[str]
) -> None:
    """The workspace that `environment` (or the older `workspace`) of a suite or test describes."""
    node = top.get("environment")
    if node is not None and isinstance(node.value, str):
        node = _referenced(node)
    if node is not None and isinstance(node.value, dict):
        _environment(node, draft, placed, setup)
    older = top.get("workspace")
    if older is None:
        return
    if isinstance(older.value, str) and older.value.endswith((".yaml", ".yml")):
        found = _referenced(older)
        if found is None or not isinstance(found.value, dict):
            return
        older = found
    if isinstance(older.value, str):
        references.place_directory(older.text(), older, placed)
        return
    if (template := older.get("template", "path")) is not None:
        references.place_directory(template.text(), template, placed)
    hooks = older.get("hooks")
    for name in ("before_all", "before_each"):
        if hooks is not None and (hook := hooks.get(name)) is not None:
            _setup(hook, setup)


def _referenced(node: SourceValue) -> SourceValue | None:
    found = references.find(node.text(), node)
    if found is None:
        return None
    try:
        return SourceValue.top(node.source.open_related(found)[0])
    except InvalidFilesError as error:
        node.lost(f"`{node.value}`: {error.problems[0].message}", "not read")
        return None


def _environment(
    node: SourceValue, draft: SuiteDraft, placed: list[CreatedSession], setup: list[str]
) -> None:
    kind = node.get("type")
    if kind is not None and kind.text() == "docker":
        kind.changed("a Docker environment", "trials run on this machine until it is supported")
        draft.environment["type"] = "docker"
        if (image := node.get("image")) is not None:
            draft.environment["image"] = image.text()
    if (workdir := node.get("workdir")) is not None:
        references.place_directory(workdir.text(), workdir, placed)
    if (env := node.get("env")) is not None:
        _environment_variables(env, draft)
    if (step := node.get("setup")) is not None:
        _setup(step, setup)


def _setup(node: SourceValue, setup: list[str]) -> None:
    command = node.get("command", "script") if isinstance(node.value, dict) else node
    if command is None:
        return
    value: Any = command.take()
    words = [as_text(word) for word in value] if isinstance(value, list) else None
    setup.append(shlex.join(words) if words is not None else as_text(value))
    command.changed(
        "a command that prepares the workspace",
        "it runs in the trial's workspace: what it needs must be there",
    )
