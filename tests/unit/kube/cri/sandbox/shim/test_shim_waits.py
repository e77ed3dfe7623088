"""What the threads of a process wait for: programs that run here, as the kernel shows them."""

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.cri.sandbox.shim import dispositions, procfs, waits

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.skipif(
        os.uname().machine not in ("x86_64", "aarch64"), reason="numbers of system calls are known for these two"
    ),
]

READY = "import socket, threading, time\nprint('ready', flush=True)\n"
LOCK = "threading.Event().wait()"
TWO_LOCKS = "threading.Thread(target=threading.Event().wait).start()\nthreading.Event().wait()"
SHARED = "from multiprocessing import Semaphore\nSemaphore(0).acquire()"


BASE = 0x08048000
SIGNALS = BASE + 84
"""All signals, right behind the headers."""


def call(number: int, *arguments: int) -> bytes:
    """A system call of i386: `mov` to eax, ebx, ecx, edx and esi, then `int 0x80`."""
    moves = zip(b"\xb8\xbb\xb9\xba\xbe", (number, *arguments), strict=False)
    return b"".join(struct.pack("<BI", move, value & 0xFFFFFFFF) for move, value in moves) + b"\xcd\x80"


def forever(code: bytes) -> bytes:
    return code + b"\xeb" + struct.pack("b", -len(code) - 2)


_WAIT = forever(call(7, -1, 0, 0))
WAITS_FOR_CHILD = call(2) + b"\x85\xc0\x74" + struct.pack("b", len(_WAIT)) + _WAIT + call(172, 1, 9) + forever(call(29))
"""fork, waitpid; in the child: prctl(PR_SET_PDEATHSIG), pause."""
WAITS_FOR_SIGNALS = call(175, 0, SIGNALS, 0, 8) + forever(call(177, SIGNALS, 0, 0, 8))
"""rt_sigprocmask, rt_sigtimedwait."""


@contextmanager
def i386(directory: Path, code: bytes) -> Iterator[int]:
    """A program of headers, a signal set and machine code."""
    whole = 84 + 8 + len(code)
    head = b"\x7fELF\x01\x01\x01" + bytes(9)
    head += struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, SIGNALS + 8, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    head += struct.pack("<8I", 1, 0, BASE, BASE, whole, whole, 5, 4096)
    path = directory / "program"
    path.write_bytes(head + b"\xff" * 8 + code)
    path.chmod(0o755)
    try:
        process = subprocess.Popen([path])
    except OSError:
        pytest.skip("this kernel runs no programs of i386")
    with process:
        try:
            yield process.pid
        finally:
            process.kill()


@contextmanager
def program(source: str) -> Iterator[int]:
    argv = [sys.executable, "-S", "-c", READY + source]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


def until(look: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    """Look again and again until the program has come to its wait; the last look otherwise."""
    for _ in range(2000):
        found = look()
        if wanted(found):
            return found
        os.sched_yield()
        subprocess.run(["true"], check=True)
    return found


def _in(found: list[Any], calls: set[str]) -> list[int]:
    return [each["threads"] for each in found if each["call"] in calls]


@pytest.mark.parametrize(
    ("source", "call", "threads", "limited", "own"),
    [
        (LOCK, {"futex"}, 1, False, True),
        (TWO_LOCKS, {"futex"}, 2, False, True),
        ("threading.Event().wait(600)", {"futex"}, 1, True, True),
        (SHARED, {"futex"}, 1, False, False),
        ("import select; select.poll().poll()", {"poll", "ppoll"}, 1, False, False),
        ("import select; select.poll().poll(600000)", {"poll", "ppoll"}, 1, True, False),
        ("import select; select.epoll().poll()", {"epoll_wait", "epoll_pwait"}, 1, False, False),
        ("import select; select.epoll().poll(600)", {"epoll_wait", "epoll_pwait"}, 1, True, False),
        ("import signal; signal.pause()", {"pause", "ppoll"}, 1, False, False),
        ("socket.create_server(('127.0.0.1', 0)).accept()", {"accept", "accept4"}, 1, None, False),
        ("import sys; sys.stdin.read()", {"read"}, 1, None, False),
    ],
)
def test_the_call_in_which_a_thread_sleeps_is_named_with_its_limit(
    source: str, call: set[str], threads: int, limited: bool | None, own: bool
) -> None:
    with program(source) as pid:
        (wait,) = until(lambda: waits.waits_of(pid), lambda each: _in(each, call) == [threads])
        assert wait["call"] in call
        assert (wait["threads"], wait["limited"], wait["own"]) == (threads, limited, own)


def test_a_sleep_has_the_moment_at_which_it_ends() -> None:
    with program("time.sleep(600)") as pid:
        (wait,) = until(lambda: waits.waits_of(pid), lambda each: each and each[0]["call"].endswith("nanosleep"))
        assert wait["limited"] is True
        assert 500 < wait["wakesIn"] <= 600, "Python asks for an absolute time"


def test_a_program_that_sleeps_in_a_loop_begins_to_wait_again_and_again() -> None:
    with program("while True: time.sleep(0.005)") as pid:
        first = procfs.voluntary_switches(pid)
        assert first is not None
        assert until(lambda: procfs.voluntary_switches(pid), lambda each: each >= first + 5) >= first + 5
    assert procfs.voluntary_switches(pid) is None


@pytest.mark.parametrize("clock", [-6, time.CLOCK_PROCESS_CPUTIME_ID, time.CLOCK_THREAD_CPUTIME_ID])
def test_a_sleep_on_a_clock_of_cpu_time_has_no_known_end(monkeypatch: pytest.MonkeyPatch, clock: int) -> None:
    """The clock is the program's own choice, and the kernel shows a negative one as a large number."""
    monkeypatch.setattr(procfs, "memory_at", lambda pid, address, size: bytes(size))
    assert waits._wakes_in(1, [clock & (1 << 64) - 1, 1, 4096, 0, 0, 0]) is None
    assert waits._wakes_in(1, [time.CLOCK_MONOTONIC, 1, 4096, 0, 0, 0]) == 0


def test_of_more_threads_than_are_looked_at_some_wait_for_nobody_knows_what() -> None:
    """One of those may be the one that the others wait for."""
    many = "for _ in range(80): threading.Thread(target=threading.Event().wait).start()\ntime.sleep(600)"
    with program(many) as pid:
        found = until(
            lambda: waits.waits_of(pid),
            lambda each: sum(one["threads"] for one in each) == 81 and sum(_in(each, {"futex", ""})) == 80,
        )
        assert _in(found, {""}) == [81 - 64]
        assert not all(each["own"] for each in found)


def test_a_program_that_works_sleeps_in_no_call_and_uses_cpu_time() -> None:
    with program("while True: pass") as pid:
        assert until(lambda: waits.cpu_seconds([pid]), lambda used: used > 0.5) > 0.5
        assert [each["call"] for each in waits.waits_of(pid)] == [""]


def test_the_handlers_that_a_program_has_are_named() -> None:
    source = "import signal; signal.signal(signal.SIGCHLD, lambda *_: 0); signal.signal(signal.SIGUSR1, print)\n"
    with program(source + LOCK) as pid:
        caught = until(lambda: dispositions.caught(pid), lambda each: "SIGUSR1" in each)
        assert {"SIGCHLD", "SIGUSR1"} <= set(caught) and "SIGTERM" not in caught
    assert dispositions.caught(pid) is None


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the programs are of i386")
def test_a_32_bit_program_waits_in_no_call_that_has_another_number_there(tmp_path: Path) -> None:
    with i386(tmp_path, WAITS_FOR_CHILD) as pid:  # waitpid has the number of poll(2) here
        looked = until(lambda: procfs.read(f"/proc/{pid}/syscall"), lambda each: each.startswith("7 "))
        assert looked.startswith("7 ")
        assert [(each["call"], each["limited"]) for each in waits.waits_of(pid)] == [("", None)]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the programs are of i386")
def test_a_32_bit_init_that_waits_for_a_signal_handles_it(tmp_path: Path) -> None:
    def state() -> tuple[str, str]:
        found = dispositions.signal_state(pid, signal.SIGTERM)
        assert found is not None
        return found["disposition"], found["taken"]

    with i386(tmp_path, WAITS_FOR_SIGNALS) as pid:
        assert until(state, lambda each: each[0] == "handled") == ("handled", "sigwait")


def test_a_process_that_is_gone_waits_for_nothing() -> None:
    with program(LOCK) as pid:
        pass
    assert waits.waits_of(pid) == []
    assert waits.cpu_seconds([pid]) == 0
    assert procfs.memory_at(pid, 4096, 8) == b""
