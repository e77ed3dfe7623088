"""Subresources that are more than a partial update: binding, log, token.

Sources: pkg/registry/core/pod/storage/storage.go:BindingREST, pkg/registry/core/pod/rest/log.go,
pkg/registry/core/serviceaccount/storage/token.go.
"""

# check: asks for kinds because a token is bound to a Pod, a Secret or a Node

from collections.abc import AsyncIterator, Mapping
from typing import Any

from lastcall.kube.api.errors import (
    StatusError,
    bad_request,
    conflict,
    not_found,
    plain_failure,
    service_unavailable,
    status_success,
)
from lastcall.kube.api.errors import invalid as invalid_object
from lastcall.kube.api.field import FieldError, forbidden, invalid, message_of, not_supported, required
from lastcall.kube.api.meta import Object, uid_of, with_own_metadata
from lastcall.kube.api.resources import NODES, PODS, SERVICEACCOUNTS, Resource
from lastcall.kube.api.schema.checks import check_scalar
from lastcall.kube.api.text.numbers import NumberError, parse_int
from lastcall.kube.api.text.times import later
from lastcall.kube.apiserver.auth.tokens import BOUND_KINDS, DEFAULT_EXPIRATION, MIN_EXPIRATION, TokenIssuer
from lastcall.kube.apiserver.registry.generic import GenericStore
from lastcall.kube.apiserver.requestinfo import is_true
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletLogs, PodLogOptions
from lastcall.kube.apiserver.updated_object import UpdatedObject
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.world.clock import now, rfc3339, rfc3339_now

Kinds = Mapping[Resource, GenericStore]


# -- binding -------------------------------------------------------------------------------------------------------


def check_target(binding: Object) -> None:
    """Raise the 500 StatusError of a Binding without a node. (`ValidatePodBinding`, asked before there is a name)"""
    target = binding.get("target") or {}
    errors = [] if target.get("name") else [required("target.name")]
    if target.get("kind") not in (None, "", "Node"):
        errors.insert(0, not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if errors:
        raise plain_failure(message_of(errors))


async def bind(kinds: Kinds, context: RequestContext, binding: Object, namespace: str, name: str) -> Object:
    """Assign a Pod to a node. `binding` has passed `check_target`.

    Answers a Status; raises StatusError (409 when the Pod cannot be assigned).
    """
    pods = kinds[PODS]
    target = binding["target"]
    meta = binding.get("metadata") or {}
    if topology := await pods.shared.admission.topology_labels(target["name"]):
        meta = {**meta, "labels": {**topology, **(meta.get("labels") or {})}}

    def assign(old: Object) -> Object:
        check_binding(old, meta, namespace)
        return assigned(old, target["name"], meta, rfc3339_now(pods.shared.world.clock))

    await pods.update(context, namespace, name, UpdatedObject(assign), "binding")
    return status_success(code=201)


def check_binding(pod: Object, binding_meta: Object, namespace: str) -> None:
    """Raise the 409 StatusError of a Pod that cannot be assigned (setPodHostAndAnnotations)."""
    meta, spec = pod["metadata"], pod.get("spec", {})
    name = meta["name"]
    if (uid := binding_meta.get("uid")) and uid != uid_of(pod):
        why = (
            f"StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {uid_of(pod)}"
        )
        raise binding_conflict(name, why)
    if (version := binding_meta.get("resourceVersion")) and version != meta["resourceVersion"]:
        why = (
            f"StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {meta['resourceVersion']}"
        )
        raise binding_conflict(name, why)
    if meta.get("deletionTimestamp") is not None:
        raise binding_conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise binding_conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise binding_conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def binding_conflict(name: str, why: str) -> StatusError:
    return conflict("pods/binding", name, why)


def assigned(pod: Object, node: str, binding_meta: Object, moment: str) -> Object:
    """Return the Pod after the binding: node, the binding's annotations and labels, condition PodScheduled."""
    new = with_own_metadata(pod)
    new["spec"] = {**new["spec"], "nodeName": node}
    new["status"] = dict(new.get("status") or ())
    for key in ("annotations", "labels"):
        if binding_meta.get(key):
            new["metadata"][key] = {**(new["metadata"].get(key) or {}), **binding_meta[key]}
    status = new["status"]
    status.pop("nominatedNodeName", None)
    conditions = [condition for condition in status.get("conditions") or [] if condition["type"] != "PodScheduled"]
    scheduled: Object = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": moment,
    }
    status["conditions"] = [*conditions, scheduled]
    return new


# -- log -----------------------------------------------------------------------------------------------------------


async def open_log(
    kinds: Kinds, logs: KubeletLogs | None, namespace: str, name: str, query: Mapping[str, str]
) -> AsyncIterator[bytes] | None:
    """Open a container's log; None for a Pod that no node has yet. Raises StatusError."""
    options = parse_log_options(name, query)
    pod = (await kinds[PODS].get(namespace, name)).object
    container = log_container(pod, query.get("container", ""))
    node_name = pod.get("spec", {}).get("nodeName", "")
    if not node_name:
        return None
    entry = await kinds[NODES].shared.store.get(kinds[NODES].key("", node_name))
    if entry is None:
        raise not_found(NODES, node_name)
    if logs is None:
        raise service_unavailable("this API server has no connection to kubelets")
    return logs.container_logs(kinds[NODES].decode(entry.value), namespace, name, container, options)


def log_container(pod: Object, asked: str) -> str:
    """Return the container whose log is meant. Raises the 400 StatusError that names the choices (LogLocation)."""
    spec, name = pod.get("spec", {}), pod["metadata"]["name"]
    containers = [container["name"] for container in spec.get("containers") or []]
    init = [container["name"] for container in spec.get("initContainers") or []]
    if asked:
        ephemeral = [container["name"] for container in spec.get("ephemeralContainers") or []]
        if asked not in (*containers, *init, *ephemeral):
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(containers) == 1:
        return str(containers[0])
    if not containers:
        raise bad_request(f"a container name must be specified for pod {name}")
    choices = f"a container name must be specified for pod {name}, choose one of: [{' '.join(containers)}]"
    if init:
        choices += f" or one of the init containers: [{' '.join(init)}]"
    raise bad_request(choices)


def parse_log_options(name: str, query: Mapping[str, str]) -> PodLogOptions:
    """Parse the options. Raises 400 for invalid numbers, 422 for values that make no sense (ValidatePodLogOptions)."""
    numbers: dict[str, int | None] = {}
    for key in ("tailLines", "sinceSeconds", "limitBytes"):
        text = query.get(key, "")
        try:
            numbers[key] = parse_int(text) if text else None
        except NumberError as error:
            raise bad_request(str(error)) from None
    tail, since, limit = numbers["tailLines"], numbers["sinceSeconds"], numbers["limitBytes"]
    since_time = query.get("sinceTime", "")
    if since_time:
        try:
            check_scalar("time", since_time)
        except ValueError as error:
            raise bad_request(str(error)) from None
    errors: list[FieldError] = []
    if tail is not None and tail < 0:
        errors.append(invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        errors.append(invalid("limitBytes", limit, "must be greater than 0"))
    if since is not None and since_time:
        # Kubernetes prints the empty path so.
        errors.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        errors.append(invalid("sinceSeconds", since, "must be greater than 0"))
    if query.get("stream"):
        errors.append(forbidden("stream", "may not be specified"))
    if errors:
        raise invalid_object("PodLogOptions", name, errors)
    return PodLogOptions(
        follow=is_true(query, "follow"),
        previous=is_true(query, "previous"),
        timestamps=is_true(query, "timestamps"),
        tail_lines=tail,
        since_seconds=since,
        since_time=since_time,
        limit_bytes=limit,
    )


# -- token ---------------------------------------------------------------------------------------------------------


async def request_token(
    kinds: Kinds, issuer: TokenIssuer, request: Object, namespace: str, name: str, *, dry_run: bool = False
) -> Object:
    """Fill in the status of a TokenRequest and return it. Raises StatusError."""
    account = (await kinds[SERVICEACCOUNTS].get(namespace, name)).object
    spec = dict(request.get("spec") or {})
    seconds = spec.get("expirationSeconds")
    seconds = DEFAULT_EXPIRATION if seconds is None else seconds
    meta = request.get("metadata") or {}
    errors = [
        invalid(f"metadata.{key}", meta[key], f"must match the service account {key} if specified")
        for key, own in (("name", name), ("namespace", namespace))
        if (meta.get(key) or own) != own
    ]
    if errors:
        raise invalid_object("TokenRequest", name, errors, group="authentication.k8s.io")
    if (uid := meta.get("uid")) and uid != uid_of(account):
        why = f"the UID in the token request ({uid}) does not match the UID of the service account ({uid_of(account)})"
        raise conflict("TokenRequest.authentication.k8s.io", name, why)
    if seconds < MIN_EXPIRATION:
        errors.append(invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    if seconds > 1 << 32:
        errors.append(invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"))
    if errors:
        raise invalid_object("TokenRequest", meta.get("name", ""), errors, group="authentication.k8s.io")
    audiences = spec.get("audiences") or [issuer.issuer]
    bound, node = await _bound_object(kinds, spec.get("boundObjectRef"), namespace, name)
    moment = now(issuer.world.clock)
    token = issuer.issue(account, audiences=audiences, seconds=seconds, bound=bound, node=node)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid_of(account),
            "creationTimestamp": rfc3339(moment),
        },
        "spec": {
            "audiences": list(audiences),
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {
            "token": "" if dry_run else token,
            "expirationTimestamp": rfc3339(later(moment, seconds)),
        },
    }


async def _bound_object(
    kinds: Kinds, reference: Any, namespace: str, account: str
) -> tuple[tuple[str, Object] | None, Object | None]:
    """(what the token is bound to, the node of a bound Pod)."""
    if reference is None:
        return None, None
    kind = reference.get("kind", "")
    if kind not in BOUND_KINDS:
        group, _, version = (reference.get("apiVersion") or "").rpartition("/")
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    resource = BOUND_KINDS[kind][1]
    obj = (await kinds[resource].get(namespace if resource.namespaced else "", reference.get("name", ""))).object
    if (uid := reference.get("uid")) and uid != uid_of(obj):
        why = (
            f"the UID in the bound object reference ({uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise conflict(resource, reference.get("name", ""), why)
    if kind != "Pod":
        return (kind, obj), None
    used = obj.get("spec", {}).get("serviceAccountName", "")
    if used != account:
        why = f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
        raise bad_request(why)
    node_name = obj.get("spec", {}).get("nodeName", "")
    entry = await kinds[NODES].shared.store.get(kinds[NODES].key("", node_name)) if node_name else None
    return (kind, obj), None if entry is None else kinds[NODES].decode(entry.value)
