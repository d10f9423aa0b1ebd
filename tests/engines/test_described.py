"""Engines described in YAML: the language, and a small agent that a user describes."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from skillup.adapters import ADAPTERS
from skillup.app.planning import collect_secrets
from skillup.engines.base import HistorySeeder, SessionForker, SessionResumer
from skillup.engines.command.engine import DescribedEngine, dump_rows, make_engine, rows_of_history
from skillup.engines.command.events import DescribedEvents
from skillup.engines.command.values import filled, filled_arguments, holds
from skillup.engines.created_sessions import copy_database
from skillup.engines.registry import engine_of, get_engine
from skillup.errors import InvalidFilesError, UsageError
from skillup.load.profiles import load_profile
from skillup.schema.profile import AgentDescription, EventRule, Profile
from skillup.schema.record import HistoryItem, ToolCall, ToolResult
from tests.support.engine_turns import Conversation, calls, error_kind, make_trial
from tests.support.project import Project

SUPPORT = Path(__file__).parents[1] / "support"
DESCRIBED = [name for name, adapter in ADAPTERS.items() if adapter.described]
VALUES = {"model": "m", "n": 3, "none": None, "empty": "", "rows": [1, 2], "no": False}


@pytest.mark.parametrize(
    ("template", "made"),
    [
        ("--model={model}", "--model=m"),
        ("{n}", 3),
        ("{no}", False),
        ("a{n}b", "a3b"),
        ("{none:-x}{empty:-y}", "xy"),
        ("{model:+is there}", "is there"),
        ('{"a": {}} {Model}', '{"a": {}} {Model}'),
        (["{none}", "{rows}", "{empty:+x}", {"k": "{model}", "l": "{none}"}], [1, 2, {"k": "m"}]),
        ({"{none:+x}": 1, "{model}": {"deep": ["{none:-null}"]}}, {"m": {"deep": [None]}}),
    ],
)
def test_placeholders_take_values_and_what_has_none_is_left_out(template: Any, made: Any) -> None:
    assert filled(template, VALUES) == made


def test_a_list_of_arguments_is_left_out_as_a_whole() -> None:
    given: list[str | list[str]] = ["run", ["--model", "{model}"], ["--system", "{none}"]]
    given += ["{empty}", ["-n", "{n}"]]
    assert filled_arguments(given, VALUES) == ["run", "--model", "m", "-n", "3"]


EVENT = {"type": "a", "ok": True, "n": 1, "parts": [{"text": "first"}, {"text": "last"}]}


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ({}, True),
        ({"type": "a", "ok": True}, True),
        ({"type": ["b", "a"], "parts.0.text": "first", "parts.-1.text": "last"}, True),
        ({"ok": 1}, False),
        ({"n": True}, False),
        ({"missing": None}, True),
        ({"parts.2.text": "first"}, False),
        ({"parts.0.text": {"matches": "^fir"}}, True),
        ({"type": "a", "n": 2}, False),
    ],
)
def test_conditions_hold_for_equal_values_of_the_same_type(when: Any, fits: bool) -> None:
    assert holds(EventRule.model_validate({"when": when}).when, EVENT) is fits


ABOUT = """
    {"name": "x", "tools": {"shell": ["sh"]}, "mcp": "(?P<server>\\\\w+?)__(?P<tool>.+)",
    "noise": "^banner", "errors": {"quota": ["no credit"]}, "events": [
    {"when": {"type": "hi"}, "session": "id"},
    {"when": {"type": "text"}, "delta": "text", "part_of": "of", "agent": "by"},
    {"when": {"type": "many"}, "each": "parts", "rules": [
      {"when": {"k": "call"}, "call": {"id": "id", "name": "name", "arguments": "args"}},
      {"when": {"k": "out"}, "result": {"id": "id", "content": "out", "failed": {"bad": true}}}]},
    {"when": {"type": "used"}, "usage": {"of": "request", "cached_apart": true,
      "input_tokens": "in", "cached_input_tokens": "cached", "output_tokens": "out"}},
    {"when": {"type": "oh"}, "error": "why", "status": "status"},
    {"when": {"type": "end"}, "end": true, "answer": "answer"}]}
"""


def read(*lines: Any) -> DescribedEvents:
    parser = DescribedEvents(AgentDescription.model_validate(json.loads(ABOUT)), "chosen")
    for line in lines:
        parser.feed(line if isinstance(line, bytes) else json.dumps(line).encode())
    return parser


def test_events_become_a_turn() -> None:
    call = {"k": "call", "id": "1", "name": "sh", "args": {"command": "ls"}}
    tool = {"k": "call", "id": "2", "name": "srv__add", "args": None}
    out = {"k": "out", "id": "1", "out": [{"text": "a"}, {"text": "b"}], "bad": True}
    used = {"type": "used", "in": 10, "cached": 5, "out": 2}
    parser = read(
        {"type": "hi", "id": "s"}, b"banner 1.0", {"type": "many", "parts": [call, out, tool, {}]},
        {"type": "text", "text": "Two ", "of": "m1"}, {"type": "text", "text": "parts", "of": "m1"},
        {"type": "text", "text": "sub", "by": "helper"},
        {"type": "text", "text": "Done", "of": "m2"},
        used, used, {"type": "end"}, {"type": "new"}, b"not json",
    )  # fmt: skip
    shown = [(item.type, item.text) for item in parser.items if item.type == "message"]
    assert shown == [("message", t) for t in ("Two parts", "sub", "Done")]
    made = [(c.name, c.kind) for i in parser.items if (c := i.tool_call)]
    assert made == [("sh", "shell"), ("srv::add", "mcp")]
    (result,) = (item.tool_result for item in parser.items if item.tool_result)
    assert (result.status, result.content) == ("error", "a\nb")
    assert parser.usage is not None
    assert (parser.usage.input_tokens, parser.usage.output_tokens) == (30, 4)
    assert (parser.session_id, parser.response, parser.is_settled) == ("s", "Done", True)
    assert parser.unknown_events == 3, "an entry, an event and a line"


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([{"type": "oh", "why": "no credit", "status": 429}], "quota"),
        ([{"type": "oh", "why": "slow down", "status": 429}], "rate_limit"),
        ([{"type": "oh", "why": "slow down", "status": "401"}], "auth"),
        ([{"type": "oh", "why": "broken"}, {"type": "end"}], "model_error"),
        ([{"type": "oh"}, {"type": "end"}], "protocol"),
        ([{"type": "oh"}, {"type": "text", "text": "fine"}, {"type": "end"}], None),
        ([{"type": "oh", "why": "broken"}, {"type": "text", "text": "again"}], None),
    ],
)
def test_an_error_has_a_kind_and_is_taken_back_if_the_agent_goes_on(
    events: list[Any], kind: str | None
) -> None:
    failure = read({"type": "hi", "id": "s"}, *events).failure
    assert (failure and failure.kind) == kind


HISTORY = [
    HistoryItem(role="user", content="one"),
    HistoryItem(
        role="assistant",
        content="looking",
        tool_calls=[ToolCall(id="c1", name="", kind="shell", arguments={"command": "ls"})],
    ),
    HistoryItem(
        role="tool", content="", tool_result=ToolResult(call_id="c1", status="error", content="-")
    ),
    HistoryItem(role="assistant", content="done"),
    HistoryItem(role="user", content="two"),
    HistoryItem(role="assistant", content="again"),
]


@pytest.mark.parametrize("name", DESCRIBED)
def test_each_shipped_description_can_do_all_and_writes_a_history(name: str) -> None:
    engine = get_engine(name)
    assert isinstance(engine, DescribedEngine)
    about = engine.about
    assert isinstance(engine, SessionResumer)
    assert isinstance(engine, SessionForker)
    assert isinstance(engine, HistorySeeder)
    assert engine.seeding_problem("0.0.1")
    assert about.store is not None
    assert about.store.seed is not None
    values = {"session": "3f0e7a54-0000-4000-8000-000000000001", "workspace": "/w", "version": "1"}
    rows = rows_of_history(about.store.seed, HISTORY, {**values, "session_hex": "3f"})
    text = json.dumps(rows)
    for word in ("one", "looking", "c1", "ls", "done", "two", "again"):
        assert f'"{word}"' in text
    assert "{" not in [v for row in rows for v in row.values() if isinstance(v, str)]
    if about.store.files is not None:
        assert sum(map(engine.is_user_message, rows)) == 2


def test_rows_of_a_database_are_lines_and_a_copy_has_the_new_paths(tmp_path: Path) -> None:
    source, copy = tmp_path / "old.db", tmp_path / "new.db"
    with sqlite3.connect(source) as made:
        made.execute("CREATE TABLE part (session TEXT, n INTEGER, data TEXT)")
        made.executemany(
            "INSERT INTO part VALUES (?, ?, ?)", [("s", 1, "/w/a"), ("t", 2, "x"), ("s", 3, "/w-2")]
        )
    query = "SELECT n, data FROM part WHERE session = :session ORDER BY n"
    copy_database(source, copy, {"/w": "/new"})
    found = {
        path: (lines := dump_rows(path, query, "s", tmp_path / "rows")) and lines.read_text()
        for path in (source, copy)
    }
    assert found[source] == '{"n":1,"data":"/w/a"}\n{"n":3,"data":"/w-2"}\n'
    assert found[copy] == '{"n":1,"data":"/new/a"}\n{"n":3,"data":"/w-2"}\n'
    assert dump_rows(source, query, "nobody", tmp_path / "rows") is None
    assert dump_rows(tmp_path / "no.db", query, "s", tmp_path / "rows") is None


# An agent of a user's own: a script, and a description as people write it.

AGENT = """
import json, os, pathlib, sys
args, prompt = sys.argv[1:], sys.stdin.read()
at = args.index("--id") + 1 if "--id" in args else args.index("--resume") + 1
file = pathlib.Path(os.environ["HOME"], ".mine", args[at] + ".jsonl")
file.parent.mkdir(exist_ok=True)
if "--resume" in args and not file.exists():
    sys.exit(7)
with file.open("a") as lines:
    lines.write(json.dumps({"who": "user", "text": prompt}) + "\\n")
"""
TELLS = 'print(json.dumps({"args": args, "config": file.with_name("c.json").read_text()}))'
MINE: dict[str, Any] = {
    "name": "mine",
    "home": {"folder": ".mine"},
    "files": {".mine/c.json": {"retries": "{retries}", "url": "{base_url}"}},
    "arguments": [["--model", "{model}"]],
    "start": ["--id", "{session}"],
    "resume": ["--resume", "{session}"],
    "exit_codes": {7: "session_lost"},
    "escape": {"/": " /"},
    "output": "text",
    "ends_with": "exit",
    "store": {"files": "{session}.jsonl", "message": {"who": "user"}},
}


def mine(tmp_path: Path, program: str, about: dict[str, Any], **keys: Any) -> Conversation:
    script = tmp_path / "agent.py"
    script.write_text(AGENT + program)
    agent = AgentDescription.model_validate({**MINE, **about})
    profile = Profile(engine="command", agent=agent, command=[sys.executable, str(script)], **keys)
    return Conversation(engine_of(profile), make_trial(tmp_path, profile))


def test_an_agent_that_prints_text_is_resumed_with_proof(tmp_path: Path) -> None:
    conversation = mine(tmp_path, TELLS, {}, model="m", retries=4, base_url="http://localhost:1")
    first, second = conversation.say("/one"), conversation.say("two")
    told = [json.loads(outcome.response) for outcome in (first, second)]
    session = conversation.trial.session_id
    assert [one["args"] for one in told] == [
        ["--model", "m", "--id", session], ["--model", "m", "--resume", session],
    ]  # fmt: skip
    assert json.loads(told[0]["config"]) == {"retries": 4, "url": "http://localhost:1"}
    assert (first.session_verified, second.session_verified) == (None, True)
    home = conversation.trial.home / "home" / ".mine"
    (file,) = home.glob("*.jsonl")
    assert json.loads(file.read_text().splitlines()[0])["text"] == " /one"
    file.write_text(file.read_text().replace("one", "two"))
    assert error_kind(conversation.say("three")) == "session_lost"


@pytest.mark.parametrize(
    ("program", "about", "keys", "turn", "kind"),
    [
        ("sys.exit(7)", {}, {}, {}, "session_lost"),
        ("pass", {}, {}, {}, "protocol"),
        (TELLS, {}, {"permission": "edits"}, {}, "unsupported"),
        (TELLS, {}, {}, {"system": "Be terse."}, "unsupported"),
        (TELLS, {}, {"isolation": "shared", "base_url": "http://x"}, {}, "unsupported"),
        ("sys.exit('try: no credit')", {"errors": {"quota": ["no credit"]}}, {}, {}, "quota"),
        ("sys.exit('a1529: 401')", {"errors": {"quota": ["529"], "auth": ["401"]}}, {}, {}, "auth"),
    ],
)
def test_what_goes_wrong_has_its_kind(
    tmp_path: Path, program: str, about: Any, keys: Any, turn: Any, kind: str
) -> None:
    assert error_kind(mine(tmp_path, program, about, **keys).say("hello", **turn)) == kind


def test_a_document_an_argument_and_what_is_not_applied(tmp_path: Path) -> None:
    said = 'print(json.dumps({"said": args[-1], "calls": [{"id": 1, "n": "sh"}]}, indent=1))'
    rules = [{"message": "said", "each": "calls", "end": True, "rules": [
        {"call": {"id": "id", "name": "n", "arguments": "args"}}]}]  # fmt: skip
    about = {"output": "json", "ends_with": "event", "prompt": "argument", "events": rules}
    outcome = mine(tmp_path, said, about).say("hello", max_steps=3)
    assert (error_kind(outcome), outcome.response) == (None, "hello")
    assert [call.name for call in calls(outcome)] == ["sh"]
    assert "mine has no `max_turns`: it was not applied" in outcome.notices


def test_an_agent_without_resume_is_no_resumer_and_one_without_a_store_is_not_believed(
    tmp_path: Path,
) -> None:
    once = make_engine("x", AgentDescription.model_validate({**MINE, "resume": None}))
    assert not isinstance(once, SessionResumer | SessionForker)
    blind = mine(tmp_path, TELLS, {"store": None})
    assert blind.say("one").error is None
    assert error_kind(blind.say("two")) == "session_lost"


PROFILES = {
    "inside": "engine: command\nagent: {name: mine}\n",
    "beside": "engine: mine.engine.yaml\n",
    "half": "engine: command\n",
    "live": "engine: command\nagent: {name: mine}\nsession: live\n",
    "bad": "engine: command\nagent: {name: mine, events: [{whem: {}}]}\n",
    "gone": "engine: nowhere.yaml\n",
}


def test_profiles_describe_their_agent_or_name_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "engines"
    folder.mkdir()
    (folder / "mine.engine.yml").write_text("name: mine\n")
    for name, text in PROFILES.items():
        (folder / f"{name}.yaml").write_text(text.replace("mine.engine.yaml", "mine.engine.yml"))
    for name in ("inside", "beside"):
        profile = load_profile(name, tmp_path, {})
        assert (profile.engine, profile.agent and profile.agent.name) == ("command", "mine")
    for name, said in {
        "half": "belong together",
        "live": "cannot keep a process",
        "bad": "did you mean `when`?",
        "gone": "cannot be read",
    }.items():
        with pytest.raises(InvalidFilesError) as raised:
            load_profile(name, tmp_path, {})
        assert any(said in f"{p.message} {p.fix}" for p in raised.value.problems), name
    with pytest.raises(UsageError, match="models of Qoder need a login"):
        load_profile("qoder", tmp_path, {})


@pytest.mark.slow
def test_doctor_tries_the_conformance_of_a_users_own_engine(project: Project) -> None:
    command = json.dumps([sys.executable, str(SUPPORT / "tiny_agent.py")])
    profile = f"engine: tiny.engine.yaml\ncommand: {command}\n"
    about = (SUPPORT / "tiny_agent.yaml").read_text()
    deaf = about.replace("--read-only", "--model") + "skills: [.other/skills]\n"
    project.write({"engines/tiny.yaml": profile, "engines/tiny.engine.yaml": about})
    project.write({"engines/deaf.yaml": profile.replace("tiny.eng", "deaf.eng")})
    project.write({"engines/deaf.engine.yaml": deaf})

    done = project.run("doctor", "--conformance", "tiny", "deaf", "--json")

    assert done.exit_code == 3, done.stderr
    verdicts = {name: {r["name"]: r for r in rows} for name, rows in done.data.items()}
    assert [row["verdict"] for row in verdicts["tiny"].values()] == ["yes"] * 30, verdicts["tiny"]
    wrong = {name for name, row in verdicts["deaf"].items() if row["verdict"] == "no"}
    assert wrong == {
        "A skill is found, and its use is seen",
        "A skill is offered to the model",
        "`read_only` writes nothing, on resumed turns neither",
    }


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_profile_with_a_description_is_the_same_when_it_is_read_again(name: str) -> None:
    profile = Profile(name="p", engine="command", agent=get_engine(name).about)  # type: ignore[attr-defined]
    assert Profile.model_validate(profile.model_dump(mode="json")) == profile


@pytest.mark.parametrize(
    "about",
    [
        {"files": {"../x": ""}}, {"home": {"folder": "/etc"}}, {"skills": ["../skills"]},
        {"store": {"files": "/**/{session}", "message": {}}},
        {"store": {"sqlite": "../x.db", "rows": "SELECT 1", "message": {}}},
        {"mcp": "mcp_(?P<tool>.+)"}, {"resume": ["{sesion}"]},
        {"store": {"files": "{sesion}", "message": {}}},
    ],
)  # fmt: skip
def test_a_description_that_leads_out_or_lacks_a_group_is_refused(about: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is abs|leads else|lacks a gro|no placeh"):
        AgentDescription.model_validate({**MINE, **about})


def test_a_query_only_reads_its_database_and_ends(tmp_path: Path) -> None:
    database, made = tmp_path / "old.db", tmp_path / "made.db"
    with sqlite3.connect(database) as opened:
        opened.execute("CREATE TABLE t AS SELECT 1 AS n")
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"
    for query in (f"ATTACH '{made.as_uri()}?mode=rwc' AS m", "PRAGMA user_version", endless):
        assert dump_rows(database, query, "s", tmp_path / "rows") is None
    assert not made.exists()


@pytest.mark.parametrize("session", ["../../x", "a/b", "-rf", "a\0", "x" * 5000])
def test_what_is_no_session_id_is_no_path_and_no_option(session: str) -> None:
    parser = read({"type": "hi", "id": session})
    assert (parser.session_id, parser.failure and parser.failure.kind) == (None, "model_error")


def test_long_outputs_and_slow_patterns_take_no_long_time() -> None:
    deltas = [{"type": "text", "text": "x" * 60, "of": "m"}] * 30_000
    rows: dict[str, Any] = {"said": "\ud800end", "rows": [{"n": [n]} for n in range(10_000)]}
    document = json.dumps(rows, indent=1).encode().split(b"\n")
    json_rules = {"name": "x", "output": "json", "events": [{"answer": "said", "end": True}]}
    whole = DescribedEvents(AgentDescription.model_validate(json_rules), "s")
    slow = DescribedEvents(AgentDescription(name="x", noise="(a|aa)+$"), "s")
    began = time.process_time()
    parser = read(*deltas)
    parser.end()
    for line in document:
        whole.feed(line)
    for _ in range(100):
        slow.feed(b"a" * 40 + b"c")
    assert len(parser.response) == 60 * len(deltas)
    assert whole.response == "\ufffdend"
    assert slow.failure is not None
    assert slow.failure.kind == "protocol"
    assert time.process_time() - began < 10


def test_keys_that_a_description_holds_are_masked() -> None:
    files = {".mine/auth.json": {"logins": [{"token": "abc-literal-987654"}], "apiKey": "{key}"}}
    agent = AgentDescription.model_validate(
        {**MINE, "files": files, "env": {"A_KEY": "lit-123456x"}}
    )
    profile = Profile(engine="command", agent=agent)
    secrets = collect_secrets({}, [profile], [], [])
    masked = secrets.mask(profile.model_dump_json())
    assert [text in masked for text in ("literal", "lit-1", '"{key}"')] == [False, False, True]


def test_links_that_an_agent_leaves_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    kept = tmp_path / "mine" / "c.json"
    kept.write_text("kept")
    link = f"c = file.with_name('c.json'); c.unlink(); c.symlink_to({str(kept)!r}); print('ok')"
    conversation = mine(tmp_path, link, {})
    assert [conversation.say(text).error for text in ("one", "two")] == [None, None]
    assert kept.read_text() == "kept"
