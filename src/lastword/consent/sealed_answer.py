"""An answer: who gave it and for whom they may, what it says, and the seal that binds it to what was asked.

A name is whatever somebody called themselves, so nothing is ever told from it: somebody called `preset x` is a person.
One person alone has no name here, and everything is theirs. In a team sessions, cards and runs carry the name of their
person, the principal; a card without one is everybody's, one with a name its own person's, and beyond that goes what
somebody configured. What a grant may cover and who may give it is decided in rules/.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

import msgspec
from msgspec import UNSET, UnsetType

from lastword import values
from lastword.display import displayable
from lastword.errors import LastWordError, SessionError

if TYPE_CHECKING:
    from lastword.tools import Manifest

Standing = Literal["person", "preset", "waiver", "line", "rule", "grant", "client", "below", "unknown"]
"""What answered: a person; a preset with both keys; a tool's own waiver; a line of a plan; a rule; a grant; a client's
dialogue; a command below a tool, which can only stop everything. `unknown` is what a later version wrote, and nothing
goes by it."""
Where = Literal["terminal", "page", "command", "program"]

# A name is for a line of a list. Whoever has a longer one is cut.
MAX_NAME = 200


class Answerer(msgspec.Struct, frozen=True):
    """Whoever answered."""

    # Whoever cancels a call closes its card, and its questions.
    CANCELLED: ClassVar[Answerer]

    kind: Standing
    name: str = ""
    """Of the person, the preset, the rule. Empty for a person of whom only the place is known."""
    where: Where | None = None
    """Where a person sat; None for everything that is no person."""
    principal: str | UnsetType = UNSET
    """As whom a person answered, where people have names; a name of their own choice says nothing of that."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise LastWordError(f"a name is text, not a {type(self.name).__name__}")
        if len(self.name) > MAX_NAME or not self.name.isascii():
            msgspec.structs.force_setattr(self, "name", displayable(self.name)[:MAX_NAME])

    @classmethod
    def person(cls, name: str = "", where: Where = "program") -> Answerer:
        """A person, or a program that answers for one."""
        return cls("person", name, where)

    @classmethod
    def named(cls, by: Answerer | str) -> Answerer:
        """Whoever a program says has answered. A text is a name, whatever it says."""
        return by if isinstance(by, Answerer) else cls.person(by)

    @classmethod
    def of(cls, approver: Any) -> Answerer:
        """Whoever answers through this approver: its `name` and, if it says so, `where` the person sits."""
        place = getattr(approver, "where", None)
        where: Where = "program" if place is None else next((known for known in _PLACES if known == place), "program")
        name = getattr(approver, "name", None)
        if not name and where == "program":
            name = getattr(approver, "__name__", None) or type(approver).__name__
        return cls("person", str(name or ""), where)

    @classmethod
    def read(cls, written: Any) -> Answerer:
        """An answerer as a record has it. What is not understood is nobody, so that nothing starts by it."""
        if isinstance(written, str):
            if written.startswith(_ONCE_A_PRESET):
                return cls("preset", written.removeprefix(_ONCE_A_PRESET))
            return cls.person(written)
        try:
            return msgspec.convert(written, Answerer)
        except msgspec.ValidationError:
            return cls("unknown")

    @property
    def whose(self) -> str:
        """The principal; empty where nobody was named."""
        return self.principal or ""

    def signed(self, principal: str) -> Answerer:
        """The same, saying as whom they answered, unless they did already. One person alone says nothing."""
        if not principal or self.whose or self.kind != "person":
            return self
        return msgspec.structs.replace(self, principal=principal)

    def __str__(self) -> str:
        """For a sentence: allowed by …"""
        if self.kind == "person":
            name = self.name or displayable(self.whose)
            return f"{name} {_AT[self.where]}" if name and self.where in _AT else name or _ALONE[self.where]
        words = _WORDS[self.kind]
        return f"{words} {self.name}" if self.name else words


_AT: dict[Where | None, str] = {"terminal": "at the terminal", "page": "on the page", "command": "at the command line"}
_ALONE: dict[Where | None, str] = {
    "terminal": "the terminal",
    "page": "the page",
    "command": "a person at the command line",
    "program": "a program",
    None: "a person",
}
_WORDS: dict[Standing, str] = {
    "preset": "the preset",
    "waiver": "the tool's own rule",
    "line": "a line of the plan",
    "rule": "the rule",
    "grant": "the grant",
    "client": "the dialogue of",
    "below": "a command that a tool started",
    "unknown": "something that this version does not know",
}


Answerer.CANCELLED = Answerer.person("cancel")

_PLACES: tuple[Where, ...] = get_args(Where)
# How an earlier version began the name of a preset. Its records are all that is ever read this way.
_ONCE_A_PRESET = "preset "


ANYBODY = "*"


class People(msgspec.Struct, frozen=True):
    """Who sits at this process, and who may answer whose cards besides their own."""

    me: str = ""
    """The principal of whatever is done here, unless it is said otherwise. Empty: nobody was named."""
    answers: Mapping[str, tuple[str, ...]] = {}
    """By the one who answers: the principals of the cards. `*` stands for all."""

    def may_answer(self, who: str, whose: str) -> bool:
        """Whether `who` may see and answer a card of `whose`."""
        if not whose or who == whose:
            return True
        for_whom = self.answers.get(who, ()) if who else ()
        return whose in for_whom or ANYBODY in for_whom

    def sees(self, whose: str) -> bool:
        """Whether the one who sits here may."""
        return self.may_answer(self.me, whose)

    def signed(self, by: Answerer, whose: str, place: str) -> Answerer:
        """Whoever answers here, with the principal they answer as. Refused when the card is not theirs to answer."""
        signed = by.signed(self.me)
        if not self.may_answer(signed.whose, whose):
            raise SessionError(
                "this question is another person's to answer",
                place=place,
                hint="who may answer for whom is said in lastword.toml, under [people.answer]",
            )
        return signed


Scope = Literal["run", "session", "until"]
"""How long it holds: this run of a script, this session in this program, or until a moment in all sessions of whoever
gave it."""


class GrantTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a person agrees to beside one call: further calls of the same tool, within these bounds."""

    SCOPE_WORDS: ClassVar[dict[Scope, str]] = {
        "run": "in this run",
        "session": "in this session",
        # It is the wider one, and has to say so: whoever gave it is served in every session that they have.
        "until": "in all your sessions until tonight",
    }
    # A list of cards that nobody can read was not read.
    MAX_SETTLED: ClassVar = 50

    where: dict[str, dict[str, Any]]
    """A bound for every parameter, in the words of policy files: `{"to": {"is": "Ada"}}`."""
    scope: Scope
    until: float | None = None
    """For the scope `until`: seconds since the epoch."""
    calls: int | None = None
    """The most calls. None for no limit, which only a tool may have whose effect can be undone."""
    sums: dict[str, str] = {}
    """The most that an argument may come to over all calls, as exact decimals: `{"amount": "100"}`."""
    settles: tuple[str, ...] = ()
    """Other calls whose cards wait now, which the person was shown and which this grant answers."""
    id: str = msgspec.field(default_factory=values.new_id)

    def __post_init__(self) -> None:
        if (self.scope == "until") != (self.until is not None):
            raise LastWordError("a grant until a moment names it, and no other does", hint='scope="until", until=…')
        if self.calls is not None and (type(self.calls) is not int or self.calls < 1):
            raise LastWordError("the calls of a grant are a whole number above 0")
        if len(self.settles) > self.MAX_SETTLED:
            raise LastWordError(f"a grant answers at most {self.MAX_SETTLED} waiting cards", hint="answer the others")

    @staticmethod
    def until_words(scope: Scope, until: float | None) -> str:
        """How long it would hold, for whoever gives it from a card: they are in its session, and in its run."""
        return (
            GrantTerms.SCOPE_WORDS.get(scope, str(scope)) if until is None else f"in all your sessions {_until(until)}"
        )

    @staticmethod
    def holding_words(
        scope: Scope, until: float | None, session_id: str, run: str, *, whose: str = "", is_here: bool = False
    ) -> str:
        """How long one that was given holds, for whoever reads of it later, in another session or in none.

        `whose`: the person who gave it, where that is not the reader. `is_here`: the reader is in the very session, in
        the very program, that it serves.
        """
        if until is not None:
            in_all = f"in all of {whose}'s sessions" if whose else "in all your sessions"
            return f"{in_all} {_until(until)}"
        if scope == "run":
            return f"in the run {run}, until it ends"
        return GrantTerms.SCOPE_WORDS["session"] if is_here else f"in the session {session_id}, until its program ends"


def _until(until: float) -> str:
    moment = datetime.datetime.fromtimestamp(until)
    if (moment.hour, moment.minute) != (0, 0):
        return f"until {moment.day} {moment:%B, %H:%M}"
    # Midnight is the next day's by its date, and this day's for whoever reads it.
    day = moment - datetime.timedelta(minutes=1)
    return f"until midnight, the end of {day.day} {day:%B}"


class Sealable(Protocol):
    """What an answer is bound to: a request (approval.py), by what counts of it then."""

    @property
    def digest(self) -> str: ...
    @property
    def nonce(self) -> str: ...
    @property
    def tool_digest(self) -> str: ...
    @property
    def manifest(self) -> Manifest: ...


class UserAction(msgspec.Struct, frozen=True):
    """What a person did with a card."""

    CLOSED: ClassVar[UserAction]
    SECOND: ClassVar[UserAction]
    """What a tool hears whose second button was a yes."""

    primary_confirmed: bool
    secondary_confirmed: bool
    reason: str | None = None
    arguments: dict[str, Any] | None = None
    """The arguments as the person changed them; None when they left them alone."""
    answers: str | None = None
    """The digest of the request this answers. Surfaces that are not handed the request itself must say it."""
    rest: bool = False
    """A no to this, and to whatever else the same script would ask for."""
    acts: Literal["secondary"] | None = None
    """Set when the second button was pressed as a consent of its own. It counts for tools whose manifest says so."""
    grant: GrantTerms | None = None
    """What is allowed beside this very call: others like it, without a question (docs/rules.md)."""

    def __post_init__(self) -> None:
        if type(self.primary_confirmed) is not bool or type(self.secondary_confirmed) is not bool:
            raise LastWordError("a user action is made of booleans", hint="UserAction(True, False) is Allow")
        if self.primary_confirmed and self.secondary_confirmed:
            raise LastWordError("a card cannot be both confirmed and declined", hint="choose one")
        if self.rest and not self.secondary_confirmed:
            raise LastWordError("only a no can be one to the rest", hint="request.deny_rest()")
        if self.acts is not None and (
            self.acts != "secondary" or not self.secondary_confirmed or self.arguments is not None or self.rest
        ):
            raise LastWordError(
                "acts goes with the second button, and with nothing changed", hint="request.allow_second() makes one"
            )
        if self.grant is not None and (not self.primary_confirmed or self.arguments is not None or not self.answers):
            raise LastWordError("a grant goes with a plain yes to one card", hint="request.allow_with(terms) makes one")
        if self.reason is not None:
            if not isinstance(self.reason, str):
                raise LastWordError(f"a reason is text, not a {type(self.reason).__name__}")
            msgspec.structs.force_setattr(self, "reason", displayable(self.reason))
        if self.arguments is not None:
            if type(self.arguments) is not dict:
                raise LastWordError("edited arguments are an object", hint="pass all arguments by name, in a dict")
            # A copy: whoever keeps the dict and changes it later changes nothing that was answered.
            copy = values.decode(values.written(self.arguments))
            msgspec.structs.force_setattr(self, "arguments", copy)

    @property
    def agrees(self) -> bool:
        """Whether this is a yes, by either button."""
        return self.primary_confirmed or self.acts is not None

    def sealed(self, request: Sealable, by: Answerer, at: float) -> Seal:
        """Bind it to the request it answers; an action for another request stays bound to that one."""
        return Seal(self.answers or request.digest, request.nonce, by, at)

    def as_counted(self, sealed: Seal, request: Sealable) -> UserAction:
        """As it counts: the second button is a yes of a person, to this very card, where the tool says so."""
        if self.acts is None:
            return self
        is_meant = sealed.approver.kind == "person" and self.answers == sealed.request == request.digest
        return self if request.manifest.secondary_acts and is_meant else msgspec.structs.replace(self, acts=None)


ALLOWED = UserAction(True, False)
DENIED = UserAction(False, True)
UserAction.CLOSED = UserAction(False, False)
UserAction.SECOND = UserAction(False, True, acts="secondary")


class Seal(msgspec.Struct, frozen=True):
    """One answer to one request, good for one start within a short time."""

    request: str
    nonce: str
    approver: Answerer
    answered_at: float

    @property
    def digest(self) -> str:
        """What the journal keeps as the proof of consent."""
        return values.digest(msgspec.json.encode((self.request, self.nonce, self.approver, self.answered_at)))

    def why_void(self, request: Sealable, *, tool_digest: str | None, now: float, valid_seconds: float) -> str | None:
        """Why this seal may not start this request's call now, or None."""
        if self.request != request.digest or self.nonce != request.nonce:
            return "the answer was given to another request"
        if tool_digest != request.tool_digest:
            return "the tool changed while the question waited"
        if now < self.answered_at:
            return "the answer is from the future: a clock was set back"
        if now - self.answered_at > valid_seconds:
            return f"the answer is older than {valid_seconds:g} seconds"
        return None
