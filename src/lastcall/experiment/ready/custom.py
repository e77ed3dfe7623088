"""A workload of a kind that Kubernetes does not have: its Pods by its scale subresource, and how far its controller is.

Its controller is followed, not imitated: what its status says counts where it says something, else what its Pods show.
"""

from collections.abc import Sequence

from lastcall.errors import UserError
from lastcall.experiment.ready.readiness import Replicas
from lastcall.experiment.reasons.why_not_ready import is_ready
from lastcall.kube.api import PODS, Object, Resource, StatusError, annotations_of, is_not_found, name_of, namespace_of
from lastcall.kube.client import Client
from lastcall.world.dataclass import dataclass

_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


@dataclass(frozen=True, slots=True)
class Scaled:
    """A workload by its scale subresource: how many Pods it wants, the selector of its Pods, and those that are there,
    without ended ones."""

    wanted: int
    selector: str
    pods: Sequence[Object]

    @property
    def living(self) -> list[Object]:
        return [each for each in self.pods if "deletionTimestamp" not in each["metadata"]]

    @property
    def ending(self) -> list[Object]:
        return [each for each in self.pods if "deletionTimestamp" in each["metadata"]]


async def scaled(client: Client, resource: Resource, workload: Object) -> Scaled:
    """Look at a workload's Pods. Raises UserError if it has no scale subresource; StatusError, ConnectionLost."""
    name, namespace, what = name_of(workload), namespace_of(workload), f"{resource.kind} {name_of(workload)}"
    try:
        scale: Object = await client.get(resource, name, namespace, subresource="scale")
    except StatusError as error:
        if not is_not_found(error):
            raise
        raise UserError(
            f"{what} has no scale subresource, so how many Pods it wants is not known\n"
            f"fix: add subresources.scale to CustomResourceDefinition {resource.plural}.{resource.group}, or name the "
            "Deployment or StatefulSet below it"
        ) from error
    selector = str((scale.get("status") or {}).get("selector") or "")
    if not selector:
        raise UserError(
            f"{what} does not say which Pods it has: status.selector of its scale subresource is empty\n"
            "fix: set labelSelectorPath of subresources.scale in its CustomResourceDefinition, and the field it names"
        )
    pods = (await client.list(PODS, namespace, label_selector=selector)).items
    there = [each for each in pods if (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
    return Scaled(int((scale.get("spec") or {}).get("replicas") or 0), selector, there)


def why_unsettled(workload: Object, found: Scaled) -> str:
    """Return what its controller has not done yet, "" if all Pods are of the newest template and Ready."""
    status, meta = workload.get("status") or {}, workload["metadata"]
    observed = str(status.get("observedGeneration", ""))  # Argo Rollouts: a text
    seen = not observed.isdecimal() or int(observed) >= int(meta.get("generation") or 0)
    living = found.living
    template = _restarted((workload.get("spec") or {}).get("template") or {})
    new = [each for each in living if _restarted(each) == template]
    updated, ready = len(new), sum(map(is_ready, new))
    if isinstance(status.get("updatedReplicas"), int):
        updated = min(updated, status["updatedReplicas"])
    return Replicas(found.wanted, len(living), updated, ready, seen).missing(found.wanted)


def _restarted(obj: Object) -> str:
    """The annotation that a rollout sets in the template, and that Pods get from it."""
    return str(annotations_of({"metadata": obj.get("metadata") or {}}).get(_RESTARTED_AT, ""))
