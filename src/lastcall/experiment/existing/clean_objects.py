"""Return an object of a cluster as a user would have written it: without what servers and controllers set. Pure."""

# check: pure

from collections.abc import Mapping

from lastcall.kube.api import PERSISTENTVOLUMECLAIMS, SERVICEACCOUNTS, SERVICES, Object, Resource, copy_object

_KEPT = ("name", "namespace", "labels", "annotations")
"""Of metadata. Owners and finalizers are of there, all else is the server's."""

_SET_BY_OTHERS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "endpoints.kubernetes.io/",
    "kubernetes.io/service-account.uid",
    "pv.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "volume.kubernetes.io/",
    "autoscaling.alpha.kubernetes.io/",
)
"""Annotations that kubectl and controllers keep for themselves, by how they begin."""

_OF_SERVICES = (
    "clusterIPs",
    "externalIPs",
    "healthCheckNodePort",
    "ipFamilies",
    "ipFamilyPolicy",
    "loadBalancerClass",
    "loadBalancerIP",
)
"""Addresses that a Service has been given there."""

_OF_LOAD_BALANCERS = ("allocateLoadBalancerNodePorts", "externalTrafficPolicy", "loadBalancerSourceRanges")


def cleaned(resource: Resource, obj: Object) -> Object:
    """Return a copy to create anew. A Service that is reached from outside becomes one with a cluster address only."""
    clean = copy_object({key: value for key, value in obj.items() if key != "status"})
    clean["apiVersion"], clean["kind"] = resource.api_version, resource.kind
    clean["metadata"] = _metadata(clean["metadata"])
    if template := (clean.get("spec") or {}).get("template"):
        template["metadata"] = _metadata(template.get("metadata") or {})
    if resource == SERVICES:
        _clean_service(clean["spec"])
    if resource == SERVICEACCOUNTS:
        clean.pop("secrets", None)
    if resource == PERSISTENTVOLUMECLAIMS:
        clean["spec"].pop("volumeName", None)
    return clean


def _metadata(meta: Mapping[str, object]) -> Object:
    kept = {key: meta[key] for key in _KEPT if meta.get(key)}
    annotations = kept.get("annotations")
    if isinstance(annotations, dict):
        own = {key: value for key, value in annotations.items() if not key.startswith(_SET_BY_OTHERS)}
        kept["annotations"] = own
        if not own:
            del kept["annotations"]
    return kept


def _clean_service(spec: Object) -> None:
    for name in _OF_SERVICES:
        spec.pop(name, None)
    if spec.get("clusterIP") != "None":
        spec.pop("clusterIP", None)
    if spec.get("type") in ("LoadBalancer", "NodePort"):
        spec["type"] = "ClusterIP"
        for name in _OF_LOAD_BALANCERS:
            spec.pop(name, None)
    for port in spec.get("ports") or ():
        port.pop("nodePort", None)
