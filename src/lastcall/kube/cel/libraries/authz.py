"""Questions to the authorizer (apiserver pkg/cel/library/authz.go)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

from lastcall.kube.api.names import is_dns1123_label, is_dns1123_subdomain
from lastcall.kube.cel.bounds import Bounds, Operand
from lastcall.kube.cel.libraries.library import Library, declared
from lastcall.kube.cel.libraries.measures import LIST, STRUCT, TRAVERSAL, always, for_all, one
from lastcall.kube.cel.operations import cost_size
from lastcall.kube.cel.values import EvaluationError
from lastcall.world.dataclass import dataclass

ROWS = """
path            authorizer_path            Authorizer.(string) -> PathCheck
group           authorizer_group           Authorizer.(string) -> GroupCheck
serviceAccount  authorizer_serviceaccount  Authorizer.(string, string) -> Authorizer
resource        groupcheck_resource        GroupCheck.(string) -> ResourceCheck
subresource     resourcecheck_subresource  ResourceCheck.(string) -> ResourceCheck
namespace       resourcecheck_namespace    ResourceCheck.(string) -> ResourceCheck
name            resourcecheck_name         ResourceCheck.(string) -> ResourceCheck
check           pathcheck_check            PathCheck.(string) -> Decision
check           resourcecheck_check        ResourceCheck.(string) -> Decision
errored         decision_errored           Decision.() -> bool
error           decision_error             Decision.() -> string
allowed         decision_allowed           Decision.() -> bool
reason          decision_reason            Decision.() -> string
fieldSelector   authorizer_fieldselector   ResourceCheck.(string) -> ResourceCheck
labelSelector   authorizer_labelselector   ResourceCheck.(string) -> ResourceCheck
"""

CHECK = 350_000
"""What asking the authorizer costs: two questions fit into the limit of a call."""
REQUIREMENTS = 0.5
"""Requirements that one character of a selector may make."""


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""
    error: str | None = None
    cel_type: ClassVar[str] = "kubernetes.authorization.Decision"
    cel_unit: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Question:
    """What the authorizer is asked. A `path` asks about no resource; selectors are text."""

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


class Asked(Protocol):
    """Whom an expression asks: the caller has one for the user of the request."""

    def authorize(self, question: Question) -> Decision: ...

    def service_account(self, namespace: str, name: str) -> "Asked":
        """Return the same question for a service account."""


@dataclass(frozen=True, slots=True, eq=False)
class Authorizer:
    """The variable `authorizer`."""

    asked: Asked
    cel_type: ClassVar[str] = "kubernetes.authorization.Authorizer"
    cel_unit: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class PathCheck:
    asked: Asked
    path: str
    cel_type: ClassVar[str] = "kubernetes.authorization.PathCheck"
    cel_unit: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class GroupCheck:
    asked: Asked
    group: str
    cel_type: ClassVar[str] = "kubernetes.authorization.GroupCheck"
    cel_unit: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class ResourceCheck:
    """A question without its verb; also the variable `authorizer.requestResource`."""

    asked: Asked
    question: Question
    cel_type: ClassVar[str] = "kubernetes.authorization.ResourceCheck"
    cel_unit: ClassVar[bool] = True


def path(authorizer: Authorizer, text: str) -> PathCheck:
    if not text.strip():
        raise EvaluationError("path must not be empty")
    return PathCheck(authorizer.asked, text)


def service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if is_dns1123_subdomain(name):
        raise EvaluationError("Invalid service account name")
    if is_dns1123_label(namespace):
        raise EvaluationError("Invalid service account namespace")
    return Authorizer(authorizer.asked.service_account(namespace, name))


def resource(check: GroupCheck, text: str) -> ResourceCheck:
    if not text.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(check.asked, Question("", group=check.group, resource=text))


def narrowed(part: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def narrow(check: ResourceCheck, text: str) -> ResourceCheck:
        changes: dict[str, Any] = {part: text}
        return ResourceCheck(check.asked, replace(check.question, **changes))

    return narrow


def selector_cost(arguments: Sequence[object]) -> int:
    size = cost_size(arguments[1])
    return selector_bounds(Bounds(size, size)).max


def selector_bounds(size: Bounds) -> Bounds:
    return Bounds(LIST, LIST) + size.times(TRAVERSAL) + size.times(REQUIREMENTS).times(LIST + STRUCT)


def selector_estimate(operands: Sequence[Operand]) -> tuple[Bounds, Bounds | None]:
    return selector_bounds(operands[1].size), None


IMPLEMENTATIONS: dict[str, Callable[..., object]] = {
    "authorizer_path": path,
    "authorizer_group": lambda authorizer, group: GroupCheck(authorizer.asked, group),
    "authorizer_serviceaccount": service_account,
    "groupcheck_resource": resource,
    "resourcecheck_subresource": narrowed("subresource"),
    "resourcecheck_namespace": narrowed("namespace"),
    "resourcecheck_name": narrowed("name"),
    "pathcheck_check": lambda check, verb: check.asked.authorize(Question(verb, path=check.path)),
    "resourcecheck_check": lambda check, verb: check.asked.authorize(replace(check.question, verb=verb)),
    "decision_errored": lambda decision: decision.error is not None,
    "decision_error": lambda decision: decision.error or "",
    "decision_allowed": lambda decision: decision.allowed,
    "decision_reason": lambda decision: decision.reason,
    "authorizer_fieldselector": narrowed("field_selector"),
    "authorizer_labelselector": narrowed("label_selector"),
}
CHECKS = ("pathcheck_check", "resourcecheck_check")
SELECTORS = ("authorizer_fieldselector", "authorizer_labelselector")
LIBRARY = Library(
    "authz",
    declared(ROWS),
    implementations=IMPLEMENTATIONS,
    costs={
        **for_all(IMPLEMENTATIONS, one),
        **for_all(CHECKS, lambda arguments: CHECK),
        **for_all(SELECTORS, selector_cost),
    },
    estimates={
        **dict.fromkeys(IMPLEMENTATIONS, always(1)),
        **dict.fromkeys(CHECKS, always(CHECK)),
        **dict.fromkeys(SELECTORS, selector_estimate),
    },
)
