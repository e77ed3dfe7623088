"""Admission of what refers to classes and nodes: RuntimeClass, DefaultIngressClass, PodTopologyLabels. Pure.

Sources: plugin/pkg/admission/{runtimeclass,network/defaultingressclass,podtopologylabels}, pkg/util/tolerations.
"""

# check: pure

from collections.abc import Iterable, Mapping

from lastcall.kube.api.errors import forbidden
from lastcall.kube.api.meta import Object, annotations_of, name_of
from lastcall.kube.api.resource_lists import parse
from lastcall.kube.api.resources import PODS

INGRESS_CLASS = "kubernetes.io/ingress.class"
DEFAULT_INGRESS_CLASS = "ingressclass.kubernetes.io/is-default-class"


def set_runtime_class(pod: Object, runtime_class: Object | None) -> None:
    """Fill in overhead and scheduling of the Pod's class; `runtime_class` is None where there is none of that name.

    Raises the 403 StatusError.
    """
    spec, name = pod["spec"], pod["spec"].get("runtimeClassName")
    if name is not None and runtime_class is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    if (overhead := _overhead(runtime_class)) is not None:
        if spec.get("overhead") and parse(spec["overhead"]) != parse(overhead):
            raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(overhead)
    if scheduling := (runtime_class or {}).get("scheduling"):
        _set_scheduling(pod, scheduling)


def check_overhead(pod: Object, runtime_class: Object | None) -> None:
    """Raise the 403 StatusError of a Pod that is in order and has an overhead which no class gave it.

    (`validateOverhead`)
    """
    if pod["spec"].get("overhead") and _overhead(runtime_class) is None:
        raise _refused(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")


def _overhead(runtime_class: Object | None) -> Object | None:
    return ((runtime_class or {}).get("overhead") or {}).get("podFixed")


def _set_scheduling(pod: Object, scheduling: Object) -> None:
    """(`setScheduling`)"""
    spec = pod["spec"]
    chosen, wanted = spec.get("nodeSelector") or {}, scheduling.get("nodeSelector") or {}
    for key, value in wanted.items():
        if chosen.get(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {chosen[key]}"
            )
            raise _refused(pod, why)
    if wanted:
        spec["nodeSelector"] = {**chosen, **wanted}
    if more := scheduling.get("tolerations"):
        spec["tolerations"] = merge_tolerations(spec.get("tolerations") or [], more)


def _refused(pod: Object, why: str) -> Exception:
    return forbidden(PODS, name_of(pod), why)


def merge_tolerations(first: list[Object], second: list[Object]) -> list[Object]:
    """Merge both lists, without those that another one includes. (`MergeTolerations`)"""
    everything = [*first, *second]
    merged: list[Object] = []
    for number, each in enumerate(everything):
        later = (other for other in everything[number + 1 :] if other != each)
        if not any(includes(other, each) for other in (*merged, *later)):
            merged.append(each)
    return merged


def includes(one: Object, other: Object) -> bool:
    """Return whether `one` tolerates all that `other` does. (`isSuperset`)"""
    if one == other:
        return True
    operator = one.get("operator") or "Equal"
    if one.get("key", "") != other.get("key", "") and (one.get("key") or operator != "Exists"):
        return False
    if one.get("effect") and one["effect"] != other.get("effect"):
        return False
    seconds, its = one.get("tolerationSeconds"), other.get("tolerationSeconds")
    if one.get("effect") == "NoExecute" and seconds is not None and (its is None or its > seconds):
        return False
    if operator == "Exists":
        return True
    return (other.get("operator") or "Equal") == "Equal" and other.get("value", "") == one.get("value", "")


def set_ingress_class(ingress: Object, classes: Iterable[Object]) -> None:
    """Give an Ingress that names no class the default one; of several the newest."""
    spec = ingress["spec"]
    if spec.get("ingressClassName") is not None or INGRESS_CLASS in annotations_of(ingress):
        return
    marked = [each for each in classes if annotations_of(each).get(DEFAULT_INGRESS_CLASS) == "true"]
    if marked:
        newest = max(each["metadata"]["creationTimestamp"] for each in marked)
        spec["ingressClassName"] = min(
            name_of(each) for each in marked if each["metadata"]["creationTimestamp"] == newest
        )


TOPOLOGY_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


def topology_labels(node_labels: Mapping[str, str]) -> dict[str, str]:
    """Return what a Pod gets of its node's labels."""
    return {key: node_labels[key] for key in TOPOLOGY_LABELS if key in node_labels}
