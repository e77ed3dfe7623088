"""What a workload of a kind that Kubernetes does not have must be like for a rollout. Pure."""

# check: pure

from lastcall.errors import UserError
from lastcall.experiment.rollout.fields import REPLICAS
from lastcall.kube.api import Object, Resource, name_of

_TEMPLATE = ("spec", "template")


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
