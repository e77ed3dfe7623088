"""`python3 -m lastcall.trace.agent`: on a node, in a Pod with `hostPID`.

The node's /sys/fs/cgroup is at /host/cgroup.
Lines of JSON: requests on stdin (`requests`), what it saw on stdout.
"""

# check: reaches inside because the node agent reads /proc as the shim does

# check: prints because its lines on stdout are JSON for the trace that started it

from __future__ import annotations

import argparse
import os
import signal
import sys

from lastcall.kube.cri.sandbox.shim.loop import Loop
from lastcall.trace.agent.groups import Groups
from lastcall.trace.agent.lines import Lines
from lastcall.trace.agent.node import NodeAgent
from lastcall.world import crash_guard
from lastcall.world.clock import RealClock

_CAP_SYS_PTRACE = 19


def main() -> None:
    """Run until a request ends it, or no more requests come."""
    parser = argparse.ArgumentParser(prog="lastcall.trace.agent", description="Report what this node sees of Pods.")
    parser.add_argument("--node", default=os.environ.get("NODE_NAME", os.uname().nodename), help="this node's name")
    parser.add_argument("--cgroup", default="/host/cgroup", help="where the node's /sys/fs/cgroup is mounted")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds without a request after which the agent ends")
    parser.add_argument("--rules", action="store_true", help="read the node's rules for Services (CAP_NET_ADMIN)")
    options = parser.parse_args()
    groups = Groups(options.cgroup)
    if not groups.usable:
        sys.exit(f"{options.cgroup} has no control groups; fix: mount the node's /sys/fs/cgroup there, read-only")
    lines = Lines(_write)
    # One Pod, or one line, that fails ends its own turn.
    crash_guard.install(
        crash_guard.Faults(lambda fault: lines.say(error=f"{fault.component} {fault.key}: {fault.error}"))
    )
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # it has nothing to put in order
    try:
        agent = NodeAgent(
            Loop(),
            RealClock(),
            groups,
            lines,
            options.node,
            idle=options.idle,
            traces=_has_capability(_CAP_SYS_PTRACE),
            rules=options.rules,
        )
    except OSError as error:
        sys.exit(f"rules for Services cannot be read: {error}; fix: hostNetwork and CAP_NET_ADMIN, or no --rules")
    agent.run(sys.stdin.fileno())


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _has_capability(number: int) -> bool:
    with open("/proc/self/status") as file:
        mask = next((line.split()[1] for line in file if line.startswith("CapEff:")), "0")
    return bool(int(mask, 16) >> number & 1)


if __name__ == "__main__":
    main()
