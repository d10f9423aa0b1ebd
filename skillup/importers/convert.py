"""`skillup import`: from files of other tools to suites on disk, with a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.importers import anthropic, langfuse, vibecheck
from skillup.importers.detect import Format, detect
from skillup.importers.promptfoo import settings, suite
from skillup.importers.source import Note, SourceFile, open_sources
from skillup.importers.write import Output, SuiteDraft, lay_out, slug, unique_name, write_files
from skillup.load.suites import load_paths
from skillup.load.trust import ALLOW

_FORMATS: dict[Format, tuple[Callable[[list[SourceFile]], SuiteDraft], dict[str, str]]] = {
    "agentv": (partial(suite.convert, promptfoo=False), settings.EXPLANATIONS),
    "promptfoo": (partial(suite.convert, promptfoo=True), settings.EXPLANATIONS),
    "vibecheck": (vibecheck.convert, vibecheck.EXPLANATIONS),
    "anthropic": (anthropic.convert, {}),
    "langfuse": (langfuse.convert, langfuse.EXPLANATIONS),
}


@dataclass(frozen=True, slots=True)
class Imported:
    """One file that has become a suite."""

    source: Path
    format: Format
    draft: SuiteDraft
    notes: tuple[Note, ...]
    output: Output


def import_files(
    paths: Sequence[Path], out: Path, *, format_: Format | None = None, force: bool = False
) -> list[Imported]:
    """Convert `paths` and write the suites: one file into `out`, several into folders of it.

    Nothing is written if anything is wrong. Raises UsageError for a file that is no suite or that
    would be overwritten, InvalidFilesError with what is wrong in it.
    """
    names: set[str] = set()
    imported = []
    for path in paths:
        found, draft, notes = convert_file(path, format_)
        folder = unique_name(slug(draft.name, "suite"), names)
        if folder != slug(draft.name, "suite"):
            draft.name = folder
        directory = out / folder if len(paths) > 1 else out
        imported.append(Imported(path, found, draft, tuple(notes), lay_out(draft, directory)))
    files = {path: content for item in imported for path, content in item.output.files.items()}
    untrusted: list[Problem] = []
    write_files(files, force=force, check=lambda: untrusted.extend(_read_back(imported)))
    return [replace(item, notes=(*item.notes, *_to_trust(item, untrusted))) for item in imported]


def convert_file(path: Path, format_: Format | None) -> tuple[Format, SuiteDraft, list[Note]]:
    """The file as a suite, not yet written, and the notes on it."""
    sources = open_sources(path)
    found = format_ or detect(sources)
    convert, explanations = _FORMATS[found]
    for source in sources[1:]:
        source.related = sources[0].related
    draft = convert(sources)
    if not draft.cases:
        raise UsageError(f"{path}: there is no case in it", hint="it lists nothing to import")
    taken: set[str] = set()
    for case in draft.cases:
        wanted = case.id
        case.id = unique_name(wanted, taken)
        if case.id != wanted:
            case.node.changed(f"a second case with the id `{wanted}`", f"now `{case.id}`")
    related = [source for listed in sources[0].related.values() for source in listed]
    notes = [note for source in [*sources, *related] for note in source.notes(explanations)]
    return found, draft, notes


def _read_back(imported: Sequence[Imported]) -> list[Problem]:
    """What was written is loaded: a suite of ours that does not load would be our defect.

    Returns where it reads outside of its project, as the skill that is beside the source.
    """
    loaded = load_paths([item.output.directory / "eval.yaml" for item in imported])
    wrong = [problem for problem in loaded.errors if problem.fix != ALLOW]
    if wrong:
        raise InvalidFilesError(wrong)
    return list(loaded.errors)


def _to_trust(item: Imported, problems: Sequence[Problem]) -> Iterator[Note]:
    directory = item.output.directory.resolve()
    for at in problems:
        if at.file.resolve().is_relative_to(directory):
            instead = "run it with --trust, or import it into that project"
            yield Note(at.file, at.line, at.column, at.field, at.message, instead, "changed")
