"""`python -m bench.ends [--pods N] [--one N] [--scenarios]`: how fast Pods end, one by one and at once, step by step.

Every Pod has a shell with a handler for SIGTERM, its network and a token volume. Times are of the records that each
process of the cluster writes.
"""

import argparse
import asyncio
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.cluster_child import create, pod, until_gone, until_running
from bench.figures import HEADER, cpu_seconds, machine, pss_kib, row
from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.resources import PODS
from lastcall.kube.cluster.embedded import Running, start
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.records import kinds
from lastcall.records.record import Record

STEPS: tuple[tuple[str, Callable[[Record], bool]], ...] = (
    ("DELETE accepted → kubelet sees it", lambda r: r.kind == kinds.TERMINATION_OBSERVED),
    ("→ StopContainer", lambda r: r.kind == kinds.STOP_REQUESTED),
    ("→ SIGTERM sent", lambda r: r.kind == kinds.SIGNAL_SENT),
    ("→ exit seen", lambda r: r.kind == kinds.PROCESS_EXITED),
    ("→ StopContainer answered", lambda r: r.kind == kinds.STOP_FINISHED),
    ("→ network and sandbox gone", lambda r: r.kind == kinds.SANDBOX_STOPPED),
    ("→ volumes unmounted", lambda r: r.kind == kinds.VOLUMES_UNMOUNTED),
    ("→ terminal status written", lambda r: r.kind == kinds.POD_STATUS_WRITTEN and r.facts["phase"] != "Running"),
    ("→ final DELETE sent", lambda r: r.kind == kinds.FINAL_DELETE_SENT),
    ("→ object removed", lambda r: r.kind == kinds.OBJECT_REMOVED),
)
"""What a record of each step is; each is counted from the one before."""


class Cluster:
    """An embedded cluster whose records are kept."""

    def __init__(self, max_pods: int) -> None:
        self.cluster = start(ClusterOptions(max_pods=max_pods))
        self.records: dict[str, list[Record]] = {}

    async def connect(self) -> None:
        await self.cluster.connect()
        self.cluster.on_record(lambda record: self.records.setdefault(record.pod_uid, []).append(record))
        await self.cluster.wait_node_ready()
        await create(self.cluster, "warm")
        await until_running(self.cluster, "warm")

    def steps(self, uids: Sequence[str]) -> dict[str, list[float]]:
        """Return the milliseconds of each step, a value for each Pod that has it."""
        found: dict[str, list[float]] = {}
        for uid in uids:
            records = sorted(self.records[uid], key=lambda record: record.at_ns)
            accepted = next((r for r in records if r.kind == kinds.DELETE_ACCEPTED), None)
            if accepted is None:
                continue
            last = accepted.at_ns
            for name, is_it in STEPS:
                record = next((r for r in records if r.at_ns >= accepted.at_ns and is_it(r)), None)
                if record is not None:
                    found.setdefault(name, []).append((record.at_ns - last) / 1e6)
                    last = record.at_ns
        return found


def memory(cluster: Running) -> dict[str, float]:
    """Return the PSS in KiB by role."""
    sizes = {}
    for role, pid in cluster.host_pids().items():
        sizes[role] = float(pss_kib(pid))
    return sizes


def cpu_ms(cluster: Running) -> dict[str, float]:
    """Return the CPU milliseconds so far by role: what a loaded machine does not change."""
    return {role: cpu_seconds(pid) * 1000 for role, pid in cluster.host_pids().items()}


async def until(cluster: Running, version: str, count: int, is_it: Callable[[str, str], bool]) -> None:
    """Watch from a version on until so many Pods were seen of which `is_it(event type, phase)` holds."""
    seen = set()
    async with asyncio.timeout(300), cluster.client.watch(PODS, "default", resource_version=version) as events:
        async for event in events:
            if is_it(event.type, event.object["status"].get("phase", "")):
                seen.add(event.object["metadata"]["name"])
            if len(seen) == count:
                return


async def all_at_once(cluster: Cluster, count: int) -> None:
    await cluster.connect()
    client = cluster.cluster.client
    version = (await client.list(PODS, "default")).resource_version
    before, begin = memory(cluster.cluster), time.monotonic()
    running = asyncio.ensure_future(until(cluster.cluster, version, count, lambda _, phase: phase == "Running"))
    made = [await client.create(PODS, pod(f"p{number}"), "default") for number in range(count)]
    await running
    started = time.monotonic() - begin
    await asyncio.sleep(2)
    version = (await client.list(PODS, "default")).resource_version
    gone = asyncio.ensure_future(until(cluster.cluster, version, count, lambda type_, _: type_ == "DELETED"))
    cpu, after, begin = cpu_ms(cluster.cluster), memory(cluster.cluster), time.monotonic()
    await asyncio.gather(*(client.delete(PODS, p["metadata"]["name"], "default") for p in made))
    await gone
    seconds, used = time.monotonic() - begin, cpu_ms(cluster.cluster)
    await cluster.cluster.drain_records(0.5)
    print(f"\n{count} Pods at once: started in {started:.2f} s ({count / started:.0f}/s), ended in {seconds:.2f} s "
          f"({count / seconds:.0f}/s)")  # fmt: skip
    for role in sorted(after):
        print(f"- {role}: {(used[role] - cpu[role]) / count:.1f} ms of CPU for each end, "
              f"{(after[role] - before[role]) / count:.0f} KiB for each Pod that runs "
              f"({before[role] / 1024:.1f} → {after[role] / 1024:.1f} MB PSS)")  # fmt: skip
    uids = [uid_of(each) for each in made]
    exits = [r.facts.get("exitCode") for uid in uids for r in cluster.records[uid] if r.kind == kinds.PROCESS_EXITED]
    print(f"- exit codes: {sorted(set(exits))}, {len(exits)} of {count}\n")
    show(cluster.steps(uids))
    await client.close()


async def one_by_one(cluster: Cluster, count: int) -> None:
    await cluster.connect()
    client, uids, gone_ms = cluster.cluster.client, [], []
    for number in range(count):
        name = f"p{number}"
        await client.create(PODS, pod(name), "default")
        await until_running(cluster.cluster, name)
        await asyncio.sleep(0.02)
        current = await client.get(PODS, name, "default")
        watching = asyncio.Event()
        version = current["metadata"]["resourceVersion"]
        gone = asyncio.ensure_future(until_gone(cluster.cluster, name, version, watching))
        await watching.wait()
        await client.get(PODS, name, "default")
        begin = time.monotonic_ns()
        await client.delete(PODS, name, "default")
        gone_ms.append((await gone - begin) / 1e6)
        uids.append(uid_of(current))
    await cluster.cluster.drain_records(0.5)
    print("\nOne after another:\n")
    show(cluster.steps(uids))
    print(row("DELETE sent → gone, as the client sees it", gone_ms, "ms"))
    await client.close()


def show(steps: dict[str, list[float]]) -> None:
    print(HEADER)
    for name, values in steps.items():
        print(row(name, values, "ms"))


def scenarios() -> None:
    """Time the rules' scenarios in virtual time: three rounds of the suite, in a process of their own."""
    found = []
    for _ in range(3):
        command = [sys.executable, "-m", "pytest", "tests/scenarios", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=900)
        last = done.stdout.strip().splitlines()[-1]
        match = re.search(r"(\d+) passed.* in ([\d.]+)s", last)
        if match is None:
            print(f"scenarios: {last}")
            return
        found.append(int(match[1]) / float(match[2]))
    print(f"\nScenarios in virtual time: {match[1]}, {statistics.median(found):.1f} a second "
          f"(3 rounds, {min(found):.1f}-{max(found):.1f})")  # fmt: skip


def run(max_pods: int, work: Callable[[Cluster], Any]) -> None:
    cluster = Cluster(max_pods)
    try:
        asyncio.run(work(cluster))
    finally:
        cluster.cluster.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=200, help="at once; 0 for none")
    parser.add_argument("--one", type=int, default=100, help="one after another; 0 for none")
    parser.add_argument("--scenarios", action="store_true")
    arguments = parser.parse_args()
    print(machine())
    if arguments.one:
        run(110, lambda cluster: one_by_one(cluster, arguments.one))
    if arguments.pods:
        run(250, lambda cluster: all_at_once(cluster, arguments.pods))
    if arguments.scenarios:
        scenarios()


if __name__ == "__main__":
    main()
