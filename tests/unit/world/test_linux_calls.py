import errno
import faulthandler
import os
import signal

import pytest

from lastcall.world import linux


def test_a_clone_behaves_like_a_fork_and_runs_the_fork_hooks():
    told, tell = os.pipe()
    seen = []
    os.register_at_fork(before=lambda: seen.append("before"), after_in_child=lambda: seen.append("child"))
    pid, pidfd = linux.clone3_pidfd(0)
    if pid == 0:
        os.write(tell, f"{os.getpid() != 0} {seen}".encode())
        faulthandler.disable()
        os.abort()  # needs the C library's idea of its thread id to be right
    assert linux.waitid_pidfd(pidfd, os.WEXITED).si_status == signal.SIGABRT
    assert os.read(told, 100) == b"True ['before', 'child']"
    assert seen == ["before"]
    with pytest.raises(ProcessLookupError, match="pidfd_send_signal: No such process"):
        linux.pidfd_send_signal(pidfd, 9)
    for fd in (pidfd, told, tell):
        os.close(fd)


def test_every_failure_names_the_call():
    with pytest.raises(FileNotFoundError, match=r"mount: No such file or directory \(ext4 on /no/such\)"):
        linux.mount("x", "/no/such", "ext4")
    with pytest.raises(OSError, match=r"umount2: .*/no/such"):
        linux.umount2("/no/such")
    with pytest.raises(OSError, match="setns: Bad file descriptor"):
        linux.setns(-1)
    with pytest.raises(OSError, match="clone3: Invalid argument") as caught:
        linux.clone3(linux.CLONE_NEWNS | 0x200)  # CLONE_FS and a mount namespace exclude each other
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(OSError, match=r"prctl\(9999\)"):
        linux.prctl(9999)


def test_a_confined_open_does_not_leave_its_root(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("secret")
    for name, target in (("up", "../secret"), ("absolute", str(tmp_path / "secret")), ("magic", "/proc/self/exe")):
        (tmp_path / "root" / name).symlink_to(target)
    root = os.open(tmp_path / "root", os.O_PATH)
    for name in ("up", "absolute", "magic", "../secret"):
        with pytest.raises(OSError):  # noqa: PT011 - ENOENT or ELOOP
            linux.openat2(root, name, os.O_RDONLY, linux.RESOLVE_IN_ROOT | linux.RESOLVE_NO_MAGICLINKS)
    os.close(root)
