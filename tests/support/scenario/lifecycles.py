"""Plays a recorded lifecycle on a cluster with `trace` attached, and answers the stories that it told.

    async with connected(choose(ContextOptions(kubeconfig)), agent="test", warn=note) as there:
        told = await traced(there.client, "graceful-exit0")      # Pod's name (`p`, `p~2`, `j-#1`) → its Ending

Each lifecycle has a namespace of its own, which is removed. What changes a node, or stops one, is not played:
`playable` says which are.
"""

import asyncio
import json
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from virtual_cluster import KINDS

from lastcall.endings.story import Ending
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, is_terminating, name_of
from lastcall.kube.api.resources import EVENTS, NAMESPACES, PODS, SERVICEACCOUNTS
from lastcall.kube.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from lastcall.kube.client.http import HTTPClient
from lastcall.records import kinds
from lastcall.trace.follower import Follower, Options
from lastcall.trace.scope import Scope
from lastcall.world.tasks import Tasks

DATA = Path(__file__).parents[2] / "scenarios" / "data"
NOT_PLAYED = {
    "image-update-restart": "needs the image busybox:1.36-b",
    "preemption": "it would preempt the Pods of others",
    "admission-rejected": "its Pod is bound to a node by name",
    "delete-during-pull-fail": "needs a registry on the node's loopback",
    "delete-during-pull-ok": "needs a registry on the node's loopback",
    "delete-during-pull-two": "needs a registry on the node's loopback",
    "taint-noexecute": "taints the node",
    "taint-noexecute-nokubelet": "makes a node",
}
LOOK_SECONDS = 0.1
SETTLE_SECONDS = 4.0
"""After the last step: until the stories of Pods that end by themselves are told."""

Json = dict[str, Any]


def recording(name: str) -> Json:
    path = next(each for each in (DATA / f"{name}.json", DATA / "owners" / f"{name}.json") if each.exists())
    found: Json = json.loads(path.read_text())
    return found


def playable() -> list[str]:
    """Lifecycles that need nothing but a namespace."""
    names = sorted(each.stem for folder in (DATA, DATA / "owners") for each in folder.glob("*.json"))
    return [
        each
        for each in names
        if each not in NOT_PLAYED and not any("kubelet" in step for step in recording(each)["steps"])
    ]


async def traced(client: HTTPClient, name: str, *, logs: bool = True) -> dict[str, Ending]:
    """Raises TimeoutError for a step whose condition did not come true."""
    player = _Player(client, recording(name), f"traced-{name}-{secrets.token_hex(2)}")
    await player.make_namespace()
    follower = Follower(client, Scope(player.namespace), kubernetes_version="1.36", options=Options(logs=logs))
    told: list[Ending] = []

    async def listen() -> None:
        async for ending in follower.endings():
            told.append(ending)

    try:
        async with Tasks() as tasks:
            tasks.spawn(follower.run(), name="trace")
            tasks.spawn(listen(), name="stories")
            await follower.synced()
            for step in player.recording["steps"]:
                await player.play(step)
            await asyncio.sleep(SETTLE_SECONDS)  # late events of a cluster that is not ours
            tasks.cancel()
    finally:
        await player.remove_namespace()
    assert follower.failure is None, follower.failure
    return _named(told, player.recording)


def _named(told: list[Ending], played: Json) -> dict[str, Ending]:
    """As the recordings name Pods: `p~2` is the second of a name, `j-#1` the first of a generated one."""
    found: dict[str, Ending] = {}
    for ending in sorted(told, key=_created):
        name = ending.pod.name
        for manifest in played["manifests"]:
            owner = manifest["metadata"]["name"]
            if manifest["kind"] not in ("Pod", "StatefulSet") and re.fullmatch(rf"{owner}-[a-z0-9]{{5}}", name):
                number = 1 + sum(each.startswith(f"{owner}-#") for each in found)
                name = f"{owner}-#{number}"
        same = 1 + sum(each.partition("~")[0] == name for each in found)
        if ending.pod.uid not in {each.pod.uid for each in found.values()}:
            found[name if same == 1 else f"{name}~{same}"] = ending
    return found


def _created(ending: Ending) -> int:
    return next((e.record.at_ns for e in ending.entries if e.record.kind == kinds.POD_CREATED), ending.zero_ns)


class _Player:
    def __init__(self, client: HTTPClient, played: Json, namespace: str) -> None:
        self.client, self.recording, self.namespace = client, played, namespace
        self._gone_before: dict[str, str] = {}

    async def make_namespace(self) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        await self._until(self._has_account, 60)

    async def _has_account(self) -> bool:
        with suppress(StatusError):
            await self.client.get(SERVICEACCOUNTS, "default", self.namespace)
            return True
        return False

    async def remove_namespace(self) -> None:
        for pod in (await self.client.list(PODS, self.namespace)).items:
            with suppress(StatusError):
                if pod["metadata"].get("finalizers"):
                    await self.client.patch(PODS, name_of(pod), {"metadata": {"finalizers": None}}, self.namespace)
                await self.client.delete(PODS, name_of(pod), self.namespace, grace_period_seconds=1)
        await self.client.delete(NAMESPACES, self.namespace)

    async def play(self, step: Json) -> None:
        namespace, client = self.namespace, self.client
        match step:
            case {"create": names}:
                for manifest in self.recording["manifests"]:
                    if names == "all" or f"{manifest['kind'].lower()}/{manifest['metadata']['name']}" in names:
                        with suppress(*([StatusError] if step.get("mayfail") else [])):
                            await client.create(KINDS[manifest["kind"]], manifest, namespace)
            case {"wait": wanted}:
                try:
                    await self._until(await self._condition(wanted), wanted.get("limit", 90))
                except TimeoutError:
                    if not wanted.get("optional"):
                        raise
            case {"sleep": seconds}:
                await asyncio.sleep(seconds)  # the step of the recording
            case {"delete": what, **more}:
                options = more.get("options") or {}
                resource, name = await self._located(what)
                if resource is PODS:
                    with suppress(StatusError):
                        self._gone_before[name] = (await client.get(PODS, name, namespace))["metadata"]["uid"]
                await client.delete(
                    resource,
                    name,
                    namespace,
                    grace_period_seconds=options.get("gracePeriodSeconds"),
                    propagation_policy=options.get("propagationPolicy"),
                )
            case {"evict": what}:
                _, name = await self._located(what)
                body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
                await client.create(PODS, body, namespace, name=name, subresource="eviction")
            case {"patch": what, "body": body, **more}:
                resource, name = await self._located(what)
                kind = STRATEGIC_MERGE_PATCH if more.get("type") == "strategic" else MERGE_PATCH
                sub = more.get("subresource", "").strip("/")
                await client.patch(resource, name, body, namespace, content_type=kind, subresource=sub)
            case {"gone": limit}:
                await self._until(self._no_pods, limit + 60)
            case _:
                raise ValueError(f"unknown step {step}")

    async def _located(self, what: str) -> tuple[Any, str]:
        kind, name = what.split("/")
        resource = next(resource for known, resource in KINDS.items() if known.lower() == kind)
        if name.startswith("@"):
            there = (await self.client.list(resource, self.namespace)).items
            there.sort(key=lambda each: str(each["metadata"]["creationTimestamp"]))
            name = name_of(there[int(name[1:])])
        return resource, name

    async def _until(self, ask: Callable[[], Awaitable[bool]], limit: float) -> None:
        ends = time.monotonic() + limit
        while not await ask():
            if time.monotonic() > ends:
                raise TimeoutError(f"{ask.__qualname__} did not come true within {limit} s")
            await asyncio.sleep(LOOK_SECONDS)  # pause of a poll

    async def _condition(self, wanted: Json) -> Callable[[], Awaitable[bool]]:
        async def pods() -> bool:
            found = await self._pods()
            if wanted.get("ready"):
                found = [each for each in found if _condition_is(each, "Ready") and not is_terminating(each)]
            return len(found) == int(wanted["pods"])

        async def event() -> bool:
            found = (await self.client.list(EVENTS, self.namespace)).items
            name = (wanted.get("object") or "/").split("/")[1]
            counts = [
                int(each.get("count") or 1)
                for each in found
                if each.get("reason") == wanted["event"] and name in ("", each["involvedObject"].get("name"))
            ]
            return sum(counts) >= int(wanted.get("count", 1))

        async def log() -> bool:
            for pod in await self._pods():
                for container in pod["spec"]["containers"]:
                    with suppress(StatusError):
                        stream = self.client.pod_log(self.namespace, name_of(pod), container["name"])
                        text = b"".join([each async for each in stream]).decode()
                        if wanted["log"] in text:
                            return True
            return False

        async def state() -> bool:
            resource, name = await self._located(wanted["object"])
            try:
                found = await self.client.get(resource, name, self.namespace)
            except StatusError:
                return bool(wanted["is"] == "gone")
            if wanted["is"] == "gone":
                return self._gone_before.get(name, "") not in ("", str(found["metadata"]["uid"]))
            return _is(found, str(wanted["is"]))

        return pods if "pods" in wanted else event if "event" in wanted else log if "log" in wanted else state

    async def _pods(self) -> list[Object]:
        return (await self.client.list(PODS, self.namespace)).items

    async def _no_pods(self) -> bool:
        return not await self._pods()


def _condition_is(obj: Object, type_: str, status: str = "True") -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == type_ and each["status"] == status for each in conditions)


def _is(obj: Object, wanted: str) -> bool:
    """`ready`, `phase=Failed`, `waiting=REASON`, `running=NAME`, `restarts=N`, `condition=TYPE:STATUS`, `eq PATH N`."""
    status = obj.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    key, _, value = wanted.partition("=")
    match key:
        case "ready":
            return _condition_is(obj, "Ready")
        case "phase":
            return bool(status.get("phase") == value)
        case "waiting":
            return any((each["state"].get("waiting") or {}).get("reason") == value for each in containers)
        case "running" if not value:
            return bool(status.get("phase") == "Running")
        case "running":
            return any(each["name"] == value and "running" in each["state"] for each in containers)
        case "restarts":
            return any(each["restartCount"] >= int(value) for each in containers)
        case "condition":
            return _condition_is(obj, *value.split(":"))
    _, path, number = wanted.split(" ")
    found: Any = obj
    for part in path.split("."):
        found = (found or {}).get(part)
    return str(found) == number
