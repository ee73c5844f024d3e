"""What a tool may return: a JSON value, and beside it images, audio, files and text; and what bytes really are.

A tool says what it means; what a surface shows is decided by the bytes. Bytes that claim to be an image and are none
become a file, which nothing draws. What becomes of a block once its call is over is told in consent/outcome.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from mimetypes import MimeTypes
from pathlib import Path, PurePath
from typing import Any, ClassVar, Literal, NoReturn

import msgspec

from lastword import values

BlockKind = Literal["image", "audio", "file", "text"]

# A photograph or a few minutes of speech. Larger ones are refused by most models, and each is held in memory whole.
MAX_BLOCK_BYTES = 10 * 2**20
# What one call may add to the journal. A tool that makes more should write files, and name them.
MAX_RESULT_BYTES = 20 * 2**20
# More than this is not looked at by anybody, and a model is told of each.
MAX_BLOCKS = 16

UNKNOWN_TYPE = "application/octet-stream"

Source = bytes | bytearray | memoryview | str | os.PathLike[str]


class Block:
    """Bytes, or the path of a file that is read at once, and what their tool says of them."""

    kind: ClassVar[BlockKind]
    __slots__ = ("alt", "data", "media_type", "name")

    data: bytes | None
    """None when there are more than MAX_BLOCK_BYTES: they are not even read."""
    media_type: str | None
    """As the tool claims."""
    name: str | None
    alt: str
    """What is to be seen or heard, for those who cannot."""

    def __init__(
        self, source: Source, *, media_type: str | None = None, name: str | None = None, alt: str = ""
    ) -> None:
        if isinstance(source, (str, os.PathLike)):
            name = Path(source).name if name is None else name
            data = _read(source)
        elif isinstance(source, (bytes, bytearray, memoryview)):
            size = source.nbytes if isinstance(source, memoryview) else len(source)
            data = bytes(source) if size <= MAX_BLOCK_BYTES else None
        else:
            raise TypeError(f"{type(self).__name__} takes bytes or a path, and not a {type(source).__name__}")
        for field, value in (("media_type", media_type), ("name", name), ("alt", alt)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{field} of {type(self).__name__} is a str, and not a {type(value).__name__}")
        self._fill(data, media_type, name, alt)

    def _fill(self, data: bytes | None, media_type: str | None, name: str | None, alt: str) -> None:
        for field, value in (("data", data), ("media_type", media_type), ("name", name), ("alt", alt)):
            object.__setattr__(self, field, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; make another one")

    def __repr__(self) -> str:
        size = "too large" if self.data is None else f"{len(self.data)} bytes"
        return f"<{type(self).__name__} {self.name or 'without a name'}: {size}>"


class Image(Block):
    """A picture: PNG, JPEG, GIF or WebP. Anything else, SVG among it, is offered as a file."""

    kind = "image"
    __slots__ = ()


class Audio(Block):
    """A sound: WAV, MP3, OGG or FLAC. Anything else is offered as a file."""

    kind = "audio"
    __slots__ = ()


class File(Block):
    """A file to be kept for the person. Nothing draws or plays it."""

    kind = "file"
    __slots__ = ()


class Text(Block):
    """Words for the person and the model, beside the value."""

    kind = "text"
    __slots__ = ()

    def __init__(self, text: str, *, name: str | None = None) -> None:
        if not isinstance(text, str):
            raise TypeError(f"Text takes a str, and not a {type(text).__name__}")
        # No character is shorter than a byte, so what is too large is not encoded either.
        data = text.encode("utf-8", "replace") if len(text) <= MAX_BLOCK_BYTES else None
        fits = data is not None and len(data) <= MAX_BLOCK_BYTES
        self._fill(data if fits else None, "text/plain", name, "")


class ToolResult:
    """A JSON value and what goes with it."""

    __slots__ = ("content", "value")

    def __init__(self, value: Any = None, content: Sequence[Block | str] | Block | None = ()) -> None:
        self.value = value
        self.content = content

    def __repr__(self) -> str:
        return f"ToolResult({self.value!r}, {self.content!r})"


def to_json(value: Any) -> Any:
    """What a function returned, as JSON values: dataclasses, msgspec structs, pydantic models, dates and the like."""
    try:
        return values.plain(value)
    except values.NotJSON:
        return values.plain(_lists(msgspec.to_builtins(value, str_keys=True, enc_hook=json_values)))


def json_values(value: Any) -> Any:
    """What msgspec does not know, as JSON values."""
    if hasattr(value, "model_dump"):  # a pydantic model, without importing pydantic
        return value.model_dump(mode="json")
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, (Block, ToolResult)):
        raise values.NotJSON(
            f"the {type(value).__name__} stands inside of the value; return ToolResult(value, content)"
        )
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


def _lists(value: Any) -> Any:
    """Tuples and sets, which msgspec leaves alone, as lists."""
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_lists(item) for item in value]
    return value


def _read(path: str | os.PathLike[str]) -> bytes | None:
    """A file, unless it is too large. It is read by the tool's own code, when it says so."""
    with open(path, "rb") as file:
        data = file.read(MAX_BLOCK_BYTES + 1)
    return data if len(data) <= MAX_BLOCK_BYTES else None


_MAGIC: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"RIFF....WAVE", re.DOTALL), "audio/wav"),
    (re.compile(rb"ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]"), "audio/mpeg"),
    (re.compile(rb"OggS"), "audio/ogg"),
    (re.compile(rb"fLaC"), "audio/flac"),
    (re.compile(rb"%PDF-"), "application/pdf"),
)
_WELL_FORMED = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,60}")


def sniff(data: bytes) -> str | None:
    """What bytes are by their first few, of the types that surfaces draw, play or open; None for all others."""
    return next((found for magic, found in _MAGIC if magic.match(data)), None)


def true_kind(kind: BlockKind, data: bytes, claimed: str | None, name: str | None) -> tuple[BlockKind, str]:
    """What a block is, whatever its tool says: its kind, and a media type that does not lie about what can be told."""
    if kind == "text":
        return "text", "text/plain"
    found = sniff(data)
    if found is not None:
        shown = kind == found.partition("/")[0]
        return (kind if shown else "file"), found
    guessed = None if name is None else _NAMES.guess_type(name, strict=True)[0]
    said = (claimed or guessed or UNKNOWN_TYPE).partition(";")[0].strip().lower()
    is_told_by_bytes = said.startswith(("image/", "audio/")) and said != "image/svg+xml"
    if is_told_by_bytes or said == "application/pdf" or not _WELL_FORMED.fullmatch(said):
        said = UNKNOWN_TYPE
    return "file", said


# The table that comes with Python, and not the system's: the same file has the same type everywhere.
_NAMES = MimeTypes()


def extension_of(media_type: str) -> str:
    """How the name of such a file ends; empty when nothing is known of its type."""
    return _EXTENSIONS.get(media_type) or _NAMES.guess_extension(media_type) or ""


_EXTENSIONS = {"audio/wav": ".wav", "audio/ogg": ".ogg", "audio/flac": ".flac", "image/webp": ".webp"}
