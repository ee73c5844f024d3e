"""Tokens: who is calling, and what for.

A token is `lastword_ID_SECRET`. The store remembers a digest of the secret and never the secret: it has 256 bits of its
own, so one round of SHA-256 is as good as a slow hash. Revoking is a record too, so a server sees it with its next
request, whichever process wrote it.

Without any token `lastword serve` is open to its own machine, and to nothing else. Once there was a token, there is no
way in without one, also when all of them are revoked. Under `lastword up` there never is: the conversation is one
person's, and a port of this machine is open to everybody who has an account on it.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import msgspec

from lastword.errors import ConfigError, did_you_mean
from lastword.server.api_types import Refusal
from lastword.server.store_follower import StoreFollower
from lastword.store import Entry, Record, Store
from lastword.values import canonical, digest

Scope = Literal["chat", "approve", "read", "tools", "admin"]
"""chat: turns, and one's own conversations. approve: answering approval requests. read: all conversations and the
metrics, to look at. tools: calling tools over MCP. admin: everything."""

SCOPES: tuple[Scope, ...] = get_args(Scope)
INSIDE = "lastword.inside"
"""Set in the scope by a program that calls the app object itself. It could read the store as well, so it needs no
token; nothing that comes over a socket can set it."""
STREAM = "tokens"
MAX_NAME = 100
LOCAL = "local"
"""Who calls when there are no tokens: whoever sits at this machine."""

_TOKEN = re.compile(r"lastword_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
# Compared with when the id is unknown, so that a wrong id takes as long as a wrong secret.
_NOBODY = digest(b"nobody")


class Token(msgspec.Struct, frozen=True):
    """A token as the store remembers it."""

    id: str
    name: str
    scopes: frozenset[Scope]
    created: int
    digest: str
    revoked: bool = False
    person: str = ""
    """Whose it is, where people have names: sessions that it opens are that person's."""


class Caller(msgspec.Struct, frozen=True):
    """Whoever sent a request. `id` owns conversations and has its limits counted."""

    id: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """Whether this caller has the scope."""
        return scope in self.scopes or "admin" in self.scopes

    def sees_all(self) -> bool:
        """Whether this caller may look at the conversations of others."""
        return self.may("read")

    def require(self, scopes: Sequence[Scope]) -> None:
        """Refuse a caller who has none of the scopes."""
        if self.scopes.isdisjoint(scopes) and "admin" not in self.scopes:
            has = ", ".join(sorted(self.scopes))
            words = f"this needs a token with the scope {' or '.join(scopes)}; yours has: {has}"
            raise Refusal(403, "wrong_scope", words)


LOCAL_OWNER = Caller(LOCAL, frozenset(SCOPES))


class Tokens:
    """The tokens of a store, folded as far as it was read."""

    SCOPES = SCOPES
    INSIDE = INSIDE

    def __init__(self, store: Store, follower: StoreFollower | None = None, *, always_needed: bool = False) -> None:
        self._store = store
        self._follower = follower or StoreFollower(store)
        self._follower.follow(self._take, self._lose)
        self._always_needed = always_needed
        self._seq = 0
        self._lost = True
        self._tokens: dict[str, Token] = {}

    async def create(self, name: str, scopes: Iterable[str], person: str = "") -> tuple[Token, str]:
        """A new token and its text, which is shown once and never again."""
        chosen = _check_scopes(scopes)
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise ConfigError(f"a token's name has 1 to {MAX_NAME} printable characters")
        id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        at = time.time_ns() // 1000
        token = Token(id, name, chosen, at, digest(secret.encode()), person=person)
        facts = {"name": name, "scopes": sorted(chosen), "digest": token.digest}
        data = canonical(facts | {"person": person} if person else facts)
        await self._store.commit(Entry(STREAM, "token.created", id, at, data, once=f"token/{id}"))
        self._follower.forget_look()
        return token, f"lastword_{id}_{secret}"

    async def revoke(self, id: str) -> Token:
        """End a token. Whoever holds it is refused from the next request on."""
        token = (await self._caught_up()).get(id)
        if token is None or token.revoked:
            known = [entry.id for entry in self._tokens.values() if not entry.revoked]
            raise ConfigError(
                f"there is no token {id}", hint=did_you_mean(id, known) or "`lastword token list` shows them"
            )
        at = time.time_ns() // 1000
        await self._store.commit(Entry(STREAM, "token.revoked", id, at, canonical({"at": at})))
        self._follower.forget_look()
        return token

    async def all(self) -> list[Token]:
        """Every token that was ever created, oldest first."""
        return list((await self._caught_up()).values())

    async def identify(self, authorization: str | None) -> Caller:
        """Who sends this Authorization header. Raises 401 when a token is needed and this is none."""
        tokens = await self._caught_up()
        if not tokens and not self._always_needed:
            return LOCAL_OWNER
        scheme, _, text = (authorization or "").partition(" ")
        shape = _TOKEN.fullmatch(text.strip()) if scheme.lower() == "bearer" else None
        token = tokens.get(shape[1]) if shape else None
        given = digest(shape[2].encode()) if shape else _NOBODY
        right = hmac.compare_digest(given, token.digest if token else digest(_NOBODY.encode()))
        if token is None or not right or token.revoked:
            raise Refusal(
                401,
                "invalid_token" if authorization else "token_required",
                "this server wants a token" if not authorization else "this token is not known, or was revoked",
                hint="make one with `lastword token create NAME`, and send it as `Authorization: Bearer lastword_…`",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return Caller(token.id, token.scopes)

    async def check_address(self, host: str) -> None:
        """Refuse to listen where others can reach us, unless they need a token."""
        if is_loopback(host):
            return
        if not any(not token.revoked for token in await self.all()):
            raise ConfigError(
                f"{host} can be reached from other machines, and there is no token to keep them out",
                hint="make one with `lastword token create NAME`, or listen on 127.0.0.1",
            )

    async def person_of(self, id: str) -> str:
        """Whose token this is; empty when nobody was named for it."""
        token = (await self._caught_up()).get(id)
        return "" if token is None else token.person

    async def _caught_up(self) -> dict[str, Token]:
        await self._follower.look()
        while self._lost:
            seen = self._follower.seq
            for record in await self._store.read(stream=STREAM, after=self._seq):
                self._apply(record)
            # Records that came while the store yielded to the loop were not taken, so it is asked again.
            self._lost = self._follower.seq != seen
        return self._tokens

    def _take(self, record: Record) -> None:
        # Out of order a token could seem to live that was revoked. Whoever is lost waits for the whole list.
        if record.stream == STREAM and not self._lost:
            self._apply(record)

    def _lose(self) -> None:
        self._lost = True

    def _apply(self, record: Record) -> None:
        if record.seq <= self._seq:
            return
        self._seq = record.seq
        if record.kind == "token.created":
            data = msgspec.json.decode(record.data or b'{"name":"","scopes":[],"digest":""}')
            scopes = frozenset(scope for scope in SCOPES if scope in data["scopes"])
            self._tokens[record.subject] = Token(
                record.subject,
                data["name"],
                scopes,
                record.at,
                data["digest"],
                revoked=record.data is None,
                person=data.get("person", ""),
            )
        elif record.kind == "token.revoked":
            token = self._tokens[record.subject]
            self._tokens[record.subject] = msgspec.structs.replace(token, revoked=True)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_scopes(scopes: Iterable[str]) -> frozenset[Scope]:
    given = set(scopes)
    for scope in sorted(given):
        if scope not in SCOPES:
            raise ConfigError(
                f"there is no scope {scope!r}",
                hint=did_you_mean(scope, SCOPES) or f"the scopes are {', '.join(SCOPES)}",
            )
    if not given:
        raise ConfigError("a token needs a scope", hint=f"the scopes are {', '.join(SCOPES)}")
    return frozenset(scope for scope in SCOPES if scope in given)


class Rates:
    """How often each caller may come: a bucket that fills evenly and holds a tenth of a minute's worth."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        self._burst = max(1.0, per_minute / 10)
        self._buckets: dict[str, tuple[float, float]] = {}
        """By caller: what was left, and when."""

    def spend(self, caller: str) -> None:
        """Take one request from the caller's bucket; refuse when it is empty."""
        now = time.monotonic()
        left, then = self._buckets.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_second)
        if left < 1:
            self._buckets[caller] = (left, now)
            wait = (1 - left) / self._per_second
            fact = f"more than {self._per_second * 60:g} requests a minute"
            hint = "wait, or raise requests_per_minute in [server.limits]"
            raise Refusal(429, "too_many_requests", fact, hint=hint, headers={"Retry-After": str(int(wait) + 1)})
        self._buckets[caller] = (left - 1, now)
