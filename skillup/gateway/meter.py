"""What passes between an agent and its model: requests and usage, from the provider's own answers.

Anthropic Messages, OpenAI Responses and Chat Completions, and Gemini; as JSON and as events.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any

from skillup.schema.record import Refusal, Traffic, Usage, total_cost, total_usage

_METERED = re.compile(
    r"/(?:messages|responses|chat/completions)$|:(?:generateContent|streamGenerateContent)$"
)
_TELLING = re.compile(rb'\ndata:([^\n]*"usage[^\n]*)')  # usage, usageMetadata
_REFUSED = frozenset({429, 503, 529})  # Statuses that ask to come again later
_PASSING = frozenset({408, 409, 429})  # After these, and 5xx, CLIs ask the same again
_LONGEST = 4 << 20  # Bytes of a request, or of an answer, that are looked at
_MALFORMED = (ValueError, TypeError, AttributeError, RecursionError)
_SALT = secrets.token_bytes(16)
Mask = Callable[[bytes], bytes]


class ModelExchange:
    """One request and its answer, as far as they have passed; nothing here raises or waits."""

    def __init__(self, path: str, prompts: Sequence[str], *, keep: bool) -> None:
        """`prompts`: the conversation's messages, the one asked now last; `keep`: whole bodies."""
        self.path, self._prompts, self._keeps = path, prompts, keep
        self.is_metered = _METERED.search(path.partition("?")[0]) is not None
        self.is_whole = False  # All of the request has come
        self.is_main = False  # It has tools, and the message that is asked now
        self.continued: bool | None = None  # It holds all `prompts`; None: it is too long to say
        self.model: object = None  # Which is asked, where the body says it
        self.status: int | None = None  # None: the provider did not answer
        self.retry_after: float | None = None
        self.ended = False  # Or broken off
        self.broken = False  # By the provider
        self.said = ""  # The answer's message, as errors have one
        self.sha256 = hashlib.sha256()
        self.request, self.answer = bytearray(), bytearray()
        self._counts: dict[str, int] = {}

    def asked(self, part: bytes) -> None:
        """A part of the request."""
        self.sha256.update(part)
        if self._keeps or len(self.request) <= _LONGEST:
            self.request += part

    def asked_all(self) -> None:
        """The request is whole."""
        self.is_whole = True
        self.is_main = len(self.request) > _LONGEST  # no title or probe is as long
        if self.is_metered and not self.is_main:
            with suppress(*_MALFORMED):
                body = json.loads(self.request)
                self.model = body.get("model")
                items = body.get("messages") or body.get("input") or body.get("contents") or ()
                texts = list(_user_texts(items))
                has_tools = bool(body.get("tools")) or b'"additional_tools"' in self.request
                self.is_main = has_tools and _hold(texts, self._prompts[-1:])
                self.continued = _hold(texts, self._prompts)
        if not self._keeps:
            self.request.clear()

    def answers(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """The answer begins."""
        self.status = status
        for name, value in headers:
            if status in _REFUSED and name.lower() == b"retry-after":
                with suppress(ValueError):  # or a date
                    self.retry_after = float(value)

    def answered(self, part: bytes) -> None:
        """A part of the answer."""
        self.answer += part
        if len(self.answer) > 2 * _LONGEST and not self._keeps:
            del self.answer[_LONGEST // 2 : -_LONGEST // 2]  # Counts are first and last

    @property
    def has_failed(self) -> bool:
        """In a way after which CLIs ask again."""
        status = self.status or 0  # 0: it has not begun; the agent may have left
        return self.broken or status in _PASSING or status >= 500 or (self.ended and not status)

    def answered_all(self) -> None:
        """The answer has ended; it is JSON, or events."""
        self.ended = True
        tells = b'"usage' in self.answer
        for data in (tells and _TELLING.findall(b"\n" + self.answer)) or [self.answer]:
            with suppress(*_MALFORMED):
                json.loads(data, object_hook=self._take)
        if not self._keeps:
            self.answer.clear()

    def _take(self, found: dict[str, Any]) -> dict[str, Any]:
        for name, value in dict(found.get("usage") or found.get("usageMetadata") or ()).items():
            counts = value if isinstance(value, dict) else {name: value}  # Some are details
            self._counts |= {k: v for k, v in counts.items() if isinstance(v, int)}
        self.said = found["message"] if isinstance(found.get("message"), str) else self.said
        return found

    def usage(self) -> Usage | None:
        """In the one meaning for all; None: the provider has not said."""

        def first(*names: str) -> int | None:
            return next((self._counts[name] for name in names if name in self._counts), None)

        given = first("input_tokens", "prompt_tokens", "promptTokenCount")
        made = first("output_tokens", "completion_tokens", "candidatesTokenCount")
        # Anthropic counts what is cached apart, and Gemini what is thought.
        cached, written = "cache_read_input_tokens", "cache_creation_input_tokens"
        apart = (first(cached), first(written)) if "input_tokens" in self._counts else ()
        known = Usage(
            input_tokens=total_cost((given, *apart)),
            cached_input_tokens=first("cached_tokens", "cachedContentTokenCount", cached),
            cache_write_tokens=first(written),
            output_tokens=total_cost((made, first("thoughtsTokenCount"))),
            reasoning_tokens=first("reasoning_tokens", "thoughtsTokenCount"),
            requests=1,
        )
        return known if self._counts else None


def _user_texts(items: Any) -> Iterable[str]:
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        if item.get("role") == "user":
            content = item.get("content") or item.get("parts") or ()
            parts = [content] if isinstance(content, str) else [one.get("text") for one in content]
            yield flat("\n".join(part for part in parts if part))


def flat(text: str) -> str:
    """A text in which blanks do not matter."""
    return " ".join(text.split())


def _hold(texts: Collection[str], prompts: Iterable[str]) -> bool:
    """Whether each of `prompts` is in one of `texts`, in this order."""
    left = iter(texts)
    return all(any(flat(prompt) in text for text in left) for prompt in prompts)


class Route:
    """The way of one trial to its model. What is between `begin` and `end` is one turn's."""

    def __init__(
        self, upstream: str, port: int, streams: Any, mask: Mask, hosts: Sequence[str] = ()
    ) -> None:
        """Bodies are kept in raw `streams`, masked, if there are any.

        `hosts` (``pypi.org``, ``*.pypi.org``, ``pypi.org:8443``) are reached through it, besides.
        """
        self.upstream, self.token = upstream.rstrip("/"), secrets.token_hex(16)
        # Where the agent's CLI finds its model: at the gateway, or a forwarder to its socket.
        self.url = f"http://127.0.0.1:{port}/{self.token}"
        self.proxy_url = f"http://{self.token}:@127.0.0.1:{port}"  # By which it reaches its hosts
        self.is_open = True
        self.trouble = ""  # Why a request of this turn was not answered
        self._hosts = [(host if ":" in host else f"{host}:443").lower() for host in hosts]
        self._retries = sys.maxsize
        self._last_of_all: ModelExchange | None = None  # After it, an attempt was not passed on
        self._exchanges: list[ModelExchange] = []
        self._prompts: Sequence[str] = ()
        self._streams, self._mask = streams, mask
        self._stream: Any = None  # Of this turn; None: bodies are not kept
        self._keys: dict[str, str] = {}

    def allows(self, target: str) -> bool:
        """Whether `target`, a host and its port, is one of its hosts."""
        name, ends = target.lower(), tuple(h[1:] for h in self._hosts if h.startswith("*."))
        return name in self._hosts or name.endswith(ends)

    def placeholder(self, key: str) -> str:
        """What the agent gets in place of a key; in its requests it is replaced by it.

        The same in all trials, so that all have the same secrets; by itself it opens nothing.
        """
        made = hashlib.blake2b(key.encode(errors="surrogatepass"), key=_SALT, digest_size=16)
        return self._keys.setdefault(key, f"skillup-{made.hexdigest()}")

    def with_keys(self, value: bytes, before: bytes = b"") -> bytes:
        """A header's value, or a path, with keys in place of what stands for them after `before`.

        Nowhere else in a path: servers that do not know it say so, and repeat it.
        """
        for key, placeholder in self._keys.items():
            value = value.replace(before + placeholder.encode(), before + key.encode())
        return value

    def without_keys(self, part: bytes) -> bytes:
        """A part of an answer, as long as it was: a server may repeat what it was asked."""
        for key in self._keys:
            part = part.replace(key.encode(), b"*" * len(key.encode()))
        return part

    async def hidden(
        self, parts: AsyncIterable[bytes], seen: Callable[[bytes], None]
    ) -> AsyncIterator[bytes]:
        """The parts of an answer without keys, those that are in two parts, too; `seen` is told."""
        keys, begun = [key.encode() for key in self._keys], b""
        starts = [key[:n] for key in keys for n in range(len(key) - 1, 0, -1)]
        async for part in parts:
            seen(part)
            whole = self.without_keys(begun + part)
            begun = max(filter(whole.endswith, starts), key=len, default=b"")
            yield whole.removesuffix(begun)
        yield begun

    def begin(self, stem: str, prompts: Sequence[str], retries: int = sys.maxsize) -> None:
        """A turn, with all `prompts` so far, its own last; so many `retries` of a request pass."""
        self._prompts, self._retries = prompts, retries
        self.trouble, self._last_of_all = "", None
        if self._streams is not None:
            self._stream = self._streams.open(f"{stem}.http.jsonl")

    def exchange(self, path: str) -> ModelExchange:
        """A request begins."""
        made = ModelExchange(path, self._prompts, keep=self._stream is not None)
        if made.is_metered:
            self._exchanges.append(made)
        return made

    def continued(self) -> bool | None:
        """Whether the turn's requests so far hold all earlier messages; None: nobody knows."""
        return _continued(_main(self._exchanges))

    def last_answered(self) -> ModelExchange | None:
        """The agent's own latest request whose answer has begun, or was broken off."""
        known = [one for one in _main(self._exchanges) if one.ended or one.status is not None]
        return known[-1] if known else None

    def is_spent(self) -> bool:
        """Whether the agent's own latest requests failed, as many as it may make."""
        last = _main(self._exchanges)[-1 - self._retries :]
        return len(last) > self._retries and all(one.has_failed for one in last)

    def refusal(self, exchange: ModelExchange) -> str:
        """What `exchange` is answered if it is one attempt too many; CLIs take it as final.

        It is none if the CLI asks another model, or for a purpose of its own. Some would ask again
        if they found the words of a provider that is overloaded in it.
        """
        *_, last, now = [exchange, exchange, *_main(self._exchanges)]
        if last is now or now is not exchange or last.model != exchange.model:
            return ""
        self._exchanges.remove(exchange)
        self._last_of_all = last
        what = f"skillup: no attempt follows after `retries: {self._retries}`"
        error = {"type": "invalid_request_error", "code": 400, "message": what}
        return json.dumps({"type": "error", "error": error})

    def final_failure(self, *, waited: bool) -> ModelExchange | None:
        """The agent's own latest request, if it failed and no further attempt was passed on.

        Or the agent `waited` to make one, until its time was over.
        """
        last = self.last_answered()
        if last is None or last is self._last_of_all:
            return last
        left = last.status is None and not last.broken  # It was still asking
        return last if waited and last.has_failed and not left else None

    def end(self) -> Traffic:
        """The turn is over: what passed since the one before."""
        begun, self._exchanges = self._exchanges, []
        # An agent that was ended in the middle of asking has asked nothing.
        exchanges = [one for one in begun if one.is_whole or one.status is not None]
        for one in exchanges:
            one.answered_all()  # The agent may have been ended in the middle of it
        if self._stream is not None:
            for one in exchanges:
                asked, told = (body.decode(errors="replace") for body in (one.request, one.answer))
                line = {"path": one.path, "status": one.status, "request": asked, "answer": told}
                self._stream.write(self._mask(json.dumps(line).encode()) + b"\n")
            self._stream.close()
            self._stream = None
        main = _main(exchanges)
        side = [one for one in exchanges if one not in main]
        own, others = (total_usage(one.usage() for one in part) for part in (main, side))
        refused = [one for one in exchanges if one.status in _REFUSED]
        return Traffic(
            requests=len(main),
            side_requests=len(side),
            usage=Usage(**own) if own else None,
            side_usage=Usage(**others) if others else None,
            refused=[Refusal(status=o.status, retry_after_seconds=o.retry_after) for o in refused],
            sha256=[one.sha256.hexdigest()[:16] for one in main],
            continued=_continued(main),
        )


def _main(exchanges: Sequence[ModelExchange]) -> list[ModelExchange]:
    """The agent's own of a turn's."""
    main = [one for one in exchanges if one.is_main]
    # A sub-agent's task may hold a short message, too, but not the conversation.
    return [one for one in main if one.continued is not False] or main


def _continued(main: Sequence[ModelExchange]) -> bool | None:
    known = [one.continued for one in main if one.continued is not None]
    return any(known) if known else None
