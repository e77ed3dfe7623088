"""NodeRestriction: what a node writes is its own.

The authorizer lets every node write Nodes, Pods, Leases; whose they are is looked at here. It holds for a node's user
whatever else roles give it.

Source: plugin/pkg/admission/noderestriction/admission.go (1.36); the texts are those of a real 1.36.2.
"""

# check: asks for kinds because it has the rules of what a node may write, kind by kind

from collections.abc import Awaitable, Callable

from lastcall.kube.api.claims import claims_used_by
from lastcall.kube.api.errors import forbidden, not_found
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object, annotations_of, labels_of, uid_of
from lastcall.kube.api.pods.references import api_reference, token_audiences
from lastcall.kube.api.resources import (
    LEASES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    SERVICEACCOUNTS,
    Resource,
)
from lastcall.kube.apiserver.admission.reader import Reader
from lastcall.kube.apiserver.auth.authentication import UserInfo, node_of
from lastcall.kube.apiserver.auth.node_graph import MIRROR_ANNOTATION
from lastcall.kube.apiserver.auth.node_rules import LEASE_NAMESPACE, LEASES_ONLY_THERE, ONE_LEASE
from lastcall.kube.apiserver.requestinfo import RequestInfo

Allowed = Callable[[UserInfo, RequestInfo], Awaitable[bool]]

KUBELET_LABELS = frozenset(
    (
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.kubernetes.io/zone",
        "failure-domain.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
    )
)
KUBELET_LABEL_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
"""What a kubelet may set of Kubernetes's own labels (kubelet pkg/apis/well_known_labels.go)."""
RESTRICTED = "node-restriction.kubernetes.io"
WITH_ITSELF = "with spec.nodeName set to itself"
AUDIENCE_VERB = "request-serviceaccounts-token-audience"


class NodeRestriction:
    """The admission plugin that lets a node change only its own objects.

    `reader` reads stored objects. `allowed` decides whether roles grant a permission. All methods raise StatusError to
    refuse a request, and accept all requests of users that are not nodes.
    """

    def __init__(self, reader: Reader, allowed: Allowed) -> None:
        self._get = reader.get
        self._allowed = allowed

    async def create(
        self, user: UserInfo, resource: Resource, obj: Object, namespace: str, *, name: str = "", subresource: str = ""
    ) -> None:
        """Check a creation. `name` is the one in the URL of a subresource."""
        node = self._node(user, resource, name or _shown(obj))
        if node is None:
            return
        why = ""
        if resource == PODS:
            if subresource == "eviction":
                await self._eviction(node, namespace, name)
            else:
                await self._mirror_pod(node, obj)
        elif resource == NODES:
            why = _node_created(node, obj)
        elif resource == LEASES:
            why = _lease_why(node, {"metadata": {"namespace": namespace, "name": _name(obj)}})
        elif resource == PERSISTENTVOLUMECLAIMS:
            why = "may only update PVC status"
        elif resource == SERVICEACCOUNTS and subresource == "token":
            await self._token(node, user, obj, namespace, name)
        if why:
            raise forbidden(resource, name or _shown(obj), why)

    def update(self, user: UserInfo, resource: Resource, new: Object, old: Object, subresource: str) -> None:
        """Check an update. `new` is as the client sent it: fields that the subresource ignores are not restored yet."""
        name = old["metadata"]["name"]
        node = self._node(user, resource, name)
        if node is None:
            return
        why = ""
        if resource == PODS:
            why = _pod_updated(node, new, old, subresource)
        elif resource == NODES:
            why = _node_updated(node, new, old)
        elif resource == LEASES:
            why = _lease_why(node, old)
        elif resource == PERSISTENTVOLUMECLAIMS:
            why = _claim_updated(node, new, old) if subresource == "status" else "may only update PVC status"
        if why:
            raise forbidden(resource, name, why)

    def delete(self, user: UserInfo, resource: Resource, obj: Object) -> None:
        name = obj["metadata"]["name"]
        node = self._node(user, resource, name)
        if node is None:
            return
        why = ""
        if resource == PODS:
            if obj["spec"].get("nodeName") != node:
                why = f'node "{node}" can only delete pods {WITH_ITSELF}'
        elif resource == NODES:
            why = _other_node(node, name)
        elif resource == LEASES:
            why = _lease_why(node, obj)
        elif resource == PERSISTENTVOLUMECLAIMS:
            why = "may only update PVC status"
        if why:
            raise forbidden(resource, name, why)

    @staticmethod
    def _node(user: UserInfo, resource: Resource, name: str) -> str | None:
        node = node_of(user)
        if node == "":
            raise forbidden(resource, name, f"could not determine node from user {go_quote(user.name)}")
        return node

    async def _mirror_pod(self, node: str, pod: Object) -> None:
        """(`admitPodCreate`)"""
        if why := _mirror_pod_why(node, pod):
            raise forbidden(PODS, _shown(pod), why)
        owner = await self._get(NODES, "", node)
        if owner is None:
            raise not_found("node", node)
        given = pod["metadata"]["ownerReferences"][0].get("uid", "")
        if given != uid_of(owner):
            raise forbidden(PODS, _shown(pod), f"node {node} UID mismatch: expected {given} got {uid_of(owner)}")
        if what := api_reference(pod):
            raise forbidden(PODS, _shown(pod), f'node "{node}" can not create pods that reference {what}')

    async def _eviction(self, node: str, namespace: str, name: str) -> None:
        pod = await self._get(PODS, namespace, name)
        if pod is None:
            raise not_found("pod", name)
        if pod["spec"].get("nodeName") != node:
            raise forbidden(PODS, name, f"node {node} can only evict pods {WITH_ITSELF}")

    async def _token(self, node: str, user: UserInfo, request: Object, namespace: str, account: str) -> None:
        """(`admitServiceAccount`)"""
        spec = request.get("spec") or {}
        bound = spec.get("boundObjectRef") or {}
        if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod") or not bound.get("name"):
            raise forbidden(SERVICEACCOUNTS, account, "node requested token not bound to a pod")
        uid = bound.get("uid")
        if not uid:
            raise forbidden(SERVICEACCOUNTS, account, "node requested token with a pod binding without a uid")
        pod = await self._get(PODS, namespace, bound["name"])
        if pod is None:
            raise not_found("pod", bound["name"])
        if uid != uid_of(pod):
            why = (
                f"the UID in the bound object reference ({uid}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise forbidden(SERVICEACCOUNTS, account, why)
        if pod["spec"].get("nodeName") != node:
            raise forbidden(
                SERVICEACCOUNTS, account, "node requested token bound to a pod scheduled on a different node"
            )
        audiences = spec.get("audiences") or ("",)
        if len(audiences) > 1:
            raise forbidden(SERVICEACCOUNTS, account, "node may only request 0 or 1 audiences")
        await self._audience(user, pod, account, audiences[0])

    async def _audience(self, user: UserInfo, pod: Object, account: str, audience: str) -> None:
        """The Pod's volumes name the audience, or a role lets the node ask for it
        (ServiceAccountNodeAudienceRestriction, `validateNodeServiceAccountAudience`)."""
        if audience in token_audiences(pod):
            return
        namespace = pod["metadata"]["namespace"]
        if missing := await self._missing(pod, namespace):
            raise forbidden(SERVICEACCOUNTS, account, f"error validating audience {go_quote(audience)}: {missing}")
        asked = RequestInfo(True, "", AUDIENCE_VERB, "", "v1", namespace, audience, account)
        if not await self._allowed(user, asked):
            why = (
                f"audience {go_quote(audience)} not found in pod spec volume, {user.name} is not authorized to request "
                "tokens for this audience"
            )
            raise forbidden(SERVICEACCOUNTS, account, why)

    async def _missing(self, pod: Object, namespace: str) -> str:
        """What of its volumes cannot be looked at. CSI drivers could ask for tokens; there are none here."""
        claims = {use.volume: use.claim for use in claims_used_by(pod)}
        for volume in pod["spec"].get("volumes") or ():
            source = volume.get("csi")
            if volume["name"] in claims:
                name = claims[volume["name"]]
                claim = await self._get(PERSISTENTVOLUMECLAIMS, namespace, name)
                if claim is None:
                    return f'persistentvolumeclaim "{name}" not found'
                name = claim["spec"].get("volumeName") or ""
                found = await self._get(PERSISTENTVOLUMES, "", name) if name else None
                if found is None:
                    return f'persistentvolume "{name}" not found'
                source = found["spec"].get("csi")
            if source is not None:
                return f'csidriver.storage.k8s.io "{source.get("driver", "")}" not found'
        return ""


def _name(obj: Object) -> str:
    """The name that the client gave; "" when the server made it of `generateName`."""
    meta = obj.get("metadata") or {}
    name, beginning = meta.get("name") or "", meta.get("generateName") or ""
    return "" if beginning and name.startswith(beginning) else name


def _shown(obj: Object) -> str:
    return _name(obj) or (obj.get("metadata") or {}).get("generateName") or "Unknown"


# -- Pods ------------------------------------------------------------------------------------------------------------


def _mirror_pod_why(node: str, pod: Object) -> str:
    if MIRROR_ANNOTATION not in annotations_of(pod):
        return f'pod does not have "{MIRROR_ANNOTATION}" annotation, node "{node}" can only create mirror pods'
    if pod["spec"].get("nodeName") != node:
        return f'node "{node}" can only create pods {WITH_ITSELF}'
    owners = pod["metadata"].get("ownerReferences") or ()
    if len(owners) > 1:
        return f'node "{node}" can only create pods with a single owner reference set to itself'
    owner: Object = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        return f'node "{node}" can only create pods with an owner reference set to itself'
    if not owner.get("controller"):
        return f'node "{node}" can only create pods with a controller owner reference set to itself'
    if owner.get("blockOwnerDeletion"):
        return f'node "{node}" must not set blockOwnerDeletion on an owner reference'
    return ""


def _pod_updated(node: str, new: Object, old: Object, subresource: str) -> str:
    if not subresource:
        return f'unexpected operation "UPDATE", node "{node}" can only create and delete mirror pods'
    if subresource != "status":
        return f"unexpected pod subresource \"{subresource}\", only 'status' and 'eviction' are allowed"
    if old["spec"].get("nodeName") != node:
        return f'node "{node}" can only update pod status for pods {WITH_ITSELF}'
    if labels_of(new) != labels_of(old):
        return f'node "{node}" cannot update labels through pod status'
    status, before = new.get("status") or {}, old.get("status") or {}
    if (status.get("resourceClaimStatuses") or []) != (before.get("resourceClaimStatuses") or []):
        return f'node "{node}" cannot update resource claim statues'
    if status.get("extendedResourceClaimStatus") != before.get("extendedResourceClaimStatus"):
        return f'node "{node}" cannot update extended resource claim status'
    return ""


# -- Nodes, Leases, claims -------------------------------------------------------------------------------------------


def _other_node(node: str, name: str) -> str:
    return "" if name == node else f'node "{node}" is not allowed to modify node "{name}"'


def _node_created(node: str, obj: Object) -> str:
    if why := _other_node(node, _name(obj)):
        return why
    if (obj.get("spec") or {}).get("configSource") is not None:
        return f'node "{node}" is not allowed to create pods with a non-nil configSource'
    if labels := _forbidden_labels(labels_of(obj), {}):
        return f'node "{node}" is not allowed to set the following labels: {labels}'
    return ""


def _node_updated(node: str, new: Object, old: Object) -> str:
    if why := _other_node(node, old["metadata"]["name"]):
        return why
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    source = spec.get("configSource")
    if source is not None and source != before.get("configSource"):
        return f'node "{node}" is not allowed to update configSource to a new non-nil configSource'
    if (spec.get("taints") or []) != (before.get("taints") or []):
        return f'node "{node}" is not allowed to modify taints'
    owners, owners_before = new["metadata"].get("ownerReferences"), old["metadata"].get("ownerReferences")
    if (owners or []) != (owners_before or []):
        return f'node "{node}" is not allowed to modify ownerReferences'
    if labels := _forbidden_labels(labels_of(new), labels_of(old)):
        return f"is not allowed to modify labels: {labels}"
    return ""


def _forbidden_labels(new: dict[str, str], old: dict[str, str]) -> str:
    if new == old:
        return ""
    changed = {key for key in (*new, *old) if new.get(key) != old.get(key)}
    return ", ".join(sorted(key for key in changed if not _may_set(key)))


def _may_set(label: str) -> bool:
    place, slash, _ = label.partition("/")
    if not slash or not _within(place, "kubernetes.io", "k8s.io"):
        return True
    if _within(place, RESTRICTED):
        return False
    return label in KUBELET_LABELS or _within(place, *KUBELET_LABEL_NAMESPACES)


def _within(place: str, *domains: str) -> bool:
    return any(place == domain or place.endswith(f".{domain}") for domain in domains)


def _lease_why(node: str, lease: Object) -> str:
    meta = lease["metadata"]
    if meta.get("namespace") != LEASE_NAMESPACE:
        return LEASES_ONLY_THERE
    return "" if meta["name"] == node else ONE_LEASE


_FREE_METADATA = ("resourceVersion", "managedFields")
_FREE_STATUS = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")


def _claim_updated(node: str, new: Object, old: Object) -> str:
    """Kubernetes ends this text with the difference as Go prints it."""

    def rest(claim: Object) -> Object:
        meta = {key: value for key, value in claim["metadata"].items() if value and key not in _FREE_METADATA}
        status = {key: value for key, value in (claim.get("status") or {}).items() if key not in _FREE_STATUS}
        return {**claim, "metadata": meta, "status": status}

    if rest(new) == rest(old):
        return ""
    return f'node "{node}" is not allowed to update fields other than status.quantity and status.conditions'
