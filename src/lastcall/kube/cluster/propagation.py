"""How long a change of endpoints takes on each hop of its way: what `--propagation` says. Pure.

On one machine it is a millisecond, which hides the race that loses requests in larger clusters. The hops:

- `controller`: a Pod changes → its EndpointSlice is written (kube-controller-manager --endpoint-updates-batch-period);
- `watch`: it is written → a node's proxy sees it;
- `kernel`: the proxy sees it → the kernel's rules change (kube-proxy's minSyncPeriod, and how long a sync takes);
- `balancer`: it is written → a load balancer outside of the cluster sends nothing more.
"""

# check: pure

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType

from lastcall.world.dataclass import dataclass
from lastcall.world.delays import NONE, Delay, parse_delay

HOPS = ("controller", "watch", "kernel", "balancer")

PROFILES: Mapping[str, str] = MappingProxyType(
    {
        # pkg/proxy/apis/config/v1alpha1/defaults.go: MinSyncPeriod 1 s; a change waits for what is left of it.
        "kube-proxy": "kernel=uniform(0s,1s)",
        # ingress-nginx --sync-rate-limit 0.3: not more than one update of the upstreams in 3.3 s.
        "ingress-controller": "balancer=uniform(0s,3.3s)",
        # The health checks of GCE's network load balancer for Services: every 8 s, unhealthy after 3 in a row
        # (k8s.io/cloud-provider-gcp, gce_loadbalancer_internal.go: gceHcCheckIntervalSeconds, gceHcUnhealthyThreshold).
        "cloud-load-balancer": "kernel=uniform(0s,1s),balancer=uniform(16s,24s)",
    }
)
"""Name → the hops that it sets."""


@dataclass(frozen=True, slots=True)
class PropagationPlan:
    """`delays` are by hop, `nodes` those that one node has of its own."""

    text: str = "0s"
    delays: Mapping[str, Delay] = field(default_factory=dict)
    nodes: Mapping[str, Mapping[str, Delay]] = field(default_factory=dict)

    def of(self, hop: str, node: str = "") -> Delay:
        """Return the delay of a hop, on a node where that matters."""
        return self.nodes.get(node, {}).get(hop) or self.delays.get(hop, NONE)

    def most_to(self, source: str) -> float:
        """Return the longest that a change usually takes to reach the senders of requests: `balancer`, or else a node's
        kernel."""
        if source == "balancer":
            return self.of("controller").most + self.of("balancer").most
        nodes = ["", *self.nodes]
        return self.of("controller").most + max(self.of("watch", n).most + self.of("kernel", n).most for n in nodes)

    @property
    def most(self) -> float:
        """Return the longest that a change usually takes to the slowest of its readers, in seconds."""
        return max(self.most_to("node"), self.most_to("balancer"))


def parse_propagation(texts: Sequence[str]) -> PropagationPlan:
    """Return what several `--propagation` say, the later ones above the earlier. Raises ValueError.

    Each is a delay of those who read EndpointSlices, a node's watch or a load balancer (`1s`), hops
    (`watch=1s,kernel=uniform(0s,1s)`), a profile's name, or one of these for one node (`node-2:watch=3s`).
    """
    delays: dict[str, Delay] = {}
    nodes: dict[str, dict[str, Delay]] = {}
    for text in texts:
        node, colon, rest = text.partition(":")
        into = nodes.setdefault(node.strip(), {}) if colon else delays
        into.update(_hops(PROFILES.get((rest if colon else text).strip(), rest if colon else text)))
    return PropagationPlan(", ".join(texts) or "0s", delays, nodes)


def _hops(text: str) -> dict[str, Delay]:
    found: dict[str, Delay] = {}
    alone = ""
    for part in _split(text):
        hop, equals, delay = part.partition("=")
        if not equals:
            hop, delay = "watch", part
            alone = part
        if hop.strip() not in HOPS:
            raise ValueError(f"{hop.strip()!r} is not a hop: {', '.join(HOPS)}; nor a profile: {', '.join(PROFILES)}")
        try:
            found[hop.strip()] = parse_delay(delay)
        except ValueError as error:
            more = "" if equals else f", hops ({', '.join(HOPS)}), or a profile: {', '.join(PROFILES)}"
            raise ValueError(f"{error}{more}") from None
    if alone:
        found.setdefault("balancer", parse_delay(alone))
    return found


def _split(text: str) -> list[str]:
    """At the commas that are in no parentheses."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
