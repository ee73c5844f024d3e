"""MCP on the page: the servers and how each stands, the clients; naming a server, looking at it, trusting, removing it.

Trust is two questions, as on the command line: whether the server may be started or contacted, and whether the tools
that it then names may be offered. Each takes two acts, a typed word and a press. What is pinned is what was shown: it
waits here, under its digest, and is not fetched again.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.routing import Route

from lastword.card import fold_of, one_line, preview_of_texts, responses, visible
from lastword.errors import ConfigError, LastWordError
from lastword.mcp import (
    Inspection,
    McpServer,
    McpServers,
    ServerEntries,
    check_server_name,
    connected_clients,
    marked,
)
from lastword.server import Refusal
from lastword.web.endpoints import Endpoints, PageBody

if TYPE_CHECKING:
    from lastword.web.conversation import ConversationView
    from lastword.web.page_gate import Visitor

TRUST = "trust"
MAX_WAY = 4_000
MAX_ERROR = 600
# What was looked at and not yet trusted. Whoever looks at more has to look again at the first.
MAX_SEEN = 20

_ADDRESS = re.compile(r"https?://[^/?#\s]+\S*")


class AddServerBody(PageBody, frozen=True):
    """An MCP server to name."""

    name: str
    way: str
    """A command with its arguments, or an address."""
    given: str = ""
    """Variables of a command or headers of an address, `NAME=VALUE` in each line."""

    def __repr__(self) -> str:
        """Without what is given to it: that may be a secret, however it was meant."""
        return f"AddServerBody(name={self.name!r}, way=…)"


class ServerBody(PageBody, frozen=True):
    """An MCP server."""

    name: str


class TrustBody(PageBody, frozen=True):
    """A yes to what was shown of an MCP server. `digest` is of exactly that."""

    name: str
    digest: str
    word: str | None = None
    """What was typed besides the press."""
    opened: tuple[str, ...] = ()
    """The folded parts that were opened."""


class ServerRoutes:
    """What the part of the settings about MCP shows and does."""

    def __init__(self, servers: McpServers, view: ConversationView) -> None:
        self._servers = servers
        self._view = view
        self._checks = view.checks
        self._seen: dict[str, Inspection] = {}
        self._one_at_a_time = asyncio.Lock()
        self._is_telling = False
        self._stop_listening: Callable[[], None] = lambda: None

    def open(self) -> None:
        """Hear of tools that come and go."""
        self._stop_listening = self._view.session.registry.listen(lambda change: self._tell_soon())

    def close(self) -> None:
        """Hear nothing any more."""
        self._stop_listening()

    def routes(self, at: Endpoints) -> list[Route]:
        return [
            at.reading("/page/servers", self._found),
            at.reading("/page/server", self._asked),
            at.changing("/page/server_add", AddServerBody, self.add),
            at.changing("/page/server_look", TrustBody, self.look),
            at.changing("/page/server_trust", TrustBody, self.trust),
            at.changing("/page/server_remove", ServerBody, self.remove),
        ]

    async def _found(self, request: Request, visitor: Visitor) -> responses.ServersFound:
        """How everything stands now."""
        clients = await connected_clients(self._view.session.journal)
        return responses.ServersFound(
            place=one_line(str(self._servers.place), 300),
            servers=tuple(map(_entry, self._servers.all)),
            clients=tuple(
                responses.ClientEntry(
                    name=visible(client.name),
                    way="it started lastword itself"
                    if client.principal == "stdio"
                    else f"over HTTP, with the token {one_line(client.principal, 60)}",
                    since=client.since,
                )
                for client in clients
            ),
        )

    async def _asked(self, request: Request, visitor: Visitor) -> responses.ServerQuestion:
        try:
            return self.question(request.query_params.get("name", ""))
        except LastWordError as problem:
            raise Refusal(409, "refused", visible(problem.fact), hint=problem.hint) from None

    def question(self, name: str) -> responses.ServerQuestion:
        """What would be started or contacted, as it is now, and whether that has to be agreed to first."""
        server = self._servers.find(check_server_name(name))
        launch, pinned = self._servers.launch(name), server.pinned
        launch.check()
        differs = () if pinned is None else tuple(pinned.way_changed(launch))
        word = None if pinned is not None and not differs else "start" if launch.url is None else "contact"
        asked = responses.ServerQuestion(
            name=name,
            digest=launch.digest,
            way=tuple(launch.way()),
            changed=differs,
            rights=launch.rights,
            word=word,
        )
        self._checks.shown(asked.digest)
        return asked

    async def add(self, body: AddServerBody, visitor: Visitor) -> None:
        """Name a server. Nothing is started or contacted by that."""
        name, way = check_server_name(body.name.strip(), "name"), body.way.strip()
        if not way or len(way) > MAX_WAY or "\0" in way:
            raise Refusal(400, "bad_way", "say how the server is reached: a command, or an address", param="way")
        given = dict(_pairs(body.given))
        is_address = _ADDRESS.fullmatch(way) is not None
        try:
            words = [way] if is_address else shlex.split(way)
        except ValueError as problem:
            raise Refusal(400, "bad_way", f"this is no command: {problem}", param="way") from None
        self._servers.add(name, ServerEntries.entry(words, given, is_address=is_address))

    async def look(self, body: TrustBody, visitor: Visitor) -> responses.SeenServer:
        """Start or contact a server, when somebody agreed to exactly that, and say what it offers."""
        asked = self.question(body.name)
        self._check(body, asked.digest, asked.word, "to start something takes two acts")
        if self._one_at_a_time.locked():
            raise Refusal(409, "busy", "a server is being looked at already; wait until that is over")
        async with self._one_at_a_time:
            launch = self._servers.launch(body.name)
            if launch.digest != body.digest:
                raise self._checks.changed()
            seen = await Inspection.of(launch, self._servers.secrets)
            server = self._servers.find(body.name)
            if seen.same_as(server.pinned) and not server.is_busy:
                await self._servers.trust(seen)  # At most it calls itself something else.
        shown = _shown(seen, server)
        self._seen[shown.digest] = seen
        if len(self._seen) > MAX_SEEN:
            del self._seen[next(iter(self._seen))]
        self._checks.shown(shown.digest)
        return shown

    async def trust(self, body: TrustBody, visitor: Visitor) -> None:
        """Pin what was shown, and offer its tools."""
        seen = self._seen.get(body.digest)
        if seen is None or seen.launch.name != body.name:
            raise self._checks.changed()
        shown = _shown(seen, self._servers.find(body.name))
        if shown.digest != body.digest:
            raise self._checks.changed()
        self._checks.check_opened(shown.must_open, body.opened, what="what the server says", act="trust")
        self._check(body, shown.digest, TRUST, "to trust a server takes two acts")
        await self._servers.trust(seen)
        self._seen.pop(body.digest, None)

    async def remove(self, body: ServerBody, visitor: Visitor) -> None:
        """Take a server out, and forget the trust in it."""
        await self._servers.remove(check_server_name(body.name))

    def _check(self, body: TrustBody, digest: str, word: str | None, why: str) -> None:
        """Refuse a yes that our own window would not send."""
        if body.digest != digest:
            raise self._checks.changed()
        self._checks.check_read(digest)
        if word is not None:
            self._checks.check_word(word, body.word, why)

    def _tell_soon(self) -> None:
        """Tell the windows of changed tools, once for however many change together."""
        if not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._is_telling = False
        self._view.assistant.tell_settings()


def _entry(server: McpServer) -> responses.ServerEntry:
    pinned = server.pinned
    return responses.ServerEntry(
        name=server.name,
        state=server.state,
        way=tuple(server.launch.way()),
        changed=tuple(server.why_not()) if pinned is not None else (),
        tools=tuple(
            responses.ServerTool(
                id=server.id_of(name), name=marked(name), withheld=visible(server.withheld.get(name, ""))
            )
            for name in (pinned.tools if pinned is not None else ())
        ),
        new=tuple(map(marked, server.new)),
        version=pinned.version if pinned is not None else "",
        last_error=visible(server.last_error[:MAX_ERROR]),
    )


def _shown(seen: Inspection, server: McpServer) -> responses.SeenServer:
    """What a server says, as a person decides about it."""
    pinned = server.pinned
    tools = tuple(_tools(seen)) if pinned is None else ()
    changes = tuple(_changes(seen, server))
    folded = [f"tool {tool.id}" for tool in tools if tool.fold is not None]
    folded += [f"change {place}" for place, change in enumerate(changes) if change.fold is not None]
    # Of the way as well, and of what it was compared with: another answer would be to another question.
    digest = seen.launch.digest_with(seen.digest, None if pinned is None else [pinned.launch, pinned.tools])
    return responses.SeenServer(
        name=seen.launch.name,
        digest=digest,
        version=seen.version,
        version_before=pinned.version if pinned is not None else "",
        unusable=tuple(seen.unusable),
        tools=tools,
        changes=changes,
        count=len(seen.tools),
        same=seen.same_as(pinned),
        word=TRUST,
        must_open=tuple(folded),
    )


def _tools(seen: Inspection) -> Iterator[responses.SeenTool]:
    for shown in seen.shown_tools():
        about = visible(shown.about)
        yield responses.SeenTool(
            id=shown.id, loud=shown.loud, about=about, fold=fold_of(about), arguments=visible(shown.arguments)
        )


def _changes(seen: Inspection, server: McpServer) -> Iterator[Any]:
    for before, after in () if server.pinned is None else server.pinned.changed_tools(seen.tools):
        tool = after or before
        assert tool is not None
        texts = [None if each is None else each.indented() for each in (before, after)]
        yield preview_of_texts(server.id_of(tool.name), *texts)


def _pairs(given: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(given.splitlines(), 1):
        key, equals, value = line.strip().partition("=")
        if not line.strip():
            continue
        if not equals or not key.strip():
            # What stands there may be a secret: it is not repeated.
            raise ConfigError(f"line {number} of what it is given is no NAME=VALUE", hint="one in each line")
        yield key.strip(), value.strip()
