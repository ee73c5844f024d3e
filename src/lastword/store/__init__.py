"""Records in order, in groups that are whole or not there, with keys that are taken once.

Whoever holds a `Store` appends and commits entries, reads records and proves them, and does not know which driver keeps
them. `open_store` gives the one at an address. What is written cannot be changed unseen.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.store.address import StoreAddress as StoreAddress
    from lastword.store.address import default_path as default_path
    from lastword.store.address import open_store as open_store
    from lastword.store.chain import Behind as Behind
    from lastword.store.chain import Entry as Entry
    from lastword.store.chain import Head as Head
    from lastword.store.chain import Pruned as Pruned
    from lastword.store.chain import Record as Record
    from lastword.store.contract import PAGE_RECORDS as PAGE_RECORDS
    from lastword.store.contract import ReadOnlyGuard as ReadOnlyGuard
    from lastword.store.contract import Store as Store
    from lastword.store.contract import read_only_guard as read_only_guard
    from lastword.store.contract import refuse_if_watched as refuse_if_watched
    from lastword.store.exports import copy_store as copy_store
    from lastword.store.exports import export as export
    from lastword.store.exports import verify_export as verify_export
    from lastword.store.memory import MemoryStore as MemoryStore
    from lastword.store.postgres import PostgresStore as PostgresStore
    from lastword.store.private_files import DEFAULT_FILE as DEFAULT_FILE
    from lastword.store.private_files import data_folder as data_folder
    from lastword.store.private_files import is_held as is_held
    from lastword.store.private_files import make_private as make_private
    from lastword.store.private_files import open_to_read as open_to_read
    from lastword.store.private_files import sync_names as sync_names
    from lastword.store.sqlite import SqliteStore as SqliteStore
else:
    __getattr__ = open_door(__name__)
