"""Defaulting: what the API server fills in before anything looks at an object.

Sources: pkg/apis/core/v1/defaults.go and conversion.go, pkg/apis/discovery/v1/defaults.go. Values that need the
cluster (addresses, the token volume, tolerations of admission) are the API server's.
"""

# check: pure

import base64
import re
from collections.abc import Callable, Iterable
from typing import Any

from lastcall.kube.api.defaults import cluster, workloads
from lastcall.kube.api.defaults.volumes import source_defaults
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource

FILE_MODE = 0o644
"""defaultMode of Secret, ConfigMap, downwardAPI and projected volumes."""


def set_defaults(resource: Resource, obj: Object) -> None:
    """Fill in, in place, what the user left out. Doing it twice changes nothing more."""
    defaulter = _DEFAULTERS.get((resource.group, resource.plural))
    if defaulter is not None:
        defaulter(obj)


_PART = "[a-z0-9]+(?:(?:[.]|_|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
    r"(?::[\w][\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
"""An image name. (distribution/reference regexp.go)"""


def image_tag(image: str) -> str:
    """Return the tag of an image name; `latest` when it has neither tag nor digest, "" when it is not an image name.

    (`parsers.ParseImageName`)
    """
    if _IMAGE.fullmatch(image) is None:
        return ""
    name, _, digest = image.partition("@")
    last = name.rsplit("/", 1)[-1]
    tag = last.partition(":")[2]
    return tag or ("" if digest or not name else "latest")


def set_pod_spec_defaults(spec: Object) -> None:
    """Set the defaults that Pods and Pod templates share. (`SetDefaults_PodSpec` and below)"""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.setdefault("terminationGracePeriodSeconds", 30) < 0:
        spec["terminationGracePeriodSeconds"] = 1  # a negative period means the least one
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in _items(spec, "volumes"):
        _volume(volume)
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in _items(spec, group):
            _container(container)
            if spec.get("hostNetwork") and group != "ephemeralContainers":
                for port in _items(container, "ports"):
                    if not port.get("hostPort") and port.get("containerPort"):
                        port["hostPort"] = port["containerPort"]


def _items(parent: Object, key: str) -> Iterable[Object]:
    return (item for item in parent.get(key) or () if isinstance(item, dict))


def _pod(pod: Object) -> None:
    """Of the two fields for addresses the older one has the last word. (`Convert_v1_PodStatus_To_core_PodStatus`)"""
    spec = pod.setdefault("spec", {})
    set_pod_spec_defaults(spec)
    spec.setdefault("enableServiceLinks", True)
    for group in ("initContainers", "containers"):
        for container in _items(spec, group):
            resources = container["resources"]
            if resources.get("limits"):
                requests = resources.setdefault("requests", {})
                for name, quantity in resources["limits"].items():
                    requests.setdefault(name, quantity)
    status = pod.setdefault("status", {})
    one, several = status.get("podIP"), status.get("podIPs")
    if one and (not several or several[0].get("ip") != one):
        status["podIPs"] = [{"ip": one}]
    elif several and several[0].get("ip"):
        status["podIP"] = several[0]["ip"]


def _pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def _container(container: Object) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    container.setdefault("resources", {})
    for port in _items(container, "ports"):
        port.setdefault("protocol", "TCP")
    for variable in _items(container, "env"):
        _value_from(variable.get("valueFrom") or {})
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            _probe(probe)
    lifecycle = container.get("lifecycle")
    if lifecycle is not None:
        for hook in ("postStart", "preStop"):
            _http_get((lifecycle.get(hook) or {}).get("httpGet"))


def _http_get(action: Object | None) -> None:
    if action is not None:
        if not action.get("path"):
            action["path"] = "/"
        if not action.get("scheme"):
            action["scheme"] = "HTTP"


_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def _probe(probe: Object) -> None:
    for key, value in _PROBE.items():
        if not probe.get(key):
            probe[key] = value
    _http_get(probe.get("httpGet"))
    if probe.get("grpc") is not None:
        probe["grpc"].setdefault("service", "")


def _value_from(source: Object) -> None:
    """The fieldRef and resourceFieldRef of an environment variable or a downwardAPI file."""
    if source.get("fieldRef") is not None:
        source["fieldRef"].setdefault("apiVersion", "v1")
    if source.get("resourceFieldRef") is not None:
        source["resourceFieldRef"].setdefault("divisor", "0")


def _volume(volume: Object) -> None:
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for kind in ("secret", "configMap", "downwardAPI", "projected"):
        source = volume.get(kind)
        if source is not None:
            source.setdefault("defaultMode", FILE_MODE)
    if (image := volume.get("image")) is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = _pull_policy(image.get("reference") or "")
    source_defaults(volume)
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        spec = template.setdefault("spec", {})
        if not spec.get("volumeMode"):
            spec["volumeMode"] = "Filesystem"
    for item in _items(volume.get("downwardAPI") or {}, "items"):
        _value_from(item)
    for source in _items(volume.get("projected") or {}, "sources"):
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        for item in _items(source.get("downwardAPI") or {}, "items"):
            _value_from(item)


def _service(service: Object) -> None:
    spec = service.setdefault("spec", {})
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {})
        config.setdefault("clientIP", {}).setdefault("timeoutSeconds", 10800)
    kind = spec["type"] = spec.get("type") or "ClusterIP"
    for port in _items(spec, "ports"):
        port.setdefault("protocol", "TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    external = kind in ("NodePort", "LoadBalancer")
    if external and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if kind in ("ClusterIP", "NodePort", "LoadBalancer") and not spec.get("internalTrafficPolicy"):
        spec["internalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in _items((service.get("status") or {}).get("loadBalancer") or {}, "ingress"):
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")
    service.setdefault("status", {}).setdefault("loadBalancer", {})


def _endpoint_slice(endpoint_slice: Object) -> None:
    for port in _items(endpoint_slice, "ports"):
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")
    for endpoint in _items(endpoint_slice, "endpoints"):
        endpoint.setdefault("conditions", {})


def _namespace(namespace: Object) -> None:
    metadata = namespace.setdefault("metadata", {})
    if metadata.get("name"):
        labels = metadata["labels"] = metadata.get("labels") or {}
        labels.setdefault("kubernetes.io/metadata.name", metadata["name"])
    namespace.setdefault("spec", {})
    status = namespace.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Active"


def _secret(secret: Object) -> None:
    if not secret.get("type"):
        secret["type"] = "Opaque"
    text = secret.pop("stringData", None)
    if text:
        data = secret["data"] = secret.get("data") or {}
        for key, value in text.items():
            data[key] = base64.b64encode(str(value).encode()).decode()


_NODE_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
    "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip


def _node(node: Object) -> None:
    """Of the two fields for ranges the older one has the last word. (`Convert_v1_NodeSpec_To_core_NodeSpec`)"""
    spec = node.setdefault("spec", {})
    one, several = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not several or several[0] != one):
        spec["podCIDRs"] = [one]
    elif several and several[0]:
        spec["podCIDR"] = several[0]
    status = node.setdefault("status", {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {}).setdefault("Port", 0)
    info = status.setdefault("nodeInfo", {})
    for key in _NODE_INFO:
        info.setdefault(key, "")


def _lease(lease: Object) -> None:
    lease.setdefault("spec", {})


def _with_pod_spec(rule: Callable[[Object, Callable[[Object], None]], None]) -> Callable[[Object], None]:
    return lambda obj: rule(obj, set_pod_spec_defaults)


def _definition(definition: Object) -> None:
    """(apiextensions/v1/defaults.go)"""
    spec = definition.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    if kind and not names.get("singular"):
        names["singular"] = kind.lower()
    if kind and not names.get("listKind"):
        names["listKind"] = f"{kind}List"
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    webhook = conversion.get("webhook")
    if webhook is not None and webhook.get("clientConfig") is None and not webhook.get("conversionReviewVersions"):
        del conversion["webhook"]
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None and service.get("port") is None:
        service["port"] = 443
    status = definition.get("status")
    if status is not None and not status.get("storedVersions"):
        stored = [each.get("name") or "" for each in spec.get("versions") or () if each.get("storage")][:1]
        status["storedVersions"] = stored or None


def _api_service(api_service: Object) -> None:
    """(kube-aggregator apiregistration/v1/defaults.go)"""
    reference = (api_service.get("spec") or {}).get("service")
    if reference is not None and reference.get("port") is None:
        reference["port"] = 443


_DEFAULTERS: dict[tuple[str, str], Callable[[Any], None]] = {
    ("", "pods"): _pod,
    ("", "services"): _service,
    ("apiextensions.k8s.io", "customresourcedefinitions"): _definition,
    ("apiregistration.k8s.io", "apiservices"): _api_service,
    ("", "namespaces"): _namespace,
    ("", "secrets"): _secret,
    ("", "nodes"): _node,
    ("discovery.k8s.io", "endpointslices"): _endpoint_slice,
    ("coordination.k8s.io", "leases"): _lease,
    ("apps", "deployments"): _with_pod_spec(workloads.deployment),
    ("apps", "replicasets"): _with_pod_spec(workloads.replica_set),
    ("apps", "statefulsets"): _with_pod_spec(workloads.stateful_set),
    ("apps", "daemonsets"): _with_pod_spec(workloads.daemon_set),
    ("", "replicationcontrollers"): _with_pod_spec(workloads.replication_controller),
    ("", "podtemplates"): _with_pod_spec(workloads.pod_template),
    ("batch", "jobs"): _with_pod_spec(workloads.job),
    ("batch", "cronjobs"): _with_pod_spec(workloads.cron_job),
    ("policy", "poddisruptionbudgets"): workloads.pod_disruption_budget,
    ("autoscaling", "horizontalpodautoscalers"): workloads.horizontal_pod_autoscaler,
    ("scheduling.k8s.io", "priorityclasses"): workloads.priority_class,
    ("networking.k8s.io", "networkpolicies"): workloads.network_policy,
    ("networking.k8s.io", "ingresses"): workloads.ingress,
    ("networking.k8s.io", "ingressclasses"): workloads.ingress_class,
    ("", "endpoints"): workloads.endpoints,
    ("", "persistentvolumeclaims"): workloads.persistent_volume_claim,
    ("", "persistentvolumes"): workloads.persistent_volume,
    ("storage.k8s.io", "volumeattachments"): workloads.volume_attachment,
    ("", "resourcequotas"): workloads.resource_quota,
    ("", "limitranges"): workloads.limit_range,
    ("storage.k8s.io", "storageclasses"): workloads.storage_class,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): cluster.mutating_webhooks,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): cluster.validating_webhooks,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): cluster.admission_policy,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): cluster.admission_policy,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): cluster.admission_policy_binding,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): cluster.admission_policy_binding,
    ("storage.k8s.io", "csidrivers"): cluster.csi_driver,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): cluster.flow_schema,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): cluster.priority_level,
    ("resource.k8s.io", "resourceclaims"): cluster.resource_claim,
    ("resource.k8s.io", "resourceclaimtemplates"): cluster.resource_claim_template,
    ("resource.k8s.io", "resourceslices"): cluster.resource_slice,
    ("rbac.authorization.k8s.io", "rolebindings"): workloads.role_binding,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): workloads.role_binding,
}
