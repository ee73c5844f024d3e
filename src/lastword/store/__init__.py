"""Records in order, in groups that are whole or not there, with keys that are taken once.

Whoever holds a `Store` appends and commits entries, reads records and proves them, and does not know which driver keeps
them. `StoreAddress` opens the one at an address. What is written cannot be changed unseen.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.store.address import StoreAddress
    from lastword.store.chain import Behind, Entry, Head, Pruned, Record
    from lastword.store.contract import ReadOnlyGuard, Store, read_only_guard, refuse_if_watched
    from lastword.store.exports import copy_store, export, verify_export
    from lastword.store.memory import MemoryStore
    from lastword.store.postgres import PostgresStore
    from lastword.store.private_files import data_folder, is_held, make_private, write_whole
    from lastword.store.sqlite import SqliteStore
else:
    __getattr__ = open_door(__name__)
