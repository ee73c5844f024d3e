"""The other process of the store's tests: reads what to do, one JSON object a line, and prints what came of it."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import apsw
from samples import FORM, entry

from lastword.errors import Overtaken, StoreError
from lastword.store.address import StoreAddress
from lastword.store.postgres import MIGRATIONS
from lastword.store.sqlite import SqliteStore


async def main() -> None:
    path = sys.argv[1]
    del MIGRATIONS[int(os.environ.get(FORM, len(MIGRATIONS))) :]
    store = StoreAddress(path).open() if "://" in path else SqliteStore(path)
    held: dict[str, Callable[[], None]] = {}
    holder: apsw.Connection | None = None
    for line in sys.stdin:
        match json.loads(line):
            case {"do": "commit", "number": number, "once": once, **more}:
                facts: dict[str, Any] = {str(key): value for key, value in more.items()}
                result: object = await store.commit(entry(number, once=once, **facts))
            case {"do": "make", "path": new}:
                made = StoreAddress(new).open() if "://" in new else SqliteStore(new)
                result = await made.commit(entry(1, once="first"))
                await made.close()
            case {"do": "append", "number": number}:
                result = store.append(entry(number))
            case {"do": "content", "digest": digest}:
                found = await store.content(digest)
                result = None if found is None else len(found)
            case {"do": "head"}:
                result = str(await store.head())
            case {"do": "changed", "after": after}:
                result = await asyncio.wait_for(store.changed(after), 20)
            case {"do": "hold", "name": name}:
                release = store.hold(name)
                result = release is not None
                if release is not None:
                    held[name] = release
            case {"do": "release", "name": name}:
                result = held.pop(name)()
            case {"do": "try", "number": number, "once": once, **more}:
                try:
                    result = await store.commit(entry(number, once=once, **{str(key): more[key] for key in more}))
                except StoreError as problem:
                    result = f"{type(problem).__name__}: {problem.fact}"
            case {"do": "lock"}:
                holder = apsw.Connection(path)
                result = holder.execute("BEGIN IMMEDIATE").get
            case {"do": "unlock"}:
                assert holder is not None
                result = holder.close()
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
    try:
        await store.close()
    except Overtaken:
        await store.close()  # What could not be written any more was told of, and is gone.


asyncio.run(main())
