"""What the API server would say of a manifest, asked before anything starts: unknown fields, types, values."""

import re
from collections.abc import Iterator

from lastcall.api.defaults import set_defaults
from lastcall.api.disabled_fields import drop_disabled_fields
from lastcall.api.feature_gates import FeatureGates
from lastcall.api.meta import Object, copy_object
from lastcall.api.resources import JOBS, Resource
from lastcall.api.schema import DecodeError, check_fields
from lastcall.api.validation import validate_create

Problem = tuple[str, str]
"""(field path, what is wrong with it)."""

_UNKNOWN = re.compile(r'^unknown field "(?P<field>.*)"$')
_GO_STRUCT_FIELD = re.compile(r"Go struct field \w+\.(?P<field>[\w.]+) of type")


def manifest_problems(obj: Object, resource: Resource) -> Iterator[Problem]:
    """Unknown fields, values of the wrong type, and values that break a rule of the kind. `obj` is left as it is."""
    try:
        found = check_fields(resource, obj)
    except DecodeError as error:
        match = _GO_STRUCT_FIELD.search(str(error))
        yield match["field"] if match else "", str(error)
        return
    for problem in found:
        match = _UNKNOWN.match(problem)
        if match:
            yield match["field"], f"not a field of {resource.kind}: correct its name or its place, or leave it out"
        else:
            yield "", problem
    for invalid in validate_create(resource, _as_created(obj, resource)):
        yield invalid.field, invalid.body


def _as_created(obj: Object, resource: Resource) -> Object:
    """The object as the API server sees it when it validates: with defaults, a namespace and a name."""
    created = copy_object(obj)
    created.pop("status", None)
    metadata = created["metadata"]
    if resource.namespaced:
        metadata["namespace"] = metadata.get("namespace") or "default"
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName']}xxxxx"
    set_defaults(resource, created)
    drop_disabled_fields(resource, created, None, FeatureGates())
    if resource == JOBS:
        _add_job_labels(created)
    return created


def _add_job_labels(job: Object) -> None:
    """The server makes selector and labels of a Job from its uid. (`batch/job/strategy.go:generateSelector`)"""
    spec = job.get("spec") or {}
    template = spec.get("template")
    if spec.get("manualSelector") or not isinstance(template, dict):
        return
    uid, name = "00000000-0000-0000-0000-000000000000", job["metadata"].get("name", "")
    job["metadata"]["uid"] = uid
    labels = {f"{prefix}controller-uid": uid for prefix in ("batch.kubernetes.io/", "")}
    labels |= {f"{prefix}job-name": name for prefix in ("batch.kubernetes.io/", "")}
    meta = template["metadata"] = template.get("metadata") or {}
    meta["labels"] = {**labels, **(meta.get("labels") or {})}
    selector = spec["selector"] = spec.get("selector") or {}
    selector["matchLabels"] = {"batch.kubernetes.io/controller-uid": uid, **(selector.get("matchLabels") or {})}
