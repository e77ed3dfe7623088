"""What the rules of the Pod Security Standards have in common: whom they look at, and how they report it.

Source: pod-security-admission policy/{visitor,helpers}.go.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from lastcall.kube.api.meta import Object


class Violation(NamedTuple):
    reason: str
    detail: str


Rule = Callable[[Object, Object], Violation | None]
"""(metadata, spec) → what is wrong."""


def containers(spec: Object) -> Iterator[tuple[str, Object]]:
    """Yield name and container. (`visitContainers`)"""
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            yield container.get("name", ""), container


def contexts(spec: Object) -> Iterator[tuple[str, Object]]:
    """Yield name and securityContext of every container."""
    for name, container in containers(spec):
        yield name, container.get("securityContext") or {}


def quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def number(count: int, one: str, several: str = "") -> str:
    return one if count == 1 else several or f"{one}s"


def named(containers: Sequence[str]) -> str:
    """Return `container "a"`, `containers "a", "b"`."""
    return f"{number(len(containers), 'container')} {quoted(containers)}"


def setters(pod: bool, containers: Sequence[str]) -> str:
    """Return who set something, "" for nobody: `pod and container "a"`."""
    return " and ".join([*(["pod"] if pod else []), *([named(containers)] if containers else [])])


def unless_windows(rule: Rule) -> Rule:
    return lambda meta, spec: None if (spec.get("os") or {}).get("name") == "windows" else rule(meta, spec)


def unless_user_namespace(rule: Rule) -> Rule:
    """Return a rule that spares Pods with a user namespace of their own. (`relaxPolicyForUserNamespacePod`)"""
    return lambda meta, spec: None if spec.get("hostUsers") is False else rule(meta, spec)
