"""What judging needs of the suite is kept with the record."""

from __future__ import annotations

from pathlib import Path

from skillup.schema.case import Case
from skillup.trial.artifacts import keep_references
from skillup.workspace.blobs import BlobStore


def test_golden_files_scripts_and_attachments_are_kept_with_their_modes(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    for name in ("golden.txt", "turn.sh", "deep.sh", "judge.py", "rules.md", "other.txt"):
        (suite / name).write_text(name)
    (suite / "turn.sh").chmod(0o755)
    case = Case.model_validate(
        {
            "input": {"turns": [{"content": "go", "assertions": [{"script": "turn.sh"}]}]},
            "assertions": [
                {"golden_file": {"path": "golden.txt", "file": "a"}},
                {"any_of": [{"script": {"path": "deep.sh"}}]},
                {"script": "missing.sh"},
            ],
            "judges": [
                {"type": "script", "script_path": "judge.py"},
                {
                    "type": "agent_judge",
                    "criteria": "it is good",
                    "context": {"attachments": [{"path": "rules.md"}]},
                },
            ],
        }
    )
    blobs = BlobStore(tmp_path / "blobs")

    kept = keep_references(case, suite, blobs)

    assert {path: blobs.read_state(state) for path, state in kept.items()} == {
        "golden.txt": b"golden.txt",
        "judge.py": b"judge.py",
        "deep.sh": b"deep.sh",
        "turn.sh": b"turn.sh",
        "rules.md": b"rules.md",
    }
    assert [path for path, state in kept.items() if state.executable] == ["turn.sh"]
