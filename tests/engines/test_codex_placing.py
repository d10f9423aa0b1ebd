"""Threads that are written, not held: where their files go, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from skillup.engines.base import CreatedSession, SessionRef, TrialContext
from skillup.engines.codex.created_sessions import place_fork, place_history, seeding_problem
from skillup.engines.codex.engine import CLI
from skillup.engines.codex.session import fingerprint, session_file
from skillup.engines.session_files import of_a_history, what_it_lost
from skillup.schema.profile import Profile
from tests.support.held_turns import make_trial
from tests.support.pasts import assistant, user
from tests.support.trees import tree_of

HISTORY = [user("one"), assistant("ONE")]


@pytest.fixture
def trial(tmp_path: Path) -> TrialContext:
    return make_trial(tmp_path / "parent", Profile(engine="codex"), version="0.169.0")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "codex-home"


def child_of(trial: TrialContext, base: Path) -> TrialContext:
    workspace = base / "workspace"
    workspace.mkdir(parents=True)
    return replace(trial, workspace=workspace.resolve(), session_id=str(uuid4()))


def problem_of(placed: CreatedSession) -> tuple[str, str]:
    assert placed.session is None
    assert placed.fingerprint is None
    assert placed.error is not None
    return placed.error.kind, placed.error.message


@pytest.mark.parametrize("version", ["0.145.0", "0.150.1", "0.169.0"])
def test_versions_that_were_tried_can_be_seeded(version: str) -> None:
    assert seeding_problem(version) is None


@pytest.mark.parametrize("version", [None, "0.144.6", "0.170.0", "1.0.0", "0.169.0-alpha.1"])
def test_any_other_version_is_refused_with_those_that_are_known(version: str | None) -> None:
    problem = seeding_problem(version)

    assert problem is not None
    assert "0.145.0 to 0.169.0" in problem


def test_a_history_is_one_file_that_holds_what_its_fingerprint_says(
    trial: TrialContext, home: Path
) -> None:
    placed = place_history(CLI, home, HISTORY, trial)

    assert placed.error is None
    assert placed.session == SessionRef(trial.session_id)
    assert placed.fingerprint == of_a_history(fingerprint(home, trial.session_id))
    path = session_file(home, trial.session_id)
    assert path is not None
    assert placed.fingerprint is not None
    assert what_it_lost(path, placed.fingerprint) is None
    assert [file for file in home.rglob("*") if file.is_file()] == [path]
    year, month, day = path.relative_to(home).parts[1:4]
    assert path.name.startswith(f"rollout-{year}-{month}-{day}T")


def test_the_provider_of_a_profile_with_an_address_is_named(
    trial: TrialContext, home: Path
) -> None:
    profile = Profile(engine="codex", base_url="http://127.0.0.1:1/v1")

    place_history(CLI, home, HISTORY, replace(trial, profile=profile))

    path = session_file(home, trial.session_id)
    assert path is not None
    first = json.loads(path.read_bytes().splitlines()[0])
    assert first["payload"]["model_provider"] == "skillup"


def test_an_unknown_version_leaves_nothing_behind(trial: TrialContext, home: Path) -> None:
    kind, message = problem_of(place_history(CLI, home, HISTORY, replace(trial, version=None)))

    assert kind == "unsupported"
    assert "0.169.0" in message
    assert not home.exists()


def test_a_home_that_cannot_be_written_is_an_error_of_the_setup(
    trial: TrialContext, home: Path
) -> None:
    home.write_text("a file")

    kind, _ = problem_of(place_history(CLI, home, HISTORY, trial))

    assert kind == "setup"


def test_a_fork_has_the_parents_rows_under_its_own_id_and_the_parent_stays(
    trial: TrialContext, home: Path, tmp_path: Path
) -> None:
    placed = place_history(CLI, home, HISTORY, trial)
    assert placed.session is not None
    before = tree_of(home)
    child = child_of(trial, tmp_path / "child")
    own_home = tmp_path / "child" / "codex-home"

    forked = place_fork(CLI, placed.session, (home, trial), (own_home, child))

    assert forked.error is None
    assert forked.session == SessionRef(child.session_id)
    assert forked.fingerprint == fingerprint(own_home, child.session_id)
    source, copy = session_file(home, trial.session_id), session_file(own_home, child.session_id)
    assert source is not None
    assert copy is not None
    assert copy.relative_to(own_home).parent == source.relative_to(home).parent
    text = copy.read_text().replace(child.session_id, trial.session_id)
    assert text.replace(str(child.workspace), str(trial.workspace)) == source.read_text()
    assert str(trial.workspace) not in copy.read_text()
    assert tree_of(home) == before


def test_a_fork_in_the_same_home_is_a_file_of_its_own(
    trial: TrialContext, home: Path, tmp_path: Path
) -> None:
    placed = place_history(CLI, home, HISTORY, trial)
    assert placed.session is not None
    child = child_of(trial, tmp_path / "child")

    forked = place_fork(CLI, placed.session, (home, trial), (home, child))

    assert forked.session == SessionRef(child.session_id)
    assert of_a_history(fingerprint(home, trial.session_id)) == placed.fingerprint
    assert len([file for file in home.rglob("*") if file.is_file()]) == 2


def test_a_thread_without_a_file_cannot_be_forked(
    trial: TrialContext, home: Path, tmp_path: Path
) -> None:
    child = child_of(trial, tmp_path / "child")

    kind, _ = problem_of(place_fork(CLI, SessionRef("gone"), (home, trial), (home, child)))

    assert kind == "session_lost"


def test_a_fork_that_codex_made_is_not_copied(
    trial: TrialContext, home: Path, tmp_path: Path
) -> None:
    placed = place_history(CLI, home, HISTORY, trial)
    path = session_file(home, trial.session_id)
    assert placed.session is not None
    assert path is not None
    path.write_bytes(path.read_bytes().replace(b'"source"', b'"forked_from_id":"x","source"', 1))
    child = child_of(trial, tmp_path / "child")

    kind, message = problem_of(place_fork(CLI, placed.session, (home, trial), (home, child)))

    assert kind == "unsupported"
    assert "in another file" in message
    assert session_file(home, child.session_id) is None
