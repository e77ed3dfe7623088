"""Describe what is missing when a resource may not be read, and the commands that grant the permission. Pure."""

from dataclasses import replace

from lastcall.kube.api import Resource, StatusError
from lastcall.kube.client import Right, missing_right
from lastcall.world.dataclass import dataclass

MISSED = {
    "events": "what nodes and controllers say about what they do (Killing, a hook that failed, who scaled in)",
    "endpointslices": "when its address left the Services",
    "pods/log": "what its containers printed after the DELETE",
    "namespaces": "whether its namespace was deleted",
    "nodes": "whether its node was lost",
    "poddisruptionbudgets": "which PodDisruptionBudget allowed its eviction",
    "horizontalpodautoscalers": "which HorizontalPodAutoscaler scaled it in",
    "replicasets": "the rollout or the scaling that it ended for",
    "deployments": "the rollout or the scaling that it ended for",
    "statefulsets": "the rollout or the scaling of its StatefulSet",
    "daemonsets": "the rollout of its DaemonSet",
    "jobs": "whether its Job was over",
}
"""Plural (or plural/subresource) → what the story lacks without it."""


@dataclass(frozen=True, slots=True)
class MissingRight:
    """The server refused a request with `message`. `rights` are those that reading it takes, () where the server does
    not say whose they are to be."""

    resource: str
    message: str
    rights: tuple[Right, ...] = ()

    @property
    def missed(self) -> str:
        """Return the words that continue "not known"."""
        return MISSED.get(self.resource, f"what {self.resource} tell")

    @property
    def sentence(self) -> str:
        return f"{self.missed[0].upper()}{self.missed[1:]} is not known: reading {self.resource} is not allowed."


def missing(resource: Resource, error: StatusError, *, subresource: str = "") -> MissingRight:
    """Return what the server's refusal means."""
    name = f"{resource.plural}/{subresource}" if subresource else resource.plural
    right = missing_right(error.status)
    verbs = ("get",) if subresource else ("list", "watch")
    rights = () if right is None else tuple(replace(right, verb=verb, name="") for verb in verbs)
    return MissingRight(name, error.message, rights)
