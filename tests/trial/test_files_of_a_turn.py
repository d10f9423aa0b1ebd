"""A resumed turn, checks included, is read in few files: whoever follows one opens no more."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

import skillup
from skillup.engines.scripted.engine import ScriptedEngine
from skillup.trial.conversation import LiveConversation
from skillup.trial.setup import OpenTrial, new_record, open_trial
from tests.support.plans import jobs_of, request_of

MOST_FILES = 25
PACKAGE = str(Path(skillup.__file__).parent)
CASE = """
input:
  turns:
    - one
    - content: two
      post_condition: {must_contain_any: [fine]}
      assertions: [{contains: fine}]
scripted: [{say: fine}]
"""


def test_a_resumed_turn_enters_few_files(tmp_path: Path) -> None:
    files: set[str] = set()
    recording = False

    def profile(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if recording and event == "call" and name.startswith(PACKAGE):
            files.add(name.removeprefix(PACKAGE))

    async def main() -> None:
        nonlocal recording
        (job,) = jobs_of(tmp_path, CASE)
        request = request_of(tmp_path, job, ScriptedEngine(), "trial")
        request = replace(request, notify=lambda _: None)
        opened = await open_trial(request, new_record(request))
        assert isinstance(opened, OpenTrial)
        conversation = LiveConversation(opened)
        await conversation.run_next(opened.turns[0], of=2)
        recording = True
        await conversation.run_next(opened.turns[1], of=2)
        recording = False
        assert [turn.status for turn in conversation.turns] == ["completed", "completed"]
        assert conversation.turns[1].session_verified

    # Threads of the event loop's are started after this.
    threading.setprofile(profile)
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        anyio.run(main)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    assert files
    assert len(files) <= MOST_FILES, sorted(files)
