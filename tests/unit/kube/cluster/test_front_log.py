"""Bounded logs: front's in a file, a role's in memory."""

import os
import stat
from pathlib import Path

import pytest

from lastcall.kube.cluster.directory import ClusterDirectory
from lastcall.kube.cluster.staying.front_log import FrontLog, LogTail, forget_all_but_the_end


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterDirectory:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return ClusterDirectory.make("one")


def test_entries_have_a_time_and_every_line_of_them(directory: ClusterDirectory) -> None:
    log = FrontLog(directory)
    log.write("one\ntwo")
    lines = directory.read("front.log").splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["one", "two"]
    assert all(line[:4].isdigit() and line.split(" ")[0].endswith("Z") for line in lines)
    assert stat.S_IMODE(os.fstat(log.fd).st_mode) == 0o600
    log.close()


def test_a_log_that_grows_keeps_its_end(directory: ClusterDirectory) -> None:
    log = FrontLog(directory, limit=4000)
    for number in range(1000):
        log.write(f"entry {number}")
        assert os.fstat(log.fd).st_size <= 4000
    lines = directory.read("front.log").splitlines()
    assert lines[-1].endswith("entry 999") and all(" entry " in line for line in lines), "only whole lines"
    numbers = [int(line.rsplit(" ", 1)[1]) for line in lines]
    assert numbers == list(range(numbers[0], 1000)) and len(numbers) > 40
    log.close()


def test_a_log_on_a_full_disk_is_no_error() -> None:
    log = FrontLog.__new__(FrontLog)
    log.fd = os.open("/dev/full", os.O_RDWR)
    log._limit = 10
    from lastcall.world.clock import RealClock

    log._clock = RealClock()
    log.write("nobody reads this")
    log.close()


def test_what_a_role_printed_long_ago_takes_no_memory_and_is_not_shown() -> None:
    fd = os.memfd_create("log")
    lines = [f"line {number}\n".encode() for number in range(200_000)]
    os.write(fd, b"".join(lines))
    before = os.fstat(fd).st_blocks * 512
    forget_all_but_the_end(fd, 64 << 10)
    assert os.fstat(fd).st_blocks * 512 <= (64 << 10) + 4096 < before
    os.write(fd, b"the last\n")
    tail = LogTail(fd, 32 << 10)
    shown = tail.read()
    assert shown[-2:] == ["line 199999", "the last"] and all(line.startswith(("line ", "the ")) for line in shown)
    os.close(fd)


def test_a_tail_reads_whole_lines_as_they_come() -> None:
    fd = os.memfd_create("log")
    tail = LogTail(fd)
    assert tail.read() == []
    os.write(fd, b"one\ntw")
    assert tail.read() == ["one"] and tail.rest() == ["tw"]
    os.write(fd, b"o\n\xff\n")
    assert tail.read() == ["two", "\ufffd"] and tail.rest() == []
    os.close(fd)


def test_a_tail_goes_on_when_the_log_was_cut(directory: ClusterDirectory) -> None:
    log = FrontLog(directory, limit=1000)
    tail = LogTail(log.fd)
    seen = []
    for number in range(200):
        log.write(f"entry {number}")
        seen += [line.rsplit(" ", 1)[1] for line in tail.read()]
    assert seen[-1] == "199" and set(seen) == {str(number) for number in range(200)}
    log.close()
