"""The policies of a write, from what is stored to what is said.

Sources: apiserver pkg/admission/plugin/policy/{generic/policy_dispatcher.go, validating/dispatcher.go,
mutating/dispatcher.go, mutating/reinvocationcontext.go}.
"""

from collections.abc import Sequence
from typing import Generic

from lastcall.kube.api.errors import StatusError, forbidden, not_found
from lastcall.kube.api.meta import Object, copy_object, name_of
from lastcall.kube.api.resources import (
    MUTATINGADMISSIONPOLICIES,
    MUTATINGADMISSIONPOLICYBINDINGS,
    NAMESPACES,
    VALIDATINGADMISSIONPOLICIES,
    Resource,
)
from lastcall.kube.apiserver.admission.reader import Reader
from lastcall.kube.apiserver.policies.configured import Configured, Hook, P
from lastcall.kube.apiserver.policies.deciding import Decide, Decider
from lastcall.kube.apiserver.policies.evaluation import (
    CONDITIONS_BUDGET,
    Allowance,
    Evaluation,
    Matched,
    conditions_met,
    shown_namespace,
)
from lastcall.kube.apiserver.policies.inputs import Inputs
from lastcall.kube.apiserver.policies.language import (
    Compiled,
    MutatingPrograms,
    ValidatingPrograms,
    mutating_programs,
    validating_programs,
)
from lastcall.kube.apiserver.policies.mutating import NotMutated, mutated
from lastcall.kube.apiserver.policies.params import KindFor, NotConfigured, collect, param_resource
from lastcall.kube.apiserver.policies.validating import Verdict, verdict
from lastcall.kube.apiserver.proxying.webhooks.dispatch import Convert, Prepare, asked_about, wanted_as
from lastcall.kube.apiserver.proxying.webhooks.matching import Write
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.world.dataclass import dataclass

_CODES = {"Forbidden": 403, "RequestEntityTooLarge": 413}
"""By the reason of a validation; all others are 422. (policy_decision.go:reasonToCode)"""


@dataclass(frozen=True, slots=True)
class _Invocation(Generic[P]):
    """One policy with one binding and one parameter object; `resource`: as which kind it sees the write."""

    hook: Hook[P]
    binding: Object
    resource: Resource
    params: Object | None

    @property
    def failure_policy(self) -> str | None:
        found: str | None = self.hook.policy["spec"].get("failurePolicy")
        return found

    @property
    def key(self) -> tuple[str, str, str]:
        params = self.params or {"metadata": {}}
        named = f"{params['metadata'].get('namespace') or ''}/{params['metadata'].get('name') or ''}"
        return name_of(self.hook.policy), name_of(self.binding), named


class Policies:
    """`kind_for` finds the kind of parameters, `convert` and `prepare` know all kinds."""

    def __init__(self, decider: Decider, kind_for: KindFor, convert: Convert, prepare: Prepare) -> None:
        self.decider, self._kind_for = decider, kind_for
        self.convert, self.prepare = convert, prepare
        self._validating = Configured(validating_programs)
        self.mutating = Configured(mutating_programs)

    # -- validating ----------------------------------------------------------------------------------------------------

    async def validate(self, reader: Reader, context: RequestContext, write: Write, bindings: Sequence[Object]) -> None:
        """Validate the write. Raises StatusError: that of the first policy that denies."""
        policies = await reader.list(VALIDATINGADMISSIONPOLICIES)
        found: list[_Invocation[ValidatingPrograms] | str] = []
        for hook in asked_about(context, self._validating.of(policies, bindings), write):
            named = _policy_text(hook)
            try:
                invocations, problems = await self.invocations(reader, write, hook)
            except NotConfigured as error:
                found += [f"{named} denied request: failed to configure policy: {error}"] * hook.fails
                continue
            for binding, problem in problems:
                prefix = f"{named} with binding '{name_of(binding)}' denied request: failed to configure binding"
                found += [f"{prefix}: {problem}"] * hook.fails
            found += invocations
        if not found:
            return
        invoked = [each for each in found if not isinstance(each, str)]
        verdicts = iter(await self._verdicts(reader, context, write, invoked) if invoked else ())
        denied: list[tuple[str, str]] = []
        for each in found:
            if isinstance(each, str):
                denied.append((each, ""))
            else:
                denied += _consequences(context, each, next(verdicts))
        if denied:
            message, reason = denied[0]
            refusal = forbidden(write.resource, _shown_name(write), message, [{"message": message}])
            refusal.status["reason"] = reason or "Invalid"
            refusal.status["code"] = _CODES.get(reason, 422)
            raise refusal

    async def _verdicts(
        self,
        reader: Reader,
        context: RequestContext,
        write: Write,
        invocations: Sequence[_Invocation[ValidatingPrograms]],
    ) -> list[Verdict]:
        decisions = self.decider.begin()
        inputs = Inputs(self.convert, context, write, decisions.asked)
        inputs.namespace = await self.namespace(reader, write)

        def of(invocation: _Invocation[ValidatingPrograms]) -> Decide[Verdict]:
            def decide(allowance: Allowance | None) -> Verdict:
                seen = inputs.of(invocation.resource, invocation.params)
                return verdict(invocation.hook.programs, seen, invocation.failure_policy, allowance)

            return decide

        return await decisions.all([of(each) for each in invocations])

    # -- mutating ------------------------------------------------------------------------------------------------------

    def mutation(self, reader: Reader, context: RequestContext, write: Write) -> "PolicyRound":
        return PolicyRound(self, reader, context, write)

    # -- both ----------------------------------------------------------------------------------------------------------

    async def invocations(
        self, reader: Reader, write: Write, hook: Hook[P]
    ) -> tuple[list[_Invocation[P]], list[tuple[Object, str]]]:
        """Return how the policy is invoked, and the unusable bindings. Raises NotConfigured for the policy."""
        resource = await wanted_as(reader, hook.wanted, write)
        if resource is None:
            return [], []
        kind = param_resource(hook.policy["spec"], self._kind_for)
        invocations, problems = [], []
        for bound in hook.bound:
            binding = bound.binding
            if bound.wanted is not None and await wanted_as(reader, bound.wanted, write) is None:
                continue
            try:
                params = await collect(reader, kind, binding["spec"].get("paramRef"), write.namespace)
            except NotConfigured as error:
                problems.append((binding, str(error)))
                continue
            invocations += [_Invocation(hook, binding, resource, each) for each in params]
        return invocations, problems

    async def namespace(self, reader: Reader, write: Write) -> Object | None:
        """Return the namespace of the write. Raises the 404 StatusError when it does not exist."""
        if write.resource == NAMESPACES or not write.namespace:
            return None
        found = await reader.get(NAMESPACES, "", write.namespace)
        if found is None:
            raise not_found(NAMESPACES, write.namespace)
        return shown_namespace(found)


def _policy_text(hook: Hook[ValidatingPrograms]) -> str:
    return f"ValidatingAdmissionPolicy '{name_of(hook.policy)}'"


def _consequences(
    context: RequestContext, invocation: _Invocation[ValidatingPrograms], found: Verdict
) -> list[tuple[str, str]]:
    """(message, reason) of what denies; what only warns does so."""
    if not (found.denials or found.refusals):
        return []
    denied = []
    bound_to = f"{_policy_text(invocation.hook)} with binding '{name_of(invocation.binding)}'"
    for action in invocation.binding["spec"].get("validationActions") or ():
        if action == "Deny":
            denied += [(f"{bound_to} denied request: {each.message}", each.reason) for each in found.denials]
        elif action == "Warn":
            context.warnings += [f"Validation failed for {bound_to}: {each.message}" for each in found.denials]
    return denied + [(f"{bound_to} denied request: {each.message}", each.reason) for each in found.refusals]


class PolicyRound:
    """MutatingAdmissionPolicies of one write."""

    def __init__(self, policies: Policies, reader: Reader, context: RequestContext, write: Write) -> None:
        self._policies, self._reader, self._context, self._write = policies, reader, context, write
        self._asked: list[tuple[str, str, str]] = []
        self._anew: set[tuple[str, str, str]] = set()
        self._left: Object | None = None
        self._decisions = policies.decider.begin()
        self._inputs = Inputs(policies.convert, context, write, self._decisions.asked)

    async def go(self, *, again: bool) -> bool:
        """Run the policies and return whether an object was changed, which is `write.new` then. Raises StatusError.

        `again`: only policies that asked for it see an object that others have changed since.
        """
        write = self._write
        if again and write.new != self._left:
            self._changed()
        first = write.new
        errors: list[tuple[str, str]] = []
        policies = await self._reader.list(MUTATINGADMISSIONPOLICIES)
        bindings = await self._reader.list(MUTATINGADMISSIONPOLICYBINDINGS)
        invocations: list[_Invocation[MutatingPrograms]] = []
        for hook in asked_about(self._context, self._policies.mutating.of(policies, bindings), write):
            named = name_of(hook.policy)
            try:
                more, problems = await self._policies.invocations(self._reader, write, hook)
            except NotConfigured as error:
                errors += [(f'policy "{named}" denied request: failed to configure policy: {error}', "")] * hook.fails
                continue
            invocations += more
            for binding, problem in problems:
                prefix = (
                    f"policy '{named}' with binding '{name_of(binding)}' denied request: failed to configure binding"
                )
                errors += [(f"{prefix}: {problem}", "")] * hook.fails
        if invocations:
            self._inputs.namespace = await self._policies.namespace(self._reader, write)
        for invocation in invocations:
            errors += await self._invoke(invocation, again=again)
        self._left = write.new
        if errors:
            raise _denied(write, errors)
        return write.new != first

    async def _invoke(self, invocation: _Invocation[MutatingPrograms], *, again: bool) -> list[tuple[str, str]]:
        write, key = self._write, invocation.key
        policy, programs = invocation.hook.policy, invocation.hook.programs
        prefix = f"policy '{name_of(policy)}' with binding '{name_of(invocation.binding)}' denied request"

        def conditions(allowance: Allowance | None) -> Matched:
            inputs = self._inputs.of(invocation.resource, invocation.params)
            evaluation = Evaluation(inputs, programs.variables, CONDITIONS_BUDGET, allowance)
            return conditions_met(evaluation, programs.conditions, invocation.failure_policy)

        matched = await self._decisions.one(conditions)
        if matched.error:
            return [(f"{prefix}: {matched.error}", "Invalid")]
        if not matched.yes or (again and key not in self._anew):
            return []
        errors: list[tuple[str, str]] = []
        specs = policy["spec"].get("mutations") or ()
        before = write.new
        for mutation, spec in zip(programs.mutations, specs, strict=True):
            if write.new is None:
                break

            def mutate(allowance: Allowance | None, mutation: Compiled = mutation) -> Object:
                inputs = self._inputs.of(invocation.resource, invocation.params)
                assert inputs.new is not None
                evaluation = Evaluation(inputs, programs.variables, allowance=allowance)
                return mutated(mutation, evaluation, invocation.resource, inputs.new)

            try:
                made = await self._decisions.one(mutate)
            except NotMutated as error:
                errors += [(f"{prefix}: {error}", "Invalid")] * invocation.hook.fails
                continue
            write.new = self._stored(made, invocation.resource, strict=spec.get("patchType") == "JSONPatch")
        if write.new != before:
            self._changed()
        if policy["spec"].get("reinvocationPolicy") == "IfNeeded":
            self._asked.append(key)
        return errors

    def _stored(self, made: Object, resource: Resource, *, strict: bool) -> Object:
        write, policies = self._write, self._policies
        if write.kind is not None:
            return made
        return policies.convert(resource, policies.prepare(resource, copy_object(made), strict=strict), write.resource)

    def _changed(self) -> None:
        self._anew.update(self._asked)
        self._asked.clear()


def _shown_name(write: Write) -> str:
    """(admission/errors.go:extractResourceName)"""
    meta = (write.new or {}).get("metadata") or {}
    return write.name or meta.get("name") or meta.get("generateName") or "Unknown"


def _denied(write: Write, errors: Sequence[tuple[str, str]]) -> StatusError:
    """(policy_dispatcher.go:Dispatch)"""
    error = forbidden(write.resource, _shown_name(write), "", [{"message": message} for message, _ in errors])
    error.status["message"], reason = errors[0]
    if reason:
        error.status["reason"] = reason
    return error
