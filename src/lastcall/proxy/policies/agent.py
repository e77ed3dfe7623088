"""Enforces NetworkPolicies on one node: follows policies, namespaces and Pods, and keeps the kernel's rules in step.

It runs while there is a NetworkPolicy. Source: the contract of pkg/apis/networking (no implementation is part of
Kubernetes); as kube-network-policies does, connections that stand are left alone.
"""

# check: observes because it wrote the rules

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lastcall.api.meta import Object, labels_of, name_of, namespace_of
from lastcall.api.resources import NAMESPACES, NETWORKPOLICIES, PODS, Resource
from lastcall.client.api import Client
from lastcall.client.informer import Informer
from lastcall.nftables.objects import Transaction
from lastcall.nftables.state import Fragment, Owner, TableState
from lastcall.proxy.policies.decide import PodRules, rules_of
from lastcall.proxy.policies.first_policy import AttachedPod
from lastcall.proxy.policies.policy import PodKey, Policy, PolicyPod, parse_pod, parse_policy
from lastcall.proxy.policies.table import Alias, fragment_of, sets_of, skeleton
from lastcall.proxy.sink import RuleError
from lastcall.timeline.kinds import NETWORK_POLICIES_APPLIED
from lastcall.timeline.record import Recorder
from lastcall.world import walls
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.api.types.pod import Pod as APIPod
    from lastcall.timeline.catalogue.records.runtime import NetworkPoliciesApplied

COMPONENT = "network policies"
FIRST_BACKOFF, MAX_BACKOFF = 0.1, 30.0
"""Seconds between two tries to write rules that the kernel refused."""

log = logging.getLogger(__name__)


class PolicySink(Protocol):
    """Makes transactions true; both raise RuleError."""

    async def apply(self, transaction: Transaction) -> None: ...

    async def remove(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """`dns` is the cluster DNS server, which every node answers itself, as the Pod that it is elsewhere."""

    node: str
    api_server: Alias
    dns: PolicyPod


class PolicyAgent:
    """`run` returns when no NetworkPolicy is left, with the table gone; cancelled, the rules stay."""

    def __init__(
        self,
        *,
        world: World,
        client: Client,
        sink: PolicySink,
        config: PolicyConfig,
        attached: Mapping[str, AttachedPod],
        recorder: Recorder,
    ) -> None:
        """`attached` are the node's sandboxes, by their ids, as they are when it is looked at."""
        self._world = world
        self._sink = sink
        self._config = config
        self._attached = attached
        self._recorder = recorder
        judged = (config.dns.address, config.api_server.service[0], config.api_server.endpoint[0])
        self._state = TableState(skeleton(judged))
        self._informers: dict[str, Informer[Any]] = {}
        self._policies: dict[PodKey, Policy] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._pods: dict[PodKey, PolicyPod] = {}
        self._on_node: dict[PodKey, APIPod] = {}
        """Pods of this node as the API has them."""
        self._rules: dict[PodKey, PodRules] = {}
        self._whole = True
        """The next write replaces the table."""
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
        """Return when the kernel goes by the rules for what is attached now."""
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
        if obj is not None:
            self._policies[key] = parse_policy(obj)
        if self._policies.get(key) != old or old is None:
            self._look_again()

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
            await self._wake.wait()
            self._wake.clear()
            asked = self._asked
            try:
                await self._sync()
            except RuleError as error:
                log.warning("%s: %s; next try in %.1f s", COMPONENT, error, backoff)
                self._whole = True
                self._wake.set()
                await self._world.clock.sleep(backoff)
                backoff = min(backoff * 2, MAX_BACKOFF)
                continue
            backoff = FIRST_BACKOFF
            async with self._progress:
                self._written = asked
                self._progress.notify_all()
            if not self._policies:
                return

    async def _sync(self) -> None:
        if not self._policies:
            await self._sink.remove()
            self._tell({})
            return
        pods = self._all_pods()
        rules = self._rules_now(pods)
        wanted: dict[Owner, Fragment] = {
            ("pod", *key): fragment_of(pods[key], each, self._config.api_server) for key, each in rules.items()
        }
        everybody = [*pods.values(), self._config.dns]
        wanted |= {("set", name): each for name, each in sets_of(rules.values(), everybody, self._namespaces).items()}
        gone: dict[Owner, Fragment] = {owner: {} for owner in self._state.owners() if owner not in wanted}
        transaction = self._state.change(gone | wanted)
        if self._whole:
            transaction = self._state.everything()
        if transaction:
            await self._sink.apply(transaction)
        self._whole = False
        self._tell(rules)

    def _all_pods(self) -> dict[PodKey, PolicyPod]:
        """With addresses that the node knows before the API does; those were other Pods' before."""
        here = {each.pod: each for each in self._attached.values()}
        taken = {each.address for each in here.values()}
        pods = {key: pod for key, pod in self._pods.items() if pod.address not in taken}
        for key, each in here.items():
            pod = parse_pod(self._on_node[key], each.address) if key in self._on_node else None
            pods[key] = pod or PolicyPod(*key, each.address, each.labels, node=self._config.node)
        return pods

    def _rules_now(self, pods: Mapping[PodKey, PolicyPod]) -> dict[PodKey, PodRules]:
        """Of the isolated Pods of this node."""
        policies = [self._policies[key] for key in sorted(self._policies)]
        found = {}
        for key, pod in pods.items():
            if pod.node != self._config.node:
                continue
            with walls.Turn(COMPONENT, "/".join(key)):
                rules = rules_of(pod, policies)
                if rules != PodRules():
                    found[key] = rules
        return found

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
