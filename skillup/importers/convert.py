"""`skillup import`: from files of other tools to suites on disk, and what there is to say of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.importers import anthropic, langfuse, vibecheck
from skillup.importers.detect import Format, detect
from skillup.importers.draft import SuiteDraft, slug, unlike
from skillup.importers.notes import Note
from skillup.importers.promptfoo import settings, suite
from skillup.importers.source import SourceFile, open_sources
from skillup.importers.write import Output, lay_out, write
from skillup.load.suites import load_paths
from skillup.load.trust import ALLOW

_EXPLANATIONS = {
    "agentv": settings.EXPLANATIONS,
    "promptfoo": settings.EXPLANATIONS,
    "vibecheck": vibecheck.EXPLANATIONS,
    "anthropic": anthropic.EXPLANATIONS,
    "langfuse": langfuse.EXPLANATIONS,
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
    would be overwritten, InvalidFilesError with every place that is wrong.
    """
    converted: list[tuple[Path, Format, SuiteDraft, list[Note]]] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            converted.append((path, *_convert(path, format_)))
        except InvalidFilesError as error:
            problems.extend(error.problems)
    if problems:
        raise InvalidFilesError(problems)
    names: set[str] = set()
    imported = []
    for path, found, draft, notes in converted:
        directory = out / unlike(slug(draft.name, "suite"), names) if len(paths) > 1 else out
        output = lay_out(draft, directory)
        imported.append(Imported(path, found, draft, tuple(notes), output))
    trusting: list[Problem] = []
    write(
        [i.output for i in imported], force=force, check=lambda: trusting.extend(_check(imported))
    )
    return [replace(item, notes=(*item.notes, *_to_trust(item, trusting))) for item in imported]


def _convert(path: Path, format_: Format | None) -> tuple[Format, SuiteDraft, list[Note]]:
    sources = open_sources(path)
    found = format_ or detect(sources)
    draft = _drafted(found, sources)
    if not draft.cases:
        raise UsageError(f"{path}: there is no case in it", hint="it lists nothing to import")
    draft.settle_ids()
    everything = [*sources, *(s for listed in sources[0].related.values() for s in listed)]
    return found, draft, _notes(everything, _EXPLANATIONS[found])


def _drafted(format_: Format, sources: list[SourceFile]) -> SuiteDraft:
    if format_ == "langfuse":
        return langfuse.convert(sources)
    if format_ in ("agentv", "promptfoo"):
        for source in sources[1:]:
            source.related = sources[0].related
        return suite.convert(sources, promptfoo=format_ == "promptfoo")
    if len(sources) > 1:
        raise UsageError(f"{sources[0].path}: {format_} has no files of JSON lines")
    if format_ == "vibecheck":
        return vibecheck.convert(sources[0])
    return anthropic.convert(sources[0])


def _notes(sources: Iterable[SourceFile], explanations: dict[str, str]) -> list[Note]:
    return [note for source in sources for note in source.notes(explanations)]


def _check(imported: Sequence[Imported]) -> list[Problem]:
    """What was written is read back: a suite of ours that does not load would be our defect.

    Returns where it reads outside of its project, as the skill that is beside the source.
    """
    loaded = load_paths([item.output.directory / "eval.yaml" for item in imported])
    wrong = [problem for problem in loaded.errors if problem.fix != ALLOW]
    if wrong:
        raise InvalidFilesError(wrong)
    return [problem for problem in loaded.errors if problem.fix == ALLOW]


def _to_trust(item: Imported, problems: Iterable[Problem]) -> Iterator[Note]:
    directory = item.output.directory.resolve()
    for at in problems:
        if at.file.resolve().is_relative_to(directory):
            what, instead = at.message, "run it with --trust, or import it into that project"
            yield Note(at.file, at.line, at.column, at.field, what, instead, "changed")
