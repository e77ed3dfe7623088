"""`python -m bench soak [--minutes 60] [--pods 20000] [--at-once 10] [--every 300]`: what a cluster keeps of dead Pods.

`lastcall up` and lives of Pods, ten at once: plain ones, with a preStop hook, with a sidecar, of a Job, behind a
Service; each from its creation to the time at which its object is gone, spread over the minutes (and longer, where the
machine does not end that many in them). Every five minutes the lives under way are waited for, Events are deleted
(they stay an hour, which is longer than the measurement), and the cluster at rest is measured: memory, descriptors,
file systems, files, mounts, control groups, links. At the end a line is laid through each figure after the first third:
its slope for 1 000 Pods with its standard error. A figure that grows has no reason, or one of `BOUNDED`. SIGINT and
SIGTERM end it early, with the table of what was seen until then.
"""

import argparse
import asyncio
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import machine, percentile
from bench.soak_figures import Sample, fit, look
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CONFIGMAPS, ENDPOINTSLICES, EVENTS, JOBS, PODS, SERVICES
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.kubeconfig import client_for, load_kubeconfig

NAMESPACE = "default"
STUCK_SECONDS = 120.0
"""A life that takes longer is reported, and counted."""
WARM_UP = 1 / 3
QUICK = "trap 'exit 0' TERM; while :; do sleep 600 & wait $!; done"
BOUNDED = {
    "PSS front": "records of the last 500 Pods that ended, 64 MiB at most (records/keep.py)",
    "PSS control-plane": "history of the store, 10 000 writes or 16 MiB or 5 min (kube/store/index.py); what was "
    "reported lately, 4 096 keys of each component that writes Events (client/event_correlator.py), which a Job "
    "reaches after 4 000; uids of 10 000 objects that are gone (kube/controllers/garbagecollector/controller.py)",
    "PSS node-1": "the allocator's arenas; records of the ring in shared memory",
    "PSS shim-1": "the record ring in shared memory, until each of its pages was written once",
    "PSS init": "the record ring in shared memory, until each of its pages was written once",
    "store, KiB": "write-ahead log up to 16 MB, 1 024 spare pages (kube/store/log.py)",
}
"""What may grow, up to which bound."""


def pod(name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    container = {
        "name": "app",
        "image": "busybox:1.36",
        "command": ["sh", "-c", QUICK],
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    hooks = spec.pop("lifecycle", None)
    if hooks:
        container["lifecycle"] = hooks
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "terminationGracePeriodSeconds": 20,
            "containers": [container],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            **spec,
        },
    }


class Watched:
    """The Pods of the namespace as a watch shows them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pods: dict[str, dict[str, Any]] = {}
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        while True:
            try:
                listed = await self._client.list(PODS, NAMESPACE)
                await self._show({each["metadata"]["name"]: each for each in listed.items})
                async with self._client.watch(PODS, NAMESPACE, resource_version=listed.resource_version) as events:
                    async for event in events:
                        if event.type == "ERROR":
                            break
                        now = dict(self._pods)
                        now.pop(event.object["metadata"]["name"], None)
                        if event.type != "DELETED":
                            now[event.object["metadata"]["name"]] = event.object
                        await self._show(now)
            except (ConnectionLost, StatusError) as error:
                print(f"the watch ended: {error}", file=sys.stderr, flush=True)
                await asyncio.sleep(1)

    async def _show(self, pods: dict[str, dict[str, Any]]) -> None:
        async with self._changed:
            self._pods = pods
            self._changed.notify_all()

    async def until(self, condition: Callable[[dict[str, dict[str, Any]]], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self._pods))

    async def running(self, name: str) -> None:
        await self.until(lambda pods: name in pods and _is_ready(pods[name]))

    async def gone(self, name: str) -> None:
        await self.until(lambda pods: name not in pods)


def _is_ready(one: dict[str, Any]) -> bool:
    conditions = one["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


@dataclass
class Soak:
    """The lives: `ended` counts Pods that are gone, by kind in `kinds`."""

    client: Client
    watched: Watched
    ended: int = 0
    stuck: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    async def life(self, number: int) -> None:
        """Run one Pod, from its creation to the end of its object."""
        kind = KINDS[number % len(KINDS)]
        name = f"{kind}-{number}"
        begin = time.monotonic()
        work = asyncio.ensure_future(LIVES[kind](self, name))
        while not (await asyncio.wait((work,), timeout=STUCK_SECONDS))[0]:
            self.stuck += 1
            print(f"{name} is not gone after {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
        try:
            work.result()
        except (StatusError, ConnectionLost) as error:
            self.failures[f"{kind}: {error}"[:200]] += 1
            return
        self.ended += 1
        self.kinds[kind] += 1
        self.seconds.append(time.monotonic() - begin)

    async def of(self, body: dict[str, Any]) -> None:
        name = body["metadata"]["name"]
        await self.client.create(PODS, body, NAMESPACE)
        await self.watched.running(name)
        await self.client.delete(PODS, name, NAMESPACE)
        await self.watched.gone(name)

    async def plain(self, name: str) -> None:
        await self.of(pod(name))

    async def hook(self, name: str) -> None:
        await self.of(pod(name, lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "echo bye > /scratch/bye"]}}}))

    async def sidecar(self, name: str) -> None:
        helper = {"name": "helper", "image": "busybox:1.36", "command": ["sh", "-c", QUICK], "restartPolicy": "Always"}
        await self.of(pod(name, initContainers=[helper]))

    async def endpoint(self, name: str) -> None:
        await self.client.create(PODS, pod(name, labels={"app": "soak"}), NAMESPACE)
        await self.watched.running(name)
        for _ in range(600):
            slices = await self.client.list(ENDPOINTSLICES, NAMESPACE, label_selector="kubernetes.io/service-name=soak")
            endpoints = [each for one in slices.items for each in one.get("endpoints") or ()]
            if any(each.get("targetRef", {}).get("name") == name for each in endpoints):
                break
            await asyncio.sleep(0.1)
        else:
            self.failures["endpoint: not in a slice after a minute"] += 1
        await self.client.delete(PODS, name, NAMESPACE)
        await self.watched.gone(name)

    async def job(self, name: str) -> None:
        container = {"name": "app", "image": "busybox:1.36", "command": ["true"]}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}
        await self.client.create(JOBS, body, NAMESPACE)
        async with self.client.watch(JOBS, NAMESPACE, field_selector=f"metadata.name={name}") as events:
            async for event in events:
                if event.object.get("status", {}).get("completionTime"):
                    break
        await self.client.delete(JOBS, name, NAMESPACE, propagation_policy="Background")
        await self.watched.until(lambda pods: not any(each.startswith(f"{name}-") for each in pods))


LIVES: dict[str, Callable[[Soak, str], Awaitable[None]]] = {
    "plain": Soak.plain,
    "hook": Soak.hook,
    "sidecar": Soak.sidecar,
    "job": Soak.job,
    "endpoint": Soak.endpoint,
}
KINDS = tuple(LIVES)


async def at_rest(client: Client) -> dict[str, float]:
    """Return what is left of each kind when nothing is under way; Events go, counted with their bytes."""
    events = (await client.list(EVENTS, NAMESPACE)).items
    counts = {"Events": float(len(events)), "Events, KiB": len(json.dumps(events)) / 1024}
    names = iter([each["metadata"]["name"] for each in events])

    async def delete_some() -> None:
        for name in names:
            try:
                await client.delete(EVENTS, name, NAMESPACE)
            except StatusError as error:
                if error.code != 404:
                    raise

    await asyncio.gather(*(delete_some() for _ in range(16)))
    for resource in (PODS, JOBS, CONFIGMAPS, ENDPOINTSLICES):
        counts[f"objects: {resource.plural}"] = float(len((await client.list(resource)).items))
    await asyncio.sleep(5)
    return counts


async def soak(arguments: argparse.Namespace, facts: dict[str, Any], samples: list[Sample]) -> None:
    """Run the soak. Adds to `samples` as it goes."""
    client = client_for(load_kubeconfig(facts["kubeconfig"]))
    watched = Watched(client)
    watching = asyncio.ensure_future(watched.run())
    run = Soak(client, watched)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "soak"}}
    await client.create(
        SERVICES, {**service, "spec": {"selector": {"app": "soak"}, "ports": [{"port": 80}]}}, NAMESPACE
    )
    await run.life(-len(KINDS))  # the first Pod of a cluster
    run.ended = 0
    begin, worked, number = time.monotonic(), 0.0, 0
    rate = arguments.pods / (arguments.minutes * 60)
    while True:
        samples.append(look(run.ended, time.monotonic() - begin, facts["pid"], await at_rest(client)))
        show(samples[-1], run)
        if run.ended >= arguments.pods or (run.failures.total() > 1000 and run.failures.total() > run.ended):
            break
        # The lives until the next look, begun at their rate, or as soon as one of the ten is free.
        start = time.monotonic()
        running: set[asyncio.Future[None]] = set()
        while (now := time.monotonic() - start) < arguments.every and number < arguments.pods + run.failures.total():
            if len(running) < arguments.at_once and number < (worked + now) * rate + arguments.at_once:
                running.add(asyncio.ensure_future(run.life(number)))
                number += 1
                continue
            some, running = await asyncio.wait(running or {asyncio.ensure_future(asyncio.sleep(0.05))}, timeout=0.1,
                                               return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
            for each in some:
                each.result()
        if running:
            await asyncio.wait(running)
        worked += time.monotonic() - start
    print(f"\n{run.ended} Pods in {(time.monotonic() - begin) / 60:.1f} min: {dict(run.kinds)}; a life took "
          f"{percentile(run.seconds, 0.5):.2f} s, p95 {percentile(run.seconds, 0.95):.2f} s; "
          f"stuck {run.stuck}; failed {dict(run.failures)}")  # fmt: skip
    watching.cancel()
    await client.close()


def show(sample: Sample, run: Soak) -> None:
    figures = ", ".join(f"{name} {value:.0f}" for name, value in sample.figures.items())
    print(f"{sample.seconds / 60:6.1f} min {sample.pods:6d} Pods, load {os.getloadavg()[0]:.1f}, stuck {run.stuck}, "
          f"failed {run.failures.total()}: {figures}", flush=True)  # fmt: skip


def report(samples: Sequence[Sample]) -> None:
    """Print the table of slopes."""
    warm = [each for each in samples if each.pods >= samples[-1].pods * WARM_UP]
    print(f"\nAfter the first {warm[0].pods} Pods, {len(warm)} looks:\n")
    print("| figure | at first | at last | slope / 1 000 Pods | standard error | |\n|---|---|---|---|---|---|")
    for name in samples[-1].figures:
        points = [(each.pods / 1000, each.figures[name]) for each in warm if name in each.figures]
        if len(points) < 3:
            continue
        slope, error = fit(points)
        verdict = "zero within its error" if abs(slope) <= 2 * error or math.isclose(slope, 0, abs_tol=1e-9) else (
            "falls" if slope < 0 else f"grows: {BOUNDED[name]}" if name in BOUNDED else "GROWS")  # fmt: skip
        print(f"| {name} | {points[0][1]:.0f} | {points[-1][1]:.0f} | {slope:+.3f} | {error:.3f} | {verdict} |")


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--every", type=float, default=300, help="seconds between two looks")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        home = Path(directory)
        environment = {**os.environ, "XDG_STATE_HOME": str(home / "state"), "XDG_DATA_HOME": str(home / "data")}

        def lastcall(*words: str) -> str:
            command = [sys.executable, "-m", "lastcall.cli.main", *words]
            return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout

        facts = json.loads(lastcall("up", "--detach", "-o", "json", "--name", "soak"))
        try:
            print(machine(), flush=True)
            samples: list[Sample] = []
            for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background processes ignore the first
                signal.signal(number, _interrupt)
            try:
                asyncio.run(soak(arguments, facts, samples))
            except KeyboardInterrupt:
                print("ended early")
            report(samples)
            status = json.loads(lastcall("status", "soak", "-o", "json"))["clusters"][0]
            print(f"\nrestarts: { {each['role']: each.get('restarts', 0) for each in status['processes']} }")
        finally:
            lastcall("down", "soak")


if __name__ == "__main__":
    main()
