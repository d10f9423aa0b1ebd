"""to_json: valid and masked, whatever the texts are."""

from __future__ import annotations

import json

from skillup.schema.record import Record
from skillup.store.journal import no_mask, to_json
from tests.support.records import file_states, make_record, make_turn
from tests.support.stored import a_record, a_result


def test_text_stays_readable() -> None:
    assert to_json({"a": "Grüße 你好"}, no_mask, indent=None) == '{"a":"Grüße 你好"}\n'.encode()


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    text = to_json({"a\udc80": "x\ud800y", "b": "\ud83d\ude00"}, no_mask, indent=None)
    assert json.loads(text) == {"a\ufffd": "x\ufffdy", "b": "😀"}


def test_a_record_with_lone_surrogates_can_be_read_again() -> None:
    text = to_json(a_record(response="a\udcffb"), no_mask, indent=None)
    assert Record.model_validate_json(text).turns[0].response == "a\ufffdb"


def test_numbers_that_json_does_not_have_become_null() -> None:
    text = to_json({"a": [float("nan"), float("inf"), 1.5]}, no_mask, indent=None)
    assert json.loads(text) == {"a": [None, None, 1.5]}


def test_secrets_are_masked_in_values_and_keys_even_if_json_quotes_them() -> None:
    secret = 'se"cret\n1'
    text = to_json({secret: [f"x{secret}"]}, lambda t: t.replace(secret, "***"), indent=None)
    assert json.loads(text) == {"***": ["x***"]}


def test_a_secret_that_looks_like_a_number_does_not_break_the_syntax() -> None:
    text = to_json({"n": 12345678}, lambda t: t.replace("12345678", "***"), indent=None)
    assert json.loads(text) == {"n": 12345678}


def test_none_is_written_and_names_are_those_of_the_file_format() -> None:
    data = json.loads(to_json(a_result(), no_mask, indent=2))
    assert data["summary"]["pass"] == 1
    assert data["cases"][0]["session_id"] is None


def test_what_a_terminal_would_obey_is_written_as_an_escape_and_reads_the_same() -> None:
    texts = ["\x9b31mred", "\x1b]8;;x\x07", "user\u202etxt.exe", "a\u2028b", "\x7f", "müde 🙂"]
    written = to_json({"texts": texts}, no_mask, indent=None)
    assert json.loads(written) == {"texts": texts}
    assert "müde 🙂" in written.decode()
    assert not set(written.decode()) & set("\x9b\x1b\x07\u202e\u2028\x7f")


def test_lists_of_files_are_stored_as_their_changes_and_read_again_whole() -> None:
    """F9: 30,000 files stood in the record once for each message."""
    many = {f"{number:04}.txt": "x" for number in range(3000)}
    changed = {**many, "0001.txt": "y", "new.txt": "z"}
    gone = {"0002.txt": "x"}
    follow_up = make_turn(files=changed)
    turns = [
        make_turn(files=many, follow_ups=[follow_up]),
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
