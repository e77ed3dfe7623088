"""How a process would meet a signal: by a handler, by waiting for it (sigwait), by reading it (signalfd), or not.

An init such as tini blocks all signals and waits. While it does, the kernel takes what is waited for out of the mask
that /proc shows (kernel/signal.c:do_sigtimedwait), so that it looks like a program without handler and without mask;
but the signal is delivered, because the kernel goes by the mask from before (sig_ignored, `real_blocked`).
"""

# check: allow time.sleep because it looks again at a shell that begins a child

from __future__ import annotations

import contextlib
import os
import sys
import time

from lastcall.kube.cri.sandbox.shim import procfs
from lastcall.kube.cri.sandbox.shim.procfs import field, mask_names, read, signal_name, threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.records.definitions.parts import Disposition
    from lastcall.records.definitions.runtime import ProcessSignalState

_SIGTIMEDWAIT = {"x86_64": 128, "aarch64": 137, "riscv64": 137, "loongarch64": 137, "ppc64le": 176, "s390x": 177}
_NUMBER = _SIGTIMEDWAIT.get(os.uname().machine, -1)
_NUMBERS_32 = (177, 421)
"""rt_sigtimedwait and rt_sigtimedwait_time64 of 32-bit programs, of i386 and of arm."""
_MOST_FILES = 1024
_LOOKS_AT_A_BLOCK = 3
_SECONDS_BETWEEN_LOOKS = 0.001


def signal_state(pid: int, number: int) -> ProcessSignalState | None:
    """Return how the process would meet signal `number` right now; None if it is gone.

    `disposition` is blocked (by every thread: pending until someone takes it), ignored, handled, or default. `taken`
    says how a handled one is: by a handler, by a thread that waits for it (sigwait), or by a signalfd. A PID 1
    without a handler is deaf to every signal of its own namespace's kind except SIGKILL and SIGSTOP from outside, so
    for it `default` means ignored (pid_namespaces(7)). `containerPid` is its number in its own PID namespace: in a
    namespace that is shared (with the Pod, the node, a target) it is not 1, and `default` is what the signal does.
    """
    status = read(f"/proc/{pid}/status")
    masks = _masks(status)
    if masks is None:
        return None
    blocked, ignored, caught = masks
    those = threads(pid)
    for thread in those:
        if thread != pid and (other := _masks(read(f"/proc/{pid}/task/{thread}/status"))) is not None:
            blocked &= other[0]
    disposition, taken = _met(pid, those, number, (blocked, ignored, caught))
    state: ProcessSignalState = {
        "pid": pid,
        "containerPid": _container_pid(status, pid),
        "name": status[6 : status.find("\n")],
        "exe": procfs.executable(pid),
        "signal": signal_name(number),
        "disposition": disposition,
        "taken": taken,
        "caught": mask_names(caught),
        "ignored": mask_names(ignored),
        "blocked": mask_names(blocked),
    }
    if (user := procfs.real_id(pid, status, "uid")) is not None:
        state["uid"] = user
    return state


def container_pid(pid: int) -> int:
    """Return the number of a process in its own PID namespace; 0 if it is gone."""
    status = read(f"/proc/{pid}/status")
    return _container_pid(status, pid) if status else 0


def _container_pid(status: str, pid: int) -> int:
    return int((field(status, "NSpid") or str(pid)).split()[-1])


def _met(pid: int, those: list[int], number: int, masks: tuple[int, int, int]) -> tuple[Disposition, str]:
    """The disposition with what the masks do not show, looking at `those` threads, and how the signal is taken.

    A shell blocks every signal for the moment in which it begins a child. So of a signal that is blocked and ignored it
    is said that it is ignored, and one that is blocked and has a handler is looked at again.
    """
    disposition, ignored = _disposition(number, *masks), masks[1] >> (number - 1) & 1
    if disposition == "handled":
        return disposition, "handler"
    if any(_waits_for(pid, thread, number) for thread in those):
        return "handled", "sigwait"
    if disposition != "blocked":
        return disposition, ""
    if _has_signalfd(pid, number):
        return "handled", "signalfd"
    if ignored:
        return "ignored", ""
    if masks[2] >> (number - 1) & 1 and _unblocked_soon(pid, number):
        return "handled", "handler"
    return disposition, ""


def _unblocked_soon(pid: int, number: int) -> bool:
    """Whether one of a few looks, within some milliseconds, finds the first thread open to the signal."""
    for _ in range(_LOOKS_AT_A_BLOCK):
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        masks = _masks(read(f"/proc/{pid}/status"))
        if masks is None or not masks[0] >> (number - 1) & 1:
            return masks is not None
    return False


def _disposition(number: int, blocked: int, ignored: int, caught: int) -> Disposition:
    bit = 1 << (number - 1)
    if blocked & bit:
        return "blocked"
    if ignored & bit:
        return "ignored"
    return "handled" if caught & bit else "default"


def describe(pid: int, number: int) -> dict[str, Any] | None:
    """Describe a process for a person, and how it would meet signal `number`; None if it is gone.

    `containerPid` is its number in its own PID namespace, `state` one letter (proc_pid_status(5): Z is a zombie). Only
    its first thread is asked what it waits for: many processes are described, again and again.
    """
    status = read(f"/proc/{pid}/status")
    masks = _masks(status)
    if masks is None:
        return None
    return {
        "pid": pid,
        "containerPid": _container_pid(status, pid),
        "parent": int(field(status, "PPid") or 0),
        "name": status[6 : status.find("\n")],
        "state": field(status, "State")[:1],
        "disposition": _met(pid, [pid], number, masks)[0],
    }


def caught(pid: int) -> list[str] | None:
    """Return the signals for which a process has a handler; None when it is gone."""
    masks = _masks(read(f"/proc/{pid}/status"))
    return None if masks is None else mask_names(masks[2])


def _masks(status: str) -> tuple[int, int, int] | None:
    found = [field(status, name) for name in ("SigBlk", "SigIgn", "SigCgt")]
    return (int(found[0], 16), int(found[1], 16), int(found[2], 16)) if all(found) else None


def _waits_for(pid: int, thread: int, number: int) -> bool:
    """Whether a thread waits in sigwait(3), sigwaitinfo(2) or sigtimedwait(2) for signal `number` now."""
    call = read(f"/proc/{pid}/task/{thread}/syscall").split()
    if not call:  # a kernel that does not tell it, or may not: where it sleeps may still be known
        return "sigtimedwait" in read(f"/proc/{pid}/task/{thread}/wchan")
    if len(call) < 2 or (made := int(call[0])) not in (_NUMBER, *_NUMBERS_32):
        return False
    if made not in (_NUMBERS_32 if procfs.word_bits(pid) == 32 else (_NUMBER,)):
        return False
    waited = _mask_at(pid, int(call[1], 16))
    return waited is None or bool(waited >> (number - 1) & 1)


def _mask_at(pid: int, address: int) -> int | None:
    """The signal set at an address of a process; None where it cannot be read."""
    found = procfs.memory_at(pid, address, 8)
    return int.from_bytes(found, sys.byteorder) if len(found) == 8 else None


def _has_signalfd(pid: int, number: int) -> bool:
    """Whether a process has a signalfd(2) open that takes signal `number`."""
    try:
        files = os.listdir(f"/proc/{pid}/fd")[:_MOST_FILES]
    except OSError:
        return False
    for name in files:
        with contextlib.suppress(OSError):  # closed meanwhile
            if os.readlink(f"/proc/{pid}/fd/{name}") == "anon_inode:[signalfd]":
                mask = field(read(f"/proc/{pid}/fdinfo/{name}"), "sigmask")
                if mask and int(mask, 16) >> (number - 1) & 1:
                    return True
    return False


def is_pending(pid: int, number: int) -> bool | None:
    """Return True if signal `number` is pending for a process; None if the process is gone."""
    status = read(f"/proc/{pid}/status")
    masks = [field(status, name) for name in ("SigPnd", "ShdPnd")]
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks) if all(masks) else None
