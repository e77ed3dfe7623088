"""What is allowed in a Pod and is probably not meant: the texts of `Warning` headers.

Source: pkg/api/pod/warnings.go (what is met in practice of it), the strategies' WarningsOnCreate and WarningsOnUpdate.
"""

from collections.abc import Callable, Iterator
from typing import Any

from lastcall.kube.api import resources as kinds
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_label
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.resources import Resource

_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_HOST = "which can result in surprising behavior; a DNS label is recommended"
_TEMPLATES: dict[Resource, tuple[str, ...]] = {
    kinds.DEPLOYMENTS: ("spec", "template"),
    kinds.REPLICASETS: ("spec", "template"),
    kinds.REPLICATIONCONTROLLERS: ("spec", "template"),
    kinds.STATEFULSETS: ("spec", "template"),
    kinds.DAEMONSETS: ("spec", "template"),
    kinds.JOBS: ("spec", "template"),
    kinds.CRONJOBS: ("spec", "jobTemplate", "spec", "template"),
}
_NAMED_AFTER = (kinds.DEPLOYMENTS, kinds.REPLICASETS, kinds.REPLICATIONCONTROLLERS, kinds.JOBS, kinds.CRONJOBS)


def warnings_on_create(resource: Resource, obj: Object) -> list[str]:
    name = obj["metadata"].get("name") or ""
    if resource is kinds.PODS:
        said = _name(name, "the Pod's hostname")
        return said + pod_warnings(obj.get("spec") or {}, "spec")
    if resource in _OTHERS:
        return _OTHERS[resource](obj)
    if resource not in _TEMPLATES:
        return []
    said = _name(name, "Pod names and hostnames") if resource in _NAMED_AFTER else []
    return said + _template(resource, obj) + _history(resource, obj)


def warnings_on_update(resource: Resource, new: Object, old: Object) -> list[str]:
    """Return the warnings: none of a template if only metadata or status changes, never any of an updated Pod."""
    if resource is kinds.ENDPOINTSLICES or (resource is kinds.CSIDRIVERS and _tokens(new) == _tokens(old)):
        return []
    if resource in _OTHERS:
        return _OTHERS[resource](new)
    if resource not in _TEMPLATES or new["metadata"].get("generation") == old["metadata"].get("generation"):
        return _history(resource, new)
    return _template(resource, new) + _history(resource, new)


def _secret(secret: Object) -> list[str]:
    """What is wrong with the key pair of a TLS Secret. (pkg/registry/core/secret/strategy.go:warningsForSecret)"""
    if secret.get("type") != "kubernetes.io/tls":
        return []
    data = secret.get("data") or {}
    # late: few Secrets are key pairs
    from lastcall.kube.api.pods.key_pairs import why_no_pair

    why = why_no_pair(data.get("tls.crt") or "", data.get("tls.key") or "")
    return [why] if why else []


def _volume(volume: Object) -> list[str]:
    """(pkg/api/persistentvolume/util.go:warningsForPersistentVolumeSpec)"""
    policy = (volume.get("spec") or {}).get("persistentVolumeReclaimPolicy")
    return [_RECYCLED] if policy == "Recycle" else []


def _driver(driver: Object) -> list[str]:
    """(pkg/registry/storage/csidriver/strategy.go:csiDriverWarnings)"""
    spec = driver.get("spec") or {}
    return [_TOKENS] if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None else []


def _tokens(driver: Object) -> Any:
    return (driver.get("spec") or {}).get("tokenRequests") or []


def _node(node: Object) -> list[str]:
    """(pkg/api/node/util.go:GetWarningsForNode; `configSource` was dropped before)"""
    return [_EXTERNAL_ID] if (node.get("spec") or {}).get("externalID") else []


def _service(service: Object) -> list[str]:
    """(pkg/api/service/warnings.go:GetWarningsForService, without the forms of addresses)"""
    spec, said = service.get("spec") or {}, list[str]()
    if spec.get("clusterIP") == "None":
        ignored = (
            ("loadBalancerIP", bool(spec.get("loadBalancerIP"))),
            ("externalIPs", bool(spec.get("externalIPs"))),
            ("SessionAffinity", spec.get("sessionAffinity") not in (None, "None")),
        )
        said += [f"spec.{name} is ignored for headless services" for name, given in ignored if given]
    external = spec.get("type") == "ExternalName"
    if external and spec.get("externalIPs"):
        said.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if not external and spec.get("externalName"):
        said.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        said.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return said


def _endpoint_slice(endpoint_slice: Object) -> list[str]:
    """(pkg/registry/discovery/endpointslice/strategy.go:warnOnDeprecatedAddressType)"""
    deprecated = endpoint_slice.get("addressType") == "FQDN"
    return ["spec.addressType: FQDN endpoints are deprecated"] if deprecated else []


_HISTORY = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"


def _history(resource: Resource, obj: Object) -> list[str]:
    """(pkg/registry/apps/statefulset/strategy.go:WarningsOnCreate)"""
    limit = (obj.get("spec") or {}).get("revisionHistoryLimit")
    return [_HISTORY] if resource is kinds.STATEFULSETS and limit is not None and limit < 0 else []


_EXTERNAL_ID = "spec.externalID: this field is deprecated, and is unused by Kubernetes"


_RECYCLED = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach "
    "is to use dynamic provisioning."
)
_TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)
_OTHERS: dict[Resource, Callable[[Object], list[str]]] = {
    kinds.SECRETS: _secret,
    kinds.PERSISTENTVOLUMES: _volume,
    kinds.CSIDRIVERS: _driver,
    kinds.NODES: _node,
    kinds.SERVICES: _service,
    kinds.ENDPOINTSLICES: _endpoint_slice,
}


def _name(name: str, where: str) -> list[str]:
    problems = is_dns1123_label(name)
    return [f"metadata.name: this is used in {where}, {_HOST}: [{' '.join(problems)}]"] if problems else []


def _template(resource: Resource, obj: Object) -> list[str]:
    template: Any = obj
    for key in _TEMPLATES[resource]:
        template = (template or {}).get(key)
    return pod_warnings((template or {}).get("spec") or {}, ".".join((*_TEMPLATES[resource], "spec")))


def pod_warnings(spec: Object, path: str) -> list[str]:
    """Return the warnings about a Pod's spec at `path`."""
    said = [f"{path}.nodeSelector[{key}]: {_LABELS[key]}" for key in spec.get("nodeSelector") or () if key in _LABELS]
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey") or ""
        if key in _LABELS:
            said.append(f"{at}.topologyKey: {key} is {_LABELS[key]}")
        if constraint.get("labelSelector") is None:
            said.append(f"{at}.labelSelector: {_NO_SELECTOR}")
    for index, volume in enumerate(spec.get("volumes") or ()):
        said += [f"{path}.volumes[{index}].{kind}: {text}" for kind, text in _VOLUMES.items() if volume.get(kind)]
    said += _repeated(spec.get("hostAliases") or (), "ip", f"{path}.hostAliases")
    secrets = spec.get("imagePullSecrets") or ()
    said += _repeated(secrets, "name", f"{path}.imagePullSecrets")
    for index, secret in enumerate(secrets):
        if not secret.get("name"):
            said.append(f'{path}.imagePullSecrets[{index}].name: invalid empty name ""')
    for container, at in _containers(spec, path):
        said += _fractions(container.get("resources") or {}, f"{at}.resources")
        said += _hidden(container.get("env") or (), f"{at}.env")
    said += _ports(spec, path)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        said.append(
            f"{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        )
    return said + _affinity(spec.get("affinity") or {}, f"{path}.affinity")


def _containers(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(group) or ()):
            yield container, f"{path}.{group}[{index}]"


def _repeated(items: Any, key: str, path: str) -> list[str]:
    seen: set[str] = set()
    said: list[str] = []
    for index, item in enumerate(items):
        value = item.get(key) or ""
        if value in seen:
            said.append(f"{path}[{index}].{key}: duplicate {key} {go_quote(value)}")
        seen.add(value)
    return said


def _fractions(resources: Object, path: str) -> list[str]:
    said: list[str] = []
    for name in ("memory", "ephemeral-storage"):
        for group in ("limits", "requests"):
            value = (resources.get(group) or {}).get(name)
            if value is not None and (quantity := parse_quantity(value)).value.denominator != 1:
                text = go_quote(str(quantity))
                said.append(f"{path}.{group}[{name}]: fractional byte value {text} is invalid, must be an integer")
    return said


def _hidden(variables: Any, path: str) -> list[str]:
    """A variable set again, unless its new value is made of the old one."""
    seen: set[str] = set()
    said: list[str] = []
    for index, variable in enumerate(variables):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        made_of_it = variable.get("valueFrom") is None and reference in value and value != reference
        if name in seen and not made_of_it:
            text = f"hides previous definition of {go_quote(name)}, which may be dropped when using apply"
            said.append(f"{path}[{index}]: {text}")
        seen.add(name)
    return said


MOST_PORTS = 100
"""Warnings of ports: of many equal ones each pair is one, and no client gets more than 4096 characters."""


def _ports(spec: Object, path: str) -> list[str]:
    said: list[str] = []
    known: dict[tuple[Any, Any], list[tuple[str, str, int]]] = {}
    for container, at in _containers(spec, path):
        for index, port in enumerate(container.get("ports") or ()):
            here = f"{at}.ports[{index}]"
            address, number = port.get("hostIP") or "", port.get("hostPort") or 0
            others = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
            for there, other_address, other_number in others:
                if len(said) >= MOST_PORTS:
                    return said
                if (address, number) == (other_address, other_number):
                    said.append(f"{here}: duplicate port definition with {there}")
                elif not number or not other_number:
                    said.append(f"{here}: overlapping port definition with {there}")
                elif number == other_number and (not address) is not (not other_address):
                    said.append(f"{here}: dangerously ambiguous port definition with {there}")
            others.append((here, address, number))
    return said


def _affinity(affinity: Object, path: str) -> list[str]:
    said: list[str] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        needed, wished = (f"{when}DuringSchedulingIgnoredDuringExecution" for when in ("required", "preferred"))
        for index, term in enumerate(rules.get(needed) or ()):
            if term.get("labelSelector") is None:
                said.append(f"{path}.{kind}.{needed}[{index}].labelSelector: {_NO_SELECTOR}")
        for index, wish in enumerate(rules.get(wished) or ()):
            if (wish.get("podAffinityTerm") or {}).get("labelSelector") is None:
                said.append(f"{path}.{kind}.{wished}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}")
    return said
