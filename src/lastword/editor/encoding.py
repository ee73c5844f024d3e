"""Bytes to text and back, so that an edit changes what was edited and nothing else.

What a tool reads is the text as it stands in the file, without a byte order mark. What is written keeps the form of the
file: its byte order mark, and its line endings where the file uses one kind throughout and the new text uses the other
kind throughout. Models write `\\n`; a file with `\\r\\n` stays one. Mixed endings, on either side, are left as they
are given, since nobody can say which were meant.

UTF-8 only. Guessing another encoding would now and then write back something else than was read.
"""

from __future__ import annotations

from lastword.errors import NotText

BOM = b"\xef\xbb\xbf"
BOM_CHARACTER = "\ufeff"


def decode(data: bytes, *, strip: bool = True) -> str | None:
    """The text of a file without its byte order mark; None when it is not text in UTF-8.

    A part of a file has no such mark, and what looks like one is text: `strip=False` leaves it there.
    """
    if b"\0" in data:
        return None
    try:
        return (data.removeprefix(BOM) if strip else data).decode("utf-8")
    except UnicodeDecodeError:
        return None


def encode(content: str, like: bytes | None, *, path: str) -> bytes:
    """The bytes to write for `content` over a file that holds `like` (None: a new file).

    `encode(decode(data), data) == data` for everything that decodes.
    """
    if "\0" in content:
        raise NotText(
            "the new content holds a NUL character, and text has none",
            place=path,
            hint="the editor writes text only",
        )
    old = None if like is None else decode(like)
    if like is not None and old is None:
        raise NotText(
            "the file is binary or not UTF-8, so it can be neither edited nor replaced as text",
            place=path,
            hint="convert it to UTF-8 first, or leave it alone",
        )
    if old is not None:
        content = keep_newlines(old, content)
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise NotText(
            f"the new content holds the lone surrogate U+{ord(problem.object[problem.start]):04X}",
            place=path,
            hint="a surrogate is half a character; send the whole one",
        ) from None
    if like is not None and old is not None and like.startswith(BOM):
        # A caller who sent the mark along meant the same one, unless the file's text itself starts with a second.
        sent_along = content.startswith(BOM_CHARACTER) and not old.startswith(BOM_CHARACTER)
        return data if sent_along else BOM + data
    return data


def keep_newlines(old: str, new: str) -> str:
    """`new` with the line endings of `old`, where both are uniform and they differ."""
    had, has = uniform_newline(old), uniform_newline(new)
    if had is None or has is None or had == has:
        return new
    return new.replace(has, had)


def uniform_newline(text: str) -> str | None:
    """The line ending that a text uses throughout, or None when it has none or several."""
    if "\r" not in text:  # Nearly always, and megabytes are looked through faster than their lines are counted.
        return "\n" if "\n" in text else None
    newlines = text.count("\n")
    windows = text.count("\r\n")
    if newlines and windows == newlines:
        return "\r\n"
    return "\n" if newlines and not windows else None
