"""A conversation that took place: what may stand beside it."""

from __future__ import annotations

from pathlib import Path

from skillup.load.suites import load_paths
from tests.support.trees import make_tree

TRANSCRIPT = "transcript: [{role: user, content: a}, {role: assistant, content: b}]"


def test_a_history_beside_a_transcript_is_refused(tmp_path: Path) -> None:
    given = f"input: {{history: [{{role: user, content: x}}], {TRANSCRIPT}}}\n"
    make_tree(tmp_path, {"eval.yaml": "name: d\n", "c.yaml": f"{given}assertions: [contains: b]\n"})

    (error,) = load_paths([tmp_path]).errors

    assert error.message == "`history` beside `transcript`"
