"""An object of the manifests, where its fields are, and what is found in them."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

from lastcall.kube.api import Object, Resource
from lastcall.lint.catalogue.lookup import RULES
from lastcall.lint.catalogue.rule import Certainty, Severity
from lastcall.manifests import Path, as_created, value_at


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
        """Return the object with the API server's defaults; for sound objects of known kinds only."""
        assert self.resource is not None
        return as_created(self.raw, self.resource)

    @property
    def spec(self) -> Object:
        """Return `spec`, with defaults."""
        spec: Object = self.obj.get("spec") or {}
        return spec

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()

    def has(self, path: Path) -> bool:
        """Return whether the manifest itself says this field."""
        return value_at(self.raw, path) is not None


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


class NotChecked(NamedTuple):
    """An object that is not looked at with the others: one of a kind that lastcall does not know, or a chart's hook."""

    subject: Subject
    why: Literal["kind", "hook"]


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
    """Return a finding. The catalogue gives what the caller leaves out."""
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
