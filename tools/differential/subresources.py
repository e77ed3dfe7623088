"""Requests to subresources."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from differential import reads, values
from differential.bodies import Bodies
from differential.kinds import Kind
from differential.request import JSON, Held, Request

STREAMS = frozenset({"exec", "attach", "portforward", "proxy", "log"})
"""They need a node."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`path` and `obj` are those of the object itself."""

    kind: Kind
    sub: str
    path: str
    name: str
    obj: dict[str, Any]
    bodies: Bodies
    random: Random

    def request(self, method: str, verb: str, body: Any = None, content_type: str = JSON, **more: Any) -> Request:
        headers = {"Content-Type": content_type} if body is not None else {}
        headers |= more.pop("headers", {})
        return Request(
            method, f"{self.path}/{self.sub}", self.kind.about(self.sub), verb, headers=headers, body=body, **more
        )


def _get(asked: Asked) -> Request:
    return asked.request("GET", "get", headers=reads.accepted(asked.random, 0.3))


def _changed_status(asked: Asked) -> dict[str, Any]:
    obj = copy.deepcopy(asked.obj)
    schema = asked.bodies.schemas.resolved(asked.bodies.schemas.of(asked.kind))
    part = (schema.get("properties") or {}).get("status")
    if part is not None and asked.random.random() < 0.9:
        status = obj.get("status") if isinstance(obj.get("status"), dict) else {}
        obj["status"] = values.changed(asked.bodies.schemas, part, status, asked.random, asked.random.choice((1, 2, 3)))
    else:
        obj = asked.bodies.changed(asked.kind, obj)
    return obj


def _scale(asked: Asked) -> dict[str, Any]:
    meta = asked.obj.get("metadata") or {}
    scale = {
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": asked.name, "namespace": meta.get("namespace", ""),
                     "resourceVersion": Held(asked.path, ("metadata", "resourceVersion"))},
        "spec": {"replicas": asked.random.choice((0, 1, 5, -1, "x", None, 2**31))},
    }  # fmt: skip
    if asked.random.random() < 0.3:
        del scale["metadata"]["resourceVersion"]  # type: ignore[attr-defined]
    if asked.random.random() < 0.2:
        scale[asked.random.choice(("kind", "apiVersion", "unknown"))] = "Other"
    return scale


def _body(asked: Asked) -> Any:
    if asked.sub == "scale":
        return _scale(asked)
    new = _changed_status(asked)
    if isinstance(new.get("metadata"), dict):
        new["metadata"].pop("managedFields", None)
    return asked.bodies.again(asked.path, asked.obj, new)


def _update(asked: Asked) -> Request:
    return asked.request("PUT", "update", _body(asked))


def _patch(asked: Asked) -> Request:
    new = _scale(asked) if asked.sub == "scale" else _changed_status(asked)
    way = asked.random.choice(("merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml"))
    part = "spec" if asked.sub in ("scale", "resize", "ephemeralcontainers") else "status"
    body: Any = {part: new.get(part)}
    query: tuple[tuple[str, str], ...] = ()
    if way.startswith("json"):
        body = [{"op": asked.random.choice(("add", "replace", "test")), "path": f"/{part}", "value": new.get(part)}]
    elif way.startswith("apply"):
        query = (("fieldManager", "m3"), ("force", asked.random.choice(("true", "false"))))
        body = {"apiVersion": asked.kind.api_version, "kind": asked.kind.kind, "metadata": {"name": asked.name}, **body}
        if asked.sub == "scale":
            body |= {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    return asked.request("PATCH", f"patch {way.split('-')[0]}", body, f"application/{way}", query=query)


def _binding(asked: Asked) -> Request:
    target = asked.random.choice(({"kind": "Node", "name": "n"}, {"name": ""}, {"kind": "Pod", "name": "n"}, {}, None))
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": asked.random.choice((asked.name, "other"))},
        "target": target,
    }
    return asked.request("POST", "create", body)


def _eviction(asked: Asked) -> Request:
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": asked.name}}
    if asked.random.random() < 0.4:
        body["deleteOptions"] = asked.random.choice(
            ({"gracePeriodSeconds": 0}, {"dryRun": ["All"]}, {"preconditions": {"uid": "u"}})
        )
    if asked.random.random() < 0.2:
        body["apiVersion"] = asked.random.choice(("policy/v1beta1", "v1"))
    if asked.random.random() < 0.2:
        body["metadata"] = {"name": "other"}
    return asked.request("POST", "create", body)


def _token(asked: Asked) -> Request:
    spec = asked.random.choice((
        {}, {"audiences": ["a"]}, {"expirationSeconds": 600}, {"expirationSeconds": 1}, {"expirationSeconds": 2**33},
        {"boundObjectRef": {"kind": "Pod", "name": "none", "apiVersion": "v1"}}, {"boundObjectRef": {"kind": "X", "name": "n"}},
        {"audiences": "a"}, {"boundObjectRef": {"kind": "Secret", "name": "none", "apiVersion": "v1", "uid": "u"}},
    ))  # fmt: skip
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return asked.request("POST", "create", body)


MAKERS: dict[tuple[str, str], Callable[[Asked], Request]] = {
    ("*", "get"): _get,
    ("*", "update"): _update,
    ("*", "patch"): _patch,
    ("binding", "create"): _binding,
    ("eviction", "create"): _eviction,
    ("token", "create"): _token,
}
"""By subresource and verb; `*` is any that is not a stream."""
