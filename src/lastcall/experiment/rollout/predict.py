"""What `rollout --find-safe` expects of the kernel for each kind of load: sessions in virtual time, else a rule.

How the Pods end was measured; real controllers, kubelet and proxy then play the same session with simulated Pods and
requests (`kube/cluster/virtual/tree.py`). One session reports all kinds, so that the searches for their edges share
most of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lastcall.experiment.rollout.embedded import EmbeddedWorkspace
from lastcall.experiment.rollout.session import RolloutSession
from lastcall.experiment.rollout.target import find_target
from lastcall.experiment.rollout.workload import others_of
from lastcall.kube.cluster import PropagationPlan
from lastcall.manifests import Manifest
from lastcall.traffic import Kind, KindEnd, MeasuredEnd, drains, last_safe, short_seconds
from lastcall.world.dataclass import dataclass
from lastcall.world.delays import parse_delay
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.experiment.rollout.options import RolloutOptions
    from lastcall.experiment.rollout.result import Result

VIRTUAL_RATE = 200.0
"""Simulated requests per second of a kind that is alone: one every 5 ms. Of several kinds half as many each."""

_PATIENCE_SECONDS = 86400.0
"""Virtual ones cost nothing; a rollout with sleeps of two minutes takes long."""
_LITTLE = 2
"""Indexes: sessions are noisy, too."""

Lossy = Callable[[int], Mapping[Kind, int]]
"""Index of a value → how many requests of each kind are lost there."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The last index that is safe, -1 for none, for each kind of load."""

    kinds: Mapping[Kind, int]
    how: str
    """`in virtual time`, or `by a rule`."""

    @property
    def last(self) -> int:
        """Return the edge for all kinds together."""
        return min(self.kinds.values())

    @property
    def first_to_lose(self) -> list[Kind]:
        """Return the kinds that are lost at, or a little beyond, that edge."""
        return [kind for kind, index in self.kinds.items() if index <= self.last + _LITTLE]


@dataclass(slots=True)
class Predictor:
    """`end` and `kinds` are measured. `say` reports what cannot be played."""

    options: "RolloutOptions"
    hop: str
    end: MeasuredEnd
    kinds: Sequence[KindEnd]
    say: Callable[[str], None]
    why_rule: str = ""
    _key: bytes = b""

    def predict(
        self,
        count: int,
        session: Callable[[int], tuple[Sequence[Manifest], PropagationPlan]],
        rule: Callable[[int], tuple[float, float | None]],
    ) -> Prediction:
        """Predict the edge of `count` values, the safest first.

        `session` says what to play for one; `rule` its endpoint lag in seconds and its preStop sleep, None for the hook
        there was.
        """

        guessed = self.guess(count, session, rule)
        if not self.why_rule:
            try:
                played = self._search(count, lambda index: self._played(*session(index)), guessed)
                return Prediction(played, "in virtual time")
            except Exception as error:
                while isinstance(error, ExceptionGroup):
                    error = error.exceptions[0]
                self.why_rule = f"{type(error).__name__}: {error}"
                self.say(f"the manifest cannot be played in virtual time, so a rule predicts: {self.why_rule}")
        return Prediction(guessed, "by a rule")

    def guess(
        self,
        count: int,
        session: Callable[[int], tuple[Sequence[Manifest], PropagationPlan]],
        rule: Callable[[int], tuple[float, float | None]],
    ) -> dict[Kind, int]:
        """Predict the same by a rule, which takes no time."""

        def lossy(index: int) -> Mapping[Kind, int]:
            manifests, _ = session(index)
            lag, sleep = rule(index)
            grace = float(grace_of(manifests, self.options))
            return {k.kind: int(short_seconds(self.end, k, lag, grace, sleep) > 0) for k in self.kinds}

        return self._search(count, lossy, {})

    def _search(self, count: int, lossy: Lossy, guessed: Mapping[Kind, int]) -> dict[Kind, int]:
        tried: dict[int, Mapping[Kind, int]] = {}

        def is_safe(kind: Kind, index: int) -> bool:
            if index not in tried:
                tried[index] = lossy(index)
            return not tried[index].get(kind, 0)

        return {each.kind: last_safe(count, partial(is_safe, each.kind), guessed.get(each.kind)) for each in self.kinds}

    def _played(self, manifests: Sequence[Manifest], plan: PropagationPlan) -> Mapping[Kind, int]:
        return self.play(manifests, plan).account.losses

    def play(self, manifests: Sequence[Manifest], plan: PropagationPlan) -> "Result":
        """Play one session in virtual time. Of a distribution of the searched hop it takes the longest."""
        # late: 525 ms, when it is used
        from lastcall.kube.apiserver import new_key_pem
        from lastcall.kube.cluster import VirtualRolloutCluster
        from lastcall.traffic import Behaviour, KindBehaviour, VirtualLoad
        from lastcall.world.virtual import run_virtual

        self._key = self._key or new_key_pem()
        end = self.end
        late = with_lag(plan, self.hop, plan.of(self.hop).most + end.own_lag)
        rate = VIRTUAL_RATE if len(self.kinds) == 1 else VIRTUAL_RATE / 2
        options = replace(
            self.options.with_cluster(propagation=late),
            source="balancer" if self.hop == "balancer" else "node",
            load=replace(self.options.load, rates={each.kind: rate for each in self.kinds}),
            control=0.5,
            settle=0.5,
            timeout=_PATIENCE_SECONDS,
        )
        target = find_target(manifests, options)
        others = others_of(manifests, target.workload)
        manifests = [each for each in manifests if each not in others]
        behaviour = Behaviour(
            end.accepts,
            drains(end, self.kinds),
            ignores=end.killed,
            hook=max(0.0, end.to_term - end.to_hook),
            kinds={each.kind: KindBehaviour(0.0 if each.quick else each.took, each.finished) for each in self.kinds},
        )

        async def main(world: World) -> "Result":
            cluster = VirtualRolloutCluster(
                world,
                target.workload.obj["spec"]["template"],
                behaviour,
                VirtualLoad.to(behaviour),
                late,
                self._key,
                kubernetes_version=options.kubernetes_version,
                nodes=options.nodes,
                node_capacity=options.cluster.node_capacity,
            )
            async with cluster:
                return await RolloutSession(EmbeddedWorkspace(cluster, manifests, target), options, world).run()

        return run_virtual(main)


def grace_of(manifests: Sequence[Manifest], options: "RolloutOptions") -> int:
    """Return terminationGracePeriodSeconds of the workload's Pods."""
    spec = find_target(manifests, options).workload.obj["spec"]["template"]["spec"]
    return int(spec.get("terminationGracePeriodSeconds", 30))


def with_lag(plan: PropagationPlan, hop: str, seconds: float) -> PropagationPlan:
    """Return the plan with this delay of a hop, on all nodes; without those on the way of other requests."""
    text = f"{seconds:g}s"
    nodes = {node: {name: each for name, each in delays.items() if name != hop} for node, delays in plan.nodes.items()}
    others = ("watch", "kernel") if hop == "balancer" else ("balancer",)
    kept = {name: each for name, each in plan.delays.items() if name not in others}
    delays = {**kept, hop: parse_delay(text)}
    hops = ",".join(f"{name}={delay.text}" for name, delay in delays.items())
    return PropagationPlan(text if hops == f"watch={text}" else hops, delays, nodes)
