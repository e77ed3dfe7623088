"""Discovery documents: /api, /apis, group and resource lists, the aggregated form, /version, the root's path list.

All are built once for what is served; `catalog.py` makes new ones when a declared kind comes or goes.

Sources: apiserver pkg/endpoints/discovery, pkg/endpoints/discovery/aggregated, pkg/server/routes/version.go.
"""

# check: asks for kinds because Bindings have a verb only, and Namespaces are found in two places

import base64
import hashlib
from collections.abc import Sequence

import orjson

from lastcall.kube.api.apiservices.local import in_order, priority_of
from lastcall.kube.api.apiservices.routes import Remote
from lastcall.kube.api.features.releases import RELEASES
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import BINDINGS, COMPUTED, REVIEWS, Resource
from lastcall.kube.apiserver.conversions.table import stored_resource
from lastcall.world.dataclass import dataclass

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")

AGGREGATED_VERSIONS = {"1.23": (), "1.27": ("v2beta1",), "1.36": ("v2",), "1.37": ("v2",)}
"""The versions of apidiscovery.k8s.io that each release serves: v2 replaced v2beta1 between 1.30 and 1.35."""

OTHER_PATHS = (
    "/.well-known/openid-configuration", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/openid/v1/jwks",
    "/readyz",
)  # fmt: skip
"""What `/` lists besides the documents of this module."""


@dataclass(frozen=True, slots=True)
class _Subresource:
    """`response_kind` is (group, version, kind) where it is not the parent's."""

    verbs: tuple[str, ...]
    response_kind: tuple[str, str, str] | None = None


_SUBRESOURCES = {
    ("pods", "log"): _Subresource(("get",)),
    **{
        ("pods", name): _Subresource(("create", "get"), ("", "v1", f"Pod{kind}Options"))
        for name, kind in (("exec", "Exec"), ("attach", "Attach"), ("portforward", "PortForward"))
    },
    **{
        (plural, "proxy"): _Subresource(
            ("create", "delete", "get", "patch", "update"), ("", "v1", f"{kind}ProxyOptions")
        )
        for plural, kind in (("pods", "Pod"), ("services", "Service"), ("nodes", "Node"))
    },
    ("pods", "binding"): _Subresource(("create",), ("", "v1", "Binding")),
    ("pods", "eviction"): _Subresource(("create",), ("policy", "v1", "Eviction")),
    ("namespaces", "finalize"): _Subresource(("update",)),
    ("serviceaccounts", "token"): _Subresource(("create",), ("authentication.k8s.io", "v1", "TokenRequest")),
}
_HASHED_AS = {
    ("apiextensions.k8s.io", "customresourcedefinitions"): "v1beta1",
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): "v1beta1",
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): "v1beta1",
}
"""The version that says how a kind is stored, where that is another than the one served."""
_SCALE = _Subresource(STATUS_VERBS, ("autoscaling", "v1", "Scale"))
"""Of every kind that has one, declared ones too."""


def verbs_of(resource: Resource) -> tuple[str, ...]:
    """Return the verbs of the resource itself, in discovery's (alphabetical) order."""
    if resource == BINDINGS or resource in REVIEWS:
        return ("create",)
    if resource in COMPUTED:
        return ("get", "list")
    if resource.plural == "namespaces":
        return tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
    return ALL_VERBS


def _subresource(resource: Resource, name: str) -> _Subresource:
    if name == "scale":
        return _SCALE
    return _SUBRESOURCES.get((resource.plural, name), _Subresource(STATUS_VERBS))


def subresource_verbs(resource: Resource, name: str) -> tuple[str, ...]:
    """Return the verbs of a subresource, in discovery's (alphabetical) order."""
    return _subresource(resource, name).verbs


def response_kind(resource: Resource, subresource: str) -> tuple[str, str, str]:
    """Return (group, version, kind) of what a subresource accepts and answers."""
    return _subresource(resource, subresource).response_kind or (resource.group, resource.version, resource.kind)


class Discovery:
    """Answers by path. `address` is `host:port` as clients should see it in /api; `remote` other servers answer."""

    def __init__(
        self, resources: Sequence[Resource], kubernetes_version: str, address: str = "", remote: Sequence[Remote] = ()
    ) -> None:
        self.minor_version = int(kubernetes_version.split(".")[1])
        self._resources = sorted(resources, key=lambda resource: resource.plural)
        self._remote = {(each.group, each.version): each for each in remote}
        own = {(each.group, each.version): priority_of(each.group, each.version) for each in resources}
        priorities = own | {key: each.priority for key, each in self._remote.items()}
        self._ordered = in_order((*key, priority) for key, priority in priorities.items())
        self._groups = [name for name in self._ordered if name]
        documents: dict[str, Object] = {
            "/api": {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
            },
            "/apis": {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [self._group(name) for name in self._groups],
            },
            "/api/v1": self._resource_list("", "v1"),
            "/version": version_info(kubernetes_version),
        }
        for name in self._groups:
            documents[f"/apis/{name}"] = {"kind": "APIGroup", "apiVersion": "v1", **self._group(name)}
            for version in self._versions(name):
                if (name, version) in self._remote:
                    continue  # its own server answers it
                documents[f"/apis/{name}/{version}"] = {
                    "kind": "APIResourceList",
                    "apiVersion": "v1",
                    **self._resource_list(name, version),
                }
        remote_paths = [f"/apis/{each.group}/{each.version}" for each in remote if each.group]
        documents["/"] = {"paths": sorted([*documents, *remote_paths, *OTHER_PATHS])}
        self.documents = {path: orjson.dumps(document) for path, document in documents.items()}
        self.aggregated = {
            path: {
                version: _with_etag(self._aggregated(groups, version))
                for version in AGGREGATED_VERSIONS[kubernetes_version]
            }
            for path, groups in (("/api", [""]), ("/apis", self._groups))
        }
        """Path → version of apidiscovery.k8s.io → (body, ETag)."""

    def has_group(self, group: str) -> bool:
        return not group or group in self._groups

    def _versions(self, group: str) -> list[str]:
        """The preferred version first."""
        return self._ordered.get(group, [])

    def _group(self, name: str) -> Object:
        versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in self._versions(name)]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _of(self, group: str, version: str) -> list[Resource]:
        return [resource for resource in self._resources if (resource.group, resource.version) == (group, version)]

    def _resource_list(self, group: str, version: str) -> Object:
        entries: list[Object] = []
        for resource in self._of(group, version):
            entries.append(_resource_entry(resource))
            for name in sorted(resource.subresources):
                entries.append(_subresource_entry(resource, name))
        api_version = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "groupVersion": api_version, "resources": entries}

    def _aggregated_version(self, group: str, version: str) -> Object:
        remote = self._remote.get((group, version))
        if remote is None:
            entries = [_aggregated_entry(resource) for resource in self._of(group, version)]
            return {"version": version, "resources": entries, "freshness": "Current"}
        shown: Object = {"version": version}
        if remote.resources:
            shown["resources"] = remote.resources
        return {**shown, "freshness": "Current" if remote.current else "Stale"}

    def _aggregated(self, groups: Sequence[str], api_version: str) -> Object:
        items = [
            {
                "metadata": {"name": group} if group else {},
                "versions": [self._aggregated_version(group, version) for version in self._versions(group)],
            }
            for group in groups
        ]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{api_version}",
            "metadata": {},
            "items": items,
        }


def _resource_entry(resource: Resource) -> Object:
    entry: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": verbs_of(resource),
    }
    if resource.short_names:
        entry["shortNames"] = resource.short_names
    if resource.categories:
        entry["categories"] = resource.categories
    if "get" in verbs_of(resource) and resource not in COMPUTED:
        entry["storageVersionHash"] = _storage_version_hash(resource)
    return entry


def _storage_version_hash(resource: Resource) -> str:
    """Return an equal hash for kinds stored alike: both versions of Event count as core/v1 (StorageVersionHash)."""
    stored = stored_resource(resource)
    version = _HASHED_AS.get((stored.group, stored.plural), stored.version)
    name = f"{stored.group}/{version}/{stored.kind}"
    return base64.b64encode(hashlib.sha256(name.encode()).digest()[:8]).decode()


def _subresource_entry(resource: Resource, name: str) -> Object:
    entry: Object = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
    group, version, kind = response_kind(resource, name)
    if (group, version) != (resource.group, resource.version):
        entry |= {"group": group, "version": version}
    return {**entry, "kind": kind, "verbs": subresource_verbs(resource, name)}


def _response_kind_entry(resource: Resource, name: str) -> Object:
    """Return the entry; group and version are part of it only where they are not the resource's own."""
    group, version, kind = response_kind(resource, name)
    if (group, version) == (resource.group, resource.version):
        group, version = "", ""
    return {"group": group, "version": version, "kind": kind}


def _aggregated_entry(resource: Resource) -> Object:
    entry: Object = {
        "resource": resource.plural,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": verbs_of(resource),
    }
    if resource.short_names:
        entry["shortNames"] = resource.short_names
    if resource.categories:
        entry["categories"] = resource.categories
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": name,
                "responseKind": _response_kind_entry(resource, name),
                "verbs": subresource_verbs(resource, name),
            }
            for name in sorted(resource.subresources)
        ]
    return entry


def _with_etag(document: Object) -> tuple[bytes, str]:
    """(body, ETag): the ETag is the upper-case hex SHA-512 of the JSON, in quotes."""
    body = orjson.dumps(document)
    return body + b"\n", f'"{hashlib.sha512(body).hexdigest().upper()}"'


def version_info(minor_version: str) -> Object:
    """Return /version for `1.23`, `1.27`, … Raises ValueError for a version that is not in `RELEASES`."""
    if minor_version not in RELEASES:
        raise ValueError(f"kubernetes_version {minor_version!r}: must be one of {', '.join(RELEASES)}")
    major, minor = minor_version.split(".")
    info: Object = {"major": major, "minor": minor}
    if int(minor) >= 33:
        info |= {
            "emulationMajor": major,
            "emulationMinor": minor,
            "minCompatibilityMajor": major,
            "minCompatibilityMinor": str(int(minor) - 1),
        }
    return {
        **info,
        "gitVersion": f"v{RELEASES[minor_version]}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "lastcall",
        "platform": "linux/amd64",
    }
