"""Which webhooks, policies and bindings are asked about a write. Pure.

The rules of all of them are gone through once for each shape of writes (operation, kind, subresource); afterwards a
write that nobody wants costs a look into a table.

Sources: apiserver pkg/admission/plugin/webhook/{predicates/rules/rules.go, generic/webhook.go:ShouldCallHook,
predicates/namespace/matcher.go, predicates/object/matcher.go}, plugin/policy/{generic/policy_matcher.go,
matching/matching.go}.
"""

# check: pure

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Generic, NamedTuple, Protocol, TypeVar

from lastcall.kube.api.meta import Object, labels_of, name_of, resource_version_of
from lastcall.kube.api.resources import NAMESPACES, Resource
from lastcall.kube.api.selectors import selector_of_expressions
from lastcall.world.dataclass import dataclass

Shape = tuple[str, Resource, str, bool, tuple[Resource, ...]]
"""Operation, kind, subresource, whether there is a namespace, other kinds of the same objects: what rules look at,
besides names."""
MOST_SHAPES = 512
"""More than a cluster has kinds and operations, as long as nobody declares kinds again and again."""


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
    shape: Shape = field(init=False)

    def __post_init__(self) -> None:
        named = (self.operation, self.resource, self.subresource)
        self.shape = (*named, bool(self.namespace), tuple(self.equivalents))

    def kind_of(self, resource: Resource) -> tuple[str, str, str]:
        """Return (group, version, kind) of what a webhook gets that asked for `resource`."""
        return self.kind or (resource.group, resource.version, resource.kind)


class Wanted:
    """Rules and selectors of a webhook, or the MatchResources of a policy or a binding, read once.

    `rules`: those of a webhook, which without any wants nothing. MatchResources without any want every kind, and may
    exclude some.
    """

    __slots__ = ("_by_name", "_every", "_exact", "_excluded", "_kinds", "_namespaces", "_objects", "_rules")

    def __init__(self, wanted: Object, rules: Sequence[Object] | None = None) -> None:
        self._objects = selector_of_expressions(wanted.get("objectSelector") or {})
        self._namespaces = selector_of_expressions(wanted.get("namespaceSelector") or {})
        self._rules = tuple(wanted.get("resourceRules") or ()) if rules is None else tuple(rules)
        self._excluded = tuple(wanted.get("excludeResourceRules") or ()) if rules is None else ()
        self._every = rules is None and not self._rules
        self._exact = wanted.get("matchPolicy") == "Exact"
        self._by_name = any(each.get("resourceNames") for each in (*self._rules, *self._excluded))
        self._kinds: dict[Shape, Resource | None] = {}

    def kind(self, write: Write) -> Resource | None:
        """Return as which kind the write is wanted, by the rules; None when no rule is about it."""
        if self._by_name:
            return self._kind(write)
        try:
            return self._kinds[write.shape]
        except KeyError:
            if len(self._kinds) >= MOST_SHAPES:
                self._kinds.clear()
            found = self._kinds[write.shape] = self._kind(write)
            return found

    def may_want(self, write: Write) -> bool:
        """Return whether one of this shape may be wanted."""
        return self._by_name or self.kind(write) is not None

    def objects(self, write: Write) -> bool:
        """Return whether the object before or after has the labels of `objectSelector`."""
        if self._objects.empty:
            return True
        # An object that labels cannot be read of has none.
        return any(obj is not None and self._objects.matches(labels_of(obj)) for obj in (write.new, write.old))

    def asks_for_namespace(self, write: Write) -> bool:
        """Return whether `namespace` has to know the labels of one."""
        return not self._namespaces.empty and (bool(write.namespace) or write.resource == NAMESPACES)

    def namespace(self, labels: dict[str, str]) -> bool:
        """Return whether a namespace with these labels is wanted."""
        return self._namespaces.matches(labels)

    def _kind(self, write: Write) -> Resource | None:
        if self._matched(self._excluded, write) is not None:
            return None
        return write.resource if self._every else self._matched(self._rules, write)

    def _matched(self, rules: Sequence[Object], write: Write) -> Resource | None:
        others = () if self._exact else write.equivalents
        for resource in (write.resource, *others):
            if any(_is_about(rule, write, resource) for rule in rules):
                return resource
        return None


def _is_about(rule: Object, write: Write, resource: Resource) -> bool:
    """Whether a rule with its operations is about the write, taken as one of `resource`."""
    return (
        _has(rule.get("operations"), write.operation)
        and _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), resource.version)
        and _in_scope(rule.get("scope"), write)
        and any(_names(text, resource.plural, write.subresource) for text in rule.get("resources") or ())
        and (not rule.get("resourceNames") or write.name in rule["resourceNames"])
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


def own_labels(write: Write) -> dict[str, str] | None:
    """Return the labels that a Namespace that is written will have. None: those of the stored one count."""
    if write.resource != NAMESPACES or write.subresource or write.operation not in ("CREATE", "UPDATE"):
        return None
    return dict(labels_of(write.new or {}))


# -- all of them -------------------------------------------------------------------------------------------------------


class Wanting(Protocol):
    """Who is asked about what it wants."""

    @property
    def wanted(self) -> Wanted: ...


W = TypeVar("W", bound=Wanting)
T = TypeVar("T")


class Everyone(Generic[W]):
    """All that want writes, in the order in which they are asked."""

    def __init__(self, everyone: Iterable[W]) -> None:
        self._everyone = tuple(everyone)
        self._about: dict[Shape, tuple[W, ...]] = {}

    def about(self, write: Write) -> Sequence[W]:
        """Return those that may want the write, by their rules."""
        found = self._about.get(write.shape)
        if found is None:
            if len(self._about) >= MOST_SHAPES:
                self._about.clear()
            found = self._about[write.shape] = tuple(each for each in self._everyone if each.wanted.may_want(write))
        return found


class Remembered(Generic[T]):
    """What `make` makes of lists of objects, for as long as they are the same."""

    def __init__(self, make: Callable[..., T]) -> None:
        self._make = make
        self._known: tuple[tuple[str, ...], T] | None = None

    def of(self, *lists: Sequence[Object]) -> T:
        versions = tuple([resource_version_of(each) for objects in lists for each in objects])
        if self._known is None or self._known[0] != versions:
            self._known = (versions, self._make(*lists))
        return self._known[1]


class Webhook(NamedTuple):
    """One of a configuration's webhooks. `id` is the same as long as the configuration has it in that place."""

    id: str
    name: str
    spec: Object
    wanted: Wanted


def webhooks_of(configurations: Iterable[Object]) -> Everyone[Webhook]:
    """Return the webhooks by the name of the configuration, and in its order."""
    return Everyone(_webhooks_of(configurations))


def _webhooks_of(configurations: Iterable[Object]) -> Iterator[Webhook]:
    for configuration in sorted(configurations, key=name_of):
        numbers: dict[str, int] = {}
        for spec in configuration.get("webhooks") or ():
            name = spec.get("name") or ""
            number = numbers[name] = numbers.get(name, -1) + 1
            wanted = Wanted(spec, spec.get("rules") or ())
            yield Webhook(f"{name_of(configuration)}/{name}/{number}", name, spec, wanted)
