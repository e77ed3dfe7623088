"""How a process would meet a signal: the kernel's own word about processes that wait for it, read it, block it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from waiting import eventually

from lastcall.kube.cri.sandbox.shim import dispositions
from lastcall.kube.cri.sandbox.shim.dispositions import describe, is_pending, signal_state

pytestmark = pytest.mark.loopback

BLOCK = "import signal, time, threading\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
WAIT = "signal.sigtimedwait({signal.SIGTERM, signal.SIGCHLD}, 100)"
SIGNALFD = (
    "import ctypes\nmask = (1 << (signal.SIGTERM - 1)).to_bytes(128, 'little')\n"
    "assert ctypes.CDLL(None).signalfd(-1, mask, 0) >= 0\nprint('x', flush=True)\ntime.sleep(100)"
)

PROGRAMS = {
    "waits, as tini does": (f"{BLOCK}print('x', flush=True)\n{WAIT}", "handled", "sigwait"),
    "ignored, and waited for": (
        f"{BLOCK}signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('x', flush=True)\n{WAIT}", "handled", "sigwait"),
    "a thread waits": (
        f"{BLOCK}threading.Thread(target=lambda: {WAIT}).start()\nprint('x', flush=True)\ntime.sleep(100)",
        "handled", "sigwait"),
    "reads it from a file": (BLOCK + SIGNALFD, "handled", "signalfd"),
    "handler": ("import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: None)\nprint('x', flush=True)\n"
                "time.sleep(100)", "handled", "handler"),
    "waits for another": (
        f"{BLOCK}print('x', flush=True)\nsignal.sigtimedwait({{signal.SIGUSR1}}, 100)", "blocked", ""),
    "waits for another without blocking it": (
        "import signal\nprint('x', flush=True)\nsignal.sigtimedwait({signal.SIGUSR1}, 100)", "default", ""),
    "blocks": (f"{BLOCK}print('x', flush=True)\ntime.sleep(100)", "blocked", ""),
    "blocks, and would ignore": (
        f"{BLOCK}signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('x', flush=True)\ntime.sleep(100)",
        "ignored", ""),
    "blocks, and has a handler": (
        f"{BLOCK}signal.signal(signal.SIGTERM, lambda *_: None)\nprint('x', flush=True)\ntime.sleep(100)",
        "blocked", ""),
    "ignores": ("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('x', flush=True)\n"
                "time.sleep(100)", "ignored", ""),
    "nothing": ("import time\nprint('x', flush=True)\ntime.sleep(100)", "default", ""),
}  # fmt: skip


@contextmanager
def running(script: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize(("script", "disposition", "taken"), PROGRAMS.values(), ids=PROGRAMS)
def test_how_a_signal_would_be_met_goes_by_handlers_waiting_threads_and_files(
    script: str, disposition: str, taken: str
) -> None:
    with running(script) as pid:
        found = None

        def is_there() -> bool:
            nonlocal found
            found = signal_state(pid, signal.SIGTERM)
            return found is not None and (found["disposition"], found["taken"]) == (disposition, taken)

        # It is on its way into its call.
        eventually(is_there, f"{disposition}, {taken}", said=lambda: found)
        told = describe(pid, signal.SIGTERM)
        assert told is not None
        if "thread" not in script and taken != "signalfd":
            assert told["disposition"] == disposition
    assert signal_state(pid, signal.SIGTERM) is None and is_pending(pid, signal.SIGTERM) is None


def test_the_user_is_the_one_whom_kill_compares() -> None:
    with running(PROGRAMS["handler"][0]) as pid:
        found = signal_state(pid, signal.SIGTERM)
        assert found is not None and found.get("uid") == os.getuid()


def test_a_signal_that_nobody_takes_stays_pending() -> None:
    for name, pending in {"blocks": True, "handler": False, "waits, as tini does": False, "ignores": False}.items():
        with running(PROGRAMS[name][0]) as pid:
            assert is_pending(pid, signal.SIGTERM) is False
            fd = os.pidfd_open(pid)
            signal.pidfd_send_signal(fd, signal.SIGTERM)
            os.close(fd)
            eventually(lambda pid=pid, pending=pending: bool(is_pending(pid, signal.SIGTERM)) is pending, name)
            time.sleep(0.2)  # a signal that is taken late would be gone by now
            found = is_pending(pid, signal.SIGTERM)
            assert bool(found) is pending, name


@pytest.mark.parametrize(("looks", "disposition"), [(2, "handled"), (4, "blocked")])
def test_a_shell_that_begins_a_child_just_now_does_not_block_the_signal(
    monkeypatch: pytest.MonkeyPatch, looks: int, disposition: str
) -> None:
    """It blocks every signal until its child has replaced it: dash does so for a millisecond, again and again."""
    bit, seen = f"{1 << (signal.SIGTERM - 1):016x}", 0

    def read(path: str) -> str:
        nonlocal seen
        if not path.endswith("/status"):
            return ""
        seen += 1
        blocked = bit if seen <= looks else "0"
        return f"Name:\tsh\nState:\tS\nPPid:\t1\nNSpid:\t7\t1\nSigBlk:\t{blocked}\nSigIgn:\t0\nSigCgt:\t{bit}\n"

    monkeypatch.setattr(dispositions, "read", read)
    told = describe(7, signal.SIGTERM)
    assert told is not None and told["disposition"] == disposition
