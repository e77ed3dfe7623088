"""What is waited for, as it is at a moment: all that a run has created, or one workload and its Pods."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

from lastcall.endings import HOPELESS, hopeless_reason
from lastcall.experiment.ready.custom import scaled, why_unsettled
from lastcall.experiment.ready.readiness import is_custom, progress, unsettled
from lastcall.experiment.reasons.owner_watch import OwnerFollower
from lastcall.experiment.reasons.pod_watch import FollowedPod, PodFollower
from lastcall.experiment.reasons.why_not_ready import is_ready
from lastcall.kube.api import PODS, Object, Resource, name_of, namespace_of
from lastcall.kube.client import Client
from lastcall.manifests import Manifest
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

LOOK_SECONDS = 0.05
_NAMED = 3
"""Names in a line about what is missing."""


@dataclass(frozen=True, slots=True)
class Late:
    """An owner that does not have its Pods yet; `wanted` is None while its controller has not said it."""

    what: str
    obj: Object
    ready: int
    wanted: int | None


def late(what: str, resource: Resource, obj: Object, pods: Iterable[Object]) -> Late:
    """Return how far an owner with these Pods is."""
    state = progress(resource, obj, [FollowedPod(each, is_ready(each)) for each in pods])
    return Late(what, obj, state.ready, state.wanted)


async def until_changed(changed: asyncio.Event) -> None:
    """Return when `changed` is set from now on, or a moment later: a condition may have other reasons."""
    changed.clear()
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            await changed.wait()


class ReadinessView(ABC):
    """How to look. Raises StatusError, ConnectionLost."""

    __slots__ = ()

    @property
    @abstractmethod
    def client(self) -> Client: ...

    @abstractmethod
    async def pods(self) -> list[Object]:
        """Return the Pods that are there, with those that are ending."""

    @abstractmethod
    async def late(self) -> list[Late]:
        """Return the owners that are waited for."""

    def failed(self) -> str:
        """Return what will never be ready, whatever its Pods do; "" for nothing."""
        return ""

    def is_hopeless(self, pod: Object) -> bool:
        """Return whether waiting changes nothing. A Pod that the node refused is replaced: no reason to give up."""
        return hopeless_reason(pod) in HOPELESS

    async def pause(self, clock: Clock) -> None:
        """Return when it is worth to look again."""
        await clock.sleep(LOOK_SECONDS)

    async def catch_up(self) -> None:
        """Return when what has happened is known here."""
        return

    async def printed(self, pod: Object) -> list[str]:
        """Return lines on what the containers of a Pod printed, where no record has it."""
        return []


@dataclass(slots=True)
class Followed(ReadinessView):
    """The Pods and owners that a run has created. `drain` waits for the records of what has happened."""

    following: PodFollower
    owners: OwnerFollower
    drain: Callable[[], Awaitable[None]]

    @property
    def client(self) -> Client:
        return self.following.client

    async def pods(self) -> list[Object]:
        return [pod.obj for pod in self.following.pods.values() if not pod.gone]

    async def late(self) -> list[Late]:
        found = []
        for owner in self.owners.owners.values():
            its_pods = [pod for pod in self.following.pods.values() if pod.owner_uid == owner.uid]
            state = progress(owner.resource, owner.obj, its_pods)
            if not owner.gone and not state.settled:
                found.append(Late(owner.what, owner.obj, state.ready, state.wanted))
        return found

    async def ready(self) -> str:
        """Answer "" when all Pods are Ready or have ended, and all owners have theirs; else what is not."""
        names = [each.what for each in await self.late()]
        for pod in self.following.pods.values():
            settled = pod.ready or pod.ended_by_itself or pod.gone or pod.owner_uid
            if not settled or (pod.ended_by_itself and not pod.gone and self.is_hopeless(pod.obj)):
                names.append(pod.key)
        more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
        return f"{', '.join([*names[:_NAMED], *more])} not yet" if names else ""

    def is_hopeless(self, pod: Object) -> bool:
        return bool(hopeless_reason(pod))

    async def pause(self, clock: Clock) -> None:
        await until_changed(self.following.changed)

    async def catch_up(self) -> None:
        await self.client.list(PODS, self.following.namespace)  # a server that is lost is the reason itself
        await self.drain()


@dataclass(slots=True)
class OneWorkload(ReadinessView):
    """A workload as the API has it. `records` grow meanwhile."""

    reach: Callable[[], Client]
    workload: Manifest
    records: Sequence[Record] = ()

    @property
    def client(self) -> Client:
        return self.reach()

    async def pods(self) -> list[Object]:
        """Return the Pods of the workload, by the labels of its template."""
        workload = self.workload.obj
        labels = workload["spec"]["template"]["metadata"].get("labels") or {}
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        return (await self.client.list(PODS, namespace_of(workload), label_selector=selector)).items

    async def late(self) -> list[Late]:
        owner = await self._owner()
        if not await self._missing(owner):
            return []
        what = f"{self.workload.resource.kind} {namespace_of(owner)}/{name_of(owner)}"
        return [late(what, self.workload.resource, owner, await self.pods())]

    async def settled(self) -> str:
        """Answer "" when every replica is of the newest template and Ready, and nothing older is left."""
        return await self._missing(await self._owner())

    async def routed(self) -> str:
        """Answer "" when the node's rules name every Pod."""
        pods = await self.pods()
        routed = {
            record.pod_uid
            for record in self.records
            if record.kind == kinds.ENDPOINT_RULES_WRITTEN
            and record.facts_as(kinds.ENDPOINT_RULES_WRITTEN).get("receives")
        }
        missing = [name_of(pod) for pod in pods if pod["metadata"]["uid"] not in routed]
        return f"{', '.join(missing) or 'no Pod'} not yet" if missing or not pods else ""

    async def over(self) -> str:
        """Answer "" when it is settled, and no Pod is ending."""
        missing = await self.settled()
        leaving = sum("deletionTimestamp" in pod["metadata"] for pod in await self.pods())
        return missing or ("1 Pod ending" if leaving == 1 else f"{leaving} Pods ending" if leaving else "")

    async def _owner(self) -> Object:
        workload = self.workload
        found: Object = await self.client.get(workload.resource, name_of(workload.obj), namespace_of(workload.obj))
        return found

    async def _missing(self, owner: Object) -> str:
        if is_custom(self.workload.resource):
            return why_unsettled(owner, await scaled(self.client, self.workload.resource, owner))
        return unsettled(self.workload.resource, owner)
