"""A small agent that speaks the Agent Client Protocol and does what its prompts say, also badly.

Its sessions are files below HOME. Words of the variable QUIRKS are about the whole process.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

QUIRKS = os.environ.get("QUIRKS", "").split()
SESSIONS = Path(os.environ["HOME"], "sessions")
CAPABILITIES: dict[str, Any] = {"loadSession": "no-load" not in QUIRKS}
if "resume-only" in QUIRKS:
    CAPABILITIES = {"sessionCapabilities": {"resume": {}}}
if "forks" in QUIRKS:
    CAPABILITIES["sessionCapabilities"] = {"fork": {}}
MODES = [{"id": mode} for mode in ("auto", "default", "acceptEdits", "bypassPermissions")]


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(what: str, **more: Any) -> None:
    params = {"sessionId": session, "update": {"sessionUpdate": what, **more}}
    send(method="session/update", params=params)


def say(text: str, kind: str = "agent_message_chunk", **more: Any) -> None:
    for part in (text[:5], text[5:]):
        update(kind, content={"type": "text", "text": part}, **more)


def ask(method: str, **params: Any) -> Any:
    """The answer of the client, which is its next line."""
    send(id="mine", method=method, params={"sessionId": session, **params})
    answer = json.loads(sys.stdin.readline())
    return answer.get("result") or answer["error"]["code"]


def call(kind: str, path: str, meta: dict[str, Any] | None = None) -> str:
    """A call of a tool, if it may."""
    update("tool_call", toolCallId="c1", title="Working", kind=kind, status="pending", rawInput={})
    arguments = {"command": ["bash", "-lc", path]} if kind == "execute" else {"path": path}
    about: dict[str, Any] = {
        "toolCallId": "c1",
        "kind": kind,
        "rawInput": arguments,
        "_meta": meta or {},
    }
    if path.startswith("new"):
        about["content"] = [{"type": "diff", "path": path, "oldText": "", "newText": "x"}]
    kinds = ("allow_always", "allow_once", "reject_once")
    options = [{"optionId": f"by {kind}", "kind": kind, "name": kind} for kind in kinds]
    outcome = "not asked"
    if "unasked" not in QUIRKS:
        given = ask("session/request_permission", toolCall=about, options=options)
        outcome = given["outcome"].get("optionId") or given["outcome"]["outcome"]
        outcome += "".join(f" {text}" for text in given.get("answers", {}).values())
    say("Well, ", messageId="m2")
    update("tool_call_update", toolCallId="c1", content=[])
    done = {"toolCallId": "c1", "status": "failed" if "reject" in outcome else "completed"}
    update("tool_call_update", **{**about, **done}, rawOutput={"stdout": "done", "exit_code": 0})
    return outcome


def ask_model(prompts: list[str]) -> str:
    messages = [{"role": "user", "content": text} for text in prompts]
    body = {"model": os.environ["MODEL"], "messages": messages, "tools": [{"type": "function"}]}
    body["tools"] = [{"type": "function", "function": {"name": "t", "parameters": {}}}]
    headers = {"authorization": f"Bearer {os.environ['KEY']}", "content-type": "application/json"}
    url = f"{os.environ['MODEL_URL']}/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def turn(text: str) -> str:
    """What it answers, and mostly why it stopped."""
    word, _, rest = text.strip().partition(" ")
    match word:
        case "die":
            say("Half an ans")
            os._exit(3)
        case "hang":
            line = json.loads(sys.stdin.readline())
            Path("told.txt").write_text(line["method"])
            time.sleep(60)
        case "garbage":
            print("Loading {plugins", "done", sep="\n", flush=True)
        case "leave":
            subprocess.Popen(["sleep", "300"], start_new_session=True)
        case "call":
            kind, path = rest.split()
            return call(kind, path)
        case "question":
            return str(ask("elicitation/create", mode="form", message="Which colour?")["action"])
        case "form":
            assert client.get("elicitation"), "the client cannot be asked"
            form = {"mode": "form", "requestedSchema": json.loads(rest)}
            return json.dumps(ask("elicitation/create", message="Please choose.", **form))
        case "qwen":
            return call("other", "x", {"qwenQuestions": [{"question": "Which colour?"}]})
        case "file":
            return str(ask("fs/read_text_file", path="/etc/passwd"))
        case "model":
            try:
                return ask_model(prompts[-1:] if "amnesia" in QUIRKS else prompts)
            except OSError as error:
                return f"I am sorry: {error}"
    return f"{os.getpid()} was told: {' | '.join(prompts)}"


def prompted(request: dict[str, Any]) -> None:
    text = request["params"]["prompt"][0]["text"]
    prompts.append(text)
    SESSIONS.mkdir(exist_ok=True)
    (SESSIONS / session).write_text(json.dumps(prompts))
    if "late" in QUIRKS:
        replay(prompts)
    if "silent" in QUIRKS:
        return send(id=request["id"], result={"stopReason": "end_turn"})
    word, _, rest = text.partition(" ")
    if word == "error":
        code, _, message = rest.partition(" ")
        error = {"code": int(code), "message": "Internal error", "data": {"details": message}}
        return send(id=request["id"], error=error)
    say("Hmm.", "agent_thought_chunk")
    say(f"mode {mode}", messageId="m1")
    say(rest if word == "stop" else turn(text), messageId="m2")
    reason = rest if word == "stop" else "end_turn"
    usage = {"totalTokens": 120, "inputTokens": 93, "outputTokens": 20, "cachedReadTokens": 7}
    result: dict[str, Any] = {"stopReason": reason, "usage": usage}
    if word == "goose":
        say("Ran into this error: Server error. Status: 503 Busy.", messageId="m3")
        del result["usage"]
    return send(id=request["id"], result=result)


def opened(request: dict[str, Any], how: str) -> None:
    global session, prompts
    if "locked" in QUIRKS:
        error = {"code": -32000, "message": "Authentication required"}
        return send(id=request["id"], error=error)
    if how == "new":
        session, prompts = f"s{os.getpid()}", []
    else:
        session = request["params"]["sessionId"]
        file = SESSIONS / session
        if not file.exists():
            error = {"code": -32602, "message": "there is none of that name"}
            return send(id=request["id"], error=error)
        prompts = json.loads(file.read_text())
    if how == "fork":
        session = f"f{os.getpid()}"
        (SESSIONS / session).write_text(json.dumps(prompts))
    if how == "load" and "late" not in QUIRKS:
        replay([text for text in prompts if "forgetful" not in QUIRKS])
    modes = {"currentModeId": "auto", "availableModes": MODES}
    return send(id=request["id"], result={"sessionId": session, "modes": modes})


def replay(shown: list[str]) -> None:
    for number, text in enumerate(shown):
        say(text, "user_message_chunk", messageId=f"u{number}")
        say("an earlier answer")


session, prompts, mode = "", list[str](), "auto"
for line in sys.stdin:
    asked = json.loads(line)
    method = asked.get("method", "")
    if method == "initialize":
        client = asked["params"]["clientCapabilities"]
        if "mute" in QUIRKS:
            time.sleep(60)
        info = {"name": "Small agent" * ("nameless" not in QUIRKS), "version": "1.2.3"}
        version = 2 if "modern" in QUIRKS else 1
        hello = {"protocolVersion": version, "agentInfo": info, "agentCapabilities": CAPABILITIES}
        send(id=asked["id"], result=hello)
    elif method == "session/prompt":
        prompted(asked)
    elif method == "session/set_mode":
        mode = asked["params"]["modeId"]
        send(id=asked["id"], result={})
    elif method.startswith("session/") and "id" in asked:
        opened(asked, method.removeprefix("session/"))
if "lingering" in QUIRKS:
    time.sleep(60)
