"""Describe what `run` will do on an existing cluster, and check what it refuses there. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lastcall.errors import UserError
from lastcall.experiment.existing.ledger import is_name
from lastcall.experiment.existing.plan import check_namespace, count_pods, describe_claims, taken_claims
from lastcall.kube.api import (
    DAEMONSETS,
    JOBS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    REPLICATIONCONTROLLERS,
    SERVICES,
    Object,
    Resource,
    labels_of,
    name_of,
    namespace_of,
    selector_of_expressions,
    selector_of_labels,
)
from lastcall.kube.controllers import controller_of
from lastcall.manifests import OWNERS, Manifest


def check_manifests(namespace: str, manifests: Sequence[Manifest]) -> None:
    """Raise UserError, a line each, for what cannot be created in `namespace` and removed without a trace."""
    check_namespace(namespace)
    found = [
        f"{each.place.at()}: {_kind_and_name(each)}: {why}" for each in manifests if (why := refusal(namespace, each))
    ]
    if found:
        raise UserError("\n".join(found))


def refusal(namespace: str, manifest: Manifest) -> str:
    """Return why an object cannot be created and removed without a trace, "" if it can."""
    resource, obj = manifest.resource, manifest.obj
    if not resource.namespaced:
        return (
            "it is cluster-scoped, and on an existing cluster lastcall only creates objects in one namespace: remove it"
        )
    if namespace_of(obj) != namespace:
        return f"its namespace is {namespace_of(obj)}, and the experiment's is {namespace}: give one with -n"
    if not is_name(str(obj["metadata"].get("name") or "")):
        return "it needs a fixed name of lower case letters, digits, - and ., which the ledger records"
    return ""


def planned(manifests: Sequence[Manifest], *, delete: bool, timeout: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (steps, restored) of a run, each a sentence."""
    steps = [
        f"create {', '.join(_with_count(each) for each in manifests)}",
        f"wait until its Pods are Ready, for at most {timeout:g} s",
    ]
    if delete:
        steps.append("delete these Pods, all at the same time")
    else:
        steps.append("evict these Pods, one after another, each when its PodDisruptionBudgets allow it")
    if alone := [name_of(each.obj) for each in manifests if each.resource == PODS]:
        article = "a deleted" if delete else "an evicted"
        steps.append(f"leave {_pods_of(alone)} ended: {article} Pod without an owner does not come back")
    replaced = ", with the Pods that replaced the ended ones" * any(each.resource in OWNERS for each in manifests)
    return tuple(steps), (
        f"delete everything that it created{replaced}",
        *describe_claims(each.obj for each in manifests),
    )


def _pods_of(names: Sequence[str]) -> str:
    return f"Pod {names[0]}" if len(names) == 1 else f"Pods {', '.join(names)}"


def _with_count(manifest: Manifest) -> str:
    if manifest.resource not in OWNERS:
        return _kind_and_name(manifest)
    if manifest.resource == DAEMONSETS:
        return f"{_kind_and_name(manifest)} (a Pod on each node that it fits)"
    spec = manifest.obj.get("spec") or {}
    count = spec.get("parallelism" if manifest.resource == JOBS else "replicas", 1)
    return f"{_kind_and_name(manifest)} ({count_pods(count)})"


def _kind_and_name(manifest: Manifest) -> str:
    return f"{manifest.resource.kind} {manifest.obj['metadata'].get('name') or ''}".strip()


def overlaps(manifests: Sequence[Manifest], there: Mapping[Resource, Sequence[Object]]) -> list[str]:
    """Return what of the namespace would get Pods of the experiment, or lose its own to it, a sentence each.

    Services send their requests to whatever their selector matches, and controllers adopt Pods that match and have no
    controller. (`controller.BaseControllerRefManager`)
    """
    found = []
    ours = list(_labels(manifests))
    alone = [labels_of(each.obj) for each in manifests if each.resource == PODS]
    claims = [name_of(each) for each in there.get(PERSISTENTVOLUMECLAIMS, ())]
    for manifest in manifests:
        if taken := taken_claims(manifest.obj, claims):
            found.append(
                f"{_kind_and_name(manifest)} would use PersistentVolumeClaim {', '.join(taken)}, which already exists"
            )
    for resource, objects in there.items():
        if resource in (PODS, PERSISTENTVOLUMECLAIMS):
            continue
        for obj in objects:
            wanted = (obj.get("spec") or {}).get("selector")
            if not wanted:
                continue
            by_labels = resource in (SERVICES, REPLICATIONCONTROLLERS)
            selector = selector_of_labels(wanted) if by_labels else selector_of_expressions(wanted)
            if not any(selector.matches(labels) for labels in (ours if resource == SERVICES else alone)):
                continue
            does = "would send requests to" if resource == SERVICES else "would adopt"
            found.append(f"{resource.kind} {name_of(obj)}, which already exists, {does} Pods of the experiment")
    for manifest in manifests:
        wanted = (manifest.obj.get("spec") or {}).get("selector")
        if manifest.resource not in OWNERS or not wanted or manifest.resource == JOBS:
            continue
        by_labels = manifest.resource == REPLICATIONCONTROLLERS
        selector = selector_of_labels(wanted) if by_labels else selector_of_expressions(wanted)
        found += [
            f"{_kind_and_name(manifest)} would adopt Pod {name_of(pod)}, which already exists"
            for pod in there.get(PODS, ())
            if not controller_of(pod) and selector.matches(labels_of(pod))
        ]
    return found


def _labels(manifests: Iterable[Manifest]) -> Iterator[Mapping[str, str]]:
    """Of the Pods that the manifests make."""
    for each in manifests:
        if each.resource == PODS:
            yield labels_of(each.obj)
        elif each.resource in OWNERS:
            template = (each.obj.get("spec") or {}).get("template") or {}
            yield (template.get("metadata") or {}).get("labels") or {}
