"""Follows Pods by one watch: Ready, ended by itself, gone. Late, repeated and missed events are normal."""

# check: observes because it records watch events that a client saw

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.experiment.reasons.why_not_ready import is_ready
from lastcall.kube.api import PODS, Object, Resource, StatusError, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.client import Client, ConnectionLost
from lastcall.records import kinds
from lastcall.records.record import Evidence, Recorder
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.client import PodGoneSeen, PodReadySeen

RETRY_SECONDS = 0.1
"""Wait before a lost watch is opened again."""


async def follow_kind(
    client: Client,
    clock: Clock,
    resource: Resource,
    namespace: str,
    resource_version: str,
    saw: Callable[[Object, bool], Awaitable[None]],
    listed: Callable[[Resource, Sequence[Object], str], Awaitable[None]],
) -> None:
    """Watch a kind from a version on until cancelled; a lost watch is opened again, with a list if need be.

    `saw` gets each object and whether it is gone, `listed` what a list holds and its resourceVersion. Raises
    StatusError where reading the kind is not allowed.
    """

    async def watch(version: str) -> str:
        """Watch until the server ends it; the last version seen, "" when the next step must be a list."""
        if not version:
            return ""
        async with client.watch(resource, namespace, resource_version=version, bookmarks=True) as events:
            async for event in events:
                if event.type == "ERROR":
                    return ""
                version = resource_version_of(event.object) or version
                if event.type != "BOOKMARK":
                    await saw(event.object, event.type == "DELETED")
        return version

    async def catch_up() -> str:
        found = await client.list(resource, namespace)
        await listed(resource, found.items, found.resource_version)
        return found.resource_version

    version = resource_version
    while True:
        try:
            version = await watch(version) or await catch_up()
        except (ConnectionLost, StatusError) as error:
            if not version and isinstance(error, StatusError) and error.code == 403:
                raise  # a list may be allowed where a watch is not
            await clock.sleep(RETRY_SECONDS)
            version = ""


@dataclass(slots=True)
class FollowedPod:
    """A Pod as the watch showed it last. `gone`: its DELETED was seen, or it is missing from a list.

    `owner_uid` is that of the applied owner whose Pod it is, "" for a Pod of the manifests.
    """

    obj: Object
    ready: bool = False
    gone: bool = False
    owner_uid: str = ""

    @property
    def uid(self) -> str:
        return uid_of(self.obj)

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{namespace_of(self.obj)}/{name_of(self.obj)}"

    @property
    def ended_by_itself(self) -> bool:
        """Return whether its phase is Succeeded or Failed."""
        return (self.obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")


@dataclass(slots=True)
class PodFollower:
    """`run` keeps the followed Pods up to date; `wait` returns when they are as asked."""

    client: Client
    recorder: Recorder
    clock: Clock
    pods: dict[str, FollowedPod] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    namespace: str = ""
    owner_of: Callable[[Object], Awaitable[str]] | None = None
    """Answers the uid of the applied owner of a Pod; without it only what `follow` was given is followed."""

    def follow(self, pod: Object, owner_uid: str = "") -> FollowedPod:
        """Follow a Pod that was just created."""
        return self.pods.setdefault(uid_of(pod), FollowedPod(pod, owner_uid=owner_uid))

    async def run(self, resource_version: str) -> None:
        """Watch the Pods of the namespace, "" for all, from a version on until cancelled."""
        await follow_kind(self.client, self.clock, PODS, self.namespace, resource_version, self._saw, self._listed)

    async def _listed(self, resource: Resource, items: Sequence[Object], resource_version: str) -> None:
        """Catch up after missed events: a Pod that is not in the list is gone."""
        uids = {uid_of(item) for item in items}
        for item in items:
            await self._saw(item, False)
        for pod in self.pods.values():
            if pod.uid not in uids and not pod.gone:
                self._gone(pod, resource_version, inferred=True)

    async def _saw(self, obj: Object, gone: bool) -> None:
        pod = self.pods.get(uid_of(obj))
        if pod is None and not gone and self.owner_of is not None and (owner := await self.owner_of(obj)):
            pod = self.follow(obj, owner)
        if pod is None or pod.gone:
            return
        pod.obj = obj
        if not pod.ready and is_ready(obj):
            pod.ready = True
            facts: PodReadySeen = {"resourceVersion": resource_version_of(obj)}
            self.recorder.record(kinds.POD_READY_SEEN, pod_uid=pod.uid, facts=facts)
        if gone:
            self._gone(pod, resource_version_of(obj), inferred=False)
        self.changed.set()

    def _gone(self, pod: FollowedPod, version: str, *, inferred: bool) -> None:
        pod.gone = True
        facts: PodGoneSeen = {"resourceVersion": version}
        evidence: Evidence = "inferred" if inferred else "observed"
        self.recorder.record(kinds.POD_GONE_SEEN, pod_uid=pod.uid, facts=facts, evidence=evidence)
        self.changed.set()

    async def wait(self, is_done: Callable[[Sequence[FollowedPod]], bool], seconds: float) -> bool:
        """Return True when `is_done` says so, False when `seconds` are over first."""
        try:
            async with asyncio.timeout(seconds):
                while not is_done(list(self.pods.values())):
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            return is_done(list(self.pods.values()))
        return True
