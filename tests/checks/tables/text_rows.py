"""Checks of the answer's text, in our spelling."""

from __future__ import annotations

from tests.support.check_rows import row
from tests.support.records import call, make_record, make_turn

ROWS = [
    row(True, "contains", "confirm", "Please CONFIRM this."),
    row(True, "contains", {"all": ["a", "b"], "any": ["x", "c"], "none": ["z"]}, "a b c"),
    row(True, "contains", "Straße", "die STRASSE dort"),
    row(True, "contains", "caf\u00e9", "un CAFE\u0301"),
    row(True, "contains", "a\nb", "a\r\nb"),
    row(True, "contains", {"not": ["rm"]}, "nothing of the kind"),
    row(False, "contains", "confirm", "Done."),
    row(False, "contains", "confirm", "CONFIRM", case_sensitive=True),
    row(False, "contains", {"all": ["a"], "none": ["b"]}, "a b"),
    row(False, "contains", {"any": ["x", "y"]}, ""),
    row(False, "contains", {"not": ["rm"]}, "I ran RM"),
    row(True, "not_contains", "deleted", "Shall I?"),
    row(True, "not_contains", ["a", "b"], "c"),
    row(False, "not_contains", ["a", "b"], ""),  # S6
    row(False, "not_glob", "a*", " \n"),  # S6
    row(False, "contains", {"none": ["a"]}, ""),  # S6
    row(False, "matches", {"none": ["a"]}, ""),  # S6
    row(True, "matches", "^$", ""),
    row(False, "none_of", [{"contains": "a"}], ""),  # S6
    row(True, "none_of", [{"not_contains": "a"}], "a"),
    row(False, "files_not_exist", "a", make_record("", files={})),  # S6
    row(False, "tool_not_called", "Write", make_record("")),  # S6
    row(False, "skill_not_used", "tidy", make_record("")),  # S6
    row(True, "tool_not_called", "Write", make_record(make_turn("", calls=[call("Bash")]))),
    row(False, "not_contains", "x", make_record("", "a", ""), turn=None),  # S6
    row(False, "not_contains", "x", make_record("", ""), turn=None),  # S6
    row(True, "not_contains", "Deleted", "deleted", case_sensitive=True),
    row(False, "not_contains", "deleted", "I Deleted it."),
    row(False, "not_contains", ["x", "gone"], "all gone"),
    row(True, "matches", r"\d+ Files?", "12 Files found"),
    row(True, "matches", r"(?i)FILES", "12 files found", case_sensitive=True),
    row(True, "matches", {"any": ["^no", "found$"], "none": [r"\berror\b"]}, "12 files found"),
    row(True, "matches", r"(?m)^two$", "one\ntwo\nthree"),
    row(False, "matches", "FILES", "files"),
    row(False, "matches", {"none": ["Err(or)?"]}, "An Error"),
    row(True, "glob", "*4*", "2 + 2 =\n4.\n"),
    row(True, "glob", ["The*", "*end."], "the\nend."),
    row(False, "glob", ["*a*", "*b*"], "a only"),
    row(False, "glob", "Yes", "yes", case_sensitive=True),
    row(True, "not_glob", "4", "It is 4"),
    row(True, "not_glob", ["*x*", "*y*"], "z"),
    row(False, "not_glob", "*4*", "It is 4"),
    row(False, "not_glob", ["no", "*y*"], "y\n"),
    row(True, "equals", "Hello", "hello\n"),
    row(True, "equals", 42, "42"),
    row(False, "equals", "hello", "hello there"),
    row(False, "equals", "Hello", "hello", case_sensitive=True),
]
