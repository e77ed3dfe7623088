"""What `kubectl apply` would refuse or warn of: the API's own decoding, validation and warnings."""

import json
from collections.abc import Iterator

from lastcall.kube.api import SERVED, FeatureGates, Resource, dropped_fields, known_kind, warnings_on_create
from lastcall.lint.application import Application
from lastcall.lint.subject import Finding, Op, Subject, found
from lastcall.manifests import (
    Path,
    applied_bytes,
    closest,
    meant_field,
    own_groups,
    path_in,
    refusals,
    shown_path,
    unrendered_field,
    value_at,
    wrong_type,
)

MOST_ANNOTATION_BYTES = 256 << 10
"""Of all annotations of an object, keys and values (TotalAnnotationSizeLimitB)."""


def findings(app: Application) -> Iterator[Finding]:
    for subject in app.subjects:
        if subject.resource is None:
            yield from _kind(subject)
        elif subject.sound:
            for text in warnings_on_create(subject.resource, subject.obj):
                field, _, said = text.partition(": ")
                yield found("apiWarning", subject, path_in(subject.raw, field), f"{field}: {said}.")
            for field, gate in dropped_fields(subject.resource, subject.raw, FeatureGates()).items():
                off = f"feature gate {gate} is off by default" if gate else "its feature gate is off by default"
                yield found("fieldDropped", subject, path_in(subject.raw, field), f"{field} is dropped: {off}.")
    yield from _duplicates(app)


def refused(subject: Subject) -> Iterator[Finding]:
    """Find what is wrong with the object alone. Marks a subject whose values have wrong types as not sound."""
    assert subject.resource is not None
    if not isinstance(subject.raw.get("metadata"), dict):
        subject.sound = False
        yield found("notAnObject", subject, ("metadata",), f"{subject.kind} has no metadata, which holds the name.")
        return
    if (size := applied_bytes(subject.raw, subject.resource)) > MOST_ANNOTATION_BYTES:
        text = f"{subject.kind} has {size} bytes of JSON and annotations: kubectl apply keeps {MOST_ANNOTATION_BYTES}."
        yield found("tooLongToApply", subject, ("metadata",), text)
    all_refusals = list(refusals(subject.raw, subject.resource))
    paths = [path_in(subject.raw, each.field) for each in all_refusals]
    if (unrendered := unrendered_field(subject.raw, paths)) is not None:
        path, command = unrendered
        subject.sound = False
        text = f"{shown_path(path)} is {json.dumps(value_at(subject.raw, path))}: an unrendered template."
        yield found("unrendered", subject, path, text, fix=f"Render it: {command} | lastcall lint -")
        return
    for each, path in zip(all_refusals, paths, strict=True):
        if each.why == "wrongType":
            subject.sound = False
            yield found(
                "wrongType", subject, path, f"{shown_path(path)}: {wrong_type(each.text, value_at(subject.raw, path))}."
            )
        elif each.why == "unknownField":
            yield _unknown(subject, subject.resource, path)
        else:
            yield found("invalidValue", subject, path, f"{each.field}: {each.text}.")


# -- fields ----------------------------------------------------------------------------------------------------------


def _unknown(subject: Subject, resource: Resource, path: Path) -> Finding:
    best = meant_field(resource, subject.raw, path)
    text = f"{shown_path(path)} is not a field of {subject.kind}"
    if best is None:
        return found("unknownField", subject, path, f"{text}.")
    patch = [Op("remove", path), Op("add", (*path[:-1], best), value_at(subject.raw, path))]
    return found(
        "unknownField", subject, path, f"{text}: {best} is.", fix=f"Write {best}.", patch=patch, automatic=True
    )


# -- kinds -----------------------------------------------------------------------------------------------------------


def _kind(subject: Subject) -> Iterator[Finding]:
    """An apiVersion of Kubernetes's own that has no such kind (any more)."""
    api_version = str(subject.raw.get("apiVersion") or "")
    group = api_version.rpartition("/")[0]
    if known_kind(api_version, subject.kind) or group not in own_groups():
        return
    best = next((each.api_version for each in SERVED if each.kind == subject.kind), None)
    text = f"{api_version!r} has no kind {subject.kind}"
    if best is None:
        near = closest(subject.kind, [each.kind for each in SERVED if each.api_version == api_version])
        if near is None:
            yield found("unknownApiVersion", subject, ("kind",), f"{text}.", severity="warning")
            return
        patch = [Op("replace", ("kind",), near)]
        yield found("unknownApiVersion", subject, ("kind",), f"{text}: {near}?", fix=f"kind: {near}", patch=patch)
        return
    patch = [Op("replace", ("apiVersion",), best)]
    yield found(
        "unknownApiVersion",
        subject,
        ("apiVersion",),
        f"{text}: it is in {best}.",
        fix=f"apiVersion: {best}, and the fields that this version has.",
        patch=patch,
        automatic=True,
    )


def _duplicates(app: Application) -> Iterator[Finding]:
    seen: dict[tuple[str, str, str, str], Subject] = {}
    for subject in app.subjects:
        if not subject.metadata.get("name"):
            continue
        group = str(subject.raw.get("apiVersion") or "").rpartition("/")[0]
        first = seen.setdefault((group, subject.kind, subject.namespace, subject.name), subject)
        if first is not subject:
            where = f" in namespace {subject.namespace}" if subject.namespace else ""
            text = f"A second {subject}{where}: the one that is applied last overwrites the other."
            yield found("duplicateObject", subject, ("metadata", "name"), text)
