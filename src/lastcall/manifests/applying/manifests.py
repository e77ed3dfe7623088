"""Manifests for `apply`: files, directories, YAML text or dicts, as one list of objects in the order to create them."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lastcall.errors import InvalidManifest
from lastcall.kube.api import Object, copy_object
from lastcall.manifests.read import FIRST_KINDS, Reader, objects_in, texts
from lastcall.manifests.workloads import OWNERS

__tracebackhide__ = True  # pytest shows the caller's line

_OWNERS = {*(each.kind for each in OWNERS), "CronJob"}

Manifests = str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A path to a file or a directory, YAML or JSON text (of several lines), an object, or a list of objects."""


def read(sources: Sequence[Manifests]) -> list[Object]:
    """Return all objects, Lists taken apart. Raises InvalidManifest with every problem, a line each."""
    reader = Reader()
    found: list[Any] = []
    for source in sources:
        if isinstance(source, Mapping):
            found.append(dict(source))
        elif isinstance(source, str | Path):
            for name, text in _texts(source, reader):
                found += [value for value, _ in objects_in(reader, name, text)]
        else:
            found += [dict(each) for each in source]
    for value in found:
        if problem := _problem(value):
            reader.problems.append(problem)
    if reader.problems:
        raise InvalidManifest("\n".join(reader.problems))
    return sorted((copy_object(value) for value in found), key=_order)


def _texts(source: str | Path, reader: Reader) -> list[tuple[str, str]]:
    if isinstance(source, str) and "\n" in source:
        return [("<text>", source)]
    return list(texts([str(source)], reader, io.StringIO()))


def _problem(value: Any) -> str:
    """What is wrong with an object before a server has looked at it, "" for nothing."""
    if not isinstance(value, dict):
        return f"expected an object with apiVersion and kind, found {value!r:.80}"
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            return f"{field} is missing in {value!r:.120}"
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        return f"metadata.name is missing in {value['kind']} ({value['apiVersion']})"
    return ""


def _order(obj: Object) -> int:
    """Definitions and namespaces first, what Pods need next, then owners of Pods, and Pods last."""
    kind = obj["kind"]
    if kind in FIRST_KINDS:
        return FIRST_KINDS.index(kind)
    return len(FIRST_KINDS) + (2 if kind == "Pod" else 1 if kind in _OWNERS else 0)
