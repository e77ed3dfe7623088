"""Expressions of one policy against one write: variables, conditions, the budget of costs. Pure.

What an authorizer would say is looked up in what was asked before; `Undecided` asks for more, and the caller starts
again: evaluation has no effects.

Source: apiserver pkg/admission/plugin/cel/{activation.go, condition.go, composition.go}, pkg/apis/cel/config.go,
plugin/webhook/matchconditions/matcher.go.
"""

from collections.abc import Iterator, Mapping, Sequence

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.policies.language import Compiled
from lastcall.kube.cel.admission import VARIABLES
from lastcall.kube.cel.values import NOTHING, CostExceeded, EvaluationError
from lastcall.world.dataclass import dataclass

CALL_LIMIT = 1_000_000
"""Cost of one expression."""
BUDGET = 10_000_000
"""Cost of all expressions of a policy with one binding and one parameter object."""
CONDITIONS_BUDGET = 2_500_000
"""Cost of the conditions of a webhook or of a policy."""
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_NAMESPACE_META = (
    "name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers",
)  # fmt: skip


class OutOfBudget(Exception):
    """Nothing more is evaluated."""


class TooDear(Exception):
    """The expression costs more than may be spent here: it is to be evaluated elsewhere."""


@dataclass(slots=True)
class Allowance:
    """What expressions may still cost where they are evaluated."""

    left: int


@dataclass(slots=True)
class Result:
    """Of one expression: its value, or what went wrong."""

    value: object = None
    error: str = ""


@dataclass(slots=True)
class Input:
    """What expressions may name, but for the policy's own variables. None is CEL's null."""

    new: Object | None
    old: Object | None
    request: Object
    params: Object | None = None
    namespace: Object | None = None
    authorizer: object = None
    resource_authorizer: object = None

    def names(self) -> dict[str, object]:
        return {
            "object": self.new,
            "oldObject": self.old,
            "request": self.request,
            "params": self.params,
            "namespaceObject": self.namespace,
            "authorizer": self.authorizer,
            "authorizer.requestResource": self.resource_authorizer,
        }


class Evaluation:
    """Spends a budget on expressions that share an input and, evaluated once each, the variables of a policy.

    `allowance`: None for as much as an expression may cost at all; else what costs more raises TooDear.
    """

    __slots__ = ("_allowance", "_names", "_variables", "budget")

    def __init__(
        self,
        inputs: Input,
        variables: Mapping[str, Compiled],
        budget: int = BUDGET,
        allowance: Allowance | None = None,
    ) -> None:
        self.budget, self._allowance = budget, allowance
        self._names = inputs.names()
        self._names["variables"] = self._variables = _Variables(self, variables)

    def run(self, expression: Compiled) -> Result:
        """Evaluate an expression. Raises OutOfBudget, TooDear."""
        if expression.program is None:
            return Result(error=f"compilation error: {expression.problem}")
        outcome = self.outcome(expression)
        self._spend(self._variables.taken_cost())
        self._spend(outcome.cost)
        if outcome.error:
            return Result(error=f"expression '{expression.text}' resulted in error: {outcome.error}")
        return Result(outcome.value)

    def outcome(self, expression: Compiled) -> "_Outcome":
        """Evaluate an expression, but leave the budget as it is. Raises TooDear."""
        assert expression.program is not None
        allowance = self._allowance
        limit = CALL_LIMIT if allowance is None else min(CALL_LIMIT, allowance.left)
        try:
            found = expression.program.run(self._names, limit=limit)
            outcome = _Outcome(found.value, "", found.cost)
        except CostExceeded as error:
            if limit < CALL_LIMIT:
                raise TooDear from None
            outcome = _Outcome(None, str(error), limit)
        except EvaluationError as error:
            outcome = _Outcome(None, str(error), error.cost)
        if allowance is not None:
            allowance.left -= outcome.cost
            if allowance.left < 0:  # the variables, which were evaluated meanwhile, had their part
                raise TooDear
        return outcome

    def _spend(self, cost: int) -> None:
        if cost > self.budget:
            raise OutOfBudget(_OUT_OF_BUDGET)
        self.budget -= cost


@dataclass(slots=True)
class _Outcome:
    value: object
    error: str
    cost: int


class _Variables:
    """`variables`: each is evaluated when an expression asks for it first. (composition.go:variableAccessor)"""

    cel_type = VARIABLES
    __slots__ = ("_cost", "_evaluation", "_known", "_variables")

    def __init__(self, evaluation: Evaluation, variables: Mapping[str, Compiled]) -> None:
        self._evaluation, self._variables = evaluation, variables
        self._known: dict[str, _Outcome] = {}
        self._cost = 0

    def taken_cost(self) -> int:
        """What variables have cost since it was asked for last. (`GetAndResetCost`)"""
        cost, self._cost = self._cost, 0
        return cost

    def find(self, key: object) -> object:
        """Raises EvaluationError."""
        name = str(key)
        outcome = self._known.get(name)
        if outcome is None:
            expression = self._variables.get(name)
            if expression is None:
                return NOTHING
            if expression.program is None:
                raise EvaluationError(f'composited variable "{name}" fails to compile: {expression.problem}')
            outcome = self._known[name] = self._evaluation.outcome(expression)
            self._cost += outcome.cost
        if outcome.error:
            raise EvaluationError(f'composited variable "{name}" fails to evaluate: {outcome.error}')
        return outcome.value

    def __iter__(self) -> Iterator[object]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


@dataclass(frozen=True, slots=True)
class Matched:
    """Whether the conditions are met; `error` where that cannot be said."""

    yes: bool
    error: str = ""


def conditions_met(evaluation: Evaluation, conditions: Sequence[Compiled], failure_policy: str | None) -> Matched:
    """Match the conditions. A false one decides; else an error does, by the failure policy. (matcher.go:Match)"""
    errors = []
    try:
        for result in [evaluation.run(condition) for condition in conditions]:
            if result.error:
                errors.append(result.error)
            elif result.value is False:
                return Matched(False)
    except OutOfBudget as error:
        errors = [str(error)]
    if not errors:
        return Matched(True)
    if failure_policy == "Ignore":
        return Matched(False)
    different = list(dict.fromkeys(errors))
    return Matched(False, different[0] if len(different) == 1 else f"[{', '.join(different)}]")


def shown_namespace(namespace: Object | None) -> Object | None:
    """Return what expressions see of a Namespace. (condition.go:CreateNamespaceObject)"""
    if namespace is None:
        return None
    meta = namespace["metadata"]
    return {
        "metadata": {key: meta[key] for key in _NAMESPACE_META if key in meta},
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }
