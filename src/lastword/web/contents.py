"""Bytes that a call returned, as a browser gets them: drawn or played if they are what they say, and else only saved.

They were made by a tool, perhaps from what a stranger wrote. Nothing in them may run, look like a page of ours, or be
taken for anything else than what their first bytes are.
"""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from lastword.card import trouble
from lastword.consent import Kept
from lastword.errors import SessionError, StoreError
from lastword.journal import Journal
from lastword.server import Refusal
from lastword.tools import UNKNOWN_TYPE

# A digest names the same bytes for ever; they are somebody's own, and no proxy's to keep.
KEPT = "private, max-age=31536000, immutable"
# Opened by itself, it is a document: one that may load nothing, run nothing and be in no frame.
POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"


async def content(journal: Journal, call_id: str, digest: str) -> Response:
    """What a call returned, by its digest. A refusal when the journal does not name it, or does not hold it."""
    try:
        kept, data = await journal.content(call_id, digest)
    except SessionError as problem:
        raise Refusal(404, "unknown_content", problem.fact) from None
    except StoreError as problem:
        raise Refusal(409, "refused", trouble("This cannot be shown", problem)) from None
    headers = {
        "Cache-Control": KEPT,
        "Content-Disposition": disposition(kept),
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
    }
    return Response(data, media_type=_media(kept), headers=headers)


def disposition(kept: Kept) -> str:
    """Whether a browser shows it or saves it, and under which name."""
    how = "inline" if kept.kind in ("image", "audio") else "attachment"
    return f"{how}; filename*=UTF-8''{quote(kept.name, safe='')}"


def _media(kept: Kept) -> str:
    """The type, where it was told by the bytes. A file is bytes to be saved, whatever it is called."""
    if kept.kind in ("image", "audio"):
        return kept.media_type
    return "text/plain; charset=utf-8" if kept.kind == "text" else UNKNOWN_TYPE
