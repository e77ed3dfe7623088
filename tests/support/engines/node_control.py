"""What `golden_replay.py --node-control` calls: `node_control.py INIT kill|start`, with the pid of a cluster's init.

`kill` ends the process of node-1. init starts the next one at once, which is stopped before it has done anything, until
`start`: so the node is away as long as the recorded kubelet was.
"""

import os
import signal
import sys
import time
from pathlib import Path

NODE = "lastcall-node-1"


def nodes(init: str) -> list[int]:
    """Return the processes of the node that are there, one or none."""
    found = []
    for pid in Path(f"/proc/{init}/task/{init}/children").read_text().split():
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == NODE:
                found.append(int(pid))
        except OSError:
            continue
    return found


def kill(init: str) -> None:
    (pid,) = nodes(init)
    os.kill(pid, signal.SIGKILL)
    while not (found := [each for each in nodes(init) if each != pid]):
        time.sleep(0.002)  # nobody is told of a process that starts
    os.kill(found[0], signal.SIGSTOP)


def start(init: str) -> None:
    (pid,) = nodes(init)
    os.kill(pid, signal.SIGCONT)


if __name__ == "__main__":
    {"kill": kill, "start": start}[sys.argv[2]](sys.argv[1])
