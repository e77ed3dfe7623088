"""What the kernel is given for one Pod, and what instead if that cannot be: a Pod is rather closed than open. Pure.

A large policy takes half a second to read. So Pods that the same policies select share what is made of these, and so
does the next look at the same policies; the same object says in `TableState.change` that nothing has changed.
"""

# check: pure

from collections.abc import Mapping, Sequence
from dataclasses import field

from lastcall.kube.nftables.state import Fragment
from lastcall.kube.proxy.policies.decide import Labels, PodRules, closed_rules, rules_of
from lastcall.kube.proxy.policies.policy import Block, Policy, PolicyPod
from lastcall.kube.proxy.policies.table import Alias, Chains, Meant, chains_of, fragment_of, set_fragment
from lastcall.world.dataclass import dataclass

ISOLATED = PodRules((), ())


@dataclass(frozen=True, slots=True)
class PodTable:
    """`chains` name `sets`. `closed` takes the place of both: it isolates the Pod and allows nothing.

    `error` is why `chains` are `closed` already.
    """

    rules: PodRules
    chains: Fragment
    sets: Mapping[str, Fragment]
    closed: Fragment
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class _Reading:
    """What `policies` mean for the Pods that they select. They are kept, so that their ids stay theirs."""

    policies: Sequence[Policy]
    rules: PodRules
    chains: Chains
    closed: Chains
    error: Exception | None = None


@dataclass(slots=True)
class Surroundings:
    """What all Pods of a node are judged by, at one moment; `after` is the moment before it."""

    policies: Sequence[Policy]
    pods: list[PolicyPod]
    namespaces: Mapping[str, Labels]
    api_server: Alias
    after: "Surroundings | None" = None
    sets: dict[str, Fragment] = field(default_factory=dict)
    """Those that Pods have named so far, by their names."""
    readings: dict[object, _Reading] = field(default_factory=dict)

    def read(self, pod: PolicyPod) -> _Reading:
        selecting = [policy for policy in self.policies if policy.selects(pod)]
        key = tuple(map(id, selecting)), pod.ports
        if key not in self.readings:
            before = self.after.readings.get(key) if self.after is not None else None
            self.readings[key] = before or _read(pod, selecting, self.api_server)
        return self.readings[key]

    def set(self, meant: Meant) -> Fragment:
        """Return a set with its elements. Those of a block never change; those of a Pod peer are read anew."""
        name = meant.set.name
        if name not in self.sets:
            same = self.after.sets.get(name) if self.after is not None and isinstance(meant.peer, Block) else None
            self.sets[name] = same or set_fragment(meant, self.pods, self.namespaces)
        return self.sets[name]


def pod_table(pod: PolicyPod, around: Surroundings) -> PodTable:
    """Return what the policies mean for a Pod of this node; it is closed if that cannot be said."""
    rules, closed = ISOLATED, None
    try:
        reading = around.read(pod)
        rules, closed = reading.rules, fragment_of(pod, reading.closed)
        sets = {meant.set.name: around.set(meant) for meant in reading.chains.sets}
        return PodTable(rules, fragment_of(pod, reading.chains), sets, closed, reading.error)
    except Exception as error:  # of any kind: what protects other Pods goes on
        closed = closed or fragment_of(pod, chains_of(ISOLATED, around.api_server))
        return PodTable(rules, closed, {}, closed, error)


def _read(pod: PolicyPod, policies: Sequence[Policy], api_server: Alias) -> _Reading:
    closed = ISOLATED
    try:
        closed = closed_rules(pod, policies)
        rules = rules_of(pod, policies)
        return _Reading(policies, rules, chains_of(rules, api_server), chains_of(closed, api_server))
    except Exception as error:
        chains = chains_of(closed, api_server)
        return _Reading(policies, closed, chains, chains, error)
