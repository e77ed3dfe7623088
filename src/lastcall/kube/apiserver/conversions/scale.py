"""The subresource `scale`: one small object for everything that has replicas.

Source: pkg/registry/apps/deployment/storage/storage.go:ScaleREST and its likes, pkg/apis/autoscaling/validation.
"""

from dataclasses import replace
from typing import Any

from lastcall.kube.api.custom.json_path import fields_of, values_at
from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.errors import OPTIMISTIC_LOCK, bad_request, conflict, invalid
from lastcall.kube.api.field import invalid as invalid_field
from lastcall.kube.api.field import required
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.selectors import selector_of_expressions, selector_of_labels

SCALES = Resource("autoscaling", "v1", "scales", "Scale", True)


REPLICAS = ("spec", "replicas")


def _first(obj: Object, path: str) -> Any:
    return next(iter(values_at(obj, path)), None)


def scale_of(resource: Resource, obj: Object) -> Object:
    """Return the Scale of a Deployment, ReplicaSet, StatefulSet or ReplicationController."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    if isinstance(resource, CustomResource) and resource.scale is not None:
        # As if its paths were those of a Deployment.
        spec = {"replicas": _first(obj, resource.scale["specReplicasPath"])}
        status = {"replicas": _first(obj, resource.scale["statusReplicasPath"]) or 0}
        if path := resource.scale.get("labelSelectorPath"):
            status["selector"] = _first(obj, path) or ""
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in kept if key in meta},
        "spec": {},
        "status": {"replicas": status.get("replicas", 0)},
    }
    if spec.get("replicas"):
        scale["spec"]["replicas"] = spec["replicas"]
    if status.get("selector"):
        scale["status"]["selector"] = status["selector"]
    selector = spec.get("selector")
    if selector:
        parsed = selector_of_labels(selector) if resource.group == "" else selector_of_expressions(selector)
        scale["status"]["selector"] = str(parsed)
    return scale


def with_replicas(resource: Resource, old: Object, scale: Object) -> Object:
    """Return the object after a Scale was written to it. Raises StatusError (400, 409, 422)."""
    name = old["metadata"]["name"]
    meta = scale.get("metadata") or {}
    if meta.get("name") and meta["name"] != name:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        problem = invalid_field("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid(SCALES, name, [problem])
    version = meta.get("resourceVersion")
    if version and version != old["metadata"]["resourceVersion"]:
        raise conflict(resource, name, OPTIMISTIC_LOCK)
    if (uid := meta.get("uid")) and uid != old["metadata"]["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
        raise conflict(replace(resource, plural=f"{resource.plural}/scale"), name, why)
    new = copy_object(old)
    path: tuple[str, ...] = REPLICAS
    if isinstance(resource, CustomResource) and resource.scale is not None:
        path = fields_of(resource.scale["specReplicasPath"]) or REPLICAS
    parent = new
    for step in path[:-1]:
        parent = parent.setdefault(step, {})
    parent[path[-1]] = replicas
    return new


def with_admitted_replicas(resource: Resource, old: Object, scale: Object) -> Object:
    """Return the object after admission has changed the Scale that is written to it, whatever name that has then.

    Raises StatusError (409, 422). (pkg/apis/autoscaling/validation:ValidateScale)
    """
    meta, name = scale["metadata"], old["metadata"]["name"]
    errors = [] if meta.get("name") else [required("metadata.name", "name or generateName is required")]
    if not meta.get("namespace"):
        errors.append(required("metadata.namespace"))
    if errors:
        raise invalid(SCALES, name, errors)
    return with_replicas(resource, old, {**scale, "metadata": {**meta, "name": name}})
