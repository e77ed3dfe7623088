"""Enforces NetworkPolicies on one node: follows policies, namespaces and Pods, and keeps the kernel's rules in step.

It runs while there is a NetworkPolicy. Source: the contract of pkg/apis/networking (no implementation is part of
Kubernetes); as kube-network-policies does, connections that stand are left alone.
"""

# check: observes because it wrote the rules
# check: many attributes PolicyAgent because it joins four caches and keeps what the kernel has

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lastcall.kube.api.meta import Object, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import NAMESPACES, NETWORKPOLICIES, PODS, Resource
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import Telling
from lastcall.kube.client.informer import Informer
from lastcall.kube.proxy.policies.decide import PodRules
from lastcall.kube.proxy.policies.first_policy import AttachedPod
from lastcall.kube.proxy.policies.pod_table import PodTable, Surroundings, pod_table
from lastcall.kube.proxy.policies.policy import PodKey, Policy, PolicyPod, closed_policy, parse_pod, parse_policy
from lastcall.kube.proxy.policies.table import Alias
from lastcall.kube.proxy.policies.writer import AGAIN_SECONDS, PolicySink, PolicyWriter
from lastcall.kube.proxy.sink import RuleError
from lastcall.records.kinds import NETWORK_POLICIES_APPLIED
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks, unless
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod as APIPod
    from lastcall.records.definitions.runtime import NetworkPoliciesApplied

COMPONENT = "network policies"
FIRST_BACKOFF, MAX_BACKOFF = 0.1, 30.0
"""Seconds between two tries to write rules that the kernel refused."""

NOT_APPLIED = "NetworkPolicyNotApplied"
"""The reason of Events on policies that cannot be read, and on Pods that cannot have their rules."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """`dns` is the cluster DNS server, which every node answers itself, as the Pod that it is elsewhere."""

    node: str
    api_server: Alias
    dns: PolicyPod


class PolicyAgent:
    """`run` returns when no NetworkPolicy is left, with the table gone; cancelled, the rules stay.

    What cannot be expressed, or is refused by the kernel, closes the Pods that it is about. An Event says so.
    """

    def __init__(
        self,
        *,
        world: World,
        client: Client,
        sink: PolicySink,
        config: PolicyConfig,
        attached: Mapping[str, AttachedPod],
        recorder: Recorder,
        events: Telling,
    ) -> None:
        """`attached` are the node's sandboxes, by their ids, as they are when it is looked at."""
        self._world = world
        self._config = config
        self._attached = attached
        self._recorder = recorder
        self._events = events
        judged = (config.dns.address, config.api_server.service[0], config.api_server.endpoint[0])
        self._writer = PolicyWriter(sink, world.clock, judged)
        self._informers: dict[str, Informer[Any]] = {}
        self._policies: dict[PodKey, Policy] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._pods: dict[PodKey, PolicyPod] = {}
        self._on_node: dict[PodKey, APIPod] = {}
        """Pods of this node as the API has them."""
        self._rules: dict[PodKey, PodRules] = {}
        self._around: Surroundings | None = None
        """At the last look."""
        self._failed: dict[PodKey, str] = {}
        """Pods that are closed because of an error."""
        self._asked = self._written = 0
        self._ended = False
        self._wake = asyncio.Event()
        self._progress = asyncio.Condition()
        self._follow(client, NETWORKPOLICIES, self._policy)
        self._follow(client, NAMESPACES, self._namespace)
        self._follow(client, PODS, self._pod)

    def _follow(self, client: Client, resource: Resource, take: Callable[[PodKey, Object | None], None]) -> None:
        informer: Informer[Any] = Informer(client, resource, world=self._world)
        informer.add_handler(
            lambda obj: take(_key(obj), obj), lambda _, obj: take(_key(obj), obj), lambda obj: take(_key(obj), None)
        )
        self._informers[resource.plural] = informer

    async def run(self) -> None:
        """Keep the rules in step."""
        try:
            async with Tasks() as tasks:
                for name, informer in self._informers.items():
                    tasks.spawn(informer.run(), name=f"{COMPONENT}: informer {name}")
                for informer in self._informers.values():
                    await informer.synced()
                self._look_again()
                await self._write()
                tasks.cancel()
        finally:
            self._ended = True
            async with self._progress:
                self._progress.notify_all()

    async def admit(self) -> None:
        """Wait until the kernel follows the rules for what is attached now."""
        self._look_again()
        wanted = self._asked
        async with self._progress:
            await self._progress.wait_for(lambda: self._ended or self._written >= wanted)

    # News

    def _look_again(self) -> None:
        self._asked += 1
        self._wake.set()

    def _policy(self, key: PodKey, obj: Object | None) -> None:
        old = self._policies.pop(key, None)
        unreadable: Exception | None = None
        if obj is not None:
            try:
                self._policies[key] = parse_policy(obj)
            except Exception as error:
                self._policies[key], unreadable = closed_policy(obj), error
        if self._policies.get(key) != old or old is None:
            self._look_again()
        if obj is not None and unreadable is not None:
            text = f"{crash_guard.text_of(unreadable)}. Until it can be read, nothing is allowed by it"
            self._events.event(obj, "Warning", NOT_APPLIED, text)
            crash_guard.caught(COMPONENT, "/".join(key), unreadable)

    def _namespace(self, key: PodKey, obj: Object | None) -> None:
        labels = dict(labels_of(obj)) if obj is not None else None
        if self._namespaces.get(key[1]) != labels:
            if labels is None:
                self._namespaces.pop(key[1], None)
            else:
                self._namespaces[key[1]] = labels
            self._look_again()

    def _pod(self, key: PodKey, obj: Any) -> None:
        old = self._pods.get(key)
        new = parse_pod(obj) if obj is not None else None
        if obj is not None and (obj.get("spec") or {}).get("nodeName") == self._config.node:
            self._on_node[key] = obj
        else:
            self._on_node.pop(key, None)
        if new is None:
            self._pods.pop(key, None)
        else:
            self._pods[key] = new
        if new != old or any(each.pod == key for each in self._attached.values()):
            self._look_again()

    # Into the kernel

    async def _write(self) -> None:
        backoff = FIRST_BACKOFF
        while True:
            if self._wake.is_set() or not self._writer.refused:
                await self._wake.wait()
            else:
                await unless(self._world.clock.sleep(AGAIN_SECONDS), self._wake)
            self._wake.clear()
            asked = self._asked
            try:
                enforces = await self._sync()
            except Exception as error:
                if not isinstance(error, RuleError):
                    crash_guard.caught(COMPONENT, "", error)
                log.warning("%s: %s; next try in %.1f s", COMPONENT, error, backoff)
                self._wake.set()
                await self._world.clock.sleep(backoff)
                backoff = min(backoff * 2, MAX_BACKOFF)
                continue
            backoff = FIRST_BACKOFF
            async with self._progress:
                self._written = asked
                self._progress.notify_all()
            if not enforces:
                return

    async def _sync(self) -> bool:
        """Return whether there is something to enforce."""
        if not self._policies:
            await self._writer.remove()
            self._tell({})
            return False
        tables = await self._tables(self._all_pods())
        await self._writer.write(tables)
        self._tell({key: table.rules for key, table in tables.items()})
        errors = {key: table.error for key, table in tables.items() if table.error is not None}
        self._tell_errors(errors | self._writer.refused, tables)
        return True

    def _all_pods(self) -> dict[PodKey, PolicyPod]:
        """With addresses that the node knows before the API does; those were other Pods' before."""
        here = {each.pod: each for each in self._attached.values()}
        taken = {each.address for each in here.values()}
        pods = {key: pod for key, pod in self._pods.items() if pod.address not in taken}
        for key, each in here.items():
            # One that cannot be read is isolated by what its sandbox says of it.
            pods[key] = PolicyPod(*key, each.address, each.labels, node=self._config.node)
            with crash_guard.Turn(COMPONENT, "/".join(key)):
                pod = parse_pod(self._on_node[key], each.address) if key in self._on_node else None
                pods[key] = pod or pods[key]
        return pods

    async def _tables(self, pods: Mapping[PodKey, PolicyPod]) -> dict[PodKey, PodTable]:
        """Return those of the isolated Pods of this node. Let others have their turn after each: the kubelet shares
        this loop."""
        policies = [self._policies[key] for key in sorted(self._policies)]
        everybody = [*pods.values(), self._config.dns]
        around = Surroundings(policies, everybody, dict(self._namespaces), self._config.api_server, self._around)
        found = {}
        for key, pod in pods.items():
            if pod.node == self._config.node:
                table = pod_table(pod, around)
                if table.rules != PodRules():
                    found[key] = table
                    await self._world.clock.sleep(0)
        around.after = None
        self._around = around
        return found

    def _tell_errors(self, errors: Mapping[PodKey, Exception], tables: Mapping[PodKey, PodTable]) -> None:
        """Say once of each Pod that it is closed, and why."""
        before, self._failed = self._failed, {key: crash_guard.text_of(error) for key, error in errors.items()}
        uids = {key: uid_of(pod) for key, pod in self._on_node.items()}
        uids |= {each.pod: each.uid for each in self._attached.values()}
        for key, text in self._failed.items():
            if before.get(key) == text:
                continue
            rules = tables[key].rules
            names = ", ".join(dict.fromkeys((*rules.ingress_policies, *rules.egress_policies))) or "unknown"
            meta = {"namespace": key[0], "name": key[1], "uid": uids.get(key, "")}
            pod: Object = {"kind": "Pod", "apiVersion": "v1", "metadata": meta}
            why = f"NetworkPolicies {names} cannot be applied: {text}. Until they can, the Pod is isolated by them"
            self._events.event(pod, "Warning", NOT_APPLIED, f"{why} and nothing is allowed")
            crash_guard.caught(COMPONENT, "/".join(key), errors[key])

    def _tell(self, rules: dict[PodKey, PodRules]) -> None:
        before, self._rules = self._rules, rules
        for each in self._attached.values():
            now = rules.get(each.pod, PodRules())
            if before.get(each.pod, PodRules()) != now:
                facts: NetworkPoliciesApplied = {
                    "ingress": list(now.ingress_policies),
                    "egress": list(now.egress_policies),
                }
                self._recorder.record(NETWORK_POLICIES_APPLIED, pod_uid=each.uid, facts=facts)


def _key(obj: Object) -> PodKey:
    return namespace_of(obj), name_of(obj)
