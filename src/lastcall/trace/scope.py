"""Which Pods are followed: `-n`, `-A`, `-l` and `KIND/NAME …`. Pure."""

# check: pure

from collections.abc import Sequence
from dataclasses import field

from lastcall.kube.api import CRONJOBS, DAEMONSETS, DEPLOYMENTS, JOBS, NODES, PODS, REPLICASETS, STATEFULSETS, Resource
from lastcall.world.dataclass import dataclass

KINDS: tuple[Resource, ...] = (PODS, DEPLOYMENTS, REPLICASETS, STATEFULSETS, DAEMONSETS, JOBS, CRONJOBS, NODES)
"""What a target may be, by kubectl's names."""


class ScopeError(ValueError):
    """A target or a scope that cannot be meant so; the text says what would do."""


@dataclass(frozen=True, slots=True)
class Target:
    """`deployment/web`: the Pods of that Deployment; `node/n1`: the Pods on that node."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Scope:
    """`namespace` "" is all of them. With `targets` only their Pods are followed, else all that `selector` matches."""

    namespace: str = ""
    selector: str = ""
    targets: Sequence[Target] = field(default=())

    @property
    def only_pods(self) -> bool:
        """Return True if every target is a Pod: the end of the last one is the end of the work."""
        return bool(self.targets) and all(each.kind == PODS.kind for each in self.targets)


def target_of(text: str) -> Target:
    """Parse `pod/web-0`, `deploy/web`, `deployments.apps/web`; a word alone is a Pod. Raises ScopeError."""
    kind, slash, name = text.partition("/")
    if not slash:
        kind, name = "pod", text
    word = kind.partition(".")[0].lower()
    for resource in KINDS:
        if word in (resource.plural, resource.singular, resource.kind.lower(), *resource.short_names):
            if not name or "/" in name:
                raise ScopeError(f"{text!r}: write KIND/NAME, such as {resource.singular}/web")
            return Target(resource.kind, name)
    known = ", ".join(each.singular for each in KINDS)
    raise ScopeError(f"{text!r}: trace follows Pods of {known}, not of {kind!r}")
