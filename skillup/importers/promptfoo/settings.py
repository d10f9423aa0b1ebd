"""What a promptfoo or AgentV suite says about all of its tests."""

from __future__ import annotations

import re
import shlex

from skillup.errors import InvalidFilesError
from skillup.importers import files
from skillup.importers.files import Placed
from skillup.importers.values import SourceValue, as_text
from skillup.importers.write import SuiteDraft, slug

_CHOOSE = "choose the agent with --engine, the model with --model"
_JUDGE = "left out: the model that judges is chosen in the suite's `judge`"
_RUN = "left out: the workspace is prepared by `context` and `environment`"
_PAPERS = "left out: keep it in the description, if it matters"
_CODE = "left out: answers are judged as they are, no program changes them before"
_SCORE = "left out: the score is the weighted mean"
_YES_OR_NO = "left out: a judge says yes or no here"
_TOKENS = "left out: only output tokens have a limit here (`max_tokens`)"

EXPLANATIONS = {
    **dict.fromkeys(("providers", "target", "targets", "execution"), _CHOOSE),
    **dict.fromkeys(("provider", "model", "temperature", "max_steps", "rubricPrompt",
                     "rubric_prompt", "defaults"), _JUDGE),
    **dict.fromkeys(("extensions", "hooks", "cwd", "after_each", "after_all", "repos",
                     "workspace", "image"), _RUN),
    **dict.fromkeys(("version", "author", "license", "requires", "category", "metadata",
                     "suite"), _PAPERS),
    **dict.fromkeys(("transform", "transformVars", "preprocessors", "postprocess",
                     "contextTransform"), _CODE),
    **dict.fromkeys(("assertScoringFunction", "assert_scoring_function", "aggregator"), _SCORE),
    **dict.fromkeys(("score_ranges", "required_min_score", "operator"), _YES_OR_NO),
    **dict.fromkeys(("max_tokens", "max_total", "max_total_tokens", "max_input"), _TOKENS),
    **dict.fromkeys(("derivedMetrics", "derived_metrics"),
                    "left out: results hold each check's score"),
    **dict.fromkeys(("outputPath", "output_path"), "left out: choose with --out and --report"),
    **dict.fromkeys(("budget_usd", "budgetUsd"), "left out: give it with --max-cost-usd"),
    **dict.fromkeys(("max_duration_ms", "maxDurationMs"),
                    "left out: a single call's duration is not checked"),
    "max_llm_calls": "left out: the model's calls are not counted here",
    "cache": "left out: answers are never taken from a cache",
    "vars": "left out: no text uses it",
    "max_concurrency": "choose it with --parallel",
    "on_dependency_failure": "left out: a case is skipped if one it depends on did not pass",
    "$schema": "the schema of the new files is named in their first line",
    "description": "left out",
}  # fmt: skip

_ENV = re.compile(r"\{\{-?\s*env\.([A-Za-z_]\w*)\s*-?\}\}")


def read_settings(top: SourceValue, draft: SuiteDraft, *, promptfoo: bool) -> list[str]:
    """Names, limits and numbers of the suite, put into `draft`; the tags for every case."""
    draft.description = top.get("description").text()
    if promptfoo and draft.description:
        draft.name = slug(draft.description, draft.name)
    else:
        draft.name = top.get("name", "suite").text() or draft.name
    places = (
        top,
        top.get("evaluate_options", "evaluateOptions"),
        top.get("execution", "experiment"),
    )

    def number(*names: str) -> float | int | None:
        found = (place.get(*names) for place in places)
        return next((value.number() for value in found if value), None)

    threshold = number("threshold")
    if threshold is not None or not promptfoo:
        draft.defaults["pass_threshold"] = 0.8 if threshold is None else threshold
    if (trials := number("repeat", "runs", "trials")) is not None and trials >= 1:
        draft.defaults["trials"] = int(trials)
    seconds = number("timeout_seconds") or (number("timeout_ms", "timeoutMs") or 0) / 1000
    if seconds:
        draft.defaults["timeout_seconds"] = seconds
    if (workers := number("max_concurrency", "maxConcurrency", "workers")) and workers >= 1:
        draft.parallelism = int(workers)
    _read_variables(top.get("env"), draft)
    return read_tags(top.get("tags"))


def read_tags(node: SourceValue) -> list[str]:
    """Tags, from a list or from a mapping of labels."""
    if isinstance(node.value, dict):
        return [f"{key}:{item.text()}" for key, item in node.items()]
    return [text for text in node.texts() if text]


def _read_variables(node: SourceValue, draft: SuiteDraft) -> None:
    """Variables for the agent; ``{{ env.X }}`` is ``${X}`` here."""
    for key, item in node.items():
        values = draft.environment.setdefault("env", {})
        values[key] = _ENV.sub(lambda match: f"${{{match[1]}:-}}", as_text(item.value))
        item.use()


def referenced(node: SourceValue) -> SourceValue:
    """What a file that is named in place of a value holds; the value itself if it is no text."""
    if not isinstance(node.value, str):
        return node
    found = files.find(node.text(), node)
    try:
        if found is not None:
            return SourceValue.top(node.source.open_related(found)[0])
    except InvalidFilesError as error:
        node.lost(f"`{node.value}`: {error.problems[0].message}", "not read")
    return node.get("nothing")


def read_environment(
    node: SourceValue, draft: SuiteDraft, placed: list[Placed], setup: list[str]
) -> None:
    """The workspace that `environment` of a suite or test describes."""
    node = referenced(node)
    if node.get("type").value == "host":
        node.get("type").use()
    if workdir := node.get("workdir"):
        files.place_directory(workdir.text(), workdir, placed)
    _read_variables(node.get("env"), draft)
    step = node.get("setup")
    if command := step.get("command", "script") if isinstance(step.value, dict) else step:
        value = command.take()
        words = map(as_text, value) if isinstance(value, list) else None
        setup.append(shlex.join(words) if words is not None else as_text(value))
        command.changed(
            "a command that prepares the workspace",
            "it runs in the trial's workspace: what it needs must be there",
        )
