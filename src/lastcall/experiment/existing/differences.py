"""What of a workload's cluster is not here, or is otherwise here, when the workload is brought here. Pure."""

# check: pure

from collections.abc import Iterator, Sequence

from lastcall.endings import said
from lastcall.experiment.not_simulated import Note
from lastcall.kube.api import Object, Resource, copy_object, name_of

ID = "clusterDiffers"

_PLACEMENT = ("nodeSelector", "affinity", "topologySpreadConstraints", "schedulerName", "runtimeClassName", "nodeName")
"""Where Pods may run and who decides it: of nodes, schedulers and runtimes that are not here."""
_PRIORITY = ("priorityClassName", "priority", "preemptionPolicy")
_BUILT_IN_PRIORITIES = ("system-node-critical", "system-cluster-critical")


def fitted(resource: Resource, workload: Object) -> tuple[Object, list[Note]]:
    """Return the cleaned workload as it can run on one node of lastcall, and what was left out for it."""
    fit = copy_object(workload)
    spec = fit["spec"]["template"]["spec"]
    if spec.get("schedulerName") == "default-scheduler":
        del spec["schedulerName"]
    gone = [name for name in _PLACEMENT if spec.pop(name, None)]
    if spec.get("priorityClassName") not in _BUILT_IN_PRIORITIES:
        gone += [name for name in _PRIORITY if spec.pop(name, None) not in (None, 0, "PreemptLowerPriority")]
    notes = [note("placement", what=f"{resource.kind} {name_of(fit)}", fields=", ".join(gone))] if gone else []
    for claim in fit["spec"].get("volumeClaimTemplates") or ():
        notes += fitted_claim(claim)
    return fit, notes


def fitted_claim(claim: Object) -> list[Note]:
    """Change a claim so that the storage here serves it, and return what that means."""
    spec = claim["spec"]
    for name in ("storageClassName", "dataSource", "dataSourceRef", "volumeAttributesClassName", "volumeName"):
        spec.pop(name, None)
    return [of_claim(claim)]


def of_claim(claim: Object) -> Note:
    """Note that a new claim has nothing in it."""
    return note("claim", what=f"PersistentVolumeClaim {name_of(claim)}")


def of_service(there: Object) -> Iterator[Note]:
    """Note how requests reach the Service from outside."""
    kind = there["spec"].get("type")
    if kind in ("LoadBalancer", "NodePort"):
        yield note("outside", what=f"Service {name_of(there)}", kind=kind)


def of_ingresses(ingresses: Sequence[Object], services: set[str]) -> Iterator[Note]:
    """Note the Ingresses that lead to one of the Services."""
    for each in ingresses:
        if services & set(_backends(each)):
            hosts = ", ".join(str(rule.get("host") or "*") for rule in each["spec"].get("rules") or ()) or "*"
            yield note("ingress", what=f"Ingress {name_of(each)}", hosts=hosts)


def of_autoscaler(there: Object, replicas: int) -> Note:
    """Note that the autoscaler has no metrics here."""
    spec = there["spec"]
    facts = {"least": spec.get("minReplicas", 1), "most": spec.get("maxReplicas"), "replicas": replicas}
    return note("autoscaler", what=f"HorizontalPodAutoscaler {name_of(there)}", **facts)


def of_pods(pods: Sequence[Object], template: Object) -> Iterator[Note]:
    """Note what the Pods there show: their nodes, and containers that something puts into them."""
    nodes = {str(pod["spec"]["nodeName"]) for pod in pods if pod["spec"].get("nodeName")}
    if len(nodes) > 1:
        yield note("nodes", count=len(nodes))
    own = {str(each["name"]) for kind in ("initContainers", "containers") for each in template.get(kind) or ()}
    injected = {
        str(each["name"])
        for pod in pods
        for kind in ("initContainers", "containers")
        for each in pod["spec"].get(kind) or ()
    } - own
    if injected:
        yield note("injected", names=", ".join(sorted(injected)))


def note(variant: str, **facts: object) -> Note:
    """Return one difference, as every result has it."""
    return Note(ID, str(facts.get("what", "")), said(ID, variant, **facts))


def _backends(ingress: Object) -> Iterator[str]:
    spec = ingress["spec"]
    backends = [spec.get("defaultBackend") or {}]
    for rule in spec.get("rules") or ():
        backends += [path.get("backend") or {} for path in (rule.get("http") or {}).get("paths") or ()]
    yield from (str((each.get("service") or {}).get("name")) for each in backends)
