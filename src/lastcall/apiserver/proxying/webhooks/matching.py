"""Which webhooks are asked about a write. Pure.

Sources: apiserver pkg/admission/plugin/webhook/{predicates/rules/rules.go, generic/webhook.go:ShouldCallHook,
predicates/namespace/matcher.go, predicates/object/matcher.go}.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lastcall.api.meta import Object, labels_of, name_of
from lastcall.api.resources import NAMESPACES, Resource
from lastcall.api.selectors import selector_of_expressions


@dataclass(slots=True)
class Write:
    """What is asked about. `new` and `old` are as `resource`, the kind that the client named, shows them.

    `operation` is CREATE, UPDATE, DELETE or CONNECT. `kind` is (group, version, kind) of `new` where that is not of
    `resource`: a Scale, a Binding. `options` is the Create-, Update- or DeleteOptions. `name` is "" where the request
    has none.
    """

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    new: Object | None
    old: Object | None
    options: Object | None = None
    kind: tuple[str, str, str] | None = None
    dry_run: bool = False
    equivalents: Sequence[Resource] = field(default_factory=tuple)
    """Other kinds by which clients may name the same objects."""

    def kind_of(self, resource: Resource) -> tuple[str, str, str]:
        """(group, version, kind) of what a webhook gets that asked for `resource`."""
        return self.kind or (resource.group, resource.version, resource.kind)


class Webhook(NamedTuple):
    """One of a configuration's webhooks. `id` is the same as long as the configuration has it in that place."""

    id: str
    name: str
    spec: Object


def webhooks_of(configurations: Iterable[Object]) -> Iterator[Webhook]:
    """In the order in which they are asked: by the name of the configuration, and as they stand in it."""
    for configuration in sorted(configurations, key=name_of):
        numbers: dict[str, int] = {}
        for spec in configuration.get("webhooks") or ():
            name = spec.get("name") or ""
            number = numbers[name] = numbers.get(name, -1) + 1
            yield Webhook(f"{name_of(configuration)}/{name}/{number}", name, spec)


def matched_kind(webhook: Webhook, write: Write) -> Resource | None:
    """As which kind a webhook wants to see the write, by its rules; None when no rule is about it."""
    rules = webhook.spec.get("rules") or ()
    if any(is_about(rule, write, write.resource) for rule in rules):
        return write.resource
    if webhook.spec.get("matchPolicy") == "Exact":
        return None
    for other in write.equivalents:
        if any(is_about(rule, write, other) for rule in rules):
            return other
    return None


def is_about(rule: Object, write: Write, resource: Resource) -> bool:
    """Whether a rule with its operations is about the write, taken as one of `resource`."""
    return (
        _has(rule.get("operations"), write.operation)
        and _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), resource.version)
        and _in_scope(rule.get("scope"), write)
        and any(_names(text, resource.plural, write.subresource) for text in rule.get("resources") or ())
    )


def _has(wanted: Sequence[str] | None, value: str) -> bool:
    return "*" in (wanted or ()) or value in (wanted or ())


def _names(text: str, plural: str, subresource: str) -> bool:
    resource, _, sub = text.partition("/")
    return resource in ("*", plural) and sub in ("*", subresource)


def _in_scope(scope: str | None, write: Write) -> bool:
    """A Namespace counts as an object of the cluster, although its requests have a namespace."""
    of_cluster = write.resource == NAMESPACES or not write.namespace
    return scope in (None, "*") or of_cluster == (scope == "Cluster")


def wants_objects(webhook: Webhook, write: Write) -> bool:
    """Whether the object before or after has the labels of `objectSelector`."""
    selector = selector_of_expressions(webhook.spec.get("objectSelector") or {})
    if selector.empty:
        return True
    # An object that labels cannot be read of has none.
    return any(obj is not None and selector.matches(labels_of(obj)) for obj in (write.new, write.old))


def asks_for_namespace(webhook: Webhook, write: Write) -> bool:
    """Whether `wants_namespace` has to know the labels of a namespace."""
    selector = selector_of_expressions(webhook.spec.get("namespaceSelector") or {})
    return not selector.empty and (bool(write.namespace) or write.resource == NAMESPACES)


def wants_namespace(webhook: Webhook, labels: dict[str, str]) -> bool:
    return selector_of_expressions(webhook.spec.get("namespaceSelector") or {}).matches(labels)


def own_labels(write: Write) -> dict[str, str] | None:
    """Of a Namespace that is written: those it will have. None: those of the one that is stored count."""
    if write.resource != NAMESPACES or write.subresource or write.operation not in ("CREATE", "UPDATE"):
        return None
    return dict(labels_of(write.new or {}))
