"""Lengths as browsers count them: in units of sixteen bits, of which a character has one or two."""

from __future__ import annotations


def units(text: str) -> int:
    """How many units a text has."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def first_units(text: str, count: int) -> str:
    """The beginning of a text, of so many units."""
    if text.isascii():
        return text[:count]
    return text.encode("utf-16-le", "surrogatepass")[: 2 * count].decode("utf-16-le", "surrogatepass")
