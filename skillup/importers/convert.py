"""`skillup import`: from files of other tools to suites on disk, with a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from skillup.errors import InvalidFilesError, UsageError
from skillup.importers import anthropic, langfuse, vibecheck
from skillup.importers.detect import Format, detect
from skillup.importers.promptfoo import suite
from skillup.importers.source import Note, SourceFile, open_sources
from skillup.importers.write import SuiteDraft, lay_out, slug, unique_name, write_files
from skillup.load.suites import load_paths
from skillup.load.trust import ALLOW

_FORMATS: dict[Format, tuple[Callable[[list[SourceFile]], SuiteDraft], dict[str, str]]] = {
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
    notes: list[Note]


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


def convert_file(path: Path, format_: Format | None) -> tuple[Format, SuiteDraft, list[Note]]:
    """The file as a suite, not yet written, and the notes on it."""
    sources = open_sources(path)
    found = format_ or detect(sources)
    convert, explanations = _FORMATS[found]
    for source in sources[1:]:
        source.related = sources[0].related
    try:
        draft = convert(sources)
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
    """What was written is loaded: a suite of ours that does not load would be our defect.

    Where it reads outside of its project, as the skill that is beside the source, is noted.
    """
    instead = "run it with --trust, or import it into that project"
    for item in imported:
        errors = load_paths([item.directory / "eval.yaml"]).errors
        if wrong := [problem for problem in errors if problem.fix != ALLOW]:
            raise InvalidFilesError(wrong)
        for at in errors:
            place = (at.file, at.line, at.column, at.field)
            item.notes.append(Note(*place, at.message, instead, "changed"))
