"""Consent as data: the request that a person sees, in the form for them and in the one for the journal.

What is shown is exactly what is digested. What does not live here: the answer (sealed_answer.py), who decides (call.py,
rules/), drawing a card and asking (call/) and remembering (journal/).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Literal

import msgspec

from lastword import values
from lastword.consent.sealed_answer import GrantTerms, UserAction
from lastword.editor import Preview
from lastword.tools import Manifest, Parameter, ToolKey
from lastword.tools.guard import Observation

Author = Literal["model", "person"]

# Beyond so many characters a request is worth the way to a thread: below, its digest takes less than the way.
LARGE_CHARACTERS = 100_000

# So many calls of a script that are denied in a row: by then the person hardly wants the fourth, nor to be asked two
# hundred times.
OFFERED_AFTER = 3


class AskingSession(msgspec.Struct, frozen=True):
    """What whoever answers elsewhere has to know of the session that asks. None of it is shown or run, so the digest of
    the request does not cover it."""

    stops: int = 0
    """How often everything had been stopped by then."""
    folder: str = ""
    """From where its paths and commands are meant. This and what follows are for grants, and empty without any."""
    path_schemas: Mapping[str, Any] = {}
    """What the tool says of arguments that may be paths."""
    user: str | None = None
    """The digest of the user for whom the session works: a grant from this card serves nobody else's."""


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly what a person is asked. Its digest covers everything they can see and everything that would run."""

    # What the buttons say where the tool does not.
    ALLOW: ClassVar = "Allow"
    CANCEL: ClassVar = "Cancel"
    DENY: ClassVar = "Deny"
    """How surfaces say CANCEL: a card can also be closed, and Cancel would not say that it is an answer."""

    call_id: str
    tool: str
    manifest: Manifest
    tool_digest: str
    session_id: str
    argument_bytes: bytes
    title: str
    message: str
    primary_button_label: str = ALLOW
    secondary_button_label: str = CANCEL
    preview_label: str | None = None
    preview: tuple[Preview, ...] = ()
    reads: tuple[tuple[str, str | None], ...] = ()
    """Files of the editor that the card was drawn from, with their digests."""
    looked_at: tuple[Observation, ...] = ()
    """What else it was drawn from: files that were opened, and keys of the state."""
    missing: tuple[str, ...] = ()
    """Which keys of auto-approval are not there."""
    rule_line: str = ""
    """What the rules say of it, in one line."""
    origin: str = ""
    """Where the call comes from, in words: `line 3 of report.nuwa`."""
    author: Author = "model"
    problem: str | None = None
    """Why the same call is asked again."""
    nonce: str = msgspec.field(default_factory=lambda: values.new_id(16))
    denials: int = 0
    """How many calls of the same script were denied before it without a yes between them."""
    principal: str = ""
    """Whose card it is. Empty where nobody was named: everybody's."""
    carried_out_by: str = ""
    """The program to which the call is handed over, where that is not this one."""
    digest: str = ""
    """Computed, never given. Changes when anything changes that was shown or would run."""

    def __post_init__(self) -> None:
        shown: tuple[Any, ...] = (
            self.call_id,
            self.tool_digest,
            self.session_id,
            self.argument_bytes,
            self.title,
            self.message,
            self.primary_button_label,
            self.secondary_button_label,
            self.preview_label,
            self.preview,
            self.reads,
            self.looked_at,
            self.missing,
            self.origin,
            self.author,
            self.problem,
            self.nonce,
        )
        if self.denials or self.principal or self.rule_line or self.carried_out_by:
            # Not there where there is nothing to show: what waits since before there was such a thing stays the same.
            shown = (
                *shown,
                *((self.denials,) if self.denials else ()),
                *((("principal", self.principal),) if self.principal else ()),
                *((self.rule_line,) if self.rule_line else ()),
                *((("to", self.carried_out_by),) if self.carried_out_by else ()),
            )
        msgspec.structs.force_setattr(self, "digest", values.digest(_encode(shown)))

    @property
    def arguments(self) -> dict[str, Any]:
        """A fresh copy of what would run. Changing it changes nothing."""
        decoded: dict[str, Any] = values.decode(self.argument_bytes)
        return decoded

    @property
    def shown_arguments(self) -> dict[str, Any]:
        """The arguments as any surface may show them: secrets masked."""
        return Secrets.mask(self.arguments, self.manifest.secrets)

    def allow(self) -> UserAction:
        """Yes to this very request."""
        return UserAction(True, False, answers=self.digest)

    def allow_with(self, grant: GrantTerms) -> UserAction:
        """Yes to this very request, and to others like it: the second step of a card (rules/terms.py)."""
        return UserAction(True, False, answers=self.digest, grant=grant)

    def allow_second(self) -> UserAction:
        """Yes by the second button, for a tool whose second button acts; a no for any other."""
        return UserAction(False, True, answers=self.digest, acts="secondary")

    def deny(self, reason: str | None = None) -> UserAction:
        """No to this very request."""
        return UserAction(False, True, reason, answers=self.digest)

    @property
    def offers_rest(self) -> bool:
        """Whether the person should be offered to deny the rest of the script, too."""
        return self.denials >= OFFERED_AFTER

    def deny_rest(self, reason: str | None = None) -> UserAction:
        """No to this very request, and to whatever else the same script would ask for."""
        return UserAction(False, True, reason, answers=self.digest, rest=True)

    def close(self) -> UserAction:
        """Neither yes nor no."""
        return UserAction(False, False, answers=self.digest)

    def edit(self, **arguments: Any) -> UserAction:
        """Yes, with some arguments changed."""
        return UserAction(True, False, arguments=self.arguments | arguments, answers=self.digest)

    @classmethod
    def from_facts(cls, facts: dict[str, Any], manifest: Manifest | None = None) -> ApprovalRequest:
        """A request as another process can show it: from what the journal holds, with secrets as digests.

        Its digest is the one that was written down, so an answer to it answers the question that was asked. Who has no
        `manifest` of the tool at hand gets one that knows as much of it as the facts do.
        """
        manifest = manifest or Manifest(
            id=facts["tool"],
            display_name=facts["display_name"],
            description=facts["description"],
            icon=facts["icon"],
            color=facts["color"],
            effect=facts["effect"],
            content_parameter=facts["content_parameter"],
            secondary_acts=facts.get("secondary_acts", False),
            parameters=tuple(
                Parameter(
                    name,
                    values.type_name[type(value)],
                    schema=facts.get("path_schemas", {}).get(name),
                    secret=name in facts["secrets"],
                )
                for name, value in facts["arguments"].items()
            )
            + tuple(Parameter(name, "any", required=False) for name in facts.get("left_out", ())),
            auto_approve=facts.get("auto_approve", False),
        )
        request = cls(
            manifest=manifest,
            argument_bytes=values.written(facts["arguments"]),
            preview=tuple(msgspec.convert(preview, Preview) for preview in facts["preview"]),
            reads=tuple((path, digest) for path, digest in facts["reads"]),
            looked_at=msgspec.convert(facts.get("looked_at", ()), tuple[Observation, ...]),
            missing=tuple(facts["missing"]),
            **{name: facts[name] for name in _AS_IT_IS if name in facts},
        )
        msgspec.structs.force_setattr(request, "digest", facts["digest"])
        return request

    def copy(self) -> ApprovalRequest:
        """The same request in other memory, for whoever only looks at it."""
        copied = copy.copy(self)
        if self.preview:
            msgspec.structs.force_setattr(copied, "preview", tuple(map(copy.copy, self.preview)))
        return copied

    @staticmethod
    def is_large(argument_bytes: bytes, previews: Sequence[Preview]) -> bool:
        """Whether reducing a request to bytes would keep others on the loop waiting."""
        size = len(argument_bytes)
        for preview in previews:
            size += len(preview.base or "") + len(preview.proposed or "")
        return size > LARGE_CHARACTERS

    def facts(self) -> dict[str, Any]:
        """The request as plain data, for other processes. Secrets are digests."""
        facts: dict[str, Any] = values.decode(self.written())
        return facts

    def _left_out(self) -> tuple[str, ...]:
        if all(p.required for p in self.manifest.parameters):
            return ()
        given = self.arguments
        return tuple(p.name for p in self.manifest.parameters if p.name not in given)

    def written(self, process: str = "", asking: AskingSession | None = None, program: str = "") -> bytes:
        """The facts as the journal keeps them: with who asks, and how things stood around it."""
        manifest, arguments, asking = self.manifest, self.argument_bytes, asking or AskingSession()
        secrets = manifest.secrets
        if secrets:
            arguments = values.written(Secrets.hide(self.arguments, secrets))
        written: tuple[Any, ...] = (
            self.call_id,
            self.tool,
            *_OF_MANIFEST(manifest),
            sorted(secrets),
            self.tool_digest,
            self.session_id,
            msgspec.Raw(arguments),
            *_OF_CARD(self),
            process,
            asking.stops,
            self.looked_at,
            manifest.secondary_acts,
            self.denials,
            program,
            self.principal,
            self.rule_line,
            manifest.auto_approve,
            () if manifest.auto_approve is False else self._left_out(),
            self.carried_out_by,
            asking.path_schemas,
            asking.folder,
            asking.user,
        )
        return _encode(_Facts(*written))


class _Facts(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the journal keeps of a request: a struct is encoded in half the time of a dict."""

    call_id: str
    tool: str
    display_name: str
    description: str
    icon: str | None
    color: str | None
    effect: str | None
    content_parameter: str | None
    secrets: list[str]
    tool_digest: str
    session_id: str
    arguments: msgspec.Raw
    title: str
    message: str
    primary_button_label: str
    secondary_button_label: str
    preview_label: str | None
    preview: tuple[Preview, ...]
    reads: tuple[tuple[str, str | None], ...]
    missing: tuple[str, ...]
    origin: str
    author: Author
    problem: str | None
    nonce: str
    digest: str
    process: str = ""
    """Whose question it is: the name that the journal of that process holds while it lives."""
    stops: int = 0
    looked_at: tuple[Observation, ...] = ()
    secondary_acts: bool = False
    denials: int = 0
    program: str = ""
    """What a person knows that process by. It says so itself, so nothing is decided by it."""
    principal: str = ""
    rule_line: str = ""
    auto_approve: ToolKey = False
    """The tool's key, for whoever offers a grant elsewhere."""
    left_out: tuple[str, ...] = ()
    """The parameters that were not given, where a grant could be."""
    carried_out_by: str = ""
    path_schemas: Mapping[str, Any] = {}
    folder: str = ""
    user: str | None = None


def _between(first: str, behind: str) -> list[str]:
    fields = _Facts.__struct_fields__
    return list(fields[fields.index(first) : fields.index(behind)])


_OF_MANIFEST = attrgetter(*_between("display_name", "secrets"))
_OF_CARD = attrgetter(*_between("title", "process"))
_AS_IT_IS = {name for name in ApprovalRequest.__struct_fields__ if name in _Facts.__struct_fields__} - {
    "preview",
    "reads",
    "looked_at",
    "missing",
    "digest",
}
_encode = msgspec.json.Encoder().encode

Approver = Callable[[ApprovalRequest], Awaitable[UserAction] | UserAction]
"""Whoever is asked: an async function, or a plain one, which then runs in a thread."""


class Secrets:
    """Arguments that no surface shows and no journal keeps."""

    MASK = "••••••"

    @staticmethod
    def mask(arguments: dict[str, Any], secrets: frozenset[str]) -> dict[str, Any]:
        """As dots, for surfaces."""
        return {k: Secrets.MASK if k in secrets else v for k, v in arguments.items()} if secrets else arguments

    @staticmethod
    def masked(arguments: bytes, secrets: frozenset[str]) -> bytes:
        """The same for listeners, who are told of arguments as bytes."""
        return values.written(Secrets.mask(values.decode(arguments), secrets)) if secrets else arguments

    @staticmethod
    def hide(arguments: dict[str, Any], secrets: frozenset[str]) -> dict[str, Any]:
        """As digests, for the journal."""
        if not secrets:
            return arguments
        return {k: _hidden(v) if k in secrets else v for k, v in arguments.items()}

    @staticmethod
    def unhidden(arguments: dict[str, Any]) -> dict[str, Any]:
        """As dots what the journal has as digests: a digest says nothing to a person."""
        hidden = [name for name, value in arguments.items() if type(value) is dict and list(value) == ["secret"]]
        return Secrets.mask(arguments, frozenset(hidden))

    @staticmethod
    def keep(edited: dict[str, Any], original: dict[str, Any], secrets: frozenset[str]) -> dict[str, Any]:
        """Edited arguments with the secrets that the editor saw only as dots or digests, and so did not change."""
        if not secrets:
            return edited
        return {
            k: original[k] if k in secrets and k in original and v in (Secrets.MASK, _hidden(original[k])) else v
            for k, v in edited.items()
        }


_DIGEST = re.compile("[0-9a-f]{64}")


def _hidden(value: Any) -> Any:
    """A secret as its digest; one that is hidden already stays as it is."""
    if type(value) is dict and value.keys() == {"secret"} and _DIGEST.fullmatch(str(value["secret"])):
        return value
    return {"secret": values.digest(values.canonical(value))}
