"""What the API server would say of a manifest, asked before anything starts: unknown fields, types, values."""

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import orjson

from lastcall.kube.api import (
    CUSTOMRESOURCEDEFINITIONS,
    JOBS,
    DecodeError,
    FeatureGates,
    Object,
    Resource,
    check_fields,
    copy_object,
    drop_disabled_fields,
    prune,
    set_defaults,
    validate_create,
    without_allowed,
)
from lastcall.manifests.paths import path_in, value_at

Problem = tuple[str, str]
"""(field path, what is wrong with it)."""

_UNKNOWN = re.compile(r'^unknown field "(?P<field>.*)"$')
_GO_STRUCT_FIELD = re.compile(
    r"cannot unmarshal (?P<is>\w+)(?: \S+)? into Go struct field \w+\.(?P<field>[\w.]+) of type (?P<type>\S+)"
)


APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ESCAPED = ((b"<", 5), (b">", 5), (b"&", 5), ("\u2028".encode(), 3), ("\u2029".encode(), 3))
"""What Go's JSON writes as `\\u003c` and the like, and the bytes that this adds."""
MOST_WRONG_TYPES = 100


class Refused(NamedTuple):
    """Why the API server refuses an object. `text` is Kubernetes's own; `field` is "" where that names none."""

    why: Literal["unknownField", "wrongType", "invalidValue"]
    field: str
    text: str


def refusals(obj: Object, resource: Resource) -> Iterator[Refused]:
    """Yield unknown fields, values of the wrong type, and values that break a rule of the kind. `obj` is left as it
    is."""
    if wrong := list(_wrong_types(obj, resource)):
        yield from wrong
        return
    for problem in check_fields(resource, obj):
        match = _UNKNOWN.match(problem)
        yield Refused("unknownField", match["field"] if match else "", problem)
    created = as_created(obj, resource)
    for invalid in without_allowed(validate_create(resource, created), resource, created, None, FeatureGates()):
        yield Refused("invalidValue", invalid.field, invalid.body)


def _wrong_types(obj: Object, resource: Resource) -> Iterator[Refused]:
    """Every value of a wrong type; the API server names the first one alone."""
    rest = obj
    for _ in range(MOST_WRONG_TYPES):
        try:
            check_fields(resource, rest)
            return
        except DecodeError as error:
            match = _GO_STRUCT_FIELD.search(str(error))
            field = _place(rest, match["field"].split("."), match["is"]) if match else ""
            yield Refused("wrongType", field or (match["field"] if match else ""), str(error))
        path = path_in(rest, field)
        if rest is obj:
            rest = copy_object(obj)
        above = value_at(rest, path[:-1]) if path else None
        if isinstance(above, dict):
            above[path[-1]] = None  # which fits every type, and moves no item of a list
        elif isinstance(above, list) and isinstance(path[-1], int):
            above[path[-1]] = None
        else:
            return


def manifest_problems(obj: Object, resource: Resource) -> Iterator[Problem]:
    """Return `refusals` as they are reported before a cluster starts."""
    for why, field, text in refusals(obj, resource):
        if why == "unknownField" and field:
            # late: a manifest without errors needs no words for them
            from lastcall.manifests.plain_words import meant_field

            meant = meant_field(resource, obj, path_in(obj, field))
            way = f'did you mean "{meant}"?' if meant else "correct its name or its place, or remove it"
            yield field, f"not a field of {resource.kind}: {way}"
        elif why == "wrongType":
            # late: a manifest without errors needs no words for them
            from lastcall.manifests.plain_words import wrong_type

            yield field, wrong_type(text, value_at(obj, path_in(obj, field)) if field else None)
        else:
            yield field, text


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "number": (int, float), "bool": (bool,), "object": (dict,), "array": (list,),
}  # fmt: skip


def _place(value: Any, names: list[str], is_: str) -> str:
    """The first field of these names (which have no indices) with a value of that JSON type; "" for none."""
    if not names:
        fits = isinstance(value, _JSON_TYPES.get(is_, ())) and (is_ == "bool") == isinstance(value, bool)
        return "." if fits else ""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if found := _place(item, names, is_):
                return f"[{index}]{'' if found[0] in '.[' else '.'}{found if found != '.' else ''}"
        return ""
    if not isinstance(value, dict) or names[0] not in value:
        return ""
    found = _place(value[names[0]], names[1:], is_)
    if not found and len(names) == 1 and isinstance(value[names[0]], list):  # an item of a list of scalars
        at = next((i for i, each in enumerate(value[names[0]]) if _place(each, [], is_)), None)
        return f"{names[0]}[{at}]" if at is not None else ""
    if not found and len(names) == 1 and isinstance(value[names[0]], dict):  # a value of a map of scalars
        key = next((key for key, each in value[names[0]].items() if _place(each, [], is_)), None)
        return f"{names[0]}.{key}" if key is not None else ""
    if not found:
        return ""
    return names[0] + ("" if found == "." else found if found[0] == "[" else f".{found}")


def applied_bytes(obj: Object, resource: Resource) -> int:
    """Return the bytes of an object's annotations after `kubectl apply`, which adds the object itself as one.

    Source: kubectl pkg/util/apply.go:GetModifiedConfiguration (Go's JSON escapes `<`, `>`, `&`, U+2028 and U+2029).
    """
    metadata = {**({"namespace": "default"} if resource.namespaced else {}), **obj["metadata"]}
    own = dict(found) if isinstance(found := metadata.get("annotations"), dict) else {}
    own.pop(APPLIED, None)
    kept = orjson.dumps({**obj, "metadata": {**metadata, "annotations": own}})
    size = len(APPLIED) + len(kept) + 1 + sum(more * kept.count(each) for each, more in _ESCAPED)
    return size + sum(len(str(part).encode()) for pair in own.items() for part in pair)


def as_created(obj: Object, resource: Resource) -> Object:
    """Return the object as the API server sees it when it validates: with defaults, a namespace and a name."""
    created = copy_object(obj)
    created.pop("status", None)
    metadata = created["metadata"]
    if resource.namespaced:
        metadata["namespace"] = metadata.get("namespace") or "default"
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName']}xxxxx"
    prune(resource, created)  # nulls, as they are decoded
    set_defaults(resource, created)
    drop_disabled_fields(resource, created, None, FeatureGates())
    if resource == JOBS:
        _add_job_labels(created)
    if resource == CUSTOMRESOURCEDEFINITIONS:
        # late: few manifests declare kinds
        from lastcall.kube.api import versions_stored_first

        created["status"] = {"storedVersions": versions_stored_first(created)}
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
