"""The file of the SQLite store: opened, appended to, trimmed. Everything here blocks and belongs in one thread.

WAL with synchronous=FULL: when `append` returns, its rows outlive the machine's power. locking_mode=EXCLUSIVE: no other
process can open the file, and there is no shared memory file, whose growth on a full disk would be a SIGBUS.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress

from lastcall.store.api import Entry, StoreError
from lastcall.store.schema import migrate, stored_version
from lastcall.store.value import Value

Row = tuple[int, str, bool, bytes]
"""revision, key, deleted, value."""

LOCK_SECONDS = 5.0
"""How long the lock of a process that is just being killed is waited for."""
TRIM_AT_ONCE = 500
"""Rows that one DELETE statement names."""
SPARE_PAGES = 1024
"""Free pages that the file keeps for reuse; more, if they are over half of the file, go back to the file system."""


class Log:
    """One open file."""

    def __init__(self, path: str) -> None:
        """Open `path`, create it with mode 0600 or migrate it. Raises StoreError."""
        self.path = path
        _create_private(path)
        try:
            # Without isolation_level each statement commits by itself.
            self._connection = sqlite3.connect(
                path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            raise _opening_failed(path, error) from error

    def _prepare(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        version = stored_version(self._connection, self.path)
        if not version:
            execute("PRAGMA auto_vacuum = INCREMENTAL")  # decided before the first table
        if execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
            raise StoreError(f"{self.path}: this file system cannot keep a write-ahead log; name another directory")
        execute("PRAGMA synchronous = FULL")
        # 16 MB: few checkpoints, each of which costs a group tens of milliseconds, for a file that stays small.
        execute("PRAGMA wal_autocheckpoint = 4000")
        execute("PRAGMA journal_size_limit = 16777216")
        migrate(self._connection, version)
        # A lock on the main file from now on, also when nothing had to be written.
        execute("BEGIN IMMEDIATE")
        execute("COMMIT")

    def load(self) -> tuple[int, list[Entry], list[Row]]:
        """(compacted revision, the entries as they were then, every later write in order). Raises StoreError."""
        try:
            compacted: int = self._connection.execute("SELECT value FROM meta WHERE name = 'compacted'").fetchone()[0]
            base = [
                Entry(key, Value(value), revision)
                for revision, key, value in self._connection.execute(
                    "SELECT revision, key, value FROM changes WHERE revision <= ? AND NOT deleted", (compacted,)
                )
            ]
            later = self._connection.execute(
                "SELECT revision, key, deleted, value FROM changes WHERE revision > ? ORDER BY revision", (compacted,)
            ).fetchall()
        except (sqlite3.Error, TypeError) as error:
            raise _opening_failed(self.path, error) from error
        return compacted, base, later

    def append(self, rows: Sequence[Row]) -> None:
        """Keep all of `rows` durably, or none of them and raise StoreError."""
        # One statement, so one step outside the interpreter's lock: with a step per row a busy event loop would take
        # the lock for a switch interval between any two of them.
        values = ",".join(["(?,?,?,?)"] * len(rows))
        try:
            self._connection.execute(f"INSERT INTO changes VALUES {values}", [cell for row in rows for cell in row])  # noqa: S608
        except sqlite3.Error as error:
            self._roll_back()
            raise _writing_failed(self.path, error) from error

    def trim(self, revisions: Sequence[int], compacted: int) -> None:
        """Drop rows that nobody can ask for, and remember up to where the history is forgotten. Raises StoreError."""
        try:
            execute = self._connection.execute
            execute("BEGIN IMMEDIATE")
            for start in range(0, len(revisions), TRIM_AT_ONCE):
                some = revisions[start : start + TRIM_AT_ONCE]
                execute(f"DELETE FROM changes WHERE revision IN ({','.join('?' * len(some))})", some)  # noqa: S608
            execute("UPDATE meta SET value = max(value, ?) WHERE name = 'compacted'", (compacted,))
            execute("COMMIT")
            free: int = execute("PRAGMA freelist_count").fetchone()[0]
            if free > SPARE_PAGES and free * 2 > execute("PRAGMA page_count").fetchone()[0]:
                execute(f"PRAGMA incremental_vacuum({free - SPARE_PAGES})").fetchall()
        except sqlite3.Error as error:
            self._roll_back()
            raise _writing_failed(self.path, error) from error

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Checkpoint and give the lock back."""
        with suppress(sqlite3.Error):  # what is acknowledged stands in the write-ahead log
            self._connection.close()


def _create_private(path: str) -> None:
    """An empty file with mode 0600, durable in its directory, unless there is one. SQLite's other files follow it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if os.fstat(fd).st_mode & 0o077:
                os.fchmod(fd, 0o600)
        finally:
            os.close(fd)
        directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StoreError(f"{path}: cannot open the store: {error.strerror}; name a writable directory") from error


def _opening_failed(path: str, error: Exception) -> StoreError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreError(f"{path}: the store is in use by another process; end that one, or name another directory")
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")) or not name:
        return StoreError(f"{path}: is no store of lastcall, or is damaged ({error}); move it away to begin anew")
    return StoreError(f"{path}: cannot open the store: {error}; {_way_out(name)}")


def _writing_failed(path: str, error: sqlite3.Error) -> StoreError:
    return StoreError(f"{path}: the write was not kept: {error}; {_way_out(getattr(error, 'sqlite_errorname', ''))}")


WAYS_OUT = (
    ("SQLITE_FULL", "free space on its file system and try again"),
    ("SQLITE_READONLY", "make the file and its file system writable and try again"),
    ("SQLITE_IOERR", "see the kernel's log about that disk, and that no limit on file sizes is reached"),
    ("SQLITE_CANTOPEN", "see that its directory is there and writable"),
)


def _way_out(name: str) -> str:
    for prefix, way in WAYS_OUT:
        if name.startswith(prefix):
            return way
    return "see that its file system is mounted and writable"
