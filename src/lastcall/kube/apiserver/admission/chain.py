"""Admission: what is checked and filled in between defaulting and validation.

NamespaceLifecycle for every namespaced kind; ServiceAccount, Priority (`priority.py`) and
DefaultTolerationSeconds for Pods; TaintNodesByCondition for Nodes; RuntimeClass, DefaultIngressClass and
PodTopologyLabels (`classes.py`) where there is something to do; for volumes see `storage.py`, for
writers of roles and bindings `auth/escalation.py`, for what nodes write `node_restriction.py`. What a namespace's
LimitRanges (`limits.py`), PodSecurity labels (`pod_security/decide.py`) and ResourceQuotas (`quota.py`)
say is imported where there is one.

Sources: apiserver pkg/admission/plugin/namespace/lifecycle, plugin/pkg/admission/{serviceaccount,
defaulttolerationseconds,nodetaint}.
"""

# check: asks for kinds because a resize of a Pod gets its own limits from LimitRanges

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING

from lastcall.kube.api.claims import class_of
from lastcall.kube.api.errors import forbidden, not_found
from lastcall.kube.api.meta import Object, labels_of, name_of
from lastcall.kube.api.names import generate_name
from lastcall.kube.api.pods.references import projects_token, secrets_of
from lastcall.kube.api.pods.resize import resized
from lastcall.kube.api.resources import (
    EVENTS,
    EVENTS_V1,
    INGRESSCLASSES,
    INGRESSES,
    LIMITRANGES,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    PRIORITYCLASSES,
    RESOURCEQUOTAS,
    RUNTIMECLASSES,
    SERVICEACCOUNTS,
    SERVICES,
    STORAGECLASSES,
    VOLUMEATTRIBUTESCLASSES,
    Resource,
)
from lastcall.kube.api.scheduling import NO_SCHEDULE, NOT_READY, taints_of
from lastcall.kube.apiserver.admission.hooks import Hooks
from lastcall.kube.apiserver.admission.node_restriction import NodeRestriction
from lastcall.kube.apiserver.admission.pod_resize import check as check_resize
from lastcall.kube.apiserver.admission.pod_security import PREFIX
from lastcall.kube.apiserver.admission.priority import check_default, default_class, set_priority
from lastcall.kube.apiserver.admission.reader import Looks, Reader
from lastcall.kube.apiserver.admission.storage import (
    check_growth,
    grows,
    protect_attributes_class,
    protect_claim,
    protect_volume,
    set_default_class,
)
from lastcall.kube.apiserver.admission.tolerations import add_default_tolerations
from lastcall.kube.apiserver.auth.authentication import node_of
from lastcall.kube.apiserver.auth.escalation import EscalationCheck
from lastcall.kube.apiserver.auth.node_graph import MIRROR_ANNOTATION
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.registry.generic import GenericStore

Release = Callable[[], Awaitable[None]]
"""Gives back what a write that failed had taken."""

TOKEN_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 (a path)
TOKEN_EXPIRATION_SECONDS = 3607
TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 (a name's beginning)

TOPOLOGY = "topology.kubernetes.io/"
FIRST_TOPOLOGY_LABELS = 35
"""Kubernetes 1.35 is the first in which Pods get their node's region and zone without a feature gate."""
FIRST_DECLARED_FEATURES = 36
"""Kubernetes 1.36 is the first in which nodes declare features, without a feature gate."""


class Admission:
    """The admission chain: `create` changes the object it is given, `validate` looks at what was found to be in order,
    `charge` takes from quotas; all raise StatusError when they refuse. `minor` is that of the Kubernetes version."""

    def __init__(
        self,
        world: World,
        reader: Reader,
        escalation: EscalationCheck,
        nodes: NodeRestriction,
        minor: int = 36,
    ) -> None:
        self._world = world
        self.reader = reader
        """All that `create` and `validate` read comes from here."""
        self._escalation = escalation
        self.nodes = nodes
        self._minor = minor
        self.hooks = Hooks()
        """Admission webhooks."""
        self.kinds: Mapping[Resource, GenericStore] = {}
        """Where quotas are written."""

    def noting(self, looks: Looks) -> "Admission":
        """The same, and `looks` has what it reads afterwards."""
        noted = copy(self)
        noted.reader = looks.reader()
        noted.nodes = self.nodes.reading(noted.reader)
        return noted

    async def create(self, context: RequestContext, resource: Resource, obj: Object, namespace: str) -> None:
        if resource.namespaced:
            await self.namespace_lifecycle(resource, namespace, obj["metadata"].get("name", ""))
        for step in _ON_CREATE.get(resource, _ON_EVERY_CREATE):
            await step(self, context, resource, obj, namespace)
        await self._escalation.create(context.user, resource, obj, namespace)

    async def update(
        self, context: RequestContext, resource: Resource, new: Object, old: Object, subresource: str
    ) -> None:
        """Updates of what exists are allowed everywhere, also in a terminating namespace."""
        step = _ON_UPDATE.get(resource)
        if step is not None:
            await step(self, new, old, subresource)
        await self._escalation.update(context.user, resource, new, old)
        if subresource in _VALIDATED_SUBRESOURCES:
            await self.validate(context, resource, new, old, subresource)

    async def fill(self, resource: Resource, new: Object, old: Object, subresource: str) -> Object:
        """`new` with what LimitRanges give a Pod that is resized; it is not changed itself."""
        if resource != PODS or subresource != "resize" or not isinstance(new.get("spec"), dict):
            return new
        filled = {**new, "metadata": dict(new["metadata"]), "spec": resized(old["spec"], new["spec"])}
        for group in ("containers", "initContainers"):
            if group in filled["spec"]:
                filled["spec"][group] = [dict(container) for container in filled["spec"][group]]
        await self._set_default_limits(filled, old["metadata"]["namespace"])
        return filled

    async def validate(
        self, context: RequestContext, resource: Resource, new: Object, old: Object | None, subresource: str = ""
    ) -> None:
        """LimitRanger and PodSecurity; `old` is None at a creation."""
        for step in _VALIDATED.get(resource, _EVERY_VALIDATED):
            await step(self, context, resource, new, old, subresource)

    async def charge(
        self, context: RequestContext, resource: Resource, new: Object, old: Object | None, subresource: str = ""
    ) -> Release | None:
        """ResourceQuota: take what a write uses from the quotas of its namespace; None when that is nothing."""
        if not resource.namespaced or resource in _NEVER_CHARGED:
            return None
        if old is not None and (resource not in _CHARGED_AGAIN or subresource not in _CHARGED_AGAIN[resource]):
            return None
        quotas = await self.reader.list(RESOURCEQUOTAS, new["metadata"]["namespace"])
        if not quotas:
            return None
        # late: 1.8 ms of the start of `up`
        from lastcall.kube.apiserver.admission.quota import charge

        return await charge(self.kinds, context, resource, new, old, quotas, subresource)

    # -- steps of a creation -----------------------------------------------------------------------------------------

    async def _node_restriction(self, context: RequestContext, resource: Resource, obj: Object, namespace: str) -> None:
        if node_of(context.user) is not None:
            await self.nodes.create(context.user, resource, obj, namespace)

    async def _default_limits(self, context: RequestContext, resource: Resource, pod: Object, namespace: str) -> None:
        await self._set_default_limits(pod, namespace)

    async def _set_default_limits(self, pod: Object, namespace: str) -> None:
        if limit_ranges := await self.reader.list(LIMITRANGES, namespace):
            # late: 0.5 ms of the start of `up`
            from lastcall.kube.apiserver.admission.limits import set_defaults

            set_defaults(pod, limit_ranges)

    async def _priority(self, context: RequestContext, resource: Resource, pod: Object, namespace: str) -> None:
        set_priority(pod, await self._priority_class(pod))

    async def _tolerations(self, context: RequestContext, resource: Resource, pod: Object, namespace: str) -> None:
        add_default_tolerations(pod)

    async def _taint(self, context: RequestContext, resource: Resource, node: Object, namespace: str) -> None:
        add_not_ready_taint(node)

    async def _one_default(self, context: RequestContext, resource: Resource, obj: Object, namespace: str) -> None:
        check_default(obj, await self.reader.list(PRIORITYCLASSES))

    async def _claim(self, context: RequestContext, resource: Resource, claim: Object, namespace: str) -> None:
        set_default_class(claim, await self.reader.list(STORAGECLASSES))
        protect_claim(claim)

    async def _volume(self, context: RequestContext, resource: Resource, volume: Object, namespace: str) -> None:
        protect_volume(volume)

    async def _attributes_class(self, context: RequestContext, resource: Resource, obj: Object, namespace: str) -> None:
        protect_attributes_class(obj)

    async def _ingress(self, context: RequestContext, resource: Resource, ingress: Object, namespace: str) -> None:
        if classes := await self.reader.list(INGRESSCLASSES):
            # late: 0.6 ms of the start of `up`
            from lastcall.kube.apiserver.admission.classes import set_ingress_class

            set_ingress_class(ingress, classes)

    async def _classes(self, context: RequestContext, resource: Resource, pod: Object, namespace: str) -> None:
        """RuntimeClass, and PodTopologyLabels of a Pod that comes with its node."""
        spec = pod["spec"]
        name = spec.get("runtimeClassName")
        if name is not None or spec.get("overhead"):
            # late: 0.6 ms of the start of `up`
            from lastcall.kube.apiserver.admission.classes import set_runtime_class

            set_runtime_class(pod, None if name is None else await self.reader.get(RUNTIMECLASSES, "", name))
        if spec.get("nodeName") and (labels := await self.topology_labels(spec["nodeName"])):
            pod["metadata"]["labels"] = {**labels, **labels_of(pod)}

    # -- steps of an update, and what looks at objects that are in order ----------------------------------------------

    async def _one_default_still(self, new: Object, old: Object, subresource: str) -> None:
        check_default(new, await self.reader.list(PRIORITYCLASSES))

    async def _growth(self, new: Object, old: Object, subresource: str) -> None:
        if not subresource and grows(new, old):
            check_growth(new, old, await self.reader.get(STORAGECLASSES, "", class_of(old)) if class_of(old) else None)

    async def _limits_of_new(
        self, context: RequestContext, resource: Resource, new: Object, old: Object | None, subresource: str
    ) -> None:
        if old is None or subresource == "resize":
            await self._check_limits(resource, new)

    async def _limits_of_kept(
        self, context: RequestContext, resource: Resource, new: Object, old: Object | None, subresource: str
    ) -> None:
        if old is None or "deletionTimestamp" not in old["metadata"]:
            await self._check_limits(resource, new)

    async def _check_limits(self, resource: Resource, new: Object) -> None:
        if limits := await self.reader.list(LIMITRANGES, new["metadata"].get("namespace") or ""):
            # late: 0.5 ms of the start of `up`
            from lastcall.kube.apiserver.admission.limits import check

            check(resource, new, limits)

    async def _node_can(
        self, context: RequestContext, resource: Resource, new: Object, old: Object | None, subresource: str
    ) -> None:
        """NodeDeclaredFeatureValidator and the check of a resize, where a spec has changed on its node."""
        node = new["spec"].get("nodeName")
        if old is None or not node or new["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        if subresource == "resize" or (self._minor >= FIRST_DECLARED_FEATURES and subresource == ""):
            check_resize(new, old, await self.reader.get(NODES, "", node), subresource)

    async def _pod_security(
        self, context: RequestContext, resource: Resource, new: Object, old: Object | None, subresource: str
    ) -> None:
        """What the namespace's labels say about a Pod, or about what makes Pods."""
        namespace = new["metadata"].get("namespace") or ""
        if not namespace:
            return
        place = await self.reader.get(NAMESPACES, "", namespace)
        if place is None or not _has_pod_security(place):
            return
        # late: 2.6 ms of the control plane's start
        from lastcall.kube.apiserver.admission.pod_security import decide as pod_security

        if pod_security.is_looked_at(resource, new, old):
            policy, _ = pod_security.policy_of(labels_of(place))
            context.warnings += pod_security.admit(resource, new, policy, self._minor)

    async def _pod_security_labels(
        self, context: RequestContext, resource: Resource, new: Object, old: Object | None, subresource: str
    ) -> None:
        """The labels of a Namespace, and what they will say about the Pods that are there."""
        if not _has_pod_security(new):
            return
        # late: 2.6 ms of the control plane's start
        from lastcall.kube.apiserver.admission.pod_security import decide as pod_security

        pod_security.check_labels(new, old)
        level = None if old is None else pod_security.level_to_look_for(new, old)
        if level is not None:
            pods = await self.reader.list(PODS, name_of(new))
            context.warnings += pod_security.warnings_about(name_of(new), pods, level, self._minor)

    # -- what others ask for, too -------------------------------------------------------------------------------------

    async def topology_labels(self, node_name: str) -> dict[str, str]:
        """What a Pod of this node gets of its labels."""
        node = await self.reader.get(NODES, "", node_name) if self._minor >= FIRST_TOPOLOGY_LABELS else None
        if node is None or not any(label.startswith(TOPOLOGY) for label in labels_of(node)):
            return {}
        # late: 0.6 ms of the start of `up`
        from lastcall.kube.apiserver.admission.classes import topology_labels

        return topology_labels(labels_of(node))

    async def _priority_class(self, pod: Object) -> Object | None:
        name = pod["spec"].get("priorityClassName") or ""
        if not name:
            return default_class(await self.reader.list(PRIORITYCLASSES))
        found = await self.reader.get(PRIORITYCLASSES, "", name)
        if found is None:
            raise forbidden(PODS, pod["metadata"].get("name", ""), f"no PriorityClass with name {name} was found")
        return found

    async def namespace_lifecycle(self, resource: Resource, namespace: str, name: str) -> None:
        """Raises 404 when the namespace is missing, 403 when it is terminating."""
        found = await self.reader.get(NAMESPACES, "", namespace)
        if found is None:
            raise not_found(NAMESPACES, namespace)
        if found["metadata"].get("deletionTimestamp") is None:
            return
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise forbidden(resource, name, why, [cause])

    async def _service_account(self, context: RequestContext, resource: Resource, pod: Object, namespace: str) -> None:
        spec = pod["spec"]
        if MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}):
            if why := mirror_pod_problem(pod):
                raise forbidden(PODS, pod["metadata"].get("name", ""), why)
            return
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = await self.reader.get(SERVICEACCOUNTS, namespace, name)
        if account is None:
            why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            raise forbidden(PODS, pod["metadata"].get("name", ""), why)
        if should_automount(account, pod):
            mount_token(pod, generate_name(TOKEN_VOLUME, self._world.random))
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(reference) for reference in account["imagePullSecrets"]]


def _has_pod_security(namespace: Object) -> bool:
    return any(label.startswith(PREFIX) for label in labels_of(namespace))


OnCreate = Callable[[Admission, RequestContext, Resource, Object, str], Awaitable[None]]
_ON_EVERY_CREATE: tuple[OnCreate, ...] = (Admission._node_restriction,)
_ON_CREATE: Mapping[Resource, tuple[OnCreate, ...]] = {
    PODS: (
        Admission._default_limits,
        Admission._service_account,
        Admission._node_restriction,
        Admission._priority,
        Admission._tolerations,
        Admission._classes,
    ),
    NODES: (*_ON_EVERY_CREATE, Admission._taint),
    PRIORITYCLASSES: (*_ON_EVERY_CREATE, Admission._one_default),
    PERSISTENTVOLUMECLAIMS: (*_ON_EVERY_CREATE, Admission._claim),
    PERSISTENTVOLUMES: (*_ON_EVERY_CREATE, Admission._volume),
    VOLUMEATTRIBUTESCLASSES: (*_ON_EVERY_CREATE, Admission._attributes_class),
    INGRESSES: (*_ON_EVERY_CREATE, Admission._ingress),
}
"""The steps of a creation, in their order, between NamespaceLifecycle and the check of escalation."""

OnUpdate = Callable[[Admission, Object, Object, str], Awaitable[None]]
_ON_UPDATE: Mapping[Resource, OnUpdate] = {
    PRIORITYCLASSES: Admission._one_default_still,
    PERSISTENTVOLUMECLAIMS: Admission._growth,
}

OnValidated = Callable[[Admission, RequestContext, Resource, Object, Object | None, str], Awaitable[None]]
_EVERY_VALIDATED: tuple[OnValidated, ...] = (Admission._pod_security,)
_VALIDATED: Mapping[Resource, tuple[OnValidated, ...]] = {
    PODS: (Admission._limits_of_new, Admission._node_can, Admission._pod_security),
    PERSISTENTVOLUMECLAIMS: (Admission._limits_of_kept, Admission._pod_security),
    NAMESPACES: (Admission._pod_security_labels,),
}
"""LimitRanger and PodSecurity."""

_NEVER_CHARGED = frozenset({EVENTS, EVENTS_V1})
_CHARGED_AGAIN: Mapping[Resource, tuple[str, ...]] = {
    PODS: ("", "resize"), SERVICES: ("",), PERSISTENTVOLUMECLAIMS: ("",),
}  # fmt: skip
"""Kinds whose updates may use more of a quota: by which subresources."""
_VALIDATED_SUBRESOURCES = frozenset({"", "ephemeralcontainers", "resize"})


def mirror_pod_problem(pod: Object) -> str:
    """What a mirror Pod, whose real one is a file on its node, may not have (serviceaccount/admission.go:Validate)."""
    if pod["spec"].get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    if any(True for _ in secrets_of(pod)):
        return "a mirror pod may not reference secrets"
    if projects_token(pod):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def should_automount(account: Object, pod: Object) -> bool:
    """The Pod's own word counts most, then the ServiceAccount's, and the default is yes (shouldAutomount)."""
    for obj in (pod["spec"], account):
        if obj.get("automountServiceAccountToken") is not None:
            return bool(obj["automountServiceAccountToken"])
    return True


def mount_token(pod: Object, volume_name: str) -> None:
    """Give every container with nothing at the token's path the projected token volume (mountServiceAccountToken)."""
    spec = pod["spec"]
    volumes: list[Object] = spec.get("volumes") or []
    for volume in volumes:
        if volume.get("name", "").startswith(TOKEN_VOLUME):
            volume_name = volume["name"]
    needed = False
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        mounts: list[Object] = container.get("volumeMounts") or []
        if any(mount.get("mountPath") == TOKEN_MOUNT_PATH for mount in mounts):
            continue
        mount = {"name": volume_name, "readOnly": True, "mountPath": TOKEN_MOUNT_PATH}
        container["volumeMounts"] = [*mounts, mount]
        needed = True
    if needed and not any(volume.get("name") == volume_name for volume in volumes):
        spec["volumes"] = [*volumes, {"name": volume_name, "projected": token_projection()}]


def token_projection() -> Object:
    """The content of `kube-api-access-*` (TokenVolumeSource)."""
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_EXPIRATION_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
        "defaultMode": 420,
    }


def add_not_ready_taint(node: Object) -> None:
    """A new node takes no Pods before the node lifecycle controller has seen it Ready (nodetaint/admission.go)."""
    taint = {"key": NOT_READY, "effect": NO_SCHEDULE}
    taints = taints_of(node)
    if not any(each.get("key") == NOT_READY and each.get("effect") == NO_SCHEDULE for each in taints):
        node.setdefault("spec", {})["taints"] = [*taints, taint]
