"""A window on a conversation that lives in a server: the page's API (docs/page.md), for a terminal.

One stream of events, taken up again exactly where it was cut, and everything that a person may do. The same way leads
to a server in this process and to one in another. What the events add up to is a `Replica` of what the server has: it
says what has changed, as pairs of before and after, whether one event told it or a whole state after a time away.
Drawing the changes draws everything, once. What does not live here: how that looks (transcript.py).
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from lastword.card import Draft, SecondAct, put_in, responses, views
from lastword.display import first_units
from lastword.errors import LastWordError
from lastword.talk import ApiError, ConnectionLost, Wire

if TYPE_CHECKING:
    from lastword.consent import ApprovalRequest, UserAction
    from lastword.rules import GrantChoice

T = TypeVar("T")
ItemChange = tuple[views.Item | None, views.Item | None]
"""An item before and after. None before: it is new. None after: it is gone."""

# The wait before a cut stream is opened again. A server that is started again needs about a second.
RETRY_SECONDS = 0.25
MAX_RETRY_SECONDS = 2.0

# The server has marked what cannot be seen. One that has not does not get to steer this terminal.
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class WindowEvent(msgspec.Struct, frozen=True):
    """Something that changed."""

    id: str
    kind: str
    data: Any

    @property
    def boot(self) -> str:
        """The run of the server that counted it."""
        return self.id.rpartition("-")[0]


class Cut(msgspec.Struct, frozen=True):
    """The server does not answer, or only that it failed. What comes next, comes after it has been reached again."""

    failure: str = ""
    """What it said of its failure: that has the id under which its log has the rest."""


class Window:
    """One window, with the cookie that lets it in."""

    def __init__(self, wire: Wire, cookie: str) -> None:
        self._wire = wire
        self._cookie = cookie
        self._token = ""
        self._seen = ""

    @classmethod
    async def enter(cls, wire: Wire, key: str) -> Window:
        """A window for a key that opens once."""
        async with wire.exchange("GET", f"/enter?{urlencode({'key': key, 'as': 'terminal'})}", None) as response:
            data = await response.read()
            cookie = response.headers.get("set-cookie", "").partition(";")[0]
        if response.status != 303 or not cookie:
            known = ApiError.read(response.status, data)
            fact = known.fact if known.code else "the key was used before, or never was one"
            raise ApiError(response.status, known.code or "no_key", fact, hint="each key opens once; ask for a new one")
        return cls(wire, cookie)

    # Hearing.

    async def events(self) -> AsyncGenerator[WindowEvent | Cut]:
        """What happens, for as long as it is iterated over. It begins with the state."""
        wait, self._seen = RETRY_SECONDS, ""
        while True:
            failure = ""
            try:
                async with aclosing(self._stream()) as events:
                    async for event in events:
                        wait = RETRY_SECONDS
                        yield event
            except ConnectionLost:
                pass
            except ApiError as problem:
                if problem.status < 500:
                    raise
                failure = str(_clean(problem.fact))
            yield Cut(failure)
            await asyncio.sleep(wait)
            wait = min(2 * wait, MAX_RETRY_SECONDS)

    def has_seen(self, event_id: str) -> bool:
        """Whether this event, or one after it, has come. Those of an earlier run of the server never will."""
        boot, _, number = event_id.rpartition("-")
        seen_boot, _, seen = self._seen.rpartition("-")
        return boot != seen_boot or int(seen) >= int(number)

    async def _stream(self) -> AsyncGenerator[WindowEvent]:
        headers = {"Cookie": self._cookie, **({"Last-Event-ID": self._seen} if self._seen else {})}
        async with (
            self._wire.exchange("GET", "/page/events", None, headers) as response,
            aclosing(response.events(too_large_status=400)) as events,
        ):
            async for sent in events:
                if not sent.id:
                    continue
                event = WindowEvent(sent.id, sent.kind, _clean(response.decode(sent.data)))
                if event.kind == "state":
                    self._token = str(event.data.get("token", ""))
                self._seen = event.id
                yield event

    # Doing. What changes something returns the event that tells of it.

    async def do(self, path: str, kind: type[T], **body: Any) -> T:
        """What a person may do without having seen a card; returns what came of it."""
        headers = {"Cookie": self._cookie, "X-Lastword-Token": self._token}
        return understood(_clean(await self._exchange("POST", path, msgspec.json.encode(body), headers)), kind)

    async def say(self, text: str) -> str:
        """Say something to the assistant."""
        return (await self.do("say", responses.Done, text=text)).event

    async def answer(self, request: ApprovalRequest, action: UserAction, edits: dict[str, str]) -> str:
        """Answer exactly the request that was shown. Refused when it is another one by now, or answered."""
        second = "allow_second" if action.acts else "deny_rest" if action.rest else "deny"
        how = "allow" if action.primary_confirmed else second if action.secondary_confirmed else "close"
        body: dict[str, Any] = {**_named(request), "action": how, "reason": action.reason}
        if action.agrees:  # The dialogue takes no yes to what cannot be undone without its word.
            second_act = SecondAct.of(request)
            body["word"] = second_act.word if second_act else None
        if how == "allow":
            body["edits"] = edits
        return (await self.do("answer", responses.Done, **body)).event

    async def grant_step(self, request: ApprovalRequest, choice: GrantChoice) -> responses.GrantStep:
        """What a choice in the second step of a card would grant. Nothing is."""
        return await self.do("grant_step", responses.GrantStep, **_named(request), **msgspec.to_builtins(choice))

    async def grant(self, request: ApprovalRequest, step: str) -> str:
        """Allow the card, and what this step of it said. The dialogue takes no yes to it without its word."""
        body = {**_named(request), "step": step, "word": responses.GRANT_WORD}
        return (await self.do("grant", responses.Done, **body)).event

    async def answer_question(self, call_id: str, question: str, action: str, values: dict[str, str]) -> str:
        """Answer exactly the question of a running tool that was shown."""
        body = {"call_id": call_id, "question": question, "action": action, "values": values}
        return (await self.do("answer_question", responses.Done, **body)).event

    async def cancel(self, call_id: str) -> None:
        """Stop one call, and keep what it has."""
        await self.do("cancel", responses.Done, call_id=call_id)

    async def stop(self) -> None:
        """Stop the turn."""
        await self.do("stop", responses.Done, turn=True)

    # Asking.

    async def question(self, call_id: str, digest: str) -> tuple[ApprovalRequest, str]:
        """The request behind a card, as it was asked: unmarked, with secrets as digests; and why nothing can be granted
        from it here, if so it is."""
        data = await self._get(f"question?{urlencode({'call_id': call_id, 'digest': digest})}")
        question = understood(data, responses.CardQuestion)
        with in_our_shape():
            request = Draft.request_told(question.facts, question.manifest)
        return request, _clean(question.why_no_grant)

    async def read(self, path: str, kind: type[T]) -> T:
        """What a person may know at any time."""
        return understood(_clean(await self._get(path)), kind)

    async def _get(self, path: str) -> dict[str, Any]:
        return await self._exchange("GET", path, None, {"Cookie": self._cookie})

    async def _exchange(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        async with self._wire.exchange(method, f"/page/{path}", body, headers) as response:
            try:
                return await response.json()
            except ApiError as problem:
                fact, hint = _clean(problem.fact), _clean(problem.hint)
                raise ApiError(problem.status, problem.code, fact, hint) from None


class Replica:
    """The copy."""

    def __init__(self) -> None:
        self.session = self.window = ""
        self.items: dict[str, views.Item] = {}
        self.inbox: dict[str, views.InboxEntry] = {}
        self.missed: tuple[views.InboxMissed, ...] = ()
        """What waits for an answer in all programs, by call."""
        self.busy = False
        self.settings = views.Settings()
        self._boot: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether the first state has come."""
        return self._boot is not None

    @property
    def preset(self) -> views.PresetChoice:
        """The preset that is worked under."""
        name = self.settings.preset
        return next((known for known in self.settings.presets if known.name == name), views.PresetChoice(name=name))

    def waiting(self) -> list[views.CallItem]:
        """The calls of this conversation whose card waits, oldest first."""
        return [call for call in self._calls() if call.card is not None]

    def waiting_elsewhere(self) -> list[views.InboxEntry]:
        """The cards of other programs, in short."""
        return [entry for entry in self.inbox.values() if entry.session is not None]

    def asking(self) -> list[views.CallItem]:
        """The calls of this conversation whose tool asks something while it runs."""
        return [call for call in self._calls() if call.question is not None and call.session is None]

    def running(self) -> list[views.CallItem]:
        """The calls of this conversation that run and were not told to stop."""
        return [call for call in self._calls() if call.status == "running" and not call.stopping and not call.session]

    def sign_of_life(self) -> tuple[str, int] | None:
        """Another one after each thing that happened, while the model is waited for; None while it is not."""
        at_work = (
            item.status in ("waiting", "running") and not (isinstance(item, views.CallItem) and item.session)
            for item in self.items.values()
            if isinstance(item, views.CallItem | views.ScriptItem)
        )
        if not self.busy or any(at_work):
            return None
        last = next(reversed(self.items.values()), None)
        return ("", 0) if last is None else (last.id, len(last.text) if isinstance(last, views.MessageItem) else 0)

    def call(self, call_id: str) -> views.CallItem | None:
        """The call of this id; None where there is no such call."""
        item = self.items.get(call_id)
        return item if isinstance(item, views.CallItem) else None

    def has_failed(self) -> bool:
        """Whether the last thing that is said is that something went wrong."""
        last = next(reversed(self.items.values()), None)
        return isinstance(last, views.MessageItem) and last.problem

    def undone(self) -> set[str]:
        """The calls that were taken back."""
        return {call.id for call in self._calls() if call.undone_by is not None}

    def take(self, event: WindowEvent) -> list[ItemChange]:
        """Put an event into the replica, and say what it changed."""
        match event.kind:
            case "state":
                return self._take_state(event.boot, understood(event.data, views.PageState))
            case "item":
                return [self._put(understood(event.data, views.Item))]
            case "delta":
                return self._change(understood(event.data, views.ItemDelta))
            case "piece":
                return self._add(understood(event.data, views.TextPiece))
            case "gone":
                left = self.items.pop(understood(event.data, views.ItemGone).id, None)
                return [] if left is None else [(left, None)]
            case "inbox":
                change = understood(event.data, views.InboxChange)
                for gone in change.gone:
                    self.inbox.pop(gone.id, None)
                self.inbox |= {entry.id: entry for entry in change.put}
                self.missed = self.missed if change.missed is None else change.missed
            case "busy":
                self.busy = understood(event.data, views.BusyState).busy
            case "settings":
                self.settings = understood(event.data, views.Settings)
        return []

    def _calls(self) -> list[views.CallItem]:
        return [item for item in self.items.values() if isinstance(item, views.CallItem)]

    def _put(self, item: views.Item) -> ItemChange:
        before = self.items.get(item.id)
        self.items[item.id] = item
        return before, item

    def _change(self, delta: views.ItemDelta) -> list[ItemChange]:
        before = self.items.get(delta.id)
        if before is None:
            return []
        with in_our_shape():
            return [self._put(put_in(before, delta))]

    def _add(self, piece: views.TextPiece) -> list[ItemChange]:
        before = self.items.get(piece.id)
        if not isinstance(before, views.MessageItem):
            return []
        text = first_units(before.text, piece.keep) + piece.text
        return [self._put(replace(before, text=text))]

    def _take_state(self, boot: str, state: views.PageState) -> list[ItemChange]:
        is_same = boot == self._boot
        known = self.items if is_same else _recognised(self.items, state.items)
        kept = {item.id for item in state.items if is_same or not isinstance(item, views.MessageItem)}
        # What is not among them any more was taken away, unless it is only too old for a state.
        changes: list[ItemChange] = [(i, None) for i in self.items.values() if i.id not in kept and _may_vanish(i)]
        changes += [(known.get(item.id), item) for item in state.items]
        self.session, self.window, self._boot = state.session, state.window, boot
        self.busy, self.settings = state.busy, state.settings
        self.items = {item.id: item for item in state.items}
        self.inbox = {entry.id: entry for entry in state.inbox}
        self.missed = state.missed
        return [(before, after) for before, after in changes if before != after]


def _may_vanish(item: views.Item) -> bool:
    return (isinstance(item, views.CallItem) and item.card is not None) or (
        isinstance(item, views.MessageItem) and item.open
    )


def _recognised(known: dict[str, views.Item], items: Sequence[views.Item]) -> dict[str, views.Item]:
    """What is known of the items of a server that was started again, by their new ids.

    Calls and runs keep their ids. Messages are counted anew: one with the same words by the same person is the same.
    """
    said = Counter((item.by, item.text) for item in known.values() if isinstance(item, views.MessageItem))
    found: dict[str, views.Item] = {}
    for item in items:
        if isinstance(item, views.MessageItem):
            if said[item.by, item.text] > 0:
                said[item.by, item.text] -= 1
                found[item.id] = item
        elif isinstance(before := known.get(item.id), type(item)):
            if isinstance(before, views.CallItem) and isinstance(item, views.CallItem):
                # The journal counts fewer reports than there were.
                before = replace(before, reported_so_far=item.reported_so_far)
            found[item.id] = before
    return found


@overload
def understood(data: Any, kind: type[T]) -> T: ...


@overload
def understood(data: Any, kind: Any) -> Any: ...


def understood(data: Any, kind: Any) -> Any:
    """What a server said, in the shape that it should have."""
    with in_our_shape():
        return msgspec.convert(data, kind)


@contextmanager
def in_our_shape() -> Iterator[None]:
    """Whatever does not fit in here was said by a server of another kind than ours."""
    try:
        yield
    except msgspec.ValidationError as problem:
        raise LastWordError(
            f"the server tells of something that this terminal does not understand ({problem})",
            hint="are both of the same version?",
        ) from None


def _named(request: ApprovalRequest) -> dict[str, Any]:
    """The card that something is done about, as it was shown."""
    return {"call_id": request.call_id, "digest": request.digest}


def _clean(value: Any) -> Any:
    """The same value, with no control character in any text of it but line breaks."""
    match value:
        case str():
            return _CONTROLS.sub("\ufffd", value)
        case list():
            return [_clean(entry) for entry in value]
        case dict():
            return {_clean(name): _clean(entry) for name, entry in value.items()}
    return value
