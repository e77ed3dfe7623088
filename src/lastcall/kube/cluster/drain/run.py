"""A drain, performed: the node takes no Pods any more, and those that it has are evicted and waited for.

Source: kubectl pkg/drain/drain.go (RunCordonOrUncordon, evictPods: a budget that says no is asked again after 5 s).
Other than kubectl's, a drain that fails or is cancelled lets the node take Pods again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.kube.api.pods.eviction import eviction
from lastcall.kube.api.resources import DAEMONSETS, NODES, PODS
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.retries import until_answered
from lastcall.kube.cluster.drain.decide import DrainOptions, plan_drain
from lastcall.kube.cluster.errors import ControlError
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass

LOOK_SECONDS = 0.25
"""Between two looks at which Pods are left."""
BLOCKED_SECONDS = 5.0
"""Until an eviction that a budget refused is tried again."""
_UNCORDON_SECONDS = 5.0
"""How long a drain that is given up may take to let the node take Pods again."""

Tell = Callable[[str], None]


@dataclass(slots=True)
class Drain:
    """`run` once. `tell` gets a line for each step. Raises ControlError, and ConnectionLost after a minute without an
    answer."""

    client: Client
    clock: Clock
    node: str
    options: DrainOptions
    tell: Tell
    _due: dict[str, float] = field(default_factory=dict)
    """Uid → when its eviction is asked for next."""
    _blocked: dict[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        was_cordoned = await self._cordon(True)
        try:
            await self._evict_all()
        except BaseException:
            if not was_cordoned:
                with suppress(StatusError, ConnectionLost, TimeoutError):
                    async with asyncio.timeout(_UNCORDON_SECONDS):
                        await self._cordon(False)
            raise

    async def _cordon(self, cordoned: bool) -> bool:
        """Return whether the node took no Pods before."""
        try:
            node = await until_answered(self.clock, lambda: self.client.get(NODES, self.node))
            before = bool(node["spec"].get("unschedulable"))
            if before != cordoned:
                patch = {"spec": {"unschedulable": cordoned or None}}
                await until_answered(self.clock, lambda: self.client.patch(NODES, self.node, patch))
        except StatusError as error:
            if not is_not_found(error):
                raise
            return True  # another client has deleted the Node, and its Pods are still to end
        return before

    async def _evict_all(self) -> None:
        pods = await self.pods()
        sets = (await until_answered(self.clock, lambda: self.client.list(DAEMONSETS))).items
        plan = plan_drain(pods, {(namespace_of(each), name_of(each)) for each in sets}, self.options)
        if why := plan.refusal():
            raise ControlError(f"{self.node} is not drained, and goes on as before: {why}")
        for pod in plan.ignored:
            self.tell(f"{_shown(pod)} stays until the node ends")
        began, left = monotonic(self.clock), {uid_of(pod): pod for pod in plan.evicted}
        while left:
            for uid, pod in left.items():
                if self._due.get(uid, 0.0) <= monotonic(self.clock):
                    await self._evict(pod)
            there = {uid_of(pod) for pod in await self.pods()}
            for uid in [uid for uid in left if uid not in there]:
                self.tell(f"{_shown(left.pop(uid))} is gone")
                self._blocked.pop(uid, None)
            if left and self.options.timeout and monotonic(self.clock) - began >= self.options.timeout:
                raise ControlError(self._too_late(list(left.values())))
            if left:
                await self.clock.sleep(LOOK_SECONDS)

    async def pods(self) -> list[Object]:
        """Return the Pods of the node. Raises ConnectionLost, StatusError."""
        selector = f"spec.nodeName={self.node}"
        return (await until_answered(self.clock, lambda: self.client.list(PODS, field_selector=selector))).items

    async def _evict(self, pod: Object) -> None:
        uid, name, namespace = uid_of(pod), name_of(pod), namespace_of(pod)
        wanted: dict[str, object] = {"preconditions": {"uid": uid}}
        if self.options.grace is not None:
            wanted["gracePeriodSeconds"] = self.options.grace
        body = eviction(name, namespace, wanted)
        try:
            await until_answered(
                self.clock, lambda: self.client.create(PODS, body, namespace, name=name, subresource="eviction")
            )
        except StatusError as error:
            if is_not_found(error) or error.code == 409:  # it, or the Pod that was meant, has gone
                self._due[uid] = float("inf")
                return
            if error.code != 429 and error.code < 500:
                raise ControlError(f"{_shown(pod)} cannot be evicted: {error.message}") from error
            self._due[uid] = monotonic(self.clock) + BLOCKED_SECONDS
            if self._blocked.get(uid) != error.message:
                self._blocked[uid] = error.message
                self.tell(f"{_shown(pod)} cannot be evicted yet: {_cause(error)}")
            return
        self._due[uid] = float("inf")
        self._blocked.pop(uid, None)
        self.tell(f"{_shown(pod)} is evicted")

    def _too_late(self, left: list[Object]) -> str:
        names = ", ".join(_shown(pod) for pod in left)
        why = next((f": {text}" for text in self._blocked.values()), "")
        return (
            f"{self.node} is not drained within {self.options.timeout:g} s, and takes Pods again: {names} "
            f"{'is' if len(left) == 1 else 'are'} left{why}"
        )


def _cause(error: StatusError) -> str:
    causes = (error.status.get("details") or {}).get("causes") or [{}]
    return str(causes[0].get("message") or error.message)


def _shown(pod: Object) -> str:
    return f"{namespace_of(pod)}/{name_of(pod)}"
