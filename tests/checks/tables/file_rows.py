"""Checks of the workspace and of reference files."""

from __future__ import annotations

from skillup.schema.record import FileState
from tests.support.check_rows import row
from tests.support.records import make_record, make_turn

FILES = make_record(
    make_turn(files={"data/a.log": "x"}),
    make_turn(
        "Title\r\n  one  \r\n",
        files={
            "src/app/main.py": "import os\r\nprint('Hello')\n",
            "src/app/[id]/page.tsx": "page",
            "README.md": "\ufeff# Read me",
            "raw.bin": b"\xff\xfeok\x00",
            "link.md": FileState(sha256=None, size=9, link="README.md"),
            "out.md": FileState(sha256=None, size=9, link="../secret"),
            "big.iso": FileState(sha256="0" * 64, size=10**10, kept=False),
            "golden.txt": "Title\n  one",
        },
    ),
    references={
        "golden/answer.md": "Title\n  one\n",
        "golden/other.md": "Title\n  two\n",
        "golden.txt": "Title\n  two",
    },
)
PARTLY = make_record(
    make_turn(
        files={
            "a.txt": "x",
            "gone.txt": FileState(sha256=None, size=1, link="nowhere", dangling=True),
        },
        unseen=["locked/", "data/deep/er/", "pipe"],
    )
)
UNSEEN = make_record("no snapshot was taken")

ROWS = [
    row(True, "files_exist", ["data/a.log", "data/*.log"], FILES, turn=1),
    row(True, "files_exist", ["./src", "src/", "src\\app\\main.py", "**/main.py"], FILES, turn=2),
    row(True, "files_exist", ["src/app/[id]/page.tsx", "s*/", "*.{md,rst}"], FILES, turn=None),
    row(False, "files_exist", "gone.txt", PARTLY),  # S6
    row(False, "files_not_exist", "gone.txt", PARTLY),
    *(
        row(False, key, wanted, PARTLY)  # S6: nobody looked there
        for key in ("files_exist", "files_not_exist")
        for wanted in (
            *("locked/x", "locked", "**/*.log", "data", "data/deep", "data/*/*/x", "*/x.log"),
            *("pipe", "pip?", ".git/config", "sub/.git", "{x,locked}/*.log"),
        )
    ),
    *(
        row(True, "files_not_exist", wanted, PARTLY)
        for wanted in ("x", "lock", "data/x", "data/deep/x", "*.log", "data/*.log")
    ),
    row(False, "files_exist", ["src/*.py"], FILES, turn=2),
    row(True, "files_not_exist", ["data/*.log", "data"], FILES, turn=2),
    row(False, "files_not_exist", "**/*.py", FILES, turn=None),
    row(False, "files_not_exist", "x", UNSEEN),
    row(True, "file_contains", {"path": "src/**/*.py", "content": "PRINT('hello')"}, FILES, turn=2),
    row(True, "file_contains", {"path": "README.md", "matches": "^# Read me$"}, FILES, turn=2),
    row(True, "file_contains", {"path": "raw.bin", "content": "ok"}, FILES, turn=None),
    row(True, "file_contains", {"path": "link.md", "content": "# Read"}, FILES, turn=None),
    row(
        False,
        "file_contains",
        [{"path": "raw.bin", "content": "ok"}, {"path": "none.md", "content": "x"}],
        FILES,
        turn=None,
    ),
    row(False, "file_contains", {"path": "big.iso", "content": "x"}, FILES, turn=2),
    row(False, "file_contains", {"path": "out.md", "content": "x"}, FILES, turn=2),
    row(False, "file_contains", {"path": "README.md", "matches": "READ"}, FILES, turn=2),
    row(True, "golden_file", "golden/answer.md", FILES, turn=2),
    row(True, "golden_file", {"path": "golden/answer.md", "file": "./golden.txt"}, FILES, turn=2),
    row(False, "golden_file", "golden/other.md", FILES, turn=2),
    row(False, "golden_file", {"path": "golden/answer.md", "file": "README.md"}, FILES, turn=2),
    row(False, "golden_file", {"path": "golden/answer.md", "file": "big.iso"}, FILES, turn=2),
]
