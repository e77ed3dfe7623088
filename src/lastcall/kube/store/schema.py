"""Define the content of the SQLite store's file and its version, and migrate older versions.

One row is one write, in the order of revisions, as in etcd. A row is dropped when no reader can ask for it any more:
the row that a forgotten write replaced, and the row of a forgotten deletion. `meta.compacted` is the revision up to
which the history is forgotten. SQLite would hand out what a disk has changed behind its back; a row has a checksum.
"""

import sqlite3
from collections.abc import Callable
from contextlib import suppress

from lastcall.kube.store.api import StoreError
from lastcall.kube.store.history import FIRST_REVISION

APPLICATION_ID = 0x6C617374
"""`PRAGMA application_id` ("last"): the file is a store of ours."""


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE changes (revision INTEGER PRIMARY KEY, key TEXT NOT NULL, deleted INTEGER NOT NULL,"
        " value BLOB NOT NULL)"
    )
    connection.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID")
    connection.execute("INSERT INTO meta VALUES ('compacted', ?)", (FIRST_REVISION,))


def _add_checksums(connection: sqlite3.Connection) -> None:
    # Rows from before have none.
    connection.execute("ALTER TABLE changes ADD COLUMN checksum INTEGER NOT NULL DEFAULT -1")


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_create, _add_checksums)
"""The step at place n makes version n + 1 of version n, inside a transaction. Version 0 is an empty file."""


def stored_version(connection: sqlite3.Connection, path: str) -> int:
    """Return the version of the file, 0 when it is empty. It only reads.

    Raises StoreError for a version newer than ours, and for a file that is not a store.
    """
    ours = len(MIGRATIONS)
    version = _pragma(connection, "user_version")
    if _pragma(connection, "application_id") != APPLICATION_ID:
        if version or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise StoreError(f"{path}: is an SQLite file, but no store of lastcall; name another directory")
    elif version > ours:
        raise StoreError(
            f"{path}: the store has version {version}, and this lastcall knows versions up to {ours}: use the newer "
            "lastcall that wrote it, or name another directory to begin with an empty store"
        )
    return version


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Make the file, which has `version`, one of our version, or leave it as it is."""
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in MIGRATIONS[version:]:
            step(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # some errors have rolled back already
            connection.execute("ROLLBACK")
        raise


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value
