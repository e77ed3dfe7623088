"""`python -I -S …/witness/__main__.py --socket PATH --runtime PID [--ring-fd N] [--wake-fd N]`.

Started by front, in the machine's namespaces. `--runtime` is the process of the container runtime: its PID namespace is
where the numbers are those that the runtime names. A child does the work there, and another one follows if it dies.
It ends with front.
"""

# check: allow time.monotonic_ns, time.time_ns, time.sleep because it has a loop of its own
# check: observes because its guards caught the error
# check: prints because its stderr is front's
# check: starts processes because its child is in the runtime's PID namespace

from __future__ import annotations

import gc
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastcall.records.definitions.every_role import FaultCaught

_OPTIONS = {"--socket", "--runtime", "--ring-fd", "--wake-fd"}
_ROLE = "witness"
_AGAIN_SECONDS = 0.2
_MOUNT_PRIVATE = 1 << 18 | 1 << 14  # MS_PRIVATE | MS_REC


class _Clock:
    """`lastcall.world.clock.RealClock` without asyncio, which would be a third of this process's memory."""

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        return time.time_ns()


def main(arguments: list[str]) -> int:
    """Start a child again and again, until killed."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    if options.keys() - _OPTIONS or len(arguments) % 2 or not {"--socket", "--runtime"} <= options.keys():
        sys.stderr.write("usage: --socket PATH --runtime PID [--ring-fd N] [--wake-fd N]\n")
        return 2
    # late: usage errors are reported without it
    from lastcall.world import linux

    linux.set_parent_death_signal(signal.SIGKILL)
    linux.set_process_name(f"lastcall-{_ROLE}"[:15])
    theirs = os.open(f"/proc/{options['--runtime']}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    other = os.fstat(theirs).st_ino != os.stat("/proc/self/ns/pid").st_ino
    if other:
        linux.setns(theirs, linux.CLONE_NEWPID)  # for the next children
    while True:
        pid = os.fork()
        if pid == 0:
            linux.set_parent_death_signal(signal.SIGKILL)
            try:
                if other:
                    _own_proc()
                serve(options)
            except OSError as error:
                sys.stderr.write(f"the witness of the container runtime: {error}\n")
                sys.stderr.flush()
            os._exit(70)
        os.waitpid(pid, 0)
        time.sleep(_AGAIN_SECONDS)


def _own_proc() -> None:
    """See the processes of the namespace that this process was born in. Raises OSError."""
    # late: usage errors are reported without it
    from lastcall.world import linux

    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, _MOUNT_PRIVATE)
    linux.mount("proc", "/proc", "proc")


def serve(options: dict[str, str]) -> None:
    """Serve until killed. Raises OSError."""
    # late: the process that only waits for this one does not need it
    from lastcall.kube.cri.sandbox.shim.loop import Loop
    from lastcall.kube.cri.v1.witness.container import Context
    from lastcall.kube.cri.v1.witness.server import Server
    from lastcall.kube.cri.v1.witness.tails import Tails
    from lastcall.records import kinds
    from lastcall.records.ring import Ring, RingRecorder
    from lastcall.world import crash_guard

    wake_fd, ring_fd = int(options.get("--wake-fd", -1)), int(options.get("--ring-fd", -1))
    ring = Ring(ring_fd, wake_fd) if ring_fd >= 0 else Ring.create("lastcall-witness", wake_fd)
    loop, recorder = Loop(), RingRecorder(ring, "runtime", _Clock())

    def tell(fault: crash_guard.Fault) -> None:
        facts: FaultCaught = crash_guard.as_facts(fault, _ROLE)
        recorder.record(kinds.FAULT_CAUGHT, facts=facts)

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    crash_guard.install(crash_guard.Faults(tell, say))
    Server(Context(loop, recorder, Tails(loop)), options["--socket"])
    gc.collect()
    gc.freeze()
    loop.run_forever()


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    # `-I -S` leaves only the standard library; this is where the lastcall package is.
    sys.path[:0] = [os.path.normpath(os.path.join(here, *[os.pardir] * 5))]
    sys.exit(main(sys.argv[1:]))
