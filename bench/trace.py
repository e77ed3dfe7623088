"""`python -m bench trace [--pods N] [--at-once N] [--profile FILE]`: what `lastcall trace` costs while N Pods end.

The API server is lastcall's (TLS, SQLite), in a process of its own. This process is the kubelets of simulated nodes: it
makes the Pods Running, and writes of each end what a kubelet and a controller write (DELETE, EndpointSlice, Killing,
the container's end, the last DELETE). What follows them is a third process with the follower and the rendering of
`lastcall trace --output json-line --no-logs` (no node has logs here), and it alone is measured.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from bench.api import Server
from bench.figures import machine
from lastcall.cli.options import JSON_LINE
from lastcall.contexts.connection import choose, connected
from lastcall.contexts.options import ContextOptions
from lastcall.kube.api.resources import ENDPOINTSLICES, EVENTS, PODS
from lastcall.kube.client.kubeconfig import render_kubeconfig

NODES = 50
IN_A_SLICE = 100
"""As the endpointslice controller fills them."""


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def status(phase: str, state: dict[str, Any]) -> dict[str, Any]:
    ready = "True" if phase == "Running" else "False"
    container = {"name": "app", "image": "x", "imageID": "x", "containerID": "x://1", "restartCount": 0}
    return {
        "phase": phase,
        "podIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": now()}],
        "containerStatuses": [{**container, "ready": ready == "True", "state": state}],
    }


class Kubelets:
    """Pods of a Service, `count` of them."""

    def __init__(self, client: Any, count: int) -> None:
        self.client, self.count = client, count
        self.uids: dict[str, str] = {}
        self.started = now()

    async def begin(self, number: int) -> None:
        name = f"p{number:05}"
        spec = {"nodeName": f"n{number % NODES}", "containers": [{"name": "app", "image": "x"}]}
        pod = {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}
        made = await self.client.create(PODS, pod, "default")
        self.uids[name] = made["metadata"]["uid"]
        body = {"status": status("Running", {"running": {"startedAt": self.started}})}
        await self.client.patch(PODS, name, body, "default", subresource="status")

    async def slices(self) -> None:
        for first in range(0, self.count, IN_A_SLICE):
            endpoints = [self._endpoint(number) for number in range(first, min(self.count, first + IN_A_SLICE))]
            meta = {"name": f"web-{first}", "labels": {"kubernetes.io/service-name": "web"}}
            body = {"metadata": meta, "addressType": "IPv4", "endpoints": endpoints}
            await self.client.create(ENDPOINTSLICES, body, "default")

    async def without(self, first: int) -> None:
        """End all Pods of a slice: the controller writes several at once, so that it is terminating, then empty."""
        gone = [self._endpoint(n, leaving=True) for n in range(first, min(self.count, first + IN_A_SLICE))]
        for endpoints in (gone, []):
            await self.client.patch(ENDPOINTSLICES, f"web-{first}", {"endpoints": endpoints}, "default")

    def _endpoint(self, number: int, *, leaving: bool = False) -> dict[str, Any]:
        name = f"p{number:05}"
        target = {"kind": "Pod", "name": name, "namespace": "default", "uid": self.uids[name]}
        conditions = {"ready": not leaving, "serving": True, "terminating": leaving}
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        return {"addresses": [address], "conditions": conditions, "targetRef": target}

    async def end(self, number: int) -> None:
        name = f"p{number:05}"
        await self.client.delete(PODS, name, "default")
        about = {"kind": "Pod", "apiVersion": "v1", "name": name, "namespace": "default", "uid": self.uids[name]}
        event = {
            "metadata": {"generateName": f"{name}."},
            "involvedObject": {**about, "fieldPath": "spec.containers{app}"},
            "reason": "Killing",
            "message": "Stopping container app",
            "type": "Normal",
            "firstTimestamp": now(),
            "lastTimestamp": now(),
            "count": 1,
            "source": {"component": "kubelet", "host": f"n{number % NODES}"},
        }
        await self.client.create(EVENTS, event, "default")
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": self.started, "finishedAt": now()}
        body = {"status": status("Succeeded", {"terminated": {**ended, "containerID": "x://1"}})}
        await self.client.patch(PODS, name, body, "default", subresource="status")
        await self.client.delete(PODS, name, "default", grace_period_seconds=0)


async def side_by_side(at_once: int, count: int, work: Any) -> None:
    turn = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with turn:
            await work(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(one(number))


async def follow(kubeconfig: str, count: int, profile: str) -> None:
    """Run the process that is measured: it prints a line when it follows, and its figures at the end."""
    from lastcall.cli import output
    from lastcall.cli.exit_status import exit_status
    from lastcall.trace.follower import Follower, Options
    from lastcall.trace.scope import Scope

    async with connected(choose(ContextOptions(kubeconfig)), agent="bench") as there:
        follower = Follower(there.client, Scope(), kubernetes_version="1.36", options=Options(logs=False, count=count))
        running = asyncio.ensure_future(follower.run())
        await follower.synced()
        first = figures(follower)
        print(json.dumps({"pods": follower.following()}), flush=True)
        profiler: Any = None
        if profile:
            import cProfile

            profiler = cProfile.Profile()
            profiler.enable()
        size, stories, waiting, began = 0, 0, 0, 0.0
        async for ending in follower.endings():
            began = began or time.monotonic()
            waiting = max(waiting, follower.waiting())
            text = output.document(
                [ending], "json", kubernetes_version="1.36", status=exit_status([ending]), explain=False, width=100
            )
            size, stories = size + len(text), stories + 1
        seconds = time.monotonic() - began
        await running
        if profile:
            profiler.dump_stats(profile)
        last = figures(follower)
        answer = {key: last[key] - first[key] for key in ("cpu", "requests")}
        answer |= {"told": stories, "bytes": size, "seconds": seconds, "waiting": waiting}
        answer |= {"watches": last["watches"], "before": first["peak"], "peak": last["peak"]}
        print(json.dumps(answer), flush=True)


def peak_mb() -> float:
    """Return VmHWM of this process: getrusage's ru_maxrss begins with what its parent had before the exec."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def figures(follower: Any) -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu": used.ru_utime + used.ru_stime,
        "peak": peak_mb(),
        "requests": follower.requests(),
        "watches": sum(each.connected for each in follower.sources()),
    }


async def measure(kubeconfig: str, count: int, at_once: int, profile: str) -> dict[str, Any]:
    async with connected(choose(ContextOptions(kubeconfig)), agent="bench") as there:
        kubelets = Kubelets(there.client, count)
        await side_by_side(at_once, count, kubelets.begin)
        await kubelets.slices()
        command = [sys.executable, "-m", "bench.trace", "--follow", kubeconfig, "--pods", str(count)]
        command += ["--profile", profile] if profile else []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: ASYNC220 (nothing waits yet)
            assert child.stdout is not None
            line = await asyncio.to_thread(child.stdout.readline)
            assert json.loads(line)["pods"] == count, line
            began = time.monotonic()
            for first in range(0, count, IN_A_SLICE):
                number = min(IN_A_SLICE, count - first)
                await asyncio.gather(
                    side_by_side(at_once, number, lambda each, first=first: kubelets.end(first + each)),
                    kubelets.without(first),
                )
            ended = time.monotonic() - began
            answer: dict[str, Any] = json.loads(await asyncio.to_thread(child.stdout.readline))
            return {**answer, "ended": ended}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--at-once", type=int, default=50, help="how many end at the same time")
    parser.add_argument("--profile", default="", help="write a cProfile of what follows to this file")
    parser.add_argument("--follow", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.follow:
        with click.Context(click.Command("trace")) as context:
            context.meta[JSON_LINE] = True  # as --output json-line says
            asyncio.run(follow(arguments.follow, arguments.pods, arguments.profile))
        return
    with ExitStack() as stack:
        server = Server("sqlite", stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lastcall-bench-")))
        kubeconfig = folder / "kubeconfig"
        access = server.access
        url = f"https://127.0.0.1:{access['port']}"
        kubeconfig.write_text(render_kubeconfig("bench", url, access["ca"].encode(), token=access["token"]))
        kubeconfig.chmod(0o600)
        load = os.getloadavg()[0]
        found = asyncio.run(measure(str(kubeconfig), arguments.pods, arguments.at_once, arguments.profile))
    count = arguments.pods
    print(f"{machine()}; load before: {load:.1f}\n")
    print("| figure | value |\n|---|---|")
    print(f"| Pods that ended, {arguments.at_once} at a time | {count} in {found['ended']:.1f} s |")
    print(f"| stories reported | {found['told']}, {found['bytes'] / count / 1024:.1f} KiB of JSON each |")
    print(f"| CPU of each end, the story's rendering included | {found['cpu'] / count * 1e3:.2f} ms |")
    print(f"| memory, peak: following all, then with their ends | {found['before']:.0f} → {found['peak']:.0f} MB |")
    print(f"| finished stories that waited to be rendered, most | {found['waiting']} |")
    print(f"| requests for lists and watches while they ended | {found['requests']} |")
    print(f"| watches that are open | {found['watches']} |")


if __name__ == "__main__":
    main()
