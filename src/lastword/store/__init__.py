"""Records in order, in groups that are whole or not there, with keys that are taken once."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.store.address import check_flag as check_flag
    from lastword.store.address import default_path as default_path
    from lastword.store.address import from_folder as from_folder
    from lastword.store.address import is_whole as is_whole
    from lastword.store.address import open_store as open_store
    from lastword.store.address import shown as shown
    from lastword.store.contract import PAGE_RECORDS as PAGE_RECORDS
    from lastword.store.contract import Behind as Behind
    from lastword.store.contract import Entry as Entry
    from lastword.store.contract import Head as Head
    from lastword.store.contract import Pruned as Pruned
    from lastword.store.contract import Record as Record
    from lastword.store.contract import Store as Store
    from lastword.store.contract import contains as contains
    from lastword.store.contract import parse_head as parse_head
    from lastword.store.contract import verify_store as verify_store
    from lastword.store.copying import MovableStore as MovableStore
    from lastword.store.copying import copy_store as copy_store
    from lastword.store.exports import export as export
    from lastword.store.exports import verify_export as verify_export
    from lastword.store.folders import DEFAULT_FILE as DEFAULT_FILE
    from lastword.store.folders import data_folder as data_folder
    from lastword.store.folders import make_private as make_private
    from lastword.store.folders import open_to_read as open_to_read
    from lastword.store.folders import sync_names as sync_names
    from lastword.store.holds import holds_folder as holds_folder
    from lastword.store.holds import is_held as is_held
    from lastword.store.memory import MemoryStore as MemoryStore
    from lastword.store.pen import WRITE as WRITE
    from lastword.store.pen import Refusing as Refusing
    from lastword.store.pen import refuse_if_watched as refuse_if_watched
    from lastword.store.pen import watching as watching
    from lastword.store.postgres_address import holds_password as holds_password
    from lastword.store.proof import prove as prove
    from lastword.store.proof import prove_from as prove_from
    from lastword.store.sqlite import SqliteStore as SqliteStore
else:
    __getattr__ = open_door(
        __name__,
        address="check_flag default_path from_folder is_whole open_store shown",
        contract="Behind Entry Head PAGE_RECORDS Pruned Record Store contains parse_head verify_store",
        copying="MovableStore copy_store",
        exports="export verify_export",
        folders="DEFAULT_FILE data_folder make_private open_to_read sync_names",
        holds="holds_folder is_held",
        memory="MemoryStore",
        pen="Refusing WRITE refuse_if_watched watching",
        postgres_address="holds_password",
        proof="prove prove_from",
        sqlite="SqliteStore",
    )
