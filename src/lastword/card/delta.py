"""What is new about an item, for windows that have it: found by whoever tells, put in by whoever is told.

A long script that prints one more line is told as one line, and not once more from its beginning. What does not live
here: words that a model is writing, which grow too fast to be compared (web/shared_items.py).
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from lastword.card.views import CallItem, Item, ItemDelta, MessageItem, ScriptItem, Splice

_TYPES: dict[type, dict[str, Any]] = {
    kind: {field.name: field.type for field in msgspec.structs.fields(kind) if field.name != "id"}
    for kind in (CallItem, ScriptItem, MessageItem)
}


def difference(before: Item, after: Item) -> ItemDelta | None:
    """What turns the one into the other; None when they are of different kinds, and must be told whole."""
    if type(before) is not type(after) or before.id != after.id:
        return None
    fields: dict[str, Any] = {}
    splices: list[Splice] = []
    for name in _TYPES[type(after)]:
        old, new = getattr(before, name), getattr(after, name)
        if old is new or old == new:
            continue
        if type(old) is tuple and type(new) is tuple and old and new:
            splices += _splices(name, old, new)
        else:
            fields[name] = new
    return ItemDelta(after.id, fields, tuple(splices))


def put_in(item: Item, delta: ItemDelta) -> Item:
    """The item with what is new about it. msgspec.ValidationError where that does not fit."""
    types = _TYPES[type(item)]
    changes = {name: msgspec.convert(value, _type(types, name)) for name, value in delta.fields.items()}
    for splice in delta.splices:
        kind = _type(types, splice.field)
        known = changes.get(splice.field, getattr(item, splice.field))
        if type(known) is not tuple:
            raise msgspec.ValidationError(f"{splice.field} is no list")
        put = msgspec.convert(splice.put, kind)
        changes[splice.field] = (*known[: splice.at], *put, *known[splice.at + splice.cut :])
    return replace(item, **changes)


def _type(types: dict[str, Any], name: str) -> Any:
    if name not in types:
        raise msgspec.ValidationError(f"an item has no {name}")
    return types[name]


def _splices(name: str, old: tuple[Any, ...], new: tuple[Any, ...]) -> list[Splice]:
    """What turns one list into the other. The usual: more at the end, and as many fewer at the beginning."""
    for cut in range(len(old)):
        # What stayed is the very same object, so most places are passed over without looking into them.
        if old[cut] is new[0] and old[cut:] == new[: len(old) - cut]:
            kept = len(old) - cut
            found = [Splice(name, 0, cut, ())] if cut else []
            return [*found, Splice(name, kept, 0, new[kept:])] if new[kept:] else found
    most = min(len(old), len(new))
    head = next((place for place in range(most) if old[place] != new[place]), most)
    tail = next((place for place in range(most - head) if old[-1 - place] != new[-1 - place]), most - head)
    return [Splice(name, head, len(old) - head - tail, new[head : len(new) - tail])]
