"""The other process of the store's tests: reads what to do, one JSON object a line, and prints what came of it."""

import asyncio
import json
import sys
from typing import Any

import apsw
from samples import entry

from lastword.store.sqlite import SqliteStore


async def main() -> None:
    path = sys.argv[1]
    store = SqliteStore(path)
    holder: apsw.Connection | None = None
    for line in sys.stdin:
        match json.loads(line):
            case {"do": "commit", "number": number, "once": once, **more}:
                facts: dict[str, Any] = {str(key): value for key, value in more.items()}
                result: object = await store.commit(entry(number, once=once, **facts))
            case {"do": "make", "path": new}:
                made = SqliteStore(new)
                result = await made.commit(entry(1, once="first"))
                await made.close()
            case {"do": "append", "number": number}:
                result = store.append(entry(number))
            case {"do": "head"}:
                result = str(await store.head())
            case {"do": "changed", "after": after}:
                result = await asyncio.wait_for(store.changed(after), 20)
            case {"do": "lock"}:
                holder = apsw.Connection(path)
                result = holder.execute("BEGIN IMMEDIATE").get
            case {"do": "unlock"}:
                assert holder is not None
                result = holder.close()
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
    await store.close()


asyncio.run(main())
