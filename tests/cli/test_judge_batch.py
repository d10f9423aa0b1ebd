"""`skillup judge --batch`: by the providers' batches, with their real clients."""

from __future__ import annotations

import json
import signal

import pytest

from tests.support.asking import KEYS
from tests.support.model_server import (
    Answer,
    Hang,
    HttpError,
    ModelRequest,
    ModelServer,
    Reply,
    Structured,
    Text,
    Usage,
)
from tests.support.project import Project, wait_until

CASES = ("right", "wordy", "errs", "late")
MODELS = ["anthropic:claude-haiku-4-5", "openai:gpt-4.1"]
PRICES = {MODELS[0]: (1e-6, 5e-6), MODELS[1]: (2e-6, 8e-6)}  # USD, of a token in and out
ANSWERS = "judge-answers/*.json"
USED = Usage(input=100_000, cached=0, output=1_000)


def script(request: ModelRequest) -> Reply:
    """An answer, a malformed one that is mended, an error, and none in time."""
    first = request.user_texts[0]
    if "Do errs" in first:
        return HttpError(400, "this one is refused")
    if "Do late" in first:
        return Hang()
    if "Do wordy" in first and len(request.entries) < 4:
        return Answer(Text("I think it is fine."), USED)
    said = {"id": "c1", "verdict": "pass", "reason": "So it is.", "quote": "Done"}
    return Answer(Structured({"verdicts": [said]}), USED)


@pytest.fixture
def project(project: Project) -> Project:
    project.write({"cases/eval.yaml": 'name: s\njudge: {model: "scripted:judges/own.yaml"}\n'})
    project.write({"cases/judges/own.yaml": "criteria: [{when: done, found: done}]\n"})
    for name in CASES:
        case = {"input": {"prompt": f"Do {name}"}, "assertions": [{"rubric": "It is done"}],
                "scripted": [{"say": f"Done: {name}"}]}  # fmt: skip
        project.write({f"cases/{name}.yaml": json.dumps(case)})
    outcome = project.run("run", "cases", "--out", "run")
    assert outcome.exit_code == 0, outcome.stderr
    return project


def environment(server: ModelServer, base: str = "") -> dict[str, str]:
    url = f"{server.url}{base}"
    return {**KEYS, "ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1"}


@pytest.mark.parametrize("model", MODELS)
def test_a_run_is_judged_in_batches_at_half_the_price(project: Project, model: str) -> None:
    name = model.replace("openai:", "openai-responses:")
    with ModelServer(script) as server:
        env = environment(server)
        options = ("judge", "run", "--judge-model", name)
        batched = project.run(*options, "--batch", env=env)
        assert server.batches.sizes == [4, 1], "and the malformed answer, once more"
        assert not [one for one in server.others if one.endswith("/responses")]
        assert all("cache_control" not in json.dumps(r.body) for r in server.requests)
        if model.startswith("openai"):
            assert len([one for one in server.others if one.startswith("DELETE")]) == 2
        assert batched.exit_code == 3
        shown = batched.stderr + batched.stdout
        assert "4 judged: 2 passed, 2 errors" in shown
        assert "judges that read, by batches: calls 4" in shown
        assert "this one is refused" in shown
        assert "expired" in shown

        kept = [json.loads(file.read_text()) for file in (project.root / "run").glob(ANSWERS)]
        costs = [one["cost_usd"] for one in kept if one["cost_usd"]]
        alone = 100_000 * PRICES[model][0] + 1_000 * PRICES[model][1]
        assert sorted(costs) == pytest.approx([alone / 2, 2 * alone / 2])

        asked = len(server.requests)
        again = project.run(*options, "--batch", "-k", "right", "-k", "wordy", "--json", env=env)
        assert again.exit_code == 0, again.stderr
        assert len(server.requests) == asked, "stored answers"
        half = project.run(*options, "--batch", "--estimate", "--json", env=env).data[name]
        whole = project.run(*options, "--estimate", "--json", env=env).data[name]
        assert whole["stored"] == 2
        assert half["input_cost_usd"] == pytest.approx(whole["input_cost_usd"] / 2)


@pytest.mark.parametrize("model", MODELS)
def test_ctrl_c_cancels_the_batch(project: Project, model: str) -> None:
    name = model.replace("openai:", "openai-responses:")
    with ModelServer(script) as server:
        server.batches.endless = True
        options = ("judge", "run", "--judge-model", name, "--batch")
        with project.start(*options, env=environment(server)) as process:
            wait_until(lambda: server.batches.sizes, process)
            wait_until(lambda: any("GET" in one for one in server.others), process)
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
            assert (process.returncode, "Traceback" in told) == (130, False)
        assert server.batches.cancelled == ["batch_1"]
        assert server.batches.sizes == [4]


@pytest.mark.parametrize(
    ("model", "base", "said"),
    [
        ("anthropic:claude-haiku-4-5", "/other", "knows no batches: judge without --batch"),
        ("openai-responses:gpt-4.1", "/other", "knows no batches: judge without --batch"),
        ("openai-chat:gpt-4.1", "", "was not asked: `OpenAIChatModel` 'gpt-4.1' has no batch API"),
    ],
)
def test_who_knows_no_batches_is_not_asked(
    project: Project, model: str, base: str, said: str
) -> None:
    with ModelServer(script) as server:
        env = environment(server, base)
        outcome = project.run("judge", "run", "--judge-model", model, "--batch", env=env)
        assert outcome.exit_code == 3
        assert said in " ".join((outcome.stderr + outcome.stdout).split())
        assert server.requests == []


def test_written_down_judges_are_asked_as_always(project: Project) -> None:
    outcome = project.run("judge", "run", "--batch")
    assert outcome.exit_code == 0, outcome.stderr
    assert "nothing changed" in outcome.stderr + outcome.stdout
