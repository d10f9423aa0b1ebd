"""Files of the suite that a case names and that are not there."""

from __future__ import annotations

import textwrap
from pathlib import Path

from skillup.load.suites import load_paths

CASE = """\
context:
  fixture: fixtures/none
  git: {init: true, apply_diff: fixtures/none.patch}
input: {prompt: hi}
expect: {golden_file: golden/none.txt}
assertions:
  - contains: x
  - any_of: [{golden_file: golden/there.txt}, {golden_file: golden/neither.txt}]
"""


def test_each_is_a_warning_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden" / "there.txt").write_text("x")
    (tmp_path / "eval.yaml").write_text("name: x\n")
    (tmp_path / "a.yaml").write_text(CASE)
    loaded = load_paths([tmp_path])
    assert loaded.errors == ()
    found = [(p.line, p.message.split()[3]) for p in loaded.warnings]
    assert found == [
        (2, "fixtures/none"),
        (3, "fixtures/none.patch"),
        (5, "golden/none.txt"),
        (8, "golden/neither.txt"),
    ]


def test_a_script_outside_of_the_suite_is_an_error_at_its_place(tmp_path: Path) -> None:
    """F20: wherever a script may stand: gates, rules of judges and follow-ups, too."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "eval.yaml").write_text("name: x\n")
    case = """\
        input:
          turns:
            - content: hi
              post_condition: {script: ../gate.sh}
              assertions:
                - prompt: again
                  assertions: [{script: ../follow-up.sh}]
        assertions:
          - script: ../check.sh
        judges:
          - {type: script, script_path: /bin/true}
          - failure: [{any_of: [{script: ../rule.sh}]}]
        """
    (tmp_path / "suite" / "a.yaml").write_text(textwrap.dedent(case))
    for place in ("check.sh", "suite/check.sh"):
        (tmp_path / place).write_text("#!/bin/sh\n")

    errors = load_paths([tmp_path / "suite"]).errors

    assert sorted((p.line, p.message.split()[2]) for p in errors) == [
        (4, "../gate.sh"),
        (7, "../follow-up.sh"),
        (9, "../check.sh"),
        (11, "/bin/true"),
        (12, "../rule.sh"),
    ]
