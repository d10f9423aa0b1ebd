"""How many files a reader of the code opens to follow one check, one small case, one turn."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import anyio

import skillup
from skillup.engines.scripted.engine import ScriptedEngine
from skillup.judges import grade_record
from skillup.load.suites import load_paths
from skillup.schema.case import Case
from skillup.trial.conversation import LiveConversation
from skillup.trial.setup import OpenTrial, new_record, open_trial
from tests.support.plans import jobs_of, request_of
from tests.support.records import make_record
from tests.support.trees import make_tree

PACKAGE = str(Path(skillup.__file__).parent)
TWO_TURNS = """
input:
  turns:
    - one
    - content: two
      post_condition: {must_contain_any: [fine]}
      assertions: [{contains: fine}]
scripted: [{say: fine}]
"""


@contextmanager
def entered(files: set[str]) -> Iterator[None]:
    """Notes the files of the package whose functions are called, in threads begun inside, too."""

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            files.add(name.removeprefix(PACKAGE))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def test_grading_one_deterministic_check_enters_few_files() -> None:
    case = Case.model_validate(
        {"id": "case", "input": {"prompt": "x"}, "assertions": [{"contains": "yes"}]}
    )
    recorded = make_record("yes", case=case.model_dump(mode="json", exclude_unset=True))
    files: set[str] = set()
    with entered(files):
        assert grade_record(recorded.record, recorded.read_file, case=case).status == "PASS"
    assert 0 < len(files) <= 15, sorted(files)


def test_loading_a_case_of_four_lines_enters_few_files(tmp_path: Path) -> None:
    case = "id: a\ninput: {prompt: hi}\nassertions:\n  - contains: x\n"
    make_tree(tmp_path, {"eval.yaml": "name: d\n", "a.yaml": case})
    files: set[str] = set()
    with entered(files):
        assert load_paths([tmp_path]).problems == ()
    assert 0 < len(files) <= 15, sorted(files)


def test_a_resumed_turn_and_its_checks_enter_few_files(tmp_path: Path) -> None:
    files: set[str] = set()

    async def main() -> None:
        (job,) = jobs_of(tmp_path, TWO_TURNS)
        request = request_of(tmp_path, job, ScriptedEngine(), "trial")
        request = replace(request, notify=lambda _: None)
        opened = await open_trial(request, new_record(request))
        assert isinstance(opened, OpenTrial)
        conversation = LiveConversation(opened)
        await conversation.run_next(opened.turns[0], of=2)
        files.clear()
        await conversation.run_next(opened.turns[1], of=2)
        assert [turn.status for turn in conversation.turns] == ["completed", "completed"]
        assert conversation.turns[1].session_verified

    with entered(files):
        anyio.run(main)
    assert 0 < len(files) <= 25, sorted(files)
