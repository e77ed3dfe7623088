"""Applies a proposed change: a patch of the Pod's spec or of the workload, or what a reader takes from a sentence."""

import re
from collections.abc import Sequence
from typing import Any

import yaml

from bench.diagnosis.application import Object, template_of
from lastcall.kube.api.patch.apply import strategic_merge_patch
from lastcall.kube.api.resources import PODS
from lastcall.kube.api.schema.checks import resource_for

SPEC_FIELDS = frozenset({
    "terminationGracePeriodSeconds", "shareProcessNamespace", "securityContext", "volumes", "initContainers",
    "containers", "nodeSelector", "affinity", "tolerations", "restartPolicy", "hostname", "subdomain", "dnsPolicy",
})  # fmt: skip
"""Fields that a reader puts into the Pod's spec; all others belong to a container."""
KEY = re.compile(r"(?<![\w.{])([a-z][A-Za-z]+(?:\.[a-z][A-Za-z]+)*): ?(?=[\w{\[\"'])")
THRESHOLD = re.compile(r"\b(\w+Probe): failureThreshold \* periodSeconds at least (\d+)")
NOT_A_FIELD = frozenset({"fix", "https", "http"})


def mapping_in(sentence: str) -> dict[str, Any]:
    """Return the YAML flow mapping that a sentence proposes, {} without one: `lifecycle: {preStop: {…}}`, `a.b: 3`.

    A product of two fields, as probes have it, is one of them with the other being 1.
    """
    if found := THRESHOLD.search(sentence):
        return {found.group(1): {"failureThreshold": int(found.group(2)), "periodSeconds": 1}}
    for found in KEY.finditer(sentence):
        key = found.group(1)
        if key.partition(".")[0] in NOT_A_FIELD:
            continue
        value = _value(sentence[found.end() :])
        if value is None:
            continue
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError:
            continue
        names = key.split(".")
        if isinstance(read, str) and len(names) == 1 and key not in ("image", "imagePullPolicy", "restartPolicy"):
            continue  # words after a colon, not a value
        for name in reversed(names):
            read = {name: read}
        return dict(read)
    return {}


def _value(text: str) -> str | None:
    """Return the value at the beginning of a text: a balanced flow collection, or one word."""
    if text[0] not in "{[":
        found = re.match(r"\"[^\"]*\"|'[^']*'|[\w./-]*\w", text)
        return found.group(0) if found else None
    depth = 0
    for index, char in enumerate(text):
        depth += (char in "{[") - (char in "}]")
        if depth == 0:
            return text[: index + 1]
    return None


def patch_of(mapping: dict[str, Any], container: str) -> dict[str, Any]:
    """Return a patch of the Pod's spec: fields of a container go to the container.

    `restartPolicy: Always` makes a native sidecar: a Pod's own policy is never the change that is meant.
    """
    if mapping == {"restartPolicy": "Always"}:
        return {"initContainers": [{"name": container, **mapping}]}
    if "spec" in mapping and isinstance(mapping["spec"], dict):
        mapping = mapping["spec"]
    own = {key: value for key, value in mapping.items() if key not in SPEC_FIELDS}
    patch = {key: value for key, value in mapping.items() if key in SPEC_FIELDS}
    return {**patch, "containers": [{"name": container, **own}]} if own else patch


def patch_template(objects: Sequence[Object], patch: dict[str, Any], container: str) -> list[Object]:
    """Return the objects with a strategic merge patch of the spec of the Pod that has this container.

    Containers of the patch that are init containers in the Pod are patched there. A container that the patch has among
    the init containers becomes one: that is how a native sidecar is made.
    """
    changed = []
    for each in objects:
        spec = template_of(each)
        if spec is not None and container in _names(spec):
            spec = _with_sidecars(spec, patch)
            merged = strategic_merge_patch(PODS, {"spec": spec}, {"spec": _moved(patch, spec)})["spec"]
            each = _with_template(each, merged)
        changed.append(each)
    return changed


def _names(spec: Object) -> list[str]:
    return [each["name"] for each in (*spec.get("containers", ()), *spec.get("initContainers", ()))]


def _moved(patch: dict[str, Any], spec: Object) -> dict[str, Any]:
    """Return the patch with the patches of init containers in their list."""
    inits = {each["name"] for each in spec.get("initContainers", ())}
    of_inits = [each for each in patch.get("containers", ()) if each.get("name") in inits]
    if not of_inits:
        return patch
    rest = [each for each in patch["containers"] if each not in of_inits]
    moved = {key: value for key, value in patch.items() if key != "containers"}
    return {**moved, "initContainers": of_inits, **({"containers": rest} if rest else {})}


def _with_sidecars(spec: Object, patch: dict[str, Any]) -> Object:
    """Return the spec with those containers among its init containers that the patch has there."""
    wanted = {each["name"] for each in patch.get("initContainers", ())}
    moving = [each for each in spec["containers"] if each["name"] in wanted]
    if not moving:
        return spec
    stay = [each for each in spec["containers"] if each not in moving]
    return {**spec, "containers": stay, "initContainers": [*spec.get("initContainers", ()), *moving]}


def _with_template(obj: Object, spec: Object) -> Object:
    if obj["kind"] == "Pod":
        return {**obj, "spec": spec}
    template = {**obj["spec"]["template"], "spec": spec}
    return {**obj, "spec": {**obj["spec"], "template": template}}


def patch_workload(objects: Sequence[Object], patch: dict[str, Any]) -> list[Object]:
    """Return the objects with a patch of the workload, as `lastcall rollout` proposes it."""
    changed = []
    for each in objects:
        if each["kind"] in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"):
            resource: Any = resource_for(each["apiVersion"], each["kind"])
            each = strategic_merge_patch(resource, each, patch)
        changed.append(each)
    return changed
