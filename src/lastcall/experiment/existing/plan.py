"""Describe what an experiment will do to an existing cluster, before it does it, and who may say yes. Pure."""

# check: pure

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lastcall.errors import UserError
from lastcall.experiment.existing.ledger import claim_templates
from lastcall.experiment.rollout.fields import replicas_after
from lastcall.kube.api import DAEMONSETS, Object, Resource, name_of
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.manifests import Manifest

RESERVED = "kube-"
"""Namespaces that begin so are Kubernetes's own: a mistake there ends more than an application."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`steps` are what is done, `restored` what is put back afterwards, each a sentence."""

    context: str
    server: str
    namespace: str
    steps: tuple[str, ...]
    restored: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """Return the whole of it, to be read before it is allowed."""
        head = f"In context {self.context} ({self.server}), namespace {self.namespace}, lastcall will"
        found = [head, *(f"  - {step}" for step in self.steps)]
        if self.restored:
            found += ["and afterwards, even after Ctrl-C, will", *(f"  - {each}" for each in self.restored)]
        ledger = f"It first records each change in a ConfigMap there: lastcall cleanup --context {self.context}"
        return [*found, f"{ledger} undoes them even if this process is killed."]


def of_requests(rate: float, entrance: str, image: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (steps, restored) of requests, each a sentence.

    `image` is that of the Pod that sends them, "" for this machine.
    """
    send = f"send {rate:g} requests a second to {entrance}"
    return (
        ((f"create a Pod of image {image}, which sends requests", send), ("delete that Pod",))
        if image
        else ((send,), ())
    )


def check_namespace(namespace: str) -> None:
    """Raise UserError if the namespace is Kubernetes's own."""
    if namespace.startswith(RESERVED):
        raise UserError(
            f"namespace {namespace} is Kubernetes's own: lastcall runs no experiments in {RESERVED}*\n"
            "fix: give a namespace of applications (-n, in Python namespace=)"
        )


def is_allowed(context: str, answer: str) -> bool:
    """Return whether the user said yes: the name of the context, whole."""
    return bool(context) and answer.strip() == context


def check_yes(context: str, given: str) -> None:
    """Raise UserError if `--yes` names another context."""
    if given and not is_allowed(context, given):
        raise UserError(f"--yes={given} confirms context {given}, and this is {context}\nfix: --yes={context}")


def describe_claims(objects: Iterable[Object]) -> list[str]:
    """Return what is restored of the claims that StatefulSets make, a sentence each."""
    return [
        f"delete the claims of StatefulSet {name_of(each)}: whether their volumes are kept depends on the reclaim "
        f"policy of their StorageClass"
        for each in objects
        if claim_templates(each)
    ]


def taken_claims(obj: Object, there: Iterable[str]) -> list[str]:
    """Return claims that exist and that a StatefulSet would take for its own: they hold data of the user's.
    (`stateful_set_utils.go:getPersistentVolumeClaimName`)"""
    prefixes = tuple(
        f"{(each.get('metadata') or {}).get('name') or ''}-{name_of(obj)}-" for each in claim_templates(obj)
    )
    return [name for name in there if name.startswith(prefixes) and name.rpartition("-")[2].isdecimal()]


def of_copy(namespace: str, manifests: Sequence["Manifest"]) -> tuple[str, tuple[str, ...]]:
    """Return (step, restored) of a copy in this cluster."""
    names = ", ".join(f"{each.resource.kind} {name_of(each.obj)}" for each in manifests)
    return f"copy into this namespace from {namespace}, which it only reads: {names}", (
        "delete all of these copies",
        *describe_claims(each.obj for each in manifests),
    )


def check_copy(namespace: str, copy_to: str) -> None:
    """Raise UserError for a namespace that copies cannot go to."""
    check_namespace(copy_to)
    if copy_to == namespace:
        raise UserError(
            f"--copy-to {copy_to}: the workload itself is in that namespace\nfix: use another namespace, an empty one"
        )


def of_rollout(
    resource: Resource, workload: Object, count: int, disrupt: str, ends: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (steps, restored) of a disruption. `ends` is how single Pods are ended: `evict` or `delete`."""
    what = f"{resource.kind} {name_of(workload)}"
    if disrupt == "rollout":
        step = f"roll out {what}: replace its {count_pods(count)}, with an annotation in its Pod template"
        back = f"remove the annotation, which replaces the {count_pods(count)} once more"
        return (step,), (back, "remove the revision that this leaves in the workload's history")
    if disrupt == "scale-in":
        if resource == DAEMONSETS:
            raise UserError("a DaemonSet has no replicas to remove: use --disrupt rollout or delete")
        fewer = replicas_after(count)
        step = f"scale {what} from {count} to {fewer} replicas, which ends {count_pods(count - fewer)}"
        return (step,), (f"scale it to {count} replicas again",)
    how = "evict" if ends == "evict" else "delete"
    return (f"{how} 1 of the {count_pods(count)} of {what}",), ()


def count_pods(count: int) -> str:
    return "1 Pod" if count == 1 else f"{count} Pods"
