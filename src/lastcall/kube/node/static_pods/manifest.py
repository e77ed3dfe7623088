"""What a manifest file of the node says. Pure, and imported with the first such file: it needs what knows all of a Pod.

Sources: pkg/kubelet/config/common.go (tryDecodeSinglePod, applyDefaults). A file is hostile: its size, its depth and
its types are checked before anything reads it.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, cast

import yaml

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.features.disabled_fields import drop_disabled_fields
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.pods.references import api_reference
from lastcall.kube.api.resources import PODS
from lastcall.kube.api.schema.checks import DecodeError, check_fields
from lastcall.kube.api.text import go_yaml
from lastcall.kube.api.validation import validate_create
from lastcall.kube.node.static_pods.decide import (
    CONFIG_HASH,
    CONFIG_MIRROR,
    CONFIG_SEEN,
    CONFIG_SOURCE,
    MAX_BYTES,
    ManifestError,
)

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

MAX_NODES = 100_000
"""Values in one file with its YAML aliases followed."""
_TOO_DEEP = "exceeded max"
"""What libyaml and Go's YAML say of lists and objects in one another, above their limits."""
_EMPTY = frozenset(("", "~", "null", "Null", "NULL"))
_SYSTEM_FIELDS = (
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "managedFields",
    "selfLink",
)
_OWN_ANNOTATIONS = (CONFIG_SOURCE, CONFIG_HASH, CONFIG_SEEN, CONFIG_MIRROR)
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")
"""It becomes the name of directories."""


def read_manifest(data: bytes, *, path: str, node_name: str, seen: str, gates: FeatureGates | None = None) -> Pod:
    """Read the static Pod of one file. `seen` is RFC 3339, `path` goes into the UID. Raises ManifestError.

    Its UID is a hash of what it says unless the manifest has one; its name gets the node's as a suffix.
    """
    pod = _decode(data)
    metadata: Object = pod["metadata"]
    for field in _SYSTEM_FIELDS:
        metadata.pop(field, None)
    annotations: dict[str, str] = metadata.get("annotations") or {}
    metadata["annotations"] = {key: value for key, value in annotations.items() if key not in _OWN_ANNOTATIONS}
    if not _UID.fullmatch(metadata.get("uid") or "x"):
        raise ManifestError(f"metadata.uid: Invalid value: {metadata['uid']!r}: letters, digits and '-', at most 63")
    if not metadata.get("uid"):
        canonical = json.dumps(pod, sort_keys=True, separators=(",", ":"), default=str)
        text = f"{canonical}host:{node_name}file:{path}"
        metadata["uid"] = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    if metadata.get("name"):
        metadata["name"] = f"{metadata['name']}-{node_name.lower()}"
    metadata["namespace"] = metadata.get("namespace") or "default"
    pod["spec"]["nodeName"] = node_name
    metadata["annotations"] = {
        **metadata["annotations"],
        CONFIG_HASH: metadata["uid"],
        CONFIG_SEEN: seen,
        CONFIG_SOURCE: "file",
    }
    tolerations = pod["spec"].setdefault("tolerations", [])
    if {"operator": "Exists", "effect": "NoExecute"} not in tolerations:
        tolerations.append({"operator": "Exists", "effect": "NoExecute"})
    set_defaults(PODS, pod)
    drop_disabled_fields(PODS, pod, None, gates or FeatureGates())
    pod["status"] = {"phase": "Pending"}
    if problems := validate_create(PODS, pod):
        raise ManifestError("; ".join(str(problem) for problem in problems))
    if found := api_reference(pod):
        raise ManifestError(f"static pods may not reference {found}")
    return cast("Pod", pod)  # all its fields were checked above


def _decode(data: bytes) -> Object:
    if len(data) > MAX_BYTES:
        raise ManifestError(f"it has more than {MAX_BYTES} bytes")
    document = _parse(data)
    if not isinstance(document, dict):
        raise ManifestError("it holds no object")
    if document.get("apiVersion") != "v1" or document.get("kind") != "Pod":
        kind = f"{document.get('apiVersion')} {document.get('kind')}"
        raise ManifestError(f"it holds a {kind}: a static Pod is one v1 Pod a file")
    for field in ("metadata", "spec"):
        if not isinstance(document.get(field), dict):
            raise ManifestError(f"{field}: Required value")
    document.pop("status", None)
    try:
        check_fields(PODS, document)
    except DecodeError as error:
        raise ManifestError(str(error)) from None
    return document


def _parse(data: bytes) -> Any:
    """Return the one document as Kubernetes reads it: `y` is true, `12:30` and dates are texts."""
    try:
        documents = _count_documents(data.decode())
        value = go_yaml.decode(data) if documents == 1 else None
    except (UnicodeDecodeError, yaml.YAMLError, go_yaml.YAMLError) as error:
        if _TOO_DEEP in str(error):
            raise ManifestError("it is nested too deeply") from None
        raise ManifestError(f"it is neither YAML nor JSON: {' '.join(str(error).split())}") from None
    if documents != 1:
        raise ManifestError(f"it holds {documents} documents: a static Pod is one v1 Pod a file")
    if _size([value]) > MAX_NODES:
        raise ManifestError(f"it holds more than {MAX_NODES} values")
    return value


def _count_documents(text: str) -> int:
    """Return how many documents there are that are not empty. Raises yaml.YAMLError."""
    number, begins = 0, False
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if begins and not (isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value in _EMPTY):
            number += 1
        begins = isinstance(event, yaml.DocumentStartEvent)
    return number


def _size(value: Any) -> int:
    """Return the number of values; the value of an alias counts each time."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, items))
