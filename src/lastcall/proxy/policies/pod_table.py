"""What the kernel is given for one Pod, and what instead if that cannot be: a Pod is rather closed than open. Pure."""

# check: pure

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lastcall.nftables.state import Fragment
from lastcall.proxy.policies.decide import Labels, PodRules, closed_rules, rules_of
from lastcall.proxy.policies.policy import Policy, PolicyPod
from lastcall.proxy.policies.table import Alias, fragment_of, sets_of

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
class Surroundings:
    """What all Pods of a node are judged by. `sets` are those that Pods have named so far, by their names."""

    policies: Sequence[Policy]
    pods: list[PolicyPod]
    namespaces: Mapping[str, Labels]
    api_server: Alias
    sets: dict[str, Fragment] = field(default_factory=dict)


def pod_table(pod: PolicyPod, around: Surroundings) -> PodTable:
    """Return what the policies mean for a Pod of this node; it is closed if that cannot be said."""
    closed = ISOLATED
    try:
        closed = closed_rules(pod, around.policies)
        shut = fragment_of(pod, closed, around.api_server)
        rules = rules_of(pod, around.policies)
        sets = sets_of(rules, around.pods, around.namespaces, around.sets)
        chains = fragment_of(pod, rules, around.api_server)
    except Exception as error:  # of any kind: what protects other Pods goes on
        shut = fragment_of(pod, closed, around.api_server)
        return PodTable(closed, shut, {}, shut, error)
    around.sets.update(sets)
    return PodTable(rules, chains, sets, shut)
