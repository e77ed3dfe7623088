"""The file of the SQLite store: opened, appended to, trimmed. Everything here blocks and belongs in one thread.

WAL with synchronous=FULL: when `append` returns, its rows outlive the machine's power. locking_mode=EXCLUSIVE: no other
process can open the file, and there is no shared memory file, whose growth on a full disk would be a SIGBUS.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from zlib import crc32

from lastcall.kube.store.api import Entry, StoreError, StoreFull
from lastcall.kube.store.schema import migrate, stored_version
from lastcall.kube.store.space import LAST_STAGE, LEAST_BYTES, RESERVE_BYTES, Ballast, most_pages
from lastcall.kube.store.value import Value

Row = tuple[int, str, bool, bytes]
"""revision, key, deleted, value."""

NO_CHECKSUM = -1
"""Of a row that an older version wrote."""
LEAST_PAGE = 512
LOCK_SECONDS = 5.0
"""How long the lock of a process that is just being killed is waited for."""
TRIM_AT_ONCE = 500
"""Rows that one DELETE statement names."""
TRIM_AT_ONCE_WHEN_FULL = 32
"""Rows that one transaction drops: it writes each page that it touches to the write-ahead log first, and some hundred
rows touch more pages than the whole reserve has room for."""
SPARE_PAGES = 1024
"""Free pages that the file keeps for reuse; more, if they are over half of the file, go back to the file system."""
LOG_PAGES = 4000
"""16 MB of write-ahead log: few checkpoints, each of which costs a group tens of milliseconds, and a small file."""
LOG_PAGES_WHEN_FULL = 64
LOG_BYTES_WHEN_FULL = 1 << 20
"""Of the log at the last stage: they stay its own, so that nobody else takes the room for deletions. SQLite reuses the
file after a checkpoint and does not read what follows the last write."""
LOG_SHARE = 32
"""On a small file system the log is a part of it that the reserve can take up when it goes into the file."""
SHRUNK_PAGES = 512
"""That one trim gives back at most: each may move another, by way of the write-ahead log."""
SHRUNK_PAGES_WHEN_FULL = 64
SHRUNK_STEPS_WHEN_FULL = 256
MOST_BYTES = 2 << 30
"""Of the file at most: etcd's default quota (--quota-backend-bytes)."""


class Log:
    """One open file."""

    def __init__(self, path: str, most_bytes: int = MOST_BYTES, *, reserve: bool = True) -> None:
        """Open `path`, create it with mode 0600 or migrate it. Raises StoreError.

        The file does not outgrow `most_bytes`. With `reserve` a file `<path>.reserve` keeps blocks of the file system.
        """
        self.path = path
        self._most_bytes = most_bytes
        self._log_pages = LOG_PAGES
        self._ballast = Ballast(f"{path}.reserve" if reserve else "")
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
        except (sqlite3.Error, UnicodeError) as error:  # SQLite's own words may hold what is damaged
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
        execute("PRAGMA journal_size_limit = 16777216")
        room = os.statvfs(self.path)
        self._log_pages = min(LOG_PAGES, room.f_blocks * room.f_frsize // LOG_SHARE // 4096)
        migrate(self._connection, version)
        # A lock on the main file from now on, also when nothing had to be written.
        execute("BEGIN IMMEDIATE")
        execute("COMMIT")

    def load(self) -> tuple[int, list[Entry], list[Row]]:
        """Return (compacted revision, the entries as they were then, every later write in order). Raises StoreError."""
        base: dict[str, Entry] = {}
        later: list[Row] = []
        try:
            if (found := self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise _damaged(self.path, found)
            compacted: int = self._connection.execute("SELECT value FROM meta WHERE name = 'compacted'").fetchone()[0]
            for *cells, checksum in self._connection.execute(
                "SELECT revision, key, deleted, value, checksum FROM changes ORDER BY revision"
            ):
                row: Row = tuple(cells)
                if checksum != NO_CHECKSUM and checksum != _checksum(row):
                    raise _damaged(self.path, f"{row[1]!r} at revision {row[0]} is not what was written")
                if row[0] > compacted:
                    later.append(row)
                elif row[2]:
                    base.pop(row[1], None)  # a trim that did not come to its end
                else:
                    base[row[1]] = Entry(row[1], Value(row[3]), row[0])
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise _opening_failed(self.path, error) from error
        return compacted, list(base.values()), later

    def append(self, rows: Sequence[Row]) -> None:
        """Keep all of `rows` durably, or none of them and raise StoreError; StoreFull when `make_room` may help."""
        # One statement, so one step outside the interpreter's lock: with a step per row a busy event loop would take
        # the lock for a switch interval between any two of them.
        values = ",".join(["(?,?,?,?,?)"] * len(rows))
        cells = [cell for row in rows for cell in (*row, _checksum(row))]
        try:
            self._connection.execute(f"INSERT INTO changes VALUES {values}", cells)  # noqa: S608
        except sqlite3.Error as error:
            self._roll_back()
            raise self._writing_failed(error) from error

    def trim(self, revisions: Sequence[int], compacted: int, *, full: bool = False) -> None:
        """Drop rows that nobody can ask for, and remember up to where the history is forgotten. Raises StoreError.

        `full`: in transactions that need little room. The process may die between any two of them.
        """
        execute = self._connection.execute
        ordered = sorted(revisions)  # the row of a deletion goes last
        at_once = TRIM_AT_ONCE_WHEN_FULL if full else max(len(ordered), 1)
        for start in range(0, max(len(ordered), 1), at_once):
            self._trim(ordered[start : start + at_once], compacted)
            if full:
                self._checkpoint("PASSIVE")
        if full:
            return
        with suppress(sqlite3.Error):
            free: int = execute("PRAGMA freelist_count").fetchone()[0]
            if free > SPARE_PAGES and free * 2 > execute("PRAGMA page_count").fetchone()[0]:
                self._shrink(min(free - SPARE_PAGES, SHRUNK_PAGES))

    def _trim(self, revisions: Sequence[int], compacted: int) -> None:
        """Drop these rows in one transaction. Raises StoreError."""
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            execute("UPDATE meta SET value = max(value, ?) WHERE name = 'compacted'", (compacted,))
            for start in range(0, len(revisions), TRIM_AT_ONCE):
                some = revisions[start : start + TRIM_AT_ONCE]
                execute(f"DELETE FROM changes WHERE revision IN ({','.join('?' * len(some))})", some)  # noqa: S608
            execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise self._writing_failed(error) from error

    def _checkpoint(self, mode: str) -> None:
        """Move what the write-ahead log has into the file, if there is room for it."""
        with suppress(sqlite3.Error):
            self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()

    def make_room(self, stage: int) -> None:
        """Let what is written from now on use what was kept for `stage`."""
        # The checkpoint may need more for a moment than it gives back: the file grows before the log shrinks.
        self._ballast.give_back()
        with suppress(sqlite3.Error):
            self._limit(stage)
        self._checkpoint("TRUNCATE")
        self._ballast.keep(stage)
        self._hold_log(stage)

    def look_again(self, stage: int, revisions: Sequence[int], compacted: int) -> int:
        """Trim, shrink, and take back what `make_room` gave; the stage after that, `stage` at most.

        Raises StoreError when nothing could be trimmed.
        """
        self.trim(revisions, compacted, full=True)
        execute = self._connection.execute
        with suppress(sqlite3.Error):
            for _ in range(SHRUNK_STEPS_WHEN_FULL):
                if not execute("PRAGMA freelist_count").fetchone()[0]:
                    break
                self._shrink(SHRUNK_PAGES_WHEN_FULL)
                self._checkpoint("PASSIVE")
        return self.settle(stage)

    def settle(self, stage: int) -> int:
        """Take back as much of the reserve as there is room for, also that of the write-ahead log.

        Return the least stage up to `stage` that is enough: 0 takes the whole reserve. Raises StoreError.
        """
        self._checkpoint("TRUNCATE")
        try:
            size: int = self._connection.execute("PRAGMA page_size").fetchone()[0]
            pages: int = self._connection.execute("PRAGMA page_count").fetchone()[0]
            pages -= self._connection.execute("PRAGMA freelist_count").fetchone()[0]
            if self._ballast.keep(0):
                pages += LEAST_BYTES // size
                stage = next((i for i in range(stage) if pages <= most_pages(self._most_bytes // size, size, i)), stage)
            else:
                self._ballast.grow(stage, RESERVE_BYTES)
                self._hold_log(stage)
            self._limit(stage)
        except sqlite3.Error as error:
            raise _opening_failed(self.path, error) from error
        return stage

    def _hold_log(self, stage: int) -> None:
        """Give the write-ahead log blocks of its own at the last stage, if there are any."""
        if stage < LAST_STAGE:
            return
        with suppress(OSError):
            fd = os.open(f"{self.path}-wal", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                room = os.fstatvfs(fd)
                there = os.fstat(fd).st_blocks * 512 + room.f_bavail * room.f_frsize
                os.posix_fallocate(fd, 0, min(LOG_BYTES_WHEN_FULL, there))
            finally:
                os.close(fd)

    def _shrink(self, pages: int) -> None:
        # A script, for `execute` takes one step of a statement without columns, and a step is one page.
        try:
            self._connection.executescript(f"PRAGMA incremental_vacuum({pages})")
        except sqlite3.Error:
            self._roll_back()
            raise

    def _limit(self, stage: int) -> None:
        size: int = self._connection.execute("PRAGMA page_size").fetchone()[0]
        self._connection.execute(f"PRAGMA max_page_count = {most_pages(self._most_bytes // size, size, stage)}")
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES_WHEN_FULL if stage else self._log_pages}")

    def _writing_failed(self, error: sqlite3.Error) -> StoreError:
        name = getattr(error, "sqlite_errorname", "")
        text = f"{self.path}: the write was not kept: {error}; {_way_out(name)}"
        full = name.startswith("SQLITE_FULL") or (name.startswith("SQLITE_IOERR") and self._ballast.lacks_blocks())
        return StoreFull(text) if full else StoreError(text)

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Write a checkpoint and release the lock. The reserve first takes the space of the write-ahead log."""
        log_bytes = 0
        with suppress(OSError):
            log_bytes = os.stat(f"{self.path}-wal").st_blocks * 512
        with suppress(sqlite3.Error):  # what is acknowledged is in the write-ahead log
            self._connection.close()
        self._ballast.grow(0, log_bytes)


def _checksum(row: Row) -> int:
    revision, key, deleted, value = row
    return crc32(value, crc32(f"{revision} {int(deleted)} {key}".encode()))


def _create_private(path: str) -> None:
    """An empty file with mode 0600, durable in its directory, unless there is one. SQLite's other files follow it."""
    with suppress(OSError):
        # SQLite would begin anew. Its first write is a page; of ours the file is made first and the reserve last.
        size = os.stat(path).st_size
        if 0 < size < LEAST_PAGE or (size == 0 and os.stat(f"{path}.reserve")):
            raise _damaged(path, f"it has {size} bytes left")
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


def _damaged(path: str, what: str) -> StoreError:
    return StoreError(f"{path}: is not a store of lastcall, or is damaged ({what}); move it away to begin anew")


def _opening_failed(path: str, error: Exception) -> StoreError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreError(f"{path}: the store is in use by another process; end that one, or name another directory")
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")) or not name:
        return _damaged(path, str(error))
    return StoreError(f"{path}: cannot open the store: {error}; {_way_out(name)}")


WAYS_OUT = (
    ("SQLITE_FULL", "free space on its file system, or delete objects, and try again"),
    ("SQLITE_READONLY", "make the file and its file system writable and try again"),
    ("SQLITE_IOERR", "see the kernel's log about that disk, and that no limit on file sizes is reached"),
    ("SQLITE_CANTOPEN", "see that its directory is there and writable"),
)


def _way_out(name: str) -> str:
    for prefix, way in WAYS_OUT:
        if name.startswith(prefix):
            return way
    return "see that its file system is mounted and writable"
