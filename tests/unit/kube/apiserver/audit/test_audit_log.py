"""The file of an audit log: for its owner alone, bounded, and never in the way of the API server."""

import errno
import logging
import os
from pathlib import Path

import pytest
from waiting import until

from lastcall.kube.apiserver.audit import log as audit_log
from lastcall.kube.apiserver.audit.log import MOST_WAITING_BYTES, AuditLog, AuditOptions, open_log
from lastcall.world.tasks import Background

pytestmark = pytest.mark.loopback  # a thread writes


async def test_lines_are_appended_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"earlier\n")
    path.chmod(0o644)
    log = AuditLog(AuditOptions(str(path)))
    running = Background(log.run(), name="log")
    log.write(b"one\n")
    await until(lambda: path.read_bytes() == b"earlier\none\n")
    log.write(b"two\n")
    await running.end()
    log.close()
    assert path.read_bytes() == b"earlier\none\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_long_log_is_rotated_and_the_oldest_file_removed(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(AuditOptions(str(path), max_bytes=10, backups=2))
    for number in range(4):
        log.write(b"%d------\n" % number)
        log.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["audit.log", "audit.log.1", "audit.log.2"]
    assert [path.with_name(f"audit.log{end}").read_bytes()[:1] for end in ("", ".1", ".2")] == [b"3", b"2", b"1"]
    assert path.with_name("audit.log.1").stat().st_mode & 0o777 == 0o600


def test_without_backups_a_long_log_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(AuditOptions(str(path), max_bytes=10, backups=0))
    for number in range(3):
        log.write(b"%d------\n" % number)
        log.close()
    assert [each.name for each in tmp_path.iterdir()] == ["audit.log"]
    assert path.read_bytes() == b"2------\n"


def test_a_log_that_was_moved_away_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    log = AuditLog(AuditOptions(str(path)))
    log.write(b"one\n")
    log._append(log._take())
    path.rename(tmp_path / "moved")
    log.write(b"two\n")
    log.close()
    assert ((tmp_path / "moved").read_bytes(), path.read_bytes()) == (b"one\n", b"two\n")


def test_a_full_disk_drops_events_says_so_once_and_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, full = tmp_path / "audit.log", True
    append = audit_log.append_all

    def appended(fd: int, data: bytes) -> None:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(fd, data)

    monkeypatch.setattr(audit_log, "append_all", appended)
    log = AuditLog(AuditOptions(str(path)))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            log.write(b"lost\n")
            log.close()
        full = False
        log.write(b"kept\n")
        log.close()
    assert path.read_bytes() == b"kept\n"
    assert log.dropped == 3
    assert [each.message.partition(str(path))[2] for each in caplog.records] == [
        " cannot be written: No space left on device. Audit events are dropped",
        " is written again; 3 audit events were dropped",
    ]


def test_events_that_wait_for_a_slow_disk_are_bounded(tmp_path: Path) -> None:
    log = AuditLog(AuditOptions(str(tmp_path / "audit.log")))
    line = b"x" * (1 << 20)
    for _ in range(20):
        log.write(line)
    assert log.dropped == 20 - MOST_WAITING_BYTES // len(line)
    log.close()
    assert (tmp_path / "audit.log").stat().st_size == MOST_WAITING_BYTES


def test_what_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    for name, error in (("pipe", errno.ENXIO), ("link", errno.ELOOP), ("", errno.EISDIR)):
        with pytest.raises(OSError, match=os.strerror(error)) as raised:
            open_log(str(tmp_path / name))
        assert raised.value.errno == error
    assert not (tmp_path / "there").exists()
