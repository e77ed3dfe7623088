"""Files are there as a whole or not at all, whatever write(2) takes of them."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lastcall.world.files import append_all, replace_file

Write = Callable[[int, bytes], int]


@pytest.fixture
def short_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:3])))


@pytest.fixture
def full_after_10(monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = os.write, 10

    def write(fd: int, data: bytes) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real(fd, bytes(data[:left]))
        left -= written
        return written

    monkeypatch.setattr(os, "write", write)


@pytest.mark.usefixtures("short_writes")
@pytest.mark.parametrize("durable", [False, True])
def test_short_writes_are_gone_on_with(tmp_path: Path, durable: bool) -> None:
    name = tmp_path / "f"
    replace_file(str(name), b"0123456789", temporary=f"{name}.tmp", durable=durable)
    assert name.read_bytes() == b"0123456789"
    assert name.stat().st_mode & 0o777 == 0o600
    with open(name, "ab") as file:
        append_all(file.fileno(), b"abcdefgh")
    assert name.read_bytes() == b"0123456789abcdefgh"


@pytest.mark.usefixtures("full_after_10")
def test_a_full_disk_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    name = tmp_path / "f"
    name.write_bytes(b"before")
    with pytest.raises(OSError, match="No space left"):
        replace_file(str(name), b"0123456789a", temporary=f"{name}.tmp")
    assert os.listdir(tmp_path) == ["f"]
    assert name.read_bytes() == b"before"


@pytest.mark.usefixtures("full_after_10")
def test_a_line_that_does_not_fit_is_not_begun(tmp_path: Path) -> None:
    name = tmp_path / "f"
    name.write_bytes(b"before")
    with open(name, "ab") as file, pytest.raises(OSError, match="No space left"):
        append_all(file.fileno(), b"0123456789a")
    assert name.read_bytes() == b"before"


def test_a_link_in_the_place_of_the_unfinished_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"other")
    (tmp_path / "f.tmp").symlink_to("other")
    fd = os.open(tmp_path, os.O_RDONLY)
    replace_file("f", b"new", temporary="f.tmp", durable=True, dir_fd=fd)
    os.close(fd)
    assert (tmp_path / "f").read_bytes() == b"new" and (tmp_path / "other").read_bytes() == b"other"
    assert sorted(os.listdir(tmp_path)) == ["f", "other"]


TINY = """
import ctypes, os, sys
from lastcall.kube.cri.sandbox.records import Records
directory = sys.argv[1]
assert ctypes.CDLL(None).mount(b"tmpfs", directory.encode(), b"tmpfs", 0, b"size=64k") == 0
records = Records(f"{directory}/records")
records.save("status", "a", {"text": "first"})
with open(f"{directory}/filler", "wb", buffering=0) as filler:
    try:
        while filler.write(bytes(1 << 14)):
            pass
    except OSError:
        pass
refused = 0
for value in ({"text": "x" * 9000}, {"text": "y" * 100}):
    for identity in ("a", "b"):
        try:
            records.save("status", identity, value)
        except OSError as error:
            refused += error.errno == 28
assert refused == 4, refused
assert os.listdir(f"{directory}/records") == ["status-a.json"], os.listdir(f"{directory}/records")
assert list(records.load("status")) == [("a", {"text": "first"})]
# Of three pages that are wanted one is there.
os.truncate(f"{directory}/filler", os.stat(f"{directory}/filler").st_size - 4096)
try:
    records.save("status", "a", {"text": "x" * 9000})
    raise SystemExit("was written")
except OSError:
    pass
assert list(records.load("status")) == [("a", {"text": "first"})]
os.unlink(f"{directory}/filler")
records.save("status", "a", {"text": "x" * 9000})
assert list(records.load("status")) == [("a", {"text": "x" * 9000})]
print("done")
"""


@pytest.mark.loopback
@pytest.mark.real_kernel
def test_records_on_a_file_system_that_is_full(tmp_path: Path) -> None:
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", TINY, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
