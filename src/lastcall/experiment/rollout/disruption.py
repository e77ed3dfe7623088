"""What `lastcall rollout` does to a workload under load: update, fewer replicas, deletion, eviction, drain."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lastcall.endings import fix_of, said
from lastcall.errors import UserError, WorldError
from lastcall.experiment.rollout.fields import REPLICAS, RESTARTED_AT, nested, replicas_after
from lastcall.kube.api import (
    DAEMONSETS,
    NODES,
    PODDISRUPTIONBUDGETS,
    PODS,
    Object,
    Resource,
    StatusError,
    eviction,
    is_not_found,
    name_of,
    namespace_of,
)
from lastcall.kube.client import Client, commands_for, missing_right
from lastcall.manifests import Manifest
from lastcall.world.clock import Clock, monotonic, now, rfc3339
from lastcall.world.dataclass import dataclass

LOOK_SECONDS = 0.05
SURE_SECONDS = 2.0
"""A budget that has allowed nothing for so long, with every Pod healthy, never will."""
Change = Callable[[Resource, str, tuple[str, ...], Any], Awaitable[Object]]
"""Sets the field at a path of an object, by kind and name."""
_BUDGET = re.compile(r"The disruption budget (\S+) ")


@dataclass(slots=True)
class Disruption:
    """`begin` once. `timeout` is seconds for an eviction; `waiting` gets what one waits for, with the seconds so far.

    `change` sets a field of the workload, by default without a ledger. `node` is the one that was drained, "" for none.
    """

    client: Client
    clock: Clock
    workload: Manifest
    how: str
    timeout: float
    waiting: Callable[[float, str], None]
    change: Change | None = None
    node: str = ""

    async def begin(self, pods: Sequence[Object]) -> None:
        """Begin the disruption; `pods` are the workload's. Raises UserError, WorldError."""
        workload, pods = self.workload, sorted(pods, key=name_of)
        match self.how:
            case "rollout":
                await self._set(RESTARTED_AT, rfc3339(now(self.clock)))
            case "scale-in":
                if workload.resource == DAEMONSETS:
                    raise UserError("a DaemonSet has no replicas to remove: use --disrupt rollout or delete")
                await self._set(REPLICAS, replicas_after(len(pods)))
            case "delete":
                await self.client.delete(PODS, name_of(pods[0]), namespace_of(workload.obj))
            case "evict":
                await self.evict(pods[0])
            case "drain":
                await self._drain(pods)

    async def _set(self, path: tuple[str, ...], value: Any) -> None:
        workload, name = self.workload, name_of(self.workload.obj)
        if self.change is not None:
            await self.change(workload.resource, name, path, value)
            return
        patch = nested(path, value)
        await self.client.patch(workload.resource, name, patch, namespace_of(workload.obj))

    async def _drain(self, pods: Sequence[Object]) -> None:
        """`kubectl drain` of the node that has the most of the Pods."""
        nodes = [str(pod["spec"].get("nodeName")) for pod in pods]
        self.node = max(sorted(dict.fromkeys(nodes)), key=nodes.count)
        await self.client.patch(NODES, self.node, {"spec": {"unschedulable": True}})
        for pod in pods:
            if pod["spec"].get("nodeName") == self.node:
                await self.evict(pod)

    async def evict(self, pod: Object, options: Object | None = None) -> None:
        """Evict a Pod as kubectl does: retry while a budget refuses, unless it always will.

        `options` are DeleteOptions; a Pod that their precondition does not mean any more has gone. Raises WorldError.
        """
        body = eviction(name_of(pod), namespace_of(pod), options or {})
        began = monotonic(self.clock)
        sure = began + SURE_SECONDS
        while True:
            try:
                await self.client.create(PODS, body, namespace_of(pod), name=name_of(pod), subresource="eviction")
                return
            except StatusError as error:
                if is_not_found(error) or (options and error.code == 409):
                    return
                at = monotonic(self.clock)
                budget = await self._budget(pod, error)
                if not (budget is not None and blocks_for_good(budget)):
                    sure = at + SURE_SECONDS
                if error.code != 429 or at > began + self.timeout or at > sure:
                    raise WorldError(_refused(pod, error, budget)) from error
                self.waiting(at - began, f"{name_of(pod)} to be evicted: {why_blocked(error, budget)}")
            await self.clock.sleep(LOOK_SECONDS)

    async def _budget(self, pod: Object, error: StatusError) -> Object | None:
        """The budget that said no."""
        found = _BUDGET.match(_cause(error))
        if error.code != 429 or found is None:
            return None
        try:
            budget: Object = await self.client.get(PODDISRUPTIONBUDGETS, found[1], namespace_of(pod))
        except StatusError:
            return None
        return budget


def blocks_for_good(budget: Object) -> bool:
    """Return whether a budget allows nothing although all its Pods are healthy: then its spec is the reason."""
    status = budget.get("status") or {}
    seen = (status.get("observedGeneration") or 0) >= (budget["metadata"].get("generation") or 0)
    healthy, expected = status.get("currentHealthy") or 0, status.get("expectedPods") or 0
    return seen and not status.get("disruptionsAllowed") and healthy >= expected > 0


def why_blocked(error: StatusError, budget: Object | None) -> str:
    """Return why an eviction was refused, in words."""
    if budget is not None:
        return said("budgetBlocks", **_facts(budget))
    if "more than one PodDisruptionBudget" in error.message:
        return said("budgetBlocks", "several")
    return _cause(error) or error.message


def _refused(pod: Object, error: StatusError, budget: Object | None) -> str:
    lines = [f"{name_of(pod)} cannot be evicted: {why_blocked(error, budget)}"]
    if budget is not None:
        lines.append(f"  fix: {fix_of('budgetBlocks', **_facts(budget))}")
    elif "more than one PodDisruptionBudget" in error.message:
        lines.append(f"  fix: {fix_of('budgetBlocks', 'several')}")
    elif right := missing_right(error.status):
        lines += [f"  fix, as an administrator: {each}" for each in commands_for([right])]
    return "\n".join(lines)


def _facts(budget: Object) -> dict[str, object]:
    status = budget.get("status") or {}
    return {
        "name": name_of(budget),
        "desired": status.get("desiredHealthy") or 0,
        "healthy": status.get("currentHealthy") or 0,
        "expected": status.get("expectedPods") or 0,
    }


def _cause(error: StatusError) -> str:
    causes = (error.status.get("details") or {}).get("causes") or []
    return next((str(each.get("message")) for each in causes if each.get("reason") == "DisruptionBudget"), "")
