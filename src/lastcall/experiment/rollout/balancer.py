"""Simulate a load balancer outside of the cluster: it hears late of the ready Pods of a Service.

Ingress controllers and cloud load balancers with Pods for targets read EndpointSlices (or hear of them) and send to
the Pods' addresses themselves: what kube-proxy does is not important for them.
"""

from collections.abc import Callable
from dataclasses import field

from lastcall.kube.api import ENDPOINTSLICES, Object, name_of
from lastcall.kube.client import Client, Informer
from lastcall.kube.proxy import DelayLine
from lastcall.traffic import PodLife, exactly
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.delays import Delay
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

Address = tuple[str, int]


@dataclass(slots=True)
class Balancer:
    """Call `deliver` from `run` with the targets: once at first, then for each change after its delay."""

    world: World
    client: Client
    service: Object
    port: Object
    delay: Delay
    deliver: Callable[[tuple[Address, ...]], None]
    added: dict[str, float] = field(default_factory=dict)
    removed: dict[str, float] = field(default_factory=dict)
    """Address → when it became, and when it stopped being, a target; seconds of the monotonic clock."""
    _now: tuple[Address, ...] = ()

    async def run(self) -> None:
        """Run until cancelled."""
        line = DelayLine(self.world, self._seconds, self._hand_on)
        selector = f"kubernetes.io/service-name={self.service['metadata']['name']}"
        slices = Informer(
            self.client,
            ENDPOINTSLICES,
            namespace=self.service["metadata"]["namespace"],
            label_selector=selector,
            world=self.world,
        )
        async with Tasks() as tasks:
            tasks.spawn(slices.run(), name="balancer's EndpointSlices")
            await slices.synced()
            self._hand_on(self._targets(slices))

            def changed() -> None:
                line.put(self._targets(slices))

            slices.add_handler(lambda _: changed(), lambda *_: changed(), lambda _: changed())
            await line.run()

    def note(self, lives: list[PodLife]) -> None:
        """Put what this balancer did in the place of what the node's proxy did."""
        for life in lives:
            life.routed, life.unrouted = exactly(self.added.get(life.ip)), exactly(self.removed.get(life.ip))
            life.pauses.clear()

    def _seconds(self) -> float:
        return self.delay.seconds(self.world.random, monotonic(self.world.clock))

    def _targets(self, slices: Informer) -> tuple[Address, ...]:
        found: dict[Address, None] = {}
        for each in sorted(slices.items(), key=name_of):
            numbers = [p["port"] for p in each.get("ports") or [] if p.get("name", "") == self.port.get("name", "")]
            for endpoint in each.get("endpoints") or []:
                if (endpoint.get("conditions") or {}).get("ready", True):
                    found.update({(endpoint["addresses"][0], number): None for number in numbers})
        return tuple(found)

    def _hand_on(self, targets: tuple[Address, ...]) -> None:
        at = monotonic(self.world.clock)
        for address, _ in targets:
            if address in self.removed or address not in self.added:
                self.added[address] = at
                self.removed.pop(address, None)
        for address, _ in self._now:
            if all(address != other for other, _ in targets):
                self.removed[address] = at
        self._now = targets
        self.deliver(targets)
