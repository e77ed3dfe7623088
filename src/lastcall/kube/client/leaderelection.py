"""Leader election by a Lease: of several candidates one leads, and two never act at once.

Source: client-go tools/leaderelection/leaderelection.go (tryAcquireOrRenew, renew, release), resourcelock/leaselock.go.
No clocks are compared: a candidate counts the lease's duration from when it saw the lease change, on its own monotonic
clock. A leader stops `lease_duration - renew_deadline` seconds before anybody may take over, counted from when it sent
its last successful renewal. What it does is fenced by the same time (`FencedClient`): a process that was stopped for a
while wakes up without the right to write.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import AnyObject, Object, copy_object
from lastcall.kube.api.resources import LEASES, Resource
from lastcall.kube.client.api import Client, ConnectionLost, ListResult, WatchEvent
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic, now, rfc3339_micro
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks, unless
from lastcall.world.world import World

log = logging.getLogger(__name__)

JITTER_FACTOR = 1.2
"""A candidate waits up to this part of the retry period longer, so that candidates do not come all at once."""


class LeadershipLost(Exception):
    """The lease could not be renewed in time, or another candidate holds it."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds; the defaults are kube-controller-manager's. Raises ValueError when they cannot keep two apart."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if self.lease_duration <= self.renew_deadline:
            raise ValueError("lease_duration must be greater than renew_deadline")
        if self.renew_deadline <= JITTER_FACTOR * self.retry_period:
            raise ValueError(f"renew_deadline must be greater than retry_period times {JITTER_FACTOR}")
        if self.lease_duration < 1 or self.retry_period <= 0:
            raise ValueError("lease_duration must be at least 1 s, the others greater than 0")


class LeaderElector:
    """`await elector.run(lead)`: waits for the lease, then runs `lead` while it is held.

    `identity` has to differ between candidates. `on_leader` gets the holder whenever another one is seen.
    """

    def __init__(
        self,
        world: World,
        client: Client,
        *,
        name: str,
        identity: str,
        namespace: str = "kube-system",
        times: LeaseTimes | None = None,
        on_leader: Callable[[str], None] = lambda holder: None,
    ) -> None:
        self._world, self._client = world, client
        self._name, self._namespace, self.identity = name, namespace, identity
        self._times = times or LeaseTimes()
        self._on_leader = on_leader
        self._observed: Object | None = None
        self._observed_at = 0.0
        self._reported_leader = ""
        self._renewed_at: float | None = None

    @property
    def is_leader(self) -> bool:
        """Return whether the lease is held, by the time that is certain: what is not renewed for `renew_deadline` is
        not."""
        return self._renewed_at is not None and self._now() < self._renewed_at + self._times.renew_deadline

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Return when `lead` returns. Raises LeadershipLost after `lead` was cancelled and has ended.

        The lease is given back when this is cancelled or `lead` ends, so that the next one need not wait for it.
        """
        await self._acquire()
        lost = asyncio.Event()
        try:
            async with Tasks() as tasks:
                renewing = tasks.spawn(self._renew(lost), name=f"renew lease {self._name}")
                try:
                    await unless(_ended(lead()), lost)
                finally:
                    renewing.cancel()
            if lost.is_set():
                raise LeadershipLost(f"{self.identity} does not hold the lease {self._namespace}/{self._name} any more")
        finally:
            await self._release()

    def _now(self) -> float:
        return monotonic(self._world.clock)

    # -- the loops ---------------------------------------------------------------------------------------------------

    async def _acquire(self) -> None:
        times = self._times
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(times.renew_deadline):
                    if await self._try():
                        return
            await self._world.clock.sleep(times.retry_period * (1 + self._world.random.random() * JITTER_FACTOR))

    async def _renew(self, lost: asyncio.Event) -> None:
        """Set `lost` when the deadline passes without a renewal, or another candidate holds the lease."""
        while self.is_leader:
            await self._world.clock.sleep(self._times.retry_period)
            assert self._renewed_at is not None
            left = self._renewed_at + self._times.renew_deadline - self._now()
            if left <= 0:
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    if not await self._try() and self._holder() != self.identity:
                        break
        self._renewed_at = None
        lost.set()

    # -- one attempt -------------------------------------------------------------------------------------------------

    async def _try(self) -> bool:
        """Take or renew the lease; False when that is not possible now. (`tryAcquireOrRenew`)"""
        try:
            return await self._try_once()
        except (StatusError, ConnectionLost) as error:
            log.debug("lease %s/%s: %s", self._namespace, self._name, error)
            return False
        except Exception as error:
            crash_guard.caught("leader election", f"{self._namespace}/{self._name}", error)
            return False

    async def _try_once(self) -> bool:
        if self.is_leader and self._observed is not None:
            with suppress(StatusError):  # another candidate wrote it: look
                return await self._write(self._observed)
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except StatusError as error:
            if not is_not_found(error):
                raise
            return await self._write(None)
        self._observe(lease)
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder and holder != self.identity:
            duration = float(spec.get("leaseDurationSeconds") or self._times.lease_duration)
            if self._now() < self._observed_at + duration:
                return False
        return await self._write(lease)

    def _observe(self, lease: Object) -> None:
        """A lease counts from when it was first seen as it is now, whatever time its holder wrote."""
        if self._observed is None or self._observed.get("spec") != lease.get("spec"):
            self._observed_at = self._now()
        self._observed = lease
        holder = self._holder()
        if holder and holder != self._reported_leader:
            self._reported_leader = holder
            self._on_leader(holder)

    def _holder(self) -> str:
        return str(((self._observed or {}).get("spec") or {}).get("holderIdentity") or "")

    async def _write(self, lease: Object | None) -> bool:
        """Write the lease as ours; the version seen is a precondition, so that of two only one succeeds."""
        began = self._now()
        stamp = rfc3339_micro(now(self._world.clock))
        old = (lease or {}).get("spec") or {}
        ours = old.get("holderIdentity") == self.identity
        spec = {
            **old,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self._times.lease_duration),
            "acquireTime": old.get("acquireTime", stamp) if ours else stamp,
            "renewTime": stamp,
            "leaseTransitions": (old.get("leaseTransitions") or 0) + (0 if ours or lease is None else 1),
        }
        if lease is None:
            meta = {"name": self._name, "namespace": self._namespace}
            made = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta, "spec": spec}
            written = await self._client.create(LEASES, made, self._namespace)
        else:
            written = await self._client.update(LEASES, {**copy_object(lease), "spec": spec}, self._namespace)
        self._renewed_at = began
        self._observe(written)
        return True

    async def _release(self) -> None:
        """Let the next one in at once. Only while the lease is certainly ours; what fails, time does. (`release`)

        A renewal that was cut short may have arrived, or arrive yet: the lease is looked at again after a conflict.
        """
        held, self._renewed_at = self.is_leader, None
        if not held:
            return
        with suppress(StatusError, ConnectionLost, TimeoutError):
            async with asyncio.timeout(self._times.retry_period):
                while self._observed is not None and self._holder() == self.identity:
                    try:
                        return await self._give_back(self._observed)
                    except StatusError as error:
                        if not is_conflict(error):
                            raise
                    self._observed = await self._client.get(LEASES, self._name, self._namespace)

    async def _give_back(self, lease: Object) -> None:
        stamp = rfc3339_micro(now(self._world.clock))
        given = copy_object(lease)
        given["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": stamp, "renewTime": stamp}
        await self._client.update(LEASES, given, self._namespace)


async def _ended(work: Awaitable[None]) -> None:
    await work


class FencedClient:
    """A client for a leader's work: reads always, writes only while `may_write()`, ConnectionLost otherwise.

    A write that was sent in time and is still on its way when the lease ends is what no clock can prevent:
    preconditions (resourceVersion, uid) and names do.
    """

    def __init__(self, client: Client, may_write: Callable[[], bool]) -> None:
        self._client = client
        self._may_write = may_write

    def _check(self) -> None:
        if not self._may_write():
            raise ConnectionLost("this process is not the leader: it may write nothing")

    async def get(self, resource: Resource, name: str, namespace: str = "", **options: Any) -> Object:
        return await self._client.get(resource, name, namespace, **options)

    async def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult:
        return await self._client.list(
            resource, namespace, label_selector=label_selector, field_selector=field_selector
        )

    def watch(
        self, resource: Resource, namespace: str = "", **options: Any
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        return self._client.watch(resource, namespace, **options)

    async def create(self, resource: Resource, obj: AnyObject, namespace: str = "", **options: Any) -> Object:
        self._check()
        return await self._client.create(resource, obj, namespace, **options)

    async def update(self, resource: Resource, obj: AnyObject, namespace: str = "", *, subresource: str = "") -> Object:
        self._check()
        return await self._client.update(resource, obj, namespace, subresource=subresource)

    async def patch(self, resource: Resource, name: str, patch: Any, namespace: str = "", **options: Any) -> Object:
        self._check()
        return await self._client.patch(resource, name, patch, namespace, **options)

    async def delete(self, resource: Resource, name: str, namespace: str = "", **options: Any) -> Object:
        self._check()
        return await self._client.delete(resource, name, namespace, **options)

    async def close(self) -> None:
        await self._client.close()
