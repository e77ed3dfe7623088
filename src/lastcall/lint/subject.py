"""An object of the manifests, where its fields are, and what is found in them."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from lastcall.api.meta import Object
from lastcall.api.resources import Resource
from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.catalogue.rule import Certainty, Severity
from lastcall.lint.manifest_checks import as_created

Path = tuple[str | int, ...]
"""Where a field is in its object: keys and indices."""


_STEPS = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def parsed_path(text: str) -> Path:
    """`shown_path` the other way round, and any field path of Kubernetes."""
    steps: list[str | int] = []
    for inside, plain in _STEPS.findall(text):
        step = inside or plain
        steps.append(int(step) if inside.isdigit() else step)
    return tuple(steps)


def path_in(value: Any, text: str) -> Path:
    """A field path of Kubernetes, whose keys may have dots in them, by the keys that `value` has."""
    steps: list[str | int] = []
    while text:
        keys = [key for key in value if isinstance(key, str)] if isinstance(value, dict) else []
        fitting = [key for key in keys if text == key or text.startswith((f"{key}.", f"{key}["))]
        if not fitting or text.startswith("["):
            first = _STEPS.match(text)
            if first is None:
                break
            inside, plain = first.groups()
            step: str | int = int(inside) if inside and inside.isdigit() else inside or plain
            text = text[first.end() :].removeprefix(".")
        else:
            step = max(fitting, key=len)
            text = text[len(str(step)) :].removeprefix(".")
        steps.append(step)
        value = value_at(value, (step,))
    return tuple(steps)


def shown_path(path: Path) -> str:
    """`spec.containers[0].image`, as kubectl writes it; keys with dots in brackets."""
    text = ""
    for step in path:
        if isinstance(step, int) or "." in step or "/" in step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


class Subject:
    """One object. `raw` is as written (shared: not to be changed). `where` is whatever the reader knows it by.

    `resource` is None for a kind that lastcall does not know; `sound` is False where values have wrong types, so that
    no other rule may look at it.
    """

    def __init__(self, raw: Object, resource: Resource | None, where: Any = None) -> None:
        self.raw = raw
        self.resource = resource
        self.where = where
        self.sound = True
        meta = raw.get("metadata")
        self.metadata: Object = meta if isinstance(meta, dict) else {}
        self.kind = str(raw.get("kind") or "")
        self.name = str(self.metadata.get("name") or self.metadata.get("generateName") or "")
        namespaced = resource is None or resource.namespaced
        self.namespace = str(self.metadata.get("namespace") or "default") if namespaced else ""

    @cached_property
    def obj(self) -> Object:
        """With the API server's defaults; for sound objects of known kinds only."""
        assert self.resource is not None
        return as_created(self.raw, self.resource)

    @property
    def spec(self) -> Object:
        """`spec`, with defaults."""
        spec: Object = self.obj.get("spec") or {}
        return spec

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()

    def has(self, path: Path) -> bool:
        """Whether the manifest itself says this field."""
        return value_at(self.raw, path) is not None


def value_at(value: Any, path: Path) -> Any:
    """What is there; None for nothing."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return None
    return value


class Op(NamedTuple):
    """One step of a JSON Patch (RFC 6902) for the subject of a finding."""

    op: Literal["add", "replace", "remove"]
    path: Path
    value: Any = None


class Finding(NamedTuple):
    """One thing that is wrong with `subject` at `path` (the nearest field that exists, where one is missing).

    `fix` says what to do, `patch` does it; () where it takes a decision that no linter can make. `automatic`: the patch
    is the only sensible one, so that `--fix` may apply it.
    """

    rule: str
    subject: Subject
    path: Path
    message: str
    fix: str
    severity: Severity
    certainty: Certainty
    patch: tuple[Op, ...] = ()
    automatic: bool = False


class NotHere(NamedTuple):
    """What the manifests refer to and do not hold: it may be in the cluster, so nothing is wrong that can be known."""

    kind: str
    namespace: str
    name: str
    subject: Subject
    path: Path


def found(
    rule: str,
    subject: Subject,
    path: Path,
    message: str,
    *,
    fix: str = "",
    patch: Sequence[Op] = (),
    automatic: bool = False,
    severity: Severity | None = None,
    certainty: Certainty | None = None,
) -> Finding:
    """A finding with what the catalogue says where nothing else is said."""
    entry = RULES[rule]
    return Finding(
        rule=rule,
        subject=subject,
        path=path,
        message=message,
        fix=fix or entry.fix,
        severity=severity or entry.severity,
        certainty=certainty or entry.certainty,
        patch=tuple(patch),
        automatic=automatic and bool(patch),
    )
