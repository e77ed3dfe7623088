"""The service proxy of a node: watches Services, EndpointSlices and its Node, and keeps the kernel's rules in step.

Source: pkg/proxy/nftables/proxier.go. It differs in nothing a packet can see but speed: a change is written when it
comes, without kube-proxy's `minSyncPeriod` of 1 s; `Propagation` puts such delays back.
"""

# check: observes because it sees what the kernel answered
# check: many attributes Proxier because it joins three caches and keeps what the kernel has, as proxier.go does

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lastcall.kube.api.resources import ENDPOINTSLICES, NODES, SERVICES
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import Telling, tell_of_fault
from lastcall.kube.client.informer import Informer
from lastcall.kube.nftables.state import Fragment, Owner, TableState
from lastcall.kube.proxy.conntrack import frontends_to_clean
from lastcall.kube.proxy.counts import ProxyCounts
from lastcall.kube.proxy.endpoints import service_of
from lastcall.kube.proxy.health import HealthServers
from lastcall.kube.proxy.propagation import DelayLine, Propagation
from lastcall.kube.proxy.rules import PortRules
from lastcall.kube.proxy.services import ServiceKey
from lastcall.kube.proxy.sink import RuleError, RuleSink
from lastcall.kube.proxy.slice_records import SeenChange, SliceRecords
from lastcall.kube.proxy.table import answered_here, backends_of, fragment_of, service_chains, skeleton
from lastcall.kube.proxy.topology import Node
from lastcall.kube.proxy.view import ServiceView, View, key_of
from lastcall.records.kinds import RULES_REFUSED
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks, unless
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node as APINode
    from lastcall.kube.api.types.service import EndpointSlice
    from lastcall.kube.api.types.service import Service as APIService
    from lastcall.records.definitions.kube_proxy import RulesRefused

_log = logging.getLogger(__name__)

FIRST_BACKOFF = 0.1
MAX_BACKOFF = 30.0
"""Seconds between two tries to write rules that the kernel refused; 30 s is kube-proxy's full sync."""

COMPONENT = "service proxy"
FAILURES_OF_ALL = 3
"""So often all that has changed is tried in one transaction, before each Service is tried for itself."""
SET_ASIDE_SECONDS = 30.0
"""After so long a Service that the kernel refused is tried again."""
SLICE = 100
"""Services that are looked at before others get their turn."""


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """`node` is what is known before the API answers; `pod_cidr` and `service_cidr` are the whole cluster's.

    `own_addresses` are those of the Service network on which the node itself answers: the cluster DNS server's.
    """

    node: Node
    pod_cidr: str
    service_cidr: str
    own_addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _News:
    """A change that a watch reported: kind, which object, and how it is now (None: gone)."""

    kind: str
    name: tuple[str, str]
    obj: Any
    seen: Sequence[SeenChange] = field(default=())

    def turn(self) -> crash_guard.Turn:
        return crash_guard.Turn(f"{COMPONENT} {self.kind}", "/".join(filter(None, self.name)))


@dataclass(slots=True)
class _UnderWay:
    """What a write changes for one Service: how it was before, and the changes that led to it."""

    before: ServiceView
    changes: list[SeenChange] = field(default_factory=list)


class Proxier:
    """`run` until cancelled; the rules stay. The first write replaces whatever an earlier process left."""

    def __init__(
        self,
        *,
        world: World,
        client: Client,
        recorder: Recorder,
        sink: RuleSink,
        config: ProxyConfig,
        events: Telling,
        propagation: Propagation | None = None,
        health: HealthServers | None = None,
    ) -> None:
        self.propagation = propagation or Propagation()
        self._world = world
        self._recorder = recorder
        self._sink = sink
        self._events = events
        self._health = health
        self._view = View(config.node)
        self._state = TableState(skeleton(config.pod_cidr, config.service_cidr), service_chains)
        self._state.change({("", "own addresses"): answered_here(config.own_addresses)})
        self._records = SliceRecords(world, recorder, config.node.name)
        self._services: Informer[APIService] = Informer(client, SERVICES, world=world)
        self._slices: Informer[EndpointSlice] = Informer(client, ENDPOINTSLICES, world=world)
        self._node: Informer[APINode] = Informer(
            client, NODES, field_selector=f"metadata.name={config.node.name}", world=world
        )
        self._to_proxy: DelayLine[_News] = DelayLine(world, lambda: self.propagation.api_to_proxy, self._arrive)
        self._to_kernel: DelayLine[_News] = DelayLine(world, lambda: self.propagation.proxy_to_kernel, self._take)
        self._wake = asyncio.Event()
        self._unreported: dict[ServiceKey, list[SeenChange]] = {}
        self._written: dict[ServiceKey, ServiceView] = {}
        self._under_way: dict[ServiceKey, _UnderWay] = {}
        self._whole = True
        """The next write replaces the table."""
        self._table_exists = False
        """There is a table of ours in the kernel."""
        self._started = False
        self._set_aside: dict[ServiceKey, None] = {}
        """Services that the kernel did not take."""
        self._counts = ProxyCounts(world.clock)
        world.counted.add(self._counts.families)
        for kind, informer in (("service", self._services), ("slice", self._slices), ("node", self._node)):
            self._follow(kind, informer)

    def _follow(self, kind: str, informer: Informer[Any]) -> None:
        informer.add_handler(
            lambda obj: self._news(_News(kind, key_of(obj), obj)),
            lambda _, obj: self._news(_News(kind, key_of(obj), obj)),
            lambda obj: self._news(_News(kind, key_of(obj), None)),
        )

    async def run(self) -> None:
        """Keep the rules in step until cancelled."""
        async with Tasks() as tasks:
            for name, informer in (("services", self._services), ("slices", self._slices), ("node", self._node)):
                tasks.spawn(informer.run(), name=f"proxy informer {name}")
            for informer in (self._services, self._slices, self._node):
                await informer.synced()
            # What was there before us is old news: it must not wait, or a restarted proxy would forget the rules.
            self._started = True
            self._wake.set()
            tasks.spawn(self._to_proxy.run(), name="API to proxy")
            tasks.spawn(self._to_kernel.run(), name="proxy to kernel")
            tasks.spawn(
                crash_guard.keep_running("service proxy rules", self._write, self._world.clock), name="proxy rules"
            )

    # News on their way

    def _news(self, news: _News) -> None:
        if self._started:
            self._to_proxy.put(news)
        else:
            self._take(self._noted(news))

    def _arrive(self, news: _News) -> None:
        with news.turn():
            self._to_kernel.put(self._noted(news))

    def _noted(self, news: _News) -> _News:
        if news.kind != "slice":
            return news
        service = self._served(news)
        return _News(news.kind, news.name, news.obj, self._records.seen(service, news.name, news.obj))

    def _served(self, news: _News) -> ServiceKey | None:
        service = service_of(news.obj) if news.obj is not None else self._view.service_of_slice(news.name)
        if service is None or self._services.get(*service) is None:
            return None
        return service

    def _take(self, news: _News) -> None:
        with news.turn() as turn:
            self._take_in(news)
        if turn.error is not None and news.obj is not None:
            tell_of_fault(self._events, news.obj, turn.error)

    def _take_in(self, news: _News) -> None:
        self._counts.changed(news.kind)
        match news.kind:
            case "service":
                self._view.put_service(news.name, news.obj)
            case "slice":
                service = self._served(news)
                self._view.put_slice(news.name, news.obj)
                if service is not None:
                    self._unreported.setdefault(service, []).extend(news.seen)
            case "node":
                self._view.put_node(news.obj)
        if self._started and self._view.changed:
            self._wake.set()

    # Into the kernel

    async def _write(self) -> None:
        backoff, failures = FIRST_BACKOFF, 0
        while True:
            if self._wake.is_set() or not self._set_aside:
                await self._wake.wait()
            else:
                await unless(self._world.clock.sleep(SET_ASIDE_SECONDS), self._wake)
            self._wake.clear()
            try:
                began, whole = self._world.clock.monotonic_ns(), self._whole
                await self._sync(one_by_one=failures >= FAILURES_OF_ALL or bool(self._set_aside))
                self._counts.synced(began, whole)
            except Exception as error:
                if not isinstance(error, RuleError):
                    crash_guard.caught(COMPONENT, "", error)
                self._whole = True
                self._wake.set()
                _log.warning("service rules: %s; next try in %.1f s", error, backoff)
                facts: RulesRefused = {"error": str(error), "retryInSeconds": backoff}
                self._recorder.record(RULES_REFUSED, facts=facts)
                await self._world.clock.sleep(backoff)
                backoff, failures = min(backoff * 2, MAX_BACKOFF), failures + 1
            else:
                backoff, failures = FIRST_BACKOFF, 0

    async def _sync(self, *, one_by_one: bool = False) -> None:
        """`one_by_one`: if this is refused, what has changed since the last success is written Service by Service, so
        that one which the kernel does not take, or which cannot be encoded, keeps no other from its rules."""
        fragments: dict[Owner, Fragment] = {}
        for number, key in enumerate([*self._view.take_changed(), *self._set_aside], 1):
            try:
                look = self._view.look(key)
                fragments[key] = fragment_of(look.rules)
            except Exception as error:
                self._caught(key, error)
                look, fragments[key] = ServiceView(), {}
            # Noted before the write: should it fail, this is reported and cleaned up after the next one.
            under_way = self._under_way.setdefault(key, _UnderWay(self._now(key)))
            under_way.changes += self._unreported.pop(key, ())
            if look == ServiceView():
                self._written.pop(key, None)
            else:
                self._written[key] = look
            if number % SLICE == 0:
                await self._world.clock.sleep(0)  # thousands at the start: the kubelet shares this loop
        transaction = self._state.change(fragments)
        if self._whole:
            transaction = self._state.everything()
            if not self._table_exists and not self._has_frontends() and not await self._sink.exists():
                return  # no Service has come yet: the kernel is not asked to track connections
        if transaction:
            try:
                await self._sink.apply(transaction)
            except Exception:
                if not one_by_one:
                    raise
                await self._write_one_by_one({key: fragment_of(self._now(key).rules) for key in self._under_way})
            else:
                self._set_aside = {}
            self._table_exists = True
            self._whole = False
        done, self._under_way = self._under_way, {}
        for key, was in done.items():
            with crash_guard.Turn(COMPONENT, "/".join(key)):
                gets = backends_of(self._now(key).rules)
                self._records.written(key, was.changes, backends_of(was.before.rules), gets)
        await self._forget_udp_flows(done)
        if self._health is not None and any(was.before.health != self._now(key).health for key, was in done.items()):
            with crash_guard.Turn(f"{COMPONENT} health", ""):  # no reason to write the rules again
                await self._health.update({k: v.health for k, v in self._written.items() if v.health is not None})

    async def _write_one_by_one(self, fragments: Mapping[ServiceKey, Fragment]) -> None:
        """First all others, then each of these; one that is refused is set aside and tried again. Raises RuleError."""
        self._state.change({key: {} for key in fragments})
        await self._sink.apply(self._state.everything())
        self._set_aside = {}
        for key, fragment in fragments.items():
            transaction = self._state.change({key: fragment})
            if not transaction:
                continue
            try:
                await self._sink.apply(transaction)
            except Exception as error:
                self._caught(key, error)
                self._state.change({key: {}})
                self._written.pop(key, None)
                self._set_aside[key] = None

    def _caught(self, key: ServiceKey, error: Exception) -> None:
        """Tell that a Service has no rules. The Event is on what the cache has; a Service that is gone has none."""
        if (service := self._services.get(*key)) is not None:
            tell_of_fault(self._events, service, error)
        crash_guard.caught(COMPONENT, "/".join(key), error)

    def _has_frontends(self) -> bool:
        return any(port.frontends for look in self._written.values() for port in look.rules)

    def _now(self, key: ServiceKey) -> ServiceView:
        return self._written.get(key, ServiceView())

    async def _forget_udp_flows(self, done: Mapping[ServiceKey, _UnderWay]) -> None:
        frontends = frontends_to_clean(
            rules
            for key, was in done.items()
            for rules in self._now(key).rules
            if _loses_flows(rules, was.before.rules)
        )
        if frontends:
            try:
                await self._sink.forget_udp_flows(frontends)
            except RuleError as error:
                _log.warning("service rules: UDP flows to endpoints that are gone stay: %s", error)


def _loses_flows(now: PortRules, before: Sequence[PortRules]) -> bool:
    """An endpoint has gone, or the first one has come."""
    old = next((rules for rules in before if rules.name == now.name), None)
    had = old.serving if old is not None else ()
    return bool(now.serving) and (not had or any(address not in now.serving for address in had))
