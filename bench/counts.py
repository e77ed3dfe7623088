"""`python -m bench counts [--pods 20]`: what the life of a Pod costs in calls: exact, whatever else the machine does.

A cluster runs Pods one after another: create → Running → DELETE → gone. Requests to the API are what its own metrics
count. Calls to the kernel are what strace sees of each role and of what it starts, the container's own (a shell that
waits in `sleep`) included, less those of the same time without Pods.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.cluster_child import life, warm
from bench.figures import machine
from lastcall.kube.cluster import embedded
from lastcall.kube.cluster.embedded import Running
from lastcall.kube.cluster.options import ClusterOptions

CALLS = {
    "processes": ("clone", "clone3", "fork", "vfork"),
    "programs": ("execve", "execveat"),
    "syncs to disk": ("fsync", "fdatasync", "sync_file_range", "msync"),
    "mounts": ("mount", "umount2", "move_mount", "fsmount", "open_tree", "pivot_root"),
    "wake-ups": ("epoll_wait", "epoll_pwait", "epoll_pwait2", "select", "pselect6", "poll", "ppoll"),
}
"""What is counted → the system calls that are it."""
NETLINK = "netlink messages"
SENDS = ("sendto", "sendmsg", "sendmmsg")
KINDS = (*CALLS, NETLINK)

_CALL = re.compile(r"^\d+ +(\w+)\((\d+<(\w+))?")
_REQUEST = re.compile(r"^apiserver_request_total\{(.*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_SETTLED_SECONDS = 1.0

Requests = Counter[tuple[str, str]]
"""(verb, resource) → how many."""


def kind_of(line: str) -> str | None:
    """Return what a line of strace counts as; None for one without anything new (a call that goes on counts once)."""
    found = _CALL.match(line)
    if found is None:
        return None
    call, netlink = found[1], found[3] == "NETLINK"
    if call in SENDS:
        return NETLINK if netlink else None
    return next((kind for kind, calls in CALLS.items() if call in calls), None)


def counted(lines: Iterable[str]) -> Counter[str]:
    """Count how often each kind is in what strace wrote."""
    return Counter(kind for kind in map(kind_of, lines) if kind is not None)


def requests_in(metrics: str) -> Requests:
    """Count the requests that the API server has answered, by its metrics' text; watches and leases left out."""
    total: Requests = Counter()
    for labels, value in _REQUEST.findall(metrics):
        label = dict(_LABEL.findall(labels))
        resource = "/".join(part for part in (label["resource"], label["subresource"]) if part)
        if label["verb"] != "WATCH" and resource not in ("", "leases"):
            total[label["verb"], resource] += round(float(value))
    return total


class Strace:
    """strace on the roles of a cluster, one for each, for the time of a block."""

    def __init__(self, cluster: Running, directory: Path) -> None:
        directory.mkdir()
        self._files = {role: directory / role for role in cluster.host_pids()}
        calls = ",".join((*SENDS, *(each for kind in CALLS.values() for each in kind)))
        self._straces = [
            subprocess.Popen(
                ["strace", "-f", "-yy", "-s", "0", "-e", f"trace={calls}", "-o", self._files[role], "-p", str(pid)],
                stderr=subprocess.DEVNULL,
            )
            for role, pid in cluster.host_pids().items()
        ]

    def end(self) -> dict[str, Counter[str]]:
        """Let go of the roles. Return role → what was counted."""
        for each in self._straces:
            each.terminate()
            each.wait()
        return {role: counted(path.read_text(errors="replace").splitlines()) for role, path in self._files.items()}


async def requests(cluster: Running) -> Requests:
    return requests_in((await cluster.client.request("GET", "/metrics")).decode())


async def settled(cluster: Running) -> Requests:
    """Return the requests so far, once no more come: Events are written a moment after what they are about."""
    before = await requests(cluster)
    while True:
        await asyncio.sleep(_SETTLED_SECONDS)
        after = await requests(cluster)
        if after == before:
            return after
        before = after


async def of_lives(cluster: Running, pods: int) -> Requests:
    """Return the requests of so many lives, one after another."""
    before = await settled(cluster)
    for number in range(pods):
        await life(cluster, f"p{number}")
    return await settled(cluster) - before


async def measured(cluster: Running, pods: int, directory: Path) -> tuple[Requests, dict[str, Counter[str]]]:
    """Return requests and calls of so many lives; calls less those of as many seconds without."""
    await warm(cluster)
    begin = time.monotonic()
    strace = Strace(cluster, directory / "lives")
    answered = await of_lives(cluster, pods)
    calls, seconds = strace.end(), time.monotonic() - begin
    strace = Strace(cluster, directory / "idle")
    await asyncio.sleep(seconds)
    idle = strace.end()
    await cluster.client.close()
    return answered, {role: calls[role] - idle.get(role, Counter()) for role in calls}


async def only_requests(cluster: Running, pods: int) -> Requests:
    await warm(cluster)
    answered = await of_lives(cluster, pods)
    await cluster.client.close()
    return answered


def table(pods: int, of_api: Requests, calls: Mapping[str, Counter[str]]) -> list[str]:
    """Return the lines of both tables, per Pod."""
    lines = ["", "| request | per Pod |", "|---|---|"]
    lines += [f"| {verb} {resource} | {count / pods:.2f} |" for (verb, resource), count in sorted(of_api.items())]
    lines += [f"| **all** | **{sum(of_api.values()) / pods:.2f}** |", ""]
    roles = sorted(calls)
    lines += [f"| per Pod | {' | '.join(roles)} |", f"|---|{'---|' * len(roles)}"]
    lines += [f"| {kind} | {' | '.join(f'{calls[role][kind] / pods:.1f}' for role in roles)} |" for kind in KINDS]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=20)
    parser.add_argument("--requests", action="store_true", help="requests to the API alone, in JSON")
    arguments = parser.parse_args()
    cluster = embedded.start(ClusterOptions())
    try:
        if arguments.requests:
            answered = asyncio.run(only_requests(cluster, arguments.pods))
            sys.stdout.write(json.dumps({" ".join(request): count for request, count in sorted(answered.items())}))
            return
        with tempfile.TemporaryDirectory() as directory:
            answered, calls = asyncio.run(measured(cluster, arguments.pods, Path(directory)))
    finally:
        cluster.stop()
    sys.stdout.write("\n".join([machine(), *table(arguments.pods, answered, calls), ""]))


if __name__ == "__main__":
    main()
