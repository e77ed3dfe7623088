"""What ValidatingAdmissionPolicies say of a write. Pure.

Source: apiserver pkg/admission/plugin/policy/validating/{validator.go, dispatcher.go}.
"""

from collections.abc import Callable, Sequence
from dataclasses import field

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.policies.evaluation import (
    BUDGET,
    CONDITIONS_BUDGET,
    Allowance,
    Evaluation,
    Input,
    OutOfBudget,
    Result,
    conditions_met,
)
from lastcall.kube.apiserver.policies.language import Compiled, ValidatingPrograms
from lastcall.world.dataclass import dataclass

LONGEST_MESSAGE = 5 * 1024
"""Bytes of what a messageExpression may make."""


@dataclass(frozen=True, slots=True)
class Denial:
    message: str
    reason: str = "Invalid"


@dataclass(slots=True)
class Verdict:
    """`denials` are subject to the binding's actions; `refusals`, errors of audit annotations, are not."""

    denials: list[Denial] = field(default_factory=list)
    refusals: list[Denial] = field(default_factory=list)


def verdict(
    programs: ValidatingPrograms, inputs: Input, failure_policy: str | None, allowance: Allowance | None = None
) -> Verdict:
    """Judge by one policy with one binding and one parameter object. Raises TooDear."""
    fails = failure_policy != "Ignore"

    def failed(message: str) -> Verdict:
        return Verdict([Denial(message)] if fails else [])

    def evaluation(budget: int) -> Evaluation:
        return Evaluation(inputs, programs.variables, budget, allowance)

    if programs.conditions:
        matched = conditions_met(evaluation(CONDITIONS_BUDGET), programs.conditions, failure_policy)
        if matched.error:
            return failed(matched.error)
        if not matched.yes:
            return Verdict()
    try:
        validations = evaluation(BUDGET)
        results = [validations.run(each) for each in programs.validations]
        messages, why = _messages(programs.messages, lambda: evaluation(validations.budget))
        annotations = []
        if programs.annotations:
            audits = evaluation(BUDGET)
            annotations = [(key, audits.run(each)) for key, each in programs.annotations]
    except OutOfBudget as error:
        return failed(str(error))
    found = Verdict()
    for validation, result, message in zip(programs.specs, results, messages, strict=True):
        if result.error or why:
            if fails:
                found.denials.append(Denial(result.error or f"failed messageExpression: {why}"))
        elif result.value is not True:
            found.denials.append(Denial(_message(validation, message), validation.get("reason") or "Invalid"))
    if fails:
        found.refusals = [Denial(result.error) for _, result in annotations if result.error]
    return found


def _messages(
    expressions: Sequence[Compiled | None], begin: Callable[[], Evaluation]
) -> tuple[list[Result | None], str]:
    """The results. Or, when the validations have spent the budget, no result and the error."""
    if not any(expressions):
        return [None] * len(expressions), ""
    evaluation = begin()
    try:
        return [None if each is None else evaluation.run(each) for each in expressions], ""
    except OutOfBudget as error:
        return [None] * len(expressions), str(error)


def _message(validation: Object, made: Result | None) -> str:
    text = made.value.strip() if made is not None and isinstance(made.value, str) else ""
    if len(text.encode()) > LONGEST_MESSAGE or "\n" in text:
        text = ""
    said = (validation.get("message") or "").strip()
    return text or said or f"failed expression: {(validation.get('expression') or '').strip()}"
