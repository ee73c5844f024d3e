"""Our tools for any MCP client. Every call goes through a session, and so through the one door.

Who answers: a person, out of band, on the page, in a terminal or with `lastword answer`. The client is kept patient,
and told when it should ask again. With `approve_by_client` the client's own dialogue may turn the key of a preset, and
no more: for tools that permit auto-approval, and whose effect is known and can be taken back.

Over streamable HTTP they are for this machine, with a token that has the scope `tools`. Host and Origin are looked at
before anything else, so that no page of a browser reaches it by a name of its own. A session of the older protocol
belongs to the token that began it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from lastword import __version__, values
from lastword.consent import Answerer, ApprovalRequest, Outcome, Preset, Secrets
from lastword.display import visible
from lastword.errors import LastWordError, SessionError
from lastword.lazily import brought_by
from lastword.mcp.client_messages import (
    Announcer,
    AnnouncingServer,
    Waiting,
    refused,
    reply,
    reply_to_script,
    script_still_open,
    still_open,
)
from lastword.mcp.client_records import Greeter, OpenCalls
from lastword.server import Refusal

if TYPE_CHECKING:
    from lastword.runs import Run
    from lastword.server import Tokens
    from lastword.session import Session
    from lastword.tools import Tool

    OpenSession = Callable[[str, Preset | None], Awaitable[Session]]
    """A session of this id, with this preset or the usual one."""

with brought_by("mcp", "mcp", "mcp_types", "cryptography"):
    import mcp_types as types
    from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken
    from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
    from mcp.server.stdio import stdio_server
    from mcp.server.transport_security import TransportSecuritySettings

# Most clients give up after a minute. What is told before that is heard.
PATIENCE_SECONDS = 50.0
CLOSE_SECONDS = 5.0
# How long a dialogue of a client may be answered.
ROUND_SECONDS = 600.0
MAX_CLIENT_NAME = 100
# From this version on a server asks by its result, and not by a request of its own.
BY_RESULT = "2026-07-28"

# How many answered dialogues are known without a look into the journal.
MAX_ROUNDS = 1_000
MAX_BODY_BYTES = 8 * 2**20
log = logging.getLogger("lastword.mcp")
SCRIPT = "run_script"
STDIO = "stdio"
_SCRIPT_FORM: dict[str, Any] = {
    "name": SCRIPT,
    "title": "Run a NuwaScript",
    "description": (
        "Carry out a NuwaScript, which may call the other tools: LET x = CALL tool { name: value }, IF … THEN … ELSE … "
        "END, FOR item IN list DO … END, PRINT. It is checked first; an error comes with its line and column. Every "
        "call in it that needs a person's yes asks for it by itself."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {"script": {"type": "string", "description": "The text of the script."}},
        "required": ["script"],
        "additionalProperties": False,
    },
}
_DIALOGUE_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "allow": {"type": "boolean", "title": "Allow this call", "description": "Runs exactly what is shown, once."}
    },
    "required": ["allow"],
}


class ToolServer:
    """What clients reach: the tools of a registry, and a session for each principal."""

    PATH = "/mcp"

    def __init__(
        self,
        open_session: OpenSession,
        key: bytes,
        *,
        approve_by_client: bool = False,
        patience_seconds: float = PATIENCE_SECONDS,
        over_http: bool = False,
    ) -> None:
        self._open_session = open_session
        self._key = key
        self._approve_by_client = approve_by_client
        self._patience_seconds = patience_seconds
        self._principal_of: Callable[[Any], str] = _token_of if over_http else lambda context: STDIO
        self._sessions: dict[tuple[str, str], Session] = {}
        self._opening = asyncio.Lock()
        self._greeter = Greeter()
        self._tasks: dict[str, asyncio.Task[Outcome | Run]] = {}
        self._rounds: dict[str, str] = {}
        """By call: the session in which a dialogue of the client was answered."""
        self._announcer = Announcer()
        self.protocol = AnnouncingServer(
            "lastword",
            version=__version__,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscriptions_listen=self._announcer.on_listen,
        )
        security = RequestStateSecurity(keys=[key], ttl=ROUND_SECONDS)
        self.protocol.middleware.append(RequestStateBoundary(security, default_audience="lastword"))

    async def run_over_stdio(self) -> None:
        """Serve one client on our standard input and output, until it closes them."""
        async with stdio_server() as (read, write):
            await self.protocol.run(read, write, self.protocol.create_initialization_options())

    def http_app(self, tokens: Tokens, port: int) -> ASGIApp:
        """The application that listens on this port of this machine."""
        hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
        security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
        app = self.protocol.streamable_http_app(
            streamable_http_path=self.PATH, transport_security=security, max_request_body_size=MAX_BODY_BYTES
        )
        return _WithToken(AuthContextMiddleware(app), tokens, frozenset(hosts))

    async def close(self) -> None:
        """Leave the cards waiting where they are, give what runs a moment, and end."""
        await self._announcer.close()
        for session in self._sessions.values():
            for request in session.pending():
                session.detach(request.call_id)
        left = {task for task in self._tasks.values() if not task.done()}
        if left:
            await asyncio.wait(left, timeout=CLOSE_SECONDS)
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for session in self._sessions.values():
            await session.close()

    async def _session(self, principal: str, client: str = "") -> Session:
        """The session of a principal; with a client's name, the one in which its dialogue turns the preset's key."""
        async with self._opening:
            found = self._sessions.get((principal, client))
            if found is None:
                preset = Preset(True, client, "client") if client else None
                name = f"mcp-{principal}" + ("-dialogue" if client else "")
                found = self._sessions[principal, client] = await self._open_session(name, preset)
                self._announcer.watch(found.registry)
            return found

    async def _list_tools(self, context: Any, params: Any) -> types.ListToolsResult:
        principal = self._principal_of(context)
        session = await self._session(principal)
        self._greeter.meet(session.journal, principal, _client_of(context))
        self._announcer.heard(principal, context)
        tools = sorted(session.registry.all(with_editor=session.editor is not None), key=lambda tool: tool.name)
        forms = [tool.manifest.mcp_form() for tool in tools]
        if not session.registry.is_registered(SCRIPT):
            forms.append(_SCRIPT_FORM)
        listed = [types.Tool.model_validate(form) for form in forms]
        return types.ListToolsResult(tools=listed, ttl_ms=0, cache_scope="private")

    async def _call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        principal, client = self._principal_of(context), _client_of(context)
        arguments = params.arguments or {}
        try:
            session = await self._session(principal)
            self._greeter.meet(session.journal, principal, client)
            tool = session.registry.find(params.name)
            if tool is not None and self._may_ask_client(context, tool):
                return await self._by_dialogue(context, params, principal, client, tool)
            if tool is None and params.name == SCRIPT:
                return await self._in_the_open(context, session, client, SCRIPT, arguments)
            if tool is None or not tool.manifest.require_approval:
                return await reply(session, await self._freely(context, session, client, params))
            return await self._in_the_open(context, session, client, params.name, arguments)
        except LastWordError as problem:
            log.info("a call of a client was refused: %s", problem.fact)
            return refused(str(problem))

    async def _freely(
        self, context: Any, session: Session, client: str, params: types.CallToolRequestParams
    ) -> Outcome:
        """A call that nobody is asked about. It ends with the request for it."""
        arguments, origin, call_id = params.arguments or {}, _origin(client), values.new_id()
        with Waiting(context, session, call_id, params.name) as waiting:
            task = asyncio.ensure_future(session.call(params.name, arguments, origin=origin, call_id=call_id))
            try:
                await waiting.until(task, None)
            finally:
                task.cancel()
            return task.result()

    async def _in_the_open(
        self, context: Any, session: Session, client: str, name: str, arguments: dict[str, Any]
    ) -> types.CallToolResult:
        """A call that a person answers, wherever they are."""
        calls = OpenCalls(session.journal, session.id, self._key)
        while True:
            found = await calls.find(name, arguments, client)
            with Waiting(context, session, found.id, name) as waiting:
                task = self._carry(session, found.id, client, name, arguments)
                if not await waiting.until(task, self._patience_seconds):
                    if _is_script(session, name):
                        return script_still_open(found.id, waits=_waits(session, found.id))
                    return still_open(found.id, name, is_running=await _is_running(session, found.id))
            ended = await asyncio.shield(task)
            # Whoever asked for the same at the same time may have got it; then this was a second request, and is one.
            if await calls.deliver(found.id, client):
                if isinstance(ended, Outcome):
                    return await reply(session, ended, is_old=found.is_old)
                return reply_to_script(ended, is_old=found.is_old)

    def _carry(
        self, session: Session, call_id: str, client: str, name: str, arguments: dict[str, Any]
    ) -> asyncio.Task[Outcome | Run]:
        """The call itself, which goes on when the request for it does not."""
        task = self._tasks.get(call_id)
        if task is None:
            task = self._tasks[call_id] = asyncio.ensure_future(
                self._script(session, call_id, client, arguments)
                if _is_script(session, name)
                else self._call(session, call_id, client, name, arguments)
            )
            task.add_done_callback(partial(self._over, call_id))
        return task

    def _over(self, call_id: str, task: asyncio.Task[Outcome | Run]) -> None:
        self._tasks.pop(call_id, None)
        if not task.cancelled():
            task.exception()  # Perhaps nobody waits for it any more, and it is no news that its card was left waiting.

    async def _call(
        self, session: Session, call_id: str, client: str, name: str, arguments: dict[str, Any]
    ) -> Outcome | Run:
        # A call that an earlier process asked about goes on as it was asked, with the origin that its card named.
        first = await OpenCalls(session.journal, session.id, self._key).client_of(call_id)
        return await session.call(name, arguments, origin=_origin(first or client), call_id=call_id)

    async def _script(self, session: Session, run_id: str, client: str, arguments: dict[str, Any]) -> Outcome | Run:
        text = arguments.get("script")
        if not isinstance(text, str) or len(arguments) != 1:
            raise SessionError("run_script takes one argument, the text of the script", place=SCRIPT)
        return await session.run_script(text, name=f"a script of {_origin(client)}", run_id=run_id)

    def _may_ask_client(self, context: Any, tool: Tool) -> bool:
        """Whether the client's dialogue counts here: as the preset's key, for a tool that has the other one."""
        able = context.session.client_capabilities
        manifest = tool.manifest
        return (
            self._approve_by_client
            and manifest.require_approval
            and manifest.auto_approve is True
            and manifest.effect in ("none", "reversible")
            and able is not None
            and able.elicitation is not None
        )

    async def _by_dialogue(
        self, context: Any, params: types.CallToolRequestParams, principal: str, client: str, tool: Tool
    ) -> types.CallToolResult | types.InputRequiredResult:
        """A call that the client's own dialogue answers. What it says is the client's word."""
        arguments = params.arguments or {}
        words = _words(tool, arguments)
        if context.protocol_version >= BY_RESULT:
            # What comes back was sealed by us: for this tool, these arguments and this principal, for a while.
            state = json.loads(params.request_state) if params.request_state else {}
            call_id = state.get("call")
            answer = (params.input_responses or {}).get("approval")
            if call_id is None or not isinstance(answer, types.ElicitResult):
                form = types.ElicitRequestFormParams(message=words, requested_schema=_DIALOGUE_FORM)
                return types.InputRequiredResult(
                    input_requests={"approval": types.ElicitRequest(params=form)},
                    request_state=json.dumps({"call": call_id or values.new_id()}),
                )
        else:
            call_id = values.new_id()
            answer = await context.session.elicit_form(words, _DIALOGUE_FORM, context.request_id)
        allows = answer.action == "accept" and (answer.content or {}).get("allow") is True
        # The first answer of a round counts, and whoever sends another is told what came of that.
        session, is_first = await self._session_of_round(principal, client, call_id, allows=allows)
        with Waiting(context, session, call_id, tool.name) as waiting:
            task = self._carry(session, call_id, client, tool.name, arguments)
            if is_first and not allows:
                await self._deny(session, call_id, client)
            if not await waiting.until(task, self._patience_seconds):
                return still_open(call_id, tool.name, is_running=await _is_running(session, call_id))
        ended = await asyncio.shield(task)
        assert isinstance(ended, Outcome)
        return await reply(session, ended)

    async def _session_of_round(
        self, principal: str, client: str, call_id: str, *, allows: bool
    ) -> tuple[Session, bool]:
        """Where a round of a dialogue is answered, and whether it has no answer yet."""
        asks, allowed = await self._session(principal), await self._session(principal, client)
        records = await asks.journal.store.read(subject=call_id, limit=1)
        # From here to the call itself nothing is awaited: of two answers at once, one is the first.
        known = self._rounds.get(call_id) or (records[0].stream if records else None)
        if known is not None:
            return (allowed if known == allowed.id else asks), False
        session = allowed if allows else asks
        self._rounds[call_id] = session.id
        if len(self._rounds) > MAX_ROUNDS:
            del self._rounds[next(iter(self._rounds))]  # It stands in the journal by now.
        return session, True

    async def _deny(self, session: Session, call_id: str, client: str) -> None:
        """A no counts from anybody, and is remembered like every other, with whose it is."""
        card = await session.card_for(call_id)
        if isinstance(card, ApprovalRequest):
            session.answer(call_id, card.deny(), by=Answerer("client", client))


def _token_of(context: Any) -> str:
    """Whose token a request came with."""
    user = context.request.scope["user"]
    assert isinstance(user, AuthenticatedUser)
    return user.access_token.client_id


def _client_of(context: Any) -> str:
    """What a client calls itself. It may say anything, and is quoted."""
    params = context.session.client_params
    if params is None:
        return "an MCP client without a name"
    info = params.client_info
    return visible(f"{info.name} {info.version}".strip()[:MAX_CLIENT_NAME])


def _origin(client: str) -> str:
    return f"an MCP client that calls itself “{client}”"


def _is_script(session: Session, name: str) -> bool:
    return name == SCRIPT and not session.registry.is_registered(SCRIPT)


async def _is_running(session: Session, call_id: str) -> bool:
    """Whether a call has begun. While its card is drawn none of it waits, and still nobody has allowed it."""
    return (await session.journal.life(call_id)).started is not None


def _waits(session: Session, run_id: str) -> bool:
    return any(request.call_id.startswith(f"{run_id}.") for request in session.pending())


def _words(tool: Tool, arguments: dict[str, Any]) -> str:
    """What a client shows in its dialogue: the call, and all of it."""
    shown = json.dumps(Secrets.mask(arguments, tool.secrets), ensure_ascii=False, indent=1)
    about = visible(tool.manifest.description)
    return f"{visible(tool.manifest.display_name)} ({tool.name}) wants to run with:\n{visible(shown)}\n{about}"


class _WithToken:
    """Lets nobody through without a token for tools."""

    def __init__(self, app: ASGIApp, tokens: Tokens, hosts: frozenset[str]) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # The parser leaves what may stand around a value where it is; whoever compares the values below wants it gone.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            if headers.get("host", "") not in self._hosts:
                raise Refusal(421, "wrong_host", "this address is not served here")
            if "origin" in headers and headers["origin"] not in {f"http://{host}" for host in self._hosts}:
                raise Refusal(403, "wrong_origin", "pages of other origins are not served here")
            caller = await self._tokens.identify(headers.get("authorization"))
            caller.require(["tools"])
        except Refusal as refusal:
            body = msgspec.to_builtins(refusal.body())
            await JSONResponse(body, refusal.status, headers=refusal.headers)(scope, receive, send)
            return
        # The token itself goes no further: what stands behind us never sees it.
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
        token = AccessToken(token="", client_id=caller.id, scopes=sorted(caller.scopes))
        scope["user"] = AuthenticatedUser(token)
        await self._app(scope, receive, send)
