"""The inbox: what waits for an answer in every program on one memory, an entry for each card.

An entry says enough to find a card and to tell it from others; the card itself is fetched when somebody looks at it, so
a thousand of them cost a window no more than a list. Texts are marked before they get here. What does not live here:
where entries come from (web/answers.py, web/other_sessions.py) and how they look (web/ui, terminal/chat_commands.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

from lastword.card.face import EFFECT_WORDS
from lastword.card.text import in_one_line, one_line
from lastword.card.views import InboxEntry, Waits
from lastword.consent import ApprovalRequest
from lastword.display import color_name, glyph

# What a row shows of the arguments. The card has all of them.
MAX_SUMMARY = 160
MAX_VALUE = 60
MAX_NAMED = 6
# Of the name of a program. The number of its process stands behind it, however long it is.
MAX_PROGRAM = 60


def entry_of(
    request: ApprovalRequest, asked_at: float, *, session: str | None, program: str = "", asker: Waits = "waits"
) -> InboxEntry:
    """The entry of a question of this program, as it is `called`. Nothing of its preview is drawn for it."""
    manifest = request.manifest
    # Whose it is counts and not what it is called: a program chooses its own name.
    alike = f"{session} {program} {request.tool} {request.tool_digest}"
    return InboxEntry(
        id=request.call_id,
        digest=request.digest,
        tool=request.tool,
        name=one_line(manifest.display_name),
        glyph=glyph(manifest.icon),
        color=color_name(manifest.color),
        effect=manifest.effect,
        effect_words=EFFECT_WORDS[manifest.effect],
        sentence=one_line(manifest.description, 300),
        summary=summary_of(request.shown_arguments),
        session=session,
        program=program,
        origin=one_line(request.origin),
        asked_at=asked_at,
        asker=asker,
        alone=manifest.counts_as_irreversible,
        alike=sha256(alike.encode()).hexdigest()[:16],
    )


def called(program: str, process: str, session: str, namesakes: int = 1) -> str:
    """What a program is called on every screen, so that none passes for another one or for the person's own assistant.

    It chose its name itself. `namesakes`: how many programs that ask now have chosen the same.
    """
    if not program:
        return f"a program, session {session[:8]}"
    known = re.fullmatch(r"(.+), process ([1-9][0-9]{0,9})", program, re.DOTALL)
    # Blanks that a reader passes over would make two names of one.
    if known is None or known[1] != " ".join(known[1].split()):
        words = f"a program that calls itself “{one_line(program, MAX_PROGRAM)}”"
    else:
        words = f"{one_line(known[1], MAX_PROGRAM)}, process {known[2]}"
    # Ids begin with their time, which programs that were started together share.
    return words if namesakes < 2 else f"{words} (one of {namesakes} of this name: {one_line(process[-6:])})"


def summary_of(arguments: Mapping[str, object]) -> str:
    """Arguments in a line, marked: enough to tell a call from others. Whoever calls it has made dots of the secrets."""
    given = list(arguments.items())
    named = [f"{name}: {_short(value)}" for name, value in given[:MAX_NAMED]]
    more = [f"and {len(given) - MAX_NAMED} more"] if len(given) > MAX_NAMED else []
    return one_line(", ".join([*named, *more]), MAX_SUMMARY)


def _short(value: object) -> str:
    text = in_one_line(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"
