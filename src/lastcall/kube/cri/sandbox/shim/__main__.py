"""`python -I -S …/shim/__main__.py --socket PATH --state DIR [--ring-fd N] [--wake-fd N] [--cgroups JSON]
[--capacity JSON] [--lines N] [--owners-fd N]`.

Started by init as a fresh small interpreter without site-packages. It ends with init.
"""

# check: allow time.monotonic_ns, time.time_ns because the shim has a loop of its own
# check: observes because its guards caught the error
# check: prints because its stderr is a pipe that front reads

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lastcall.records.definitions.every_role import FaultCaught

_OPTIONS = {"--socket", "--state", "--ring-fd", "--wake-fd", "--cgroups", "--capacity", "--lines", "--owners-fd"}
_NO_CGROUPS = '{"mode": "none", "why": "none were given"}'


class _Clock:
    """`lastcall.world.clock.RealClock` without asyncio, which would be a third of this process's memory."""

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        return time.time_ns()


def main(arguments: list[str]) -> int:
    """Serve until killed."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown or len(arguments) % 2 or not {"--socket", "--state"} <= options.keys():
        sys.stderr.write(
            "usage: --socket PATH --state DIR [--ring-fd N] [--wake-fd N] [--cgroups JSON] [--capacity JSON] "
            "[--lines N] [--owners-fd N]\n"
        )
        return 2

    _protect_interpreter(arguments)
    # late: the interpreter that comes before an execve does not need it
    from lastcall.kube.cri.sandbox.cgroups.place import open_cgroups
    from lastcall.kube.cri.sandbox.shim.containers import Context
    from lastcall.kube.cri.sandbox.shim.logs import LINES_PER_SECOND
    from lastcall.kube.cri.sandbox.shim.loop import Loop
    from lastcall.kube.cri.sandbox.shim.pod_groups import NodeSize
    from lastcall.kube.cri.sandbox.shim.server import Server
    from lastcall.records import kinds
    from lastcall.records.ring import Ring, RingRecorder
    from lastcall.world import crash_guard, linux

    # The name that init gave was lost with the execve.
    role = os.path.basename(options["--socket"]).removesuffix(".sock")
    linux.set_process_name(f"lastcall-{role}"[:15])
    wake_fd, ring_fd, owners_fd = (int(options.get(f"--{name}-fd", -1)) for name in ("wake", "ring", "owners"))
    for fd in (wake_fd, ring_fd, owners_fd):
        if fd >= 0:
            os.set_inheritable(fd, False)  # they came over an execve; no container gets them
    ring = Ring(ring_fd, wake_fd) if ring_fd >= 0 else Ring.create("lastcall-shim", wake_fd)
    state = options["--state"]
    processes = os.path.join(state, "processes")
    os.makedirs(processes, 0o700, exist_ok=True)
    cgroups = open_cgroups(json.loads(options.get("--cgroups", _NO_CGROUPS)))
    loop = Loop()
    recorder = RingRecorder(ring, "runtime", _Clock())

    def tell(fault: crash_guard.Fault) -> None:
        facts: FaultCaught = crash_guard.as_facts(fault, role)
        recorder.record(kinds.FAULT_CAUGHT, facts=facts)

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    crash_guard.install(crash_guard.Faults(tell, say))
    context = Context(
        loop,
        recorder,
        processes,
        cgroups,
        int(options.get("--lines", LINES_PER_SECOND)),
        NodeSize(json.loads(options.get("--capacity", "{}"))),
        owners_fd,
    )
    Server(context, options["--socket"], state)
    gc.collect()
    gc.freeze()  # a forked child then leaves the pages of these objects shared
    loop.run_forever()
    return 0


def _protect_interpreter(arguments: list[str]) -> None:
    """Containers start as forks of this process: see `linux.execv_read_only`. Starts over unless we came that way."""
    # late: usage errors are reported without it
    from lastcall.world import linux

    if not os.statvfs("/proc/self/exe").f_flag & os.ST_RDONLY:
        with contextlib.suppress(OSError):  # Linux 5.11: without this second line of defence
            linux.execv_read_only(sys.executable, [sys.executable, "-I", "-S", os.path.abspath(__file__), *arguments])


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    # `-I -S` leaves only the standard library; this is where the lastcall package is.
    sys.path[:0] = [os.path.normpath(os.path.join(here, *[os.pardir] * 5))]
    sys.exit(main(sys.argv[1:]))
