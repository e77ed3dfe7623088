"""A workload of a kind that Kubernetes does not have: its Pods by its scale subresource, and how far its controller is.

Its controller is followed, not imitated: what its status says counts where it says something, else what its Pods show.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lastcall.errors import UserError
from lastcall.experiment.reasons.why_not_ready import is_ready
from lastcall.experiment.rollout.fields import REPLICAS, RESTARTED_AT
from lastcall.kube.api import PODS, Object, Resource, StatusError, annotations_of, is_not_found, name_of, namespace_of
from lastcall.kube.client import Client

_TEMPLATE = ("spec", "template")


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


def check_template(resource: Resource, workload: Object) -> None:
    """Raise UserError if a workload has no Pod template."""
    template = (workload.get("spec") or {}).get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    if not (isinstance(spec, dict) and isinstance(spec.get("containers"), list) and spec["containers"]):
        raise UserError(
            f"{resource.kind} {name_of(workload)} has no Pod template in {'.'.join(_TEMPLATE)}\n"
            "fix: name the workload that has the template of its Pods, such as deployment/web"
        )


def check_scale_in(resource: Resource, workload: Object, wanted: int) -> None:
    """Raise UserError if `spec.replicas` is not what its scale subresource sets."""
    if (workload.get("spec") or {}).get("replicas") != wanted:
        raise UserError(
            f"{resource.kind} {name_of(workload)} does not keep its {wanted} replicas in {'.'.join(REPLICAS)}\n"
            "fix: --disrupt rollout, delete or evict"
        )


def why_unsettled(workload: Object, found: Scaled) -> str:
    """Return what its controller has not done yet, "" if all Pods are of the newest template and Ready."""
    status, meta = workload.get("status") or {}, workload["metadata"]
    seen = str(status.get("observedGeneration", ""))  # Argo Rollouts: a text
    if seen.isdecimal() and int(seen) < int(meta.get("generation") or 0):
        return "its controller has not seen it"
    living, wanted = found.living, found.wanted
    template = _restarted((workload.get("spec") or {}).get("template") or {})
    new = [each for each in living if _restarted(each) == template]
    updated, ready = len(new), sum(map(is_ready, new))
    if isinstance(status.get("updatedReplicas"), int):
        updated = min(updated, status["updatedReplicas"])
    if ready < wanted or updated < wanted or len(living) > wanted:
        old = f", {len(living) - wanted} more to go" if len(living) > wanted else ""
        return f"{ready} of {wanted} Pods are available, {updated} of {wanted} are updated{old}"
    return ""


def _restarted(obj: Object) -> str:
    """The annotation that a rollout sets in the template, and that Pods get from it."""
    return str(annotations_of({"metadata": obj.get("metadata") or {}}).get(RESTARTED_AT[-1], ""))
