"""What a promptfoo or AgentV suite says about all of its tests."""

from __future__ import annotations

import re
import shlex

from skillup.importers import files
from skillup.importers.files import Placed
from skillup.importers.values import SourceValue, as_text
from skillup.importers.write import SuiteDraft, slug

_CHOOSE = "choose the agent with --engine, the model with --model"
_JUDGE = "left out: the model that judges is chosen in the suite's `judge`"
_RUN = "left out: the workspace is prepared by `context` and `environment`"

EXPLANATIONS = {
    **dict.fromkeys(("providers", "target", "targets", "execution"), _CHOOSE),
    **dict.fromkeys(("provider", "model", "temperature"), _JUDGE),
    **dict.fromkeys(("extensions", "hooks", "cwd", "repos", "workspace", "image"), _RUN),
    "metadata": "left out: keep it in the description, if it matters",
    "scenarios": "left out: write a test for each of their configurations",
    "transform": "left out: answers are judged as they are, no program changes them before",
    "budget_usd": "left out: give it with --max-cost-usd",
    "vars": "left out: no text uses it",
}

_ENV = re.compile(r"\{\{-?\s*env\.([A-Za-z_]\w*)\s*-?\}\}")


def read_settings(top: SourceValue, draft: SuiteDraft, *, promptfoo: bool) -> list[str]:
    """Names, limits and numbers of the suite, put into `draft`; the tags for every case."""
    draft.description = top.get("description").text()
    if promptfoo and draft.description:
        draft.name = slug(draft.description, draft.name)
    else:
        draft.name = top.get("name").text() or draft.name
    places = (top, top.get("evaluate_options", "evaluateOptions"), top.get("execution"))

    def number(*names: str) -> float | int | None:
        found = (place.get(*names) for place in places)
        return next((value.number() for value in found if value), None)

    threshold = number("threshold")
    if threshold is not None or not promptfoo:
        draft.defaults["pass_threshold"] = 0.8 if threshold is None else threshold
    if (trials := number("repeat")) is not None and trials >= 1:
        draft.defaults["trials"] = int(trials)
    if seconds := number("timeout_seconds"):
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


def read_environment(
    node: SourceValue, draft: SuiteDraft, placed: list[Placed], setup: list[str]
) -> None:
    """The workspace that `environment` of a suite or test describes."""
    if node.get("type").value == "host":
        node.get("type").use()
    if workdir := node.get("workdir"):
        files.place(workdir.text(), workdir, placed, target="")
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
