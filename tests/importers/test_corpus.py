"""Real files of other tools, kept beside the repository: each converts, or is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from skillup.errors import InvalidFilesError, UsageError
from skillup.importers.convert import import_files
from skillup.load.discover import ALLOW
from skillup.load.suites import load_paths
from skillup.load.yaml_reader import read_yaml
from skillup.schema import json_schema

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "compat"
FOLDERS = {
    "agentv": "*",
    "vibecheck": "*",
    "anthropic": "*",
    "agentskills": "*",
    "skill-up": "*evals.json",
}

WRONG_ON_PURPOSE = {
    "vibecheck/tests/fixtures/malformed.yaml": "1:14",
    "vibecheck/tests/fixtures/invalid-schema.yaml": "`threshold`",
    "anthropic/schemas.md": "`.md` files are not read",
}
NO_SUITES = (
    "analysis.json", "benchmark.json", "comparison.json", "feedback.json", "grading.json",
    "grading-full.json", "history.json", "metrics.json", "timing.json", "providers.yaml",
    "baseline.jsonl", "suite.grader-scores.yaml", "transcript.jsonl", ".results.jsonl",
    "replay-target-output.jsonl", "static-trace.json", "support-chat.json",
    "translation-matrix.yaml", "scenarios/evals/suite.yaml", "000000000001.jsonl",
)  # fmt: skip
WITHOUT_CASES = ("directory-discovery/EVAL.yaml",)
"""Suites whose tests lie in folders."""


def corpus() -> list[Path]:
    return [
        path
        for folder, pattern in FOLDERS.items()
        for path in sorted((CORPUS / folder).rglob(pattern))
        if path.is_file()
    ]


@pytest.fixture(scope="module")
def schemas() -> dict[str, Draft202012Validator]:
    """The JSON Schemas, made once."""
    return {name: Draft202012Validator(json_schema(name)) for name in ("suite", "case")}


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus is not here: {CORPUS}")
def test_the_corpus_is_looked_at_as_a_whole() -> None:
    assert len(corpus()) > 90


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus is not here: {CORPUS}")
@pytest.mark.parametrize("path", corpus(), ids=lambda path: path.relative_to(CORPUS).as_posix())
def test_every_file_converts_or_is_refused_by_name(
    path: Path, tmp_path: Path, schemas: dict[str, Draft202012Validator]
) -> None:
    name = path.relative_to(CORPUS).as_posix()
    if name in WRONG_ON_PURPOSE:
        with pytest.raises(InvalidFilesError) as broken:
            import_files([path], tmp_path / "out")
        assert WRONG_ON_PURPOSE[name] in "\n".join(map(str, broken.value.problems))
        return
    if name.endswith((*NO_SUITES, *WITHOUT_CASES)):
        what = "there is no case" if name.endswith(WITHOUT_CASES) else "not a suite"
        with pytest.raises(UsageError, match=what):
            import_files([path], tmp_path / "out")
        return
    (imported,) = import_files([path], tmp_path / "out")
    loaded = load_paths([tmp_path / "out"])
    # The skill lies beside the source, outside of the new suite's project.
    assert [
        at.field for at in loaded.errors if at.fix != ALLOW or at.field != "skills[0].path"
    ] == []
    assert sum(len(suite.cases) for suite in loaded.suites) == len(imported.draft.cases)
    schemas["suite"].validate(read_yaml(tmp_path / "out" / "eval.yaml").data)
    for case in imported.draft.cases:
        schemas["case"].validate(read_yaml(tmp_path / "out" / case.file).data)
    for note in imported.notes:
        assert note.line >= 1
        assert note.column >= 1
        assert note.message
