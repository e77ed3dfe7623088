"""Admission: what is checked and filled in between defaulting and validation.

NamespaceLifecycle for every namespaced kind; ServiceAccount, Priority (`priority.py`) and
DefaultTolerationSeconds for Pods; TaintNodesByCondition for Nodes; RuntimeClass, DefaultIngressClass and
PodTopologyLabels (`classes.py`) where there is something to do; for volumes see `storage.py`, for
writers of roles and bindings `auth/escalation.py`, for what nodes write `node_restriction.py`. What a namespace's
LimitRanges (`limits.py`) say comes in where there is one; its PodSecurity labels (`pod_security/decide.py`)
and ResourceQuotas (`quota.py`) are imported where there is one, too.

Sources: apiserver pkg/admission/plugin/namespace/lifecycle, plugin/pkg/admission/{serviceaccount,
defaulttolerationseconds,nodetaint}.
"""

from collections.abc import Awaitable, Callable, Mapping
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
from lastcall.kube.apiserver.admission import limits
from lastcall.kube.apiserver.admission.attributes import Attributes, Operation
from lastcall.kube.apiserver.admission.classes import (
    check_overhead,
    set_ingress_class,
    set_runtime_class,
    topology_labels,
)
from lastcall.kube.apiserver.admission.hooks import Hooks
from lastcall.kube.apiserver.admission.node_restriction import NodeRestriction
from lastcall.kube.apiserver.admission.pod_resize import check as check_resize
from lastcall.kube.apiserver.admission.pod_security import PREFIX
from lastcall.kube.apiserver.admission.priority import check_default, default_class, keep_priority, set_priority
from lastcall.kube.apiserver.admission.reader import Reader
from lastcall.kube.apiserver.admission.storage import (
    check_growth,
    grows,
    protect_attributes_class,
    protect_claim,
    protect_volume,
    set_default_class,
)
from lastcall.kube.apiserver.admission.tolerations import add_default_tolerations
from lastcall.kube.apiserver.audit.request import current
from lastcall.kube.apiserver.auth.authentication import node_of
from lastcall.kube.apiserver.auth.escalation import EscalationCheck
from lastcall.kube.apiserver.auth.node_graph import MIRROR_ANNOTATION
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.apiserver.admission.quota import QuotaStore

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
    """The admission chain, run with one `Attributes` for each write: `admit` changes the object, `validate` checks it
    once the registry has found it in order, `charge` takes from quotas. All raise StatusError when they refuse.

    `minor` is that of the Kubernetes version, `quotas` gives the store of ResourceQuotas.
    """

    def __init__(
        self,
        world: World,
        reader: Reader,
        escalation: EscalationCheck,
        nodes: NodeRestriction,
        hooks: Hooks,
        quotas: "Callable[[], QuotaStore]",
        minor: int,
    ) -> None:
        self._world = world
        self.reader = reader
        """What is stored now."""
        self._escalation = escalation
        self.nodes = nodes
        self._quotas = quotas
        self._minor = minor
        self.hooks = hooks
        """Admission policies and webhooks."""

    def attributes(
        self,
        operation: Operation,
        context: RequestContext,
        resource: Resource,
        namespace: str,
        new: Object,
        old: Object | None = None,
        subresource: str = "",
    ) -> Attributes:
        """Return what the chain is run with; the context's `looks` has what it reads afterwards."""
        reader = self.reader if context.reads is None else context.reads.reader()
        return Attributes(operation, context, resource, namespace, reader, new, old, subresource)

    async def admit(self, a: Attributes) -> None:
        """Run what may change the object, policies and webhooks last (chainAdmissionHandler.Admit).

        Nothing changes at a DELETE; there policies and webhooks check, too, once for all states of the object.
        """
        if a.operation == "CREATE":
            await self._admit_create(a)
            if self.hooks.mutates(a):
                await self.hooks.mutate(a, self._admit_create)
        elif a.operation == "UPDATE":
            if node_of(a.context.user) is not None:
                self.nodes.update(a.context.user, a.resource, a.new, a.stored, a.subresource)
            if a.subresource in _FILLED_SUBRESOURCES and (step := _FILLED_ON_UPDATE.get(a.resource)) is not None:
                await step(self, a)
            if self.hooks.mutates(a):
                await self.hooks.mutate(a)
        elif self.hooks.mutates(a) or self.hooks.validates(a):
            await self.hooks.delete(a)

    async def _admit_create(self, a: Attributes) -> None:
        if a.resource.namespaced:
            await self._namespace_lifecycle(a.reader, a.resource, a.namespace, a.new["metadata"].get("name", ""))
        for step in _ON_CREATE.get(a.resource, _ON_EVERY_CREATE):
            await step(self, a)
        await self._escalation.create(a.context.user, a.resource, a.new, a.namespace)

    async def validate(self, a: Attributes) -> None:
        """Run what checks the object as it will be stored (chainAdmissionHandler.Validate).

        Updates of what exists are allowed everywhere, also in a terminating namespace. An update that only removes
        finalizers is shown to policies and webhooks alone.
        """
        if a.operation == "UPDATE" and not a.lets_go:
            if (step := _ON_UPDATE.get(a.resource)) is not None:
                await step(self, a)
            await self._escalation.update(a.context.user, a.resource, a.new, a.stored)
        if a.operation == "CREATE" or (a.subresource in _VALIDATED_SUBRESOURCES and not a.lets_go):
            for step in _VALIDATED.get(a.resource, _EVERY_VALIDATED):
                await step(self, a)
        if self.hooks.validates(a):
            await self.hooks.validate(a)

    def check_delete(self, a: Attributes) -> None:
        """Check each state of an object that a DELETE finds: a node deletes what is its own."""
        if node_of(a.context.user) is not None:
            self.nodes.delete(a.context.user, a.resource, a.stored)

    async def charge(self, a: Attributes) -> Release | None:
        """Take what a write uses from the quotas of its namespace (ResourceQuota); None when that is nothing."""
        resource = a.resource
        if not resource.namespaced or resource in _NEVER_CHARGED:
            return None
        if a.old is not None and (resource not in _CHARGED_AGAIN or a.subresource not in _CHARGED_AGAIN[resource]):
            return None
        quotas = await self.reader.list(RESOURCEQUOTAS, a.new["metadata"]["namespace"])
        if not quotas:
            return None
        # late: 1.8 ms of the start of `up`
        from lastcall.kube.apiserver.admission.quota import charge

        return await charge(self._quotas(), self._world.clock, a, quotas)

    # -- steps of a creation -----------------------------------------------------------------------------------------

    async def _node_restriction(self, a: Attributes) -> None:
        if node_of(a.context.user) is not None:
            await self.nodes.create(a.context.user, a.resource, a.new, a.namespace)

    async def _default_limits(self, a: Attributes) -> None:
        await self._set_default_limits(a.reader, a.new, a.namespace)

    async def _set_default_limits(self, reader: Reader, pod: Object, namespace: str) -> None:
        if limit_ranges := await reader.list(LIMITRANGES, namespace):
            limits.set_defaults(pod, limit_ranges)

    async def _priority(self, a: Attributes) -> None:
        set_priority(a.new, await _priority_class(a.reader, a.new))

    async def _tolerations(self, a: Attributes) -> None:
        add_default_tolerations(a.new)

    async def _taint(self, a: Attributes) -> None:
        add_not_ready_taint(a.new)

    async def _one_default(self, a: Attributes) -> None:
        check_default(a.new, await a.reader.list(PRIORITYCLASSES))

    async def _claim(self, a: Attributes) -> None:
        set_default_class(a.new, await a.reader.list(STORAGECLASSES))
        protect_claim(a.new)

    async def _volume(self, a: Attributes) -> None:
        protect_volume(a.new)

    async def _attributes_class(self, a: Attributes) -> None:
        protect_attributes_class(a.new)

    async def _ingress(self, a: Attributes) -> None:
        if classes := await a.reader.list(INGRESSCLASSES):
            set_ingress_class(a.new, classes)

    async def _classes(self, a: Attributes) -> None:
        """RuntimeClass, and PodTopologyLabels of a Pod that comes with its node."""
        pod, spec = a.new, a.new["spec"]
        if (name := spec.get("runtimeClassName")) is not None:
            set_runtime_class(pod, await a.reader.get(RUNTIMECLASSES, "", name))
        if spec.get("nodeName") and (labels := await self._topology_labels(a.reader, spec["nodeName"])):
            pod["metadata"]["labels"] = {**labels, **labels_of(pod)}

    # -- steps of an update, and what looks at objects that are in order ----------------------------------------------

    async def _fill_pod(self, a: Attributes) -> None:
        """Put back what an update leaves out: `kubectl replace` of the file that made a Pod does not know priority,
        preemption policy and default tolerations. A Pod that is resized gets what LimitRanges give."""
        if not isinstance(a.new.get("spec"), dict):
            return
        if not a.subresource:
            a.new = {**a.new, "spec": dict(a.new["spec"])}
            keep_priority(a.new, a.stored)
            add_default_tolerations(a.new)
            return
        spec = resized(a.stored["spec"], a.new["spec"])
        for group in ("containers", "initContainers"):
            if group in spec:
                spec[group] = [dict(container) for container in spec[group]]
        a.new = {**a.new, "metadata": dict(a.new["metadata"]), "spec": spec}
        await self._set_default_limits(a.reader, a.new, a.stored["metadata"]["namespace"])

    async def _growth(self, a: Attributes) -> None:
        new, old = a.new, a.stored
        if not a.subresource and grows(new, old):
            name = class_of(old)
            check_growth(new, old, await a.reader.get(STORAGECLASSES, "", name) if name else None)

    async def _limits_of_new(self, a: Attributes) -> None:
        if a.old is None or a.subresource == "resize":
            await self._check_limits(a)

    async def _limits_of_kept(self, a: Attributes) -> None:
        if a.old is None or "deletionTimestamp" not in a.old["metadata"]:
            await self._check_limits(a)

    async def _check_limits(self, a: Attributes) -> None:
        if limit_ranges := await a.reader.list(LIMITRANGES, a.new["metadata"].get("namespace") or ""):
            limits.check(a.resource, a.new, limit_ranges)

    async def _class_overhead(self, a: Attributes) -> None:
        spec = a.new["spec"]
        if a.old is None and spec.get("overhead"):
            name = spec.get("runtimeClassName")
            check_overhead(a.new, None if name is None else await a.reader.get(RUNTIMECLASSES, "", name))

    async def _node_can(self, a: Attributes) -> None:
        """NodeDeclaredFeatureValidator and the check of a resize, where a spec has changed on its node."""
        new, old, node = a.new, a.old, a.new["spec"].get("nodeName")
        if old is None or not node or new["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        if a.subresource == "resize" or (self._minor >= FIRST_DECLARED_FEATURES and a.subresource == ""):
            check_resize(new, old, await a.reader.get(NODES, "", node), a.subresource)

    async def _pod_security(self, a: Attributes) -> None:
        """What the namespace's labels say about a Pod, or about what makes Pods."""
        namespace = a.new["metadata"].get("namespace") or ""
        if not namespace:
            return
        place, audited = await a.reader.get(NAMESPACES, "", namespace), current()
        if place is None or not (_has_pod_security(place) or audited is not None):
            return
        # late: 2.6 ms of the control plane's start
        from lastcall.kube.apiserver.admission.pod_security import decide as pod_security

        policy, _ = pod_security.policy_of(labels_of(place))
        if audited is not None and a.subresource in ("", "ephemeralcontainers"):
            audited.annotations |= pod_security.notes(a.resource, a.new, a.old, policy, self._minor)
        if pod_security.is_looked_at(a.resource, a.new, a.old):
            a.context.warnings += pod_security.admit(a.resource, a.new, policy, self._minor)

    async def _pod_security_labels(self, a: Attributes) -> None:
        """The labels of a Namespace, and what they will say about the Pods that are there."""
        new, old = a.new, a.old
        if not _has_pod_security(new):
            return
        # late: 2.6 ms of the control plane's start
        from lastcall.kube.apiserver.admission.pod_security import decide as pod_security

        pod_security.check_labels(new, old)
        level = None if old is None else pod_security.level_to_look_for(new, old)
        if level is not None:
            pods = await a.reader.list(PODS, name_of(new))
            a.context.warnings += pod_security.warnings_about(name_of(new), pods, level, self._minor)

    # -- what others ask for, too -------------------------------------------------------------------------------------

    async def topology_labels(self, node_name: str) -> dict[str, str]:
        """Return what a Pod of this node gets of its labels."""
        return await self._topology_labels(self.reader, node_name)

    async def _topology_labels(self, reader: Reader, node_name: str) -> dict[str, str]:
        node = await reader.get(NODES, "", node_name) if self._minor >= FIRST_TOPOLOGY_LABELS else None
        if node is None or not any(label.startswith(TOPOLOGY) for label in labels_of(node)):
            return {}
        return topology_labels(labels_of(node))

    async def namespace_lifecycle(self, resource: Resource, namespace: str, name: str) -> None:
        """Raise 404 when the namespace is missing, 403 when it is terminating."""
        await self._namespace_lifecycle(self.reader, resource, namespace, name)

    @staticmethod
    async def _namespace_lifecycle(reader: Reader, resource: Resource, namespace: str, name: str) -> None:
        found = await reader.get(NAMESPACES, "", namespace)
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

    async def _service_account(self, a: Attributes) -> None:
        pod, spec, namespace = a.new, a.new["spec"], a.namespace
        if MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}):
            if why := mirror_pod_problem(pod):
                raise forbidden(PODS, pod["metadata"].get("name", ""), why)
            return
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = await a.reader.get(SERVICEACCOUNTS, namespace, name)
        if account is None:
            why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            raise forbidden(PODS, pod["metadata"].get("name", ""), why)
        if should_automount(account, pod):
            mount_token(pod, generate_name(TOKEN_VOLUME, self._world.random))
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(reference) for reference in account["imagePullSecrets"]]


async def _priority_class(reader: Reader, pod: Object) -> Object | None:
    name = pod["spec"].get("priorityClassName") or ""
    if not name:
        return default_class(await reader.list(PRIORITYCLASSES))
    found = await reader.get(PRIORITYCLASSES, "", name)
    if found is None:
        raise forbidden(PODS, pod["metadata"].get("name", ""), f"no PriorityClass with name {name} was found")
    return found


def _has_pod_security(namespace: Object) -> bool:
    return any(label.startswith(PREFIX) for label in labels_of(namespace))


Step = Callable[[Admission, Attributes], Awaitable[None]]
_ON_EVERY_CREATE: tuple[Step, ...] = (Admission._node_restriction,)
_ON_CREATE: Mapping[Resource, tuple[Step, ...]] = {
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

_FILLED_ON_UPDATE: Mapping[Resource, Step] = {PODS: Admission._fill_pod}
"""The step of an update that changes the object, between NodeRestriction and webhooks."""
_FILLED_SUBRESOURCES = ("", "resize")
_ON_UPDATE: Mapping[Resource, Step] = {
    PRIORITYCLASSES: Admission._one_default,
    PERSISTENTVOLUMECLAIMS: Admission._growth,
}
"""The first check of an update, before that of escalation."""

_EVERY_VALIDATED: tuple[Step, ...] = (Admission._pod_security,)
_VALIDATED: Mapping[Resource, tuple[Step, ...]] = {
    PODS: (Admission._limits_of_new, Admission._node_can, Admission._pod_security, Admission._class_overhead),
    PERSISTENTVOLUMECLAIMS: (Admission._limits_of_kept, Admission._pod_security),
    NAMESPACES: (Admission._pod_security_labels,),
}
"""LimitRanger, PodSecurity and RuntimeClass."""

_NEVER_CHARGED = frozenset({EVENTS, EVENTS_V1})
_CHARGED_AGAIN: Mapping[Resource, tuple[str, ...]] = {
    PODS: ("", "resize"), SERVICES: ("",), PERSISTENTVOLUMECLAIMS: ("",),
}  # fmt: skip
"""Kinds whose updates may use more of a quota: by which subresources."""
_VALIDATED_SUBRESOURCES = frozenset({"", "ephemeralcontainers", "resize"})


def mirror_pod_problem(pod: Object) -> str:
    """Return what a mirror Pod, made from a file on its node, may not have (serviceaccount/admission.go:Validate)."""
    if pod["spec"].get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    if any(True for _ in secrets_of(pod)):
        return "a mirror pod may not reference secrets"
    if projects_token(pod):
        return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""


def should_automount(account: Object, pod: Object) -> bool:
    """Return what the Pod says, else the ServiceAccount; the default is yes (shouldAutomount)."""
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
    """Return the content of `kube-api-access-*` (TokenVolumeSource)."""
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
    """Keep Pods off a new node until the node lifecycle controller has seen it Ready (nodetaint/admission.go)."""
    taint = {"key": NOT_READY, "effect": NO_SCHEDULE}
    taints = taints_of(node)
    if not any(each.get("key") == NOT_READY and each.get("effect") == NO_SCHEDULE for each in taints):
        node.setdefault("spec", {})["taints"] = [*taints, taint]
