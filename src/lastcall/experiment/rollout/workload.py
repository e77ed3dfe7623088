"""Which workload of the manifests `lastcall rollout` disrupts; the others are part of the application. Pure."""

# check: pure

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.errors import UserError
from lastcall.kube.api import (
    DAEMONSETS,
    DEPLOYMENTS,
    PODS,
    REPLICASETS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
    name_of,
    namespace_of,
)
from lastcall.manifests import closest

if TYPE_CHECKING:
    from lastcall.manifests import Applied, Manifest

WORKLOADS = (DEPLOYMENTS, STATEFULSETS, DAEMONSETS, REPLICASETS)
_KINDS = "Deployment, StatefulSet, DaemonSet or ReplicaSet"


def of_pod(pod: Object) -> Object:
    """Return a Pod as a workload that has it as its template."""
    return {**pod, "spec": {"template": {"metadata": pod["metadata"], "spec": pod["spec"]}}}


def with_pods(manifests: "Sequence[Manifest]") -> "list[Manifest]":
    """Return the manifests with their Pods as workloads; of those with the same labels one."""
    pods = [replace(each, obj=of_pod(each.obj)) for each in manifests if each.resource == PODS]
    distinct = {tuple(sorted(labels_of(each).items())): each for each in pods}
    return [*(each for each in manifests if each.resource != PODS), *distinct.values()]


def _is_workload(manifest: "Manifest") -> bool:
    return manifest.resource in WORKLOADS or (
        "template" in (manifest.obj.get("spec") or {}) and manifest.resource == PODS
    )


def find_workload(manifests: "Sequence[Manifest]", asked: str, service: str) -> "Manifest":
    """Return the workload that `asked` names (KIND/NAME or NAME).

    Without that the only one; of several the only one that a Service of the manifests (with `service`, that one)
    selects, or that declares its port, too. Raises UserError, which lists those that there are.
    """
    workloads = [each for each in manifests if _is_workload(each)]
    if not workloads:
        raise UserError(
            f"the manifests have no {_KINDS}: there is nothing to send requests to\nfix: add one, and its Service"
        )
    if asked:
        return _asked(workloads, asked)
    if len(workloads) == 1:
        return workloads[0]
    services = [each.obj for each in manifests if each.resource == SERVICES and service in ("", name_of(each.obj))]
    behind = [each for each in workloads if any(selects(one, each.obj) for one in services)]
    serving = [each for each in behind if any(selects(one, each.obj) and declares_port(one, each) for one in services)]
    if len(behind) == 1 or len(serving) == 1:
        return (serving if len(serving) == 1 else behind)[0]
    of = behind or workloads
    names = ", ".join(map(kubectl_name, of))
    how = f"Services select the Pods of {len(behind)} of them" if behind else "no Service selects the Pods of any"
    raise UserError(
        f"the manifests hold {len(workloads)} workloads, and {how}: {names}\n"
        f"fix: choose the one to update, as in --workload {kubectl_name(of[0])}"
    )


def others_of(manifests: "Sequence[Manifest]", workload: "Manifest") -> "list[Manifest]":
    """Return the other workloads of the application."""
    return [each for each in manifests if _is_workload(each) and not is_same(each, workload.obj)]


def is_same(manifest: "Manifest", obj: Object) -> bool:
    """Return whether an object is that of a manifest."""
    own = manifest.obj
    return (manifest.resource.kind, name_of(own), namespace_of(own)) == (obj["kind"], name_of(obj), namespace_of(obj))


def labels_of(manifest: "Manifest") -> dict[str, str]:
    """Return the labels of the workload's Pods."""
    labels: dict[str, str] = manifest.obj["spec"]["template"]["metadata"].get("labels") or {}
    return labels


def selects(service: Object, workload: Object) -> bool:
    """Return whether the Service selects the workload's Pods."""
    selector = service["spec"].get("selector") or {}
    labels = workload["spec"]["template"]["metadata"].get("labels") or {}
    return bool(selector) and namespace_of(service) == namespace_of(workload) and selector.items() <= labels.items()


def declares_port(service: Object, workload: "Manifest") -> bool:
    """Return whether a container of the workload declares a port which the Service sends to."""
    spec = workload.obj["spec"]["template"]["spec"]
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    ports = [port for each in containers for port in each.get("ports") or ()]
    declared = {name for port in ports for name in (port.get("containerPort"), port.get("name"))}
    return any((port.get("targetPort") or port.get("port")) in declared for port in service["spec"].get("ports") or ())


def kubectl_name(manifest: "Manifest | Applied") -> str:
    """Return its name as kubectl has it: `deployment/web`."""
    return f"{manifest.resource.kind.lower()}/{name_of(manifest.obj)}"


def _asked(workloads: "Sequence[Manifest]", asked: str) -> "Manifest":
    kind, slash, name = asked.rpartition("/")
    resource = PODS if kind.lower() in ("pod", "pods", "po") else resource_of(kind)
    there = ", ".join(map(kubectl_name, workloads))
    if slash and resource is None:
        raise UserError(f"--workload {asked}: {kind or 'no kind'} is not a {_KINDS}; the manifests hold {there}")
    found = [each for each in workloads if name_of(each.obj) == name and resource in (None, each.resource)]
    if len(found) == 1:
        return found[0]
    if found:
        where = ", ".join(f"{kubectl_name(each)} in namespace {namespace_of(each.obj)}" for each in found)
        raise UserError(f"--workload {asked} is ambiguous: {where}")
    near = closest(name, [name_of(each.obj) for each in workloads])
    meant = next((f" (did you mean {kubectl_name(each)}?)" for each in workloads if near == name_of(each.obj)), "")
    raise UserError(f"--workload {asked}: not in the manifests{meant}, which hold {there}")


def resource_of(kind: str) -> Resource | None:
    """Return the kind of workload that a user calls so: `deployment`, `deploy`, `deployments.apps`."""
    word, _, group = kind.lower().partition(".")
    for each in WORKLOADS:
        if word in (each.kind.lower(), each.plural, *each.short_names):
            return each if group in ("", each.group, f"{each.version}.{each.group}") else None
    return None
