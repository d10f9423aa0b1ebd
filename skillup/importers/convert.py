"""`skillup import`: from files of other tools to suites on disk, with a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.importers import anthropic, langfuse, vibecheck
from skillup.importers.promptfoo import suite
from skillup.importers.source import SourceFile, SourceValue, open_sources
from skillup.importers.write import SuiteDraft, lay_out, slug, unique_name, write_files
from skillup.load.discover import ALLOW
from skillup.load.suites import load_paths

Format = Literal["agentv", "vibecheck", "promptfoo", "anthropic", "langfuse"]
_FORMATS: dict[Format, tuple[Callable[[list[SourceValue]], SuiteDraft], dict[str, str]]] = {
    "agentv": (partial(suite.convert, promptfoo=False), suite.EXPLANATIONS),
    "promptfoo": (partial(suite.convert, promptfoo=True), suite.EXPLANATIONS),
    "vibecheck": (vibecheck.convert, vibecheck.EXPLANATIONS),
    "anthropic": (anthropic.convert, {}),
    "langfuse": (langfuse.convert, {}),
}


@dataclass(slots=True)
class Imported:
    """One file that has become a suite in `directory`."""

    source: Path
    format: Format
    draft: SuiteDraft
    directory: Path
    notes: list[Problem]
    """Each of the severity `lost` or `changed`."""


def import_files(
    paths: Sequence[Path], out: Path, *, format_: Format | None = None, force: bool = False
) -> list[Imported]:
    """Convert `paths` and write the suites: one file into `out`, several into folders of it.

    Nothing is written if anything is wrong. Raises UsageError for a file that is no suite or that
    would be overwritten, InvalidFilesError with what is wrong in it.
    """
    names: set[str] = set()
    imported: list[Imported] = []
    files: dict[Path, str | Path] = {}
    for path in paths:
        found, draft, notes = convert_file(path, format_)
        folder = unique_name(slug(draft.name, "suite"), names)
        if folder != slug(draft.name, "suite"):
            draft.name = folder
        directory = out / folder if len(paths) > 1 else out
        imported.append(Imported(path, found, draft, directory, notes))
        files |= lay_out(draft, directory)
    write_files(files, force=force, check=lambda: _read_back(imported))
    return imported


def convert_file(path: Path, format_: Format | None) -> tuple[Format, SuiteDraft, list[Problem]]:
    """The file as a suite, not yet written, and the notes on it."""
    sources = open_sources(path)
    found = format_ or detect(sources)
    convert, explanations = _FORMATS[found]
    if found in ("vibecheck", "anthropic") and len(sources) > 1:
        raise UsageError(f"{path}: {found}'s suites are not JSON lines")
    for source in sources[1:]:
        source.related = sources[0].related
    try:
        draft = convert([SourceValue.top(source) for source in sources])
    except RecursionError:
        raise UsageError(f"{path}: the files that it names lead back to it") from None
    if not draft.cases:
        raise UsageError(f"{path}: there is no case in it", hint="it lists nothing to import")
    taken: set[str] = set()
    for case in draft.cases:
        given = case.id
        case.id = unique_name(given, taken)
        if case.id != given:
            case.node.changed(f"a second case with the id `{given}`", f"now `{case.id}`")
    related = [source for listed in sources[0].related.values() for source in listed]
    notes = [note for source in [*sources, *related] for note in source.notes(explanations)]
    return found, draft, notes


def _read_back(imported: Sequence[Imported]) -> None:
    """A suite that does not load would be our defect; what it reads outside of its project, as the
    skill beside the source, is noted.
    """
    fix = "run it with --trust, or import it into that project"
    for item in imported:
        errors = load_paths([item.directory / "eval.yaml"]).errors
        if wrong := [problem for problem in errors if problem.fix != ALLOW]:
            raise InvalidFilesError(wrong)
        item.notes += [replace(problem, fix=fix, severity="changed") for problem in errors]


# Which tool a file comes from, by what is in it.

_LOOKED_FOR = (
    "looked for `tests` (promptfoo, AgentV), `evals` with `prompt` and `checks` (vibecheck) or "
    "with `prompt` alone (Anthropic), a list of `query` and `should_trigger` (Anthropic), items "
    "with `input` and `expected_output` (Langfuse); --from says which tool it is"
)
_CASE_KEYS = {
    "assertions", "criteria", "expected_outcome", "outcome", "turns", "rubrics", "input_files",
}  # fmt: skip
# AgentV's suites have become a superset of promptfoo's: these are signs of the one or the other.
_PROMPTFOO_KEYS = {
    "defaultTest", "evaluateOptions", "assertionTemplates", "outputPath", "derivedMetrics",
    "nunjucksFilters", "commandLineOptions", "redteam", "sharing", "writeLatestResults",
}  # fmt: skip
_AGENTV_KEYS = _CASE_KEYS | {
    "default_test", "evaluate_options", "environment", "execution", "workspace", "input", "target",
    "targets", "name", "id", "mode", "conversation_id", "depends_on", "expected_output",
}  # fmt: skip
_LANGFUSE_KEYS = {"expectedOutput", "datasetId", "datasetName", "dataset_id", "dataset_name"}
_RESULT_KEYS = {
    "score", "trace", "assertion_results", "summary", "range", "message_index", "fixture_id",
    "question_id", "config", "role",
}  # fmt: skip
"""Of results, recordings and parts of suites, whose other keys are a case's."""


def detect(sources: list[SourceFile]) -> Format:
    """The tool that `sources` (one file) come from. Raises UsageError if it is no suite."""
    path, data = sources[0].path, sources[0].data
    listed = data.get("items", data.get("data")) if isinstance(data, dict) else data
    item = listed[0] if isinstance(listed, list) and listed else data
    found = _suite(data) if isinstance(data, dict) else None
    if found is None and isinstance(item, dict):
        found = _item(item, path.name)
    if found is None:
        keys = ", ".join(sorted(map(str, item))[:8]) if isinstance(item, dict) else ""
        what = "not a suite that is known here" + (f" (its keys: {keys})" if keys else "")
        raise UsageError(f"{path}: {what}", hint=_LOOKED_FOR)
    return found


def _suite(data: dict[Any, Any]) -> Format | None:
    evals = data.get("evals")
    if isinstance(evals, list):
        checked = any(isinstance(entry, dict) and "checks" in entry for entry in evals)
        return "vibecheck" if checked or "metadata" in data else "anthropic"
    if "tests" not in data or "config" in data:
        return None
    tests = data["tests"] if isinstance(data["tests"], list) else []
    listed = [test for test in tests if isinstance(test, dict)]
    keys = {str(key) for test in listed for key in test}
    if _PROMPTFOO_KEYS & set(data) or "options" in keys:
        return "promptfoo"
    asserted = [test["assert"] for test in listed if isinstance(test.get("assert"), list)]
    texts = any(isinstance(item, str) for one in asserted for item in one)
    variables = [test["vars"] for test in listed if isinstance(test.get("vars"), dict)]
    expected = any("expected_output" in one for one in variables)
    is_agentv = _AGENTV_KEYS & (set(data) | keys) or texts or expected
    return "agentv" if is_agentv else "promptfoo"


def _item(item: dict[Any, Any], name: str) -> Format | None:
    keys = set(item)
    if keys & _RESULT_KEYS:
        return None
    if {"query", "should_trigger"} <= keys or "queries" in keys:
        return "anthropic"
    if "prompt" in keys and keys & {"expectations", "assertions", "expected_output", "eval_id"}:
        return "anthropic"
    given, metadata = item.get("input"), item.get("metadata")
    if keys & _LANGFUSE_KEYS or (isinstance(metadata, dict) and "history" in metadata):
        return "langfuse"
    if keys & (_CASE_KEYS | {"assert", "vars"}):
        return "agentv"
    if "expected_output" in keys and given and (isinstance(given, dict) or "id" not in keys):
        return "langfuse"
    is_case = "expected_output" in keys or name.startswith("case")
    return "agentv" if "input" in keys and is_case else None
