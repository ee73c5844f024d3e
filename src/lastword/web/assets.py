"""The built files of the page, as they are sent: compressed since they were built, and kept by browsers for good.

The name of a file holds a digest of its contents, so what a browser has kept under a name is what it would get.
"""

from __future__ import annotations

import mimetypes
from importlib.resources.abc import Traversable

from starlette.responses import Response

KEPT = "public, max-age=31536000, immutable"
# The smallest first: it is taken where a browser does not care.
ENDINGS = {"br": ".br", "gzip": ".gz"}


def asset(folder: Traversable, name: str, accept_encoding: str) -> Response | None:
    """A file by its name, in the smallest form that the browser takes; None when there is no such file."""
    # One of those that are there, so that no name can mean anything outside the folder.
    found = {file.name: file for file in folder.iterdir() if file.is_file()} if folder.is_dir() else {}
    if name not in found or name.endswith(tuple(ENDINGS.values())):
        return None
    headers = {"Cache-Control": KEPT, "Vary": "Accept-Encoding"}
    for encoding in preferred(accept_encoding):
        if (smaller := found.get(name + ENDINGS[encoding])) is not None:
            headers["Content-Encoding"] = encoding
            return Response(smaller.read_bytes(), media_type=_media(name), headers=headers)
    return Response(found[name].read_bytes(), media_type=_media(name), headers=headers)


def preferred(accept_encoding: str) -> list[str]:
    """Those of our encodings that a browser takes, the one that it likes best first."""
    weights: dict[str, float] = {}
    for part in accept_encoding.lower().split(","):
        encoding, _, weight = part.replace(" ", "").partition(";q=")
        try:
            weights[encoding] = float(weight or 1)
        except ValueError:
            weights[encoding] = 0.0
    liked = {encoding: weights.get(encoding, weights.get("*", 0.0)) for encoding in ENDINGS}
    return sorted((encoding for encoding in liked if liked[encoding] > 0), key=lambda encoding: -liked[encoding])


def _media(name: str) -> str:
    # The system's table may have another type for it, which browsers refuse to run.
    return "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "application/octet-stream"
