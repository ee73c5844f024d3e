"""The model's server over HTTP: anything that speaks OpenAI's chat completions.

One pooled session, timeouts for every phase, and further attempts while nothing of the answer has arrived. Its
failures become our refusals: 502 when it is broken, 504 when it is slow, 429 when it is busy. What it says about them
goes to our client only after keys were taken out of it.

What does not live here: what the messages mean. A reply is checked for its shape (completion.py) and handed on.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from io import BytesIO
from typing import Any, ClassVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from lastword.errors import ConfigError
from lastword.server.api_types import Refusal
from lastword.server.completion import Completion, check_chunk, says_something
from lastword.server.model_server import Abilities, Upstream, exceeded, read_abilities
from lastword.server.server_limits import ServerLimits
from lastword.wire import EventReader, EventTooLarge, SentEvent

log = logging.getLogger("lastword.server")

# Connections kept to the model's server. More streams than this wait for one another.
POOL = 512
# A body with images in it. It is sent in pieces, so that the loop can do something else in between.
LARGE_BODY = 2**20
# Of an error text from the model's server, what a client gets to see.
MAX_QUOTED = 300

# Around every word of a stream stands some hundred bytes of JSON; the limit is on the answer, not on its wrapping.
STREAM_OVERHEAD = 64
# Around the data of an event: names of fields and line ends.
EVENT_FORM = 32

WEB_PAGE = "text/html"
_JSON = {"Content-Type": "application/json"}

# What keys look like, wherever they come from. The server's own key is removed by name besides.
_KEYS = re.compile(r"\b(?:sk|pk|rk|key|hf|gsk|xai|AIza|ghp|lastword)[-_][\w\-*.…]{4,}|Bearer\s+\S+", re.IGNORECASE)

# A code is a word. Anything else of that name is not for programs to read.
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


class HttpUpstream:
    """A model behind a URL."""

    USUAL: ClassVar[Mapping[str, str]] = {
        "Ollama": "http://127.0.0.1:11434/v1",
        "LM Studio": "http://127.0.0.1:1234/v1",
        "llama.cpp": "http://127.0.0.1:8080/v1",
        "vLLM": "http://127.0.0.1:8000/v1",
    }
    """Where local models usually answer."""

    def __init__(self, url: str, *, key: str | None = None, limits: ServerLimits | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"{url!r} is not the address of a model's server", hint="write it like http://127.0.0.1:11434/v1"
            )
        if parts.username or parts.password or parts.query or parts.fragment:
            # The address is said in many places. What is wrong is said without repeating it: a key may stand in it.
            raise ConfigError(
                "the address of a model's server has no password and no question in it",
                hint="give the key by itself: LASTWORD_UPSTREAM_KEY",
            )
        self.url = url.rstrip("/")
        self._chat = f"{self.url}/chat/completions"
        self._key = key
        self._limits = limits or ServerLimits()
        self._session: aiohttp.ClientSession | None = None
        self.retries_made = 0
        self._abilities: Abilities | None = None

    @classmethod
    async def find_local(cls, places: Mapping[str, str] | None = None) -> tuple[str, str] | None:
        """The name and address of the first local model's server that answers and has a model."""
        # On this machine an answer takes a moment, or there is nobody.
        limits = ServerLimits(connect_seconds=0.5)
        for name, url in (cls.USUAL if places is None else places).items():
            upstream = cls(url, limits=limits)
            try:
                if await upstream.models():
                    return name, url
            except Refusal:
                continue
            finally:
                await upstream.close()
        return None

    async def complete(self, body: dict[str, Any]) -> Completion:
        response = await self._post(body)
        async with response:
            data = await self._read_all(response)
        return Completion.checked(self._decode(data))

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        response = await self._post(body)
        async with response:
            if response.content_type == "application/json":
                # Asked for a stream, it answered in one piece; or with an error and the status of a success.
                whole = Completion.checked(self._decode(await self._read_all(response)))
                for chunk in whole.as_chunks():
                    yield chunk
                return
            finished = has_begun = False
            nothing = 0
            async with aclosing(self._events(response)) as events:
                async for event in events:
                    data = event.data.strip()
                    if not data:
                        continue
                    has_begun = True
                    if data == b"[DONE]":
                        return
                    chunk = self._chunk(data)
                    for choice in chunk["choices"]:
                        finished = finished or bool(choice.get("finish_reason"))
                    if not says_something(chunk):
                        nothing += len(data)
                        if nothing > self._limits.reply_bytes:
                            raise self._too_large()
                    yield chunk
            if not has_begun and response.content_type != "text/event-stream":
                raise _no_answer(response.content_type)
            if not finished:
                raise Refusal(502, "upstream_died", "the model's server broke off before its answer was complete")

    async def models(self) -> list[str]:
        found = await self._page(f"{self.url}/models")
        entries = found.get("data") if isinstance(found, dict) else None
        if not isinstance(entries, list):
            raise Refusal(502, "upstream_garbage", "the model's server lists its models in a form we do not know")
        names = [entry.get("id") for entry in entries if isinstance(entry, dict)]
        return [name for name in names if isinstance(name, str) and name]

    async def abilities(self) -> Abilities:
        if self._abilities is None:
            models = await self._page_if_any(f"{self.url}/models")
            props = await self._page_if_any(f"{self.url.removesuffix('/v1')}/props")
            found = read_abilities(models, props)
            if models is None and props is None:
                return found  # Nobody was there to ask.
            self._abilities = found
        return self._abilities

    async def _page_if_any(self, url: str) -> Any:
        try:
            return await self._page(url)
        except Refusal:
            return None

    async def _page(self, url: str) -> Any:
        """A page of the model's server, as JSON."""
        timeout = aiohttp.ClientTimeout(total=self._limits.connect_seconds)
        try:
            # No redirects, as for questions: what another host lists is not what this one has.
            async with self._open().get(url, timeout=timeout, allow_redirects=False) as response:
                if response.status != 200:
                    raise self._failed(response.status, await self._error(response), None)
                if response.content_type == WEB_PAGE:
                    raise _no_answer(WEB_PAGE)
                return self._decode(await self._read_all(response))
        except (TimeoutError, aiohttp.ClientError, OSError) as problem:
            raise self._unreachable(problem) from None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def redact(self, text: str) -> str:
        """A text of the model's server without keys, short enough to be repeated."""
        if self._key:
            text = text.replace(self._key, "[removed]")
        text = _KEYS.sub("[removed]", text)
        return text if len(text) <= MAX_QUOTED else text[:MAX_QUOTED] + "…"

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            # Compression would hold back the pieces of a stream.
            headers = {"User-Agent": "lastword", "Accept-Encoding": "identity"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=POOL, ttl_dns_cache=60),
                headers=headers,
                # Nothing of one caller's turn may stick to another's.
                cookie_jar=aiohttp.DummyCookieJar(),
                # `sock_read` is the wait for the first byte; between later ones, `_piece` is stricter.
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._limits.connect_seconds, sock_read=self._limits.first_byte_seconds
                ),
            )
        return self._session

    async def _post(self, body: dict[str, Any]) -> aiohttp.ClientResponse:
        """The response once its headers are here and say that it is one; further attempts until then."""
        data = msgspec.json.encode(body)
        attempt = 0
        while True:
            refusal, wait = await self._attempt(data)
            if not isinstance(refusal, Refusal):
                return refusal
            if wait is None or attempt >= self._limits.retries:
                raise refusal
            log.info("%s; this was attempt %d, and another one follows", refusal.fact, attempt + 1)
            await asyncio.sleep(max(wait, self._limits.retry_seconds * 2**attempt))
            attempt += 1
            self.retries_made += 1

    async def _attempt(self, data: bytes) -> tuple[aiohttp.ClientResponse | Refusal, float | None]:
        """One attempt: a response, or why not and how long to wait at least before another (None: there is no use)."""
        try:
            # No redirects: one could carry the key to another host.
            sent = data if len(data) < LARGE_BODY else BytesIO(data)
            response = await self._open().post(self._chat, data=sent, headers=_JSON, allow_redirects=False)
        except TimeoutError:
            return self._slow("did not begin to answer"), None
        except (aiohttp.ClientError, OSError) as problem:
            return self._unreachable(problem), 0.0
        if response.status == 200:
            return response, None
        async with response:
            error = await self._error(response)
        retry_after = response.headers.get("Retry-After")
        refusal = self._failed(response.status, error, retry_after)
        if response.status != 429 and response.status < 500:
            return refusal, None
        wait = _seconds(retry_after)
        return refusal, None if wait > self._limits.retry_after_seconds else wait

    async def _read_all(self, response: aiohttp.ClientResponse) -> bytes:
        content = response.content
        if content.is_eof() and content.total_bytes <= self._limits.reply_bytes:
            # The whole answer came with its headers, as short ones do.
            return await content.read()
        parts: list[bytes] = []
        size = 0
        end = self._end_of_reply()
        while piece := await self._piece(content, end):
            size += len(piece)
            if size > self._limits.reply_bytes:
                raise self._too_large()
            parts.append(piece)
        return b"".join(parts)

    async def _events(self, response: aiohttp.ClientResponse) -> AsyncGenerator[SentEvent]:
        """The events of an answer, with one that its end cut short: some servers leave out the last blank line."""
        most = self._limits.reply_bytes
        reader = EventReader(max_event_bytes=most)
        size = events = 0
        end = self._end_of_reply()
        while piece := await self._piece(response.content, end):
            try:
                found = reader.feed(piece)
            except EventTooLarge:
                raise self._too_large() from None
            size += len(piece)
            events += sum(len(event.data) + EVENT_FORM for event in found)
            # Comments that keep a connection alive are no part of an answer, and have to be short.
            if size > most * STREAM_OVERHEAD or size - events > most:
                raise self._too_large()
            for event in found:
                yield event
        for event in reader.end():
            yield event

    def _end_of_reply(self) -> float:
        return asyncio.get_running_loop().time() + self._limits.reply_seconds

    async def _piece(self, content: aiohttp.StreamReader, end: float) -> bytes:
        """What arrives next, with the failures of the network as refusals; nothing at the end."""
        if asyncio.get_running_loop().time() > end:
            raise self._slow("did not come to the end of its answer")
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                return await content.readany()
        except TimeoutError:
            raise self._slow("stopped in the middle of its answer") from None
        except (aiohttp.ClientError, OSError) as problem:
            self._note(problem)
            raise Refusal(502, "upstream_died", "the model's server broke off in the middle of its answer") from None

    async def _error(self, response: aiohttp.ClientResponse) -> dict[str, Any]:
        """What an error response says, if it says it soon."""
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                data = await response.content.read(16_384)
        except (TimeoutError, aiohttp.ClientError, OSError):
            return {}
        try:
            found = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return {}
        error = found.get("error") if isinstance(found, dict) else None
        return error if isinstance(error, dict) else {"message": error}

    def _chunk(self, data: bytes) -> dict[str, Any]:
        """A piece of a stream. Some servers say only in its first one that they were sent too much."""
        found = self._decode(data)
        match found:
            case {"error": {"message": str(said)} as error}:
                too_long = exceeded({**error, "code": self._code(error)}, self.redact(said))
                if too_long is not None:
                    raise too_long
        return check_chunk(found, self.redact)

    def _code(self, error: Mapping[str, Any]) -> str | None:
        """The server's own word for what is wrong, where it is one and no key."""
        named = error.get("code")
        return named if isinstance(named, str) and _CODE.fullmatch(named) and self.redact(named) == named else None

    def _decode(self, data: bytes) -> Any:
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise Refusal(502, "upstream_garbage", "the model's server sent something that is not JSON") from None

    def _failed(self, status: int, error: dict[str, Any], retry_after: str | None) -> Refusal:
        message = error.get("message")
        said = self.redact(message) if isinstance(message, str) else ""
        code = self._code(error)
        quoted = f": {said}" if said else ""
        if status == 429:
            headers = {"Retry-After": str(int(_seconds(retry_after)) or 1)}
            return Refusal(429, "upstream_busy", f"the model's server is busy{quoted}", headers=headers)
        if status in (401, 403):
            hint = "set LASTWORD_UPSTREAM_KEY, and try `lastword doctor`"
            return Refusal(502, "upstream_key", "the model's server refused our key", hint=hint)
        if status in (400, 413, 422) and (too_long := exceeded({**error, "code": code}, said)) is not None:
            return too_long
        if status in (400, 404, 413, 422):
            answered = 404 if status == 404 else 400
            words = f"the model's server refused the request{quoted}"
            # Its own word for why: clients know `context_length_exceeded`, and cut their history.
            return Refusal(answered, code or "upstream_refused", words, is_upstream=True)
        if status == 504:
            return Refusal(504, "upstream_slow", f"the model's server timed out{quoted}")
        return Refusal(502, "upstream_failed", f"the model's server answered with status {status}{quoted}")

    def _slow(self, how: str) -> Refusal:
        return Refusal(504, "upstream_slow", f"the model's server {how} in time")

    def _too_large(self) -> Refusal:
        return Refusal(502, "upstream_too_large", f"the model's answer is longer than {self._limits.reply_bytes} bytes")

    def _note(self, problem: BaseException) -> None:
        """The client gets a sentence; what the network said is for whoever looks after the server."""
        log.debug("the model's server: %s: %s", type(problem).__name__, self.redact(str(problem)))

    def _unreachable(self, problem: BaseException) -> Refusal:
        self._note(problem)
        if isinstance(problem, TimeoutError):
            return Refusal(504, "upstream_slow", "the model's server could not be reached in time")
        hint = "is it running? `lastword doctor` says what is configured and whether it answers"
        return Refusal(502, "upstream_unreachable", "the model's server cannot be reached", hint=hint)


def _no_answer(media_type: str) -> Refusal:
    """Somebody else answers there, or a proxy in front of it."""
    what = "a web page" if media_type == WEB_PAGE else "something that no model says"
    fact = f"the model's server answered with {what}"
    return Refusal(502, "upstream_garbage", fact, hint="is its address right? Most end with /v1")


def _seconds(retry_after: str | None) -> float:
    """The Retry-After header in seconds. Its other form, a date, is rare here and counts as none."""
    try:
        return min(max(0.0, float(retry_after or 0)), 3600.0)
    except ValueError:
        return 0.0


class ChangingUpstream:
    """The model that answers now."""

    def __init__(self, upstream: Upstream) -> None:
        self._now = upstream
        self._before: list[Upstream] = []
        """Those that answered until now. A turn may still be theirs."""
        self.changed: Callable[[str | None], None] = lambda model: None
        """Told the name of the new model, where a person chose one."""

    def change(self, upstream: Upstream, model: str | None) -> None:
        """Ask this one from now on."""
        self._before.append(self._now)
        self._now = upstream
        self.changed(model)

    @property
    def retries_made(self) -> int:
        """Further attempts, of all together."""
        return sum(each.retries_made for each in (*self._before, self._now) if isinstance(each, HttpUpstream))

    async def complete(self, body: dict[str, Any]) -> Completion:
        return await self._now.complete(body)

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        async with aclosing(self._now.stream(body)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def models(self) -> list[str]:
        return await self._now.models()

    async def abilities(self) -> Abilities:
        return await self._now.abilities()

    async def close(self) -> None:
        for each in (*self._before, self._now):
            await each.close()
