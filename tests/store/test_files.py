"""Files that are written whole, and JSON as it is stored."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from skillup.errors import RunDirectoryError
from skillup.redaction.secrets import Secrets
from skillup.schema.record import Record
from skillup.store import files
from skillup.store.database import VERSION
from skillup.store.files import Mask, make_directory, no_mask, to_json, write_atomic
from tests.support.records import file_states, make_record, make_turn
from tests.support.stored import a_record, a_result


def test_what_the_system_refuses_is_an_error_with_the_path_in_it(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"cannot write .*nowhere/a"):
        write_atomic(tmp_path / "nowhere" / "a", b"x")
    (tmp_path / "file").touch()
    with pytest.raises(RunDirectoryError, match="cannot make"):
        make_directory(tmp_path / "file" / "below")


def test_when_the_disk_takes_no_more_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(b"old")
    # A limit on the size of files stands in for a full disk: both fail in the middle of a write.
    program = f"""
import resource
from pathlib import Path
from skillup.errors import RunDirectoryError
from skillup.store.files import write_atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomic(Path({str(path)!r}), b"x" * 100_000)
except RunDirectoryError as error:
    print(error.hint)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "limit" in done.stdout, done.stderr
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_is_readable_valid_and_safe_for_a_terminal() -> None:
    assert to_json({"a": "Grüße 你好"}, no_mask, indent=None) == '{"a":"Grüße 你好"}\n'.encode()
    odd = {"a\udc80": "x\ud800y", "b": "\ud83d\ude00", "c": [float("nan"), float("inf"), 1.5]}
    clean = {"a\ufffd": "x\ufffdy", "b": "😀", "c": [None, None, 1.5]}
    assert json.loads(to_json(odd, no_mask, indent=None)) == clean
    text = to_json(a_record(response="a\udcffb"), no_mask, indent=None)
    assert Record.model_validate_json(text).turns[0].response == "a\ufffdb"
    data = json.loads(to_json(a_result(), no_mask, indent=2))
    assert data["summary"]["pass"] == 1
    assert data["cases"][0]["session_id"] is None

    texts = ["\x9b31mred", "\x1b]8;;x\x07", "user\u202etxt.exe", "a\u2028b", "\x7f", "müde 🙂"]
    written = to_json({"texts": texts}, no_mask, indent=None)
    assert json.loads(written) == {"texts": texts}
    assert "müde 🙂" in written.decode()
    assert not set(written.decode()) & set("\x9b\x1b\x07\u202e\u2028\x7f")


def mask_of(secret: str) -> Mask:
    return lambda text: text.replace(secret, "***")


def test_secrets_are_masked_in_values_and_keys_even_if_json_quotes_them() -> None:
    for secret in ('se"cret\n1', "12345678"):
        text = to_json({secret: [f"x{secret}"], "n": 12345678}, mask_of(secret), indent=None)
        assert json.loads(text) == {"***": ["x***"], "n": 12345678}

    # What an agent has quoted or coloured is quoted once more.
    mask = Secrets({"KEY": 'wJalrXU/tnFE"MIK7'}).mask
    quoted = 'wJalrXU\\/tnFE\\"MIK7'
    for response in (
        quoted,
        json.dumps(json.dumps('wJalrXU/tnFE"MIK7')),
        'wJalrXU/tn\x1b\\FE"MIK7',
    ):
        stored = json.loads(to_json(a_record(response=response), mask, indent=None))
        assert "***KEY***" in stored["turns"][0]["response"]


def test_lists_of_files_are_stored_as_their_changes_and_read_again_whole() -> None:
    """F9: 30,000 files stood in the record once for each message."""
    many = {f"{number:04}.txt": "x" for number in range(3000)}
    changed = {**many, "0001.txt": "y", "new.txt": "z"}
    gone = {"0002.txt": "x"}
    turns = [
        make_turn(files=many, follow_ups=[make_turn(files=changed)]),
        make_turn().model_copy(update={"files": None}),
        make_turn(files=gone),
        *[make_turn(files=changed)] * 20,
    ]
    record = make_record(*turns, initial_files=file_states(many)).record

    stored = to_json(record, no_mask, indent=None)

    assert Record.model_validate_json(stored) == record
    assert len(stored) < 4 * len(json.dumps(record.model_dump(mode="json")["initial_files"]))
    written = json.loads(stored)["turns"]
    assert written[0]["files_changed"] == {}
    assert sorted(written[0]["follow_ups"][0]["files_changed"]) == ["0001.txt", "new.txt"]
    assert written[1]["files_changed"] is None
    assert written[2]["files_changed"]["new.txt"] is None
    assert record.model_dump(mode="json")["turns"][2]["files"].keys() == gone.keys()


def test_the_dictionary_of_a_runs_file_is_that_of_its_version() -> None:
    data = Path(files.__file__).with_name("dictionary.txt").read_bytes()
    known = VERSION, hashlib.sha256(data).hexdigest()[:16]
    assert known == (2, "a3bc170679f7f969"), "runs of this version could not be read any more"
