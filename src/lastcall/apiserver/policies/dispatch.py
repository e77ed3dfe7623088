"""The policies of a write, from what is stored to what is said.

Sources: apiserver pkg/admission/plugin/policy/{generic/policy_dispatcher.go, validating/dispatcher.go,
mutating/dispatcher.go, mutating/reinvocationcontext.go}.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from lastcall.api.errors import StatusError, forbidden, not_found
from lastcall.api.meta import Object, copy_object, labels_of, name_of
from lastcall.api.resources import (
    MUTATINGADMISSIONPOLICIES,
    MUTATINGADMISSIONPOLICYBINDINGS,
    NAMESPACES,
    VALIDATINGADMISSIONPOLICIES,
    VALIDATINGADMISSIONPOLICYBINDINGS,
    Resource,
)
from lastcall.apiserver.admission.reader import Reader
from lastcall.apiserver.policies import matching
from lastcall.apiserver.policies.authorization import Asked, user_authorizer, write_authorizer
from lastcall.apiserver.policies.deciding import Decider
from lastcall.apiserver.policies.evaluation import (
    CONDITIONS_BUDGET,
    Evaluation,
    Input,
    Matched,
    conditions_met,
    shown_namespace,
)
from lastcall.apiserver.policies.language import (
    Compiled,
    MutatingPrograms,
    ValidatingPrograms,
    mutating_programs,
    validating_programs,
)
from lastcall.apiserver.policies.mutating import NotMutated, mutated
from lastcall.apiserver.policies.params import KindFor, NotConfigured, collect, param_resource
from lastcall.apiserver.policies.validating import Verdict, verdict
from lastcall.apiserver.proxying.webhooks.dispatch import Convert, Prepare
from lastcall.apiserver.proxying.webhooks.matching import Write, own_labels, wants_namespace
from lastcall.apiserver.proxying.webhooks.review import facts_of_request
from lastcall.apiserver.wire.context import RequestContext

T = TypeVar("T")
_CODES = {"Forbidden": 403, "RequestEntityTooLarge": 413}
"""By the reason of a validation; all others are 422. (policy_decision.go:reasonToCode)"""


class _Invocation(NamedTuple):
    """One policy with one binding and one parameter object; `resource`: as which kind it sees the write."""

    policy: Object
    binding: Object
    resource: Resource
    params: Object | None

    @property
    def key(self) -> tuple[str, str, str]:
        params = self.params or {"metadata": {}}
        named = f"{params['metadata'].get('namespace') or ''}/{params['metadata'].get('name') or ''}"
        return name_of(self.policy), name_of(self.binding), named


class Policies:
    """`kind_for` finds the kind of parameters, `convert` and `prepare` know all kinds."""

    def __init__(self, decider: Decider, kind_for: KindFor, convert: Convert, prepare: Prepare) -> None:
        self.decider, self._kind_for = decider, kind_for
        self.convert, self.prepare = convert, prepare
        self._validating: dict[str, tuple[str, ValidatingPrograms]] = {}
        self._mutating: dict[str, tuple[str, MutatingPrograms]] = {}

    # -- validating ----------------------------------------------------------------------------------------------------

    async def validate(self, reader: Reader, context: RequestContext, write: Write) -> None:
        """Raises StatusError: that of the first policy that denies."""
        denied: list[tuple[str, str]] = []
        policies = await reader.list(VALIDATINGADMISSIONPOLICIES)
        bindings = await reader.list(VALIDATINGADMISSIONPOLICYBINDINGS)
        for policy, bound in _hooks(policies, bindings):
            fails = policy["spec"].get("failurePolicy") != "Ignore"
            named = f"ValidatingAdmissionPolicy '{name_of(policy)}'"
            try:
                invocations, problems = await self.invocations(reader, write, policy, bound)
            except NotConfigured as error:
                denied += [(f"{named} denied request: failed to configure policy: {error}", "")] * fails
                continue
            for binding, problem in problems:
                told = f"{named} with binding '{name_of(binding)}' denied request: failed to configure binding"
                denied += [(f"{told}: {problem}", "")] * fails
            namespace = await self.namespace(reader, write) if invocations else None
            for invocation in invocations:
                found = await self._verdict(context, write, invocation, namespace)
                bound_to = f"{named} with binding '{name_of(invocation.binding)}'"
                for action in invocation.binding["spec"].get("validationActions") or ():
                    if action == "Deny":
                        denied += [
                            (f"{bound_to} denied request: {each.message}", each.reason) for each in found.denials
                        ]
                    elif action == "Warn":
                        context.warnings += [
                            f"Validation failed for {bound_to}: {each.message}" for each in found.denials
                        ]
                denied += [(f"{bound_to} denied request: {each.message}", each.reason) for each in found.refusals]
        if denied:
            message, reason = denied[0]
            refusal = forbidden(write.resource, _shown_name(write), message, [{"message": message}])
            refusal.status["reason"] = reason or "Invalid"
            refusal.status["code"] = _CODES.get(reason, 422)
            raise refusal

    async def _verdict(
        self, context: RequestContext, write: Write, invocation: _Invocation, namespace: Object | None
    ) -> Verdict:
        policy = invocation.policy
        programs = _remembered(self._validating, policy, validating_programs)
        failure_policy = policy["spec"].get("failurePolicy")
        return await self.decider.decided(
            lambda asked, limit: verdict(
                programs, self.input(context, write, invocation, namespace, asked), failure_policy, limit
            ),
        )

    # -- mutating ------------------------------------------------------------------------------------------------------

    def mutation(self, reader: Reader, context: RequestContext, write: Write) -> "PolicyRound":
        return PolicyRound(self, reader, context, write)

    def mutating_programs(self, policy: Object) -> MutatingPrograms:
        return _remembered(self._mutating, policy, mutating_programs)

    # -- both ----------------------------------------------------------------------------------------------------------

    async def invocations(
        self, reader: Reader, write: Write, policy: Object, bindings: Sequence[Object]
    ) -> tuple[list[_Invocation], list[tuple[Object, str]]]:
        """How the policy is invoked, and the bindings that cannot be used. Raises NotConfigured for the policy."""
        spec = policy["spec"]
        resource = await self._wanted(reader, spec.get("matchConstraints") or {}, write)
        if resource is None:
            return [], []
        kind = param_resource(spec, self._kind_for)
        invocations, problems = [], []
        for binding in bindings:
            wanted = binding["spec"].get("matchResources")
            if wanted is not None and await self._wanted(reader, wanted, write) is None:
                continue
            try:
                params = await collect(reader, kind, binding["spec"].get("paramRef"), write.namespace)
            except NotConfigured as error:
                problems.append((binding, str(error)))
                continue
            invocations += [_Invocation(policy, binding, resource, each) for each in params]
        return invocations, problems

    async def _wanted(self, reader: Reader, wanted: Object, write: Write) -> Resource | None:
        resource = matching.wants(wanted, write)
        if resource is None or not matching.needs_namespace(wanted, write):
            return resource
        labels = own_labels(write)
        if labels is None:
            found = await reader.get(NAMESPACES, "", write.namespace or write.name)
            if found is None:
                return None
            labels = dict(labels_of(found))
        return resource if wants_namespace(matching.as_webhook(wanted), labels) else None

    async def namespace(self, reader: Reader, write: Write) -> Object | None:
        """The namespace of the write. Raises the 404 StatusError when it is not there."""
        if write.resource == NAMESPACES or not write.namespace:
            return None
        found = await reader.get(NAMESPACES, "", write.namespace)
        if found is None:
            raise not_found(NAMESPACES, write.namespace)
        return shown_namespace(found)

    def input(
        self,
        context: RequestContext,
        write: Write,
        invocation: _Invocation,
        namespace: Object | None,
        asked: Asked,
    ) -> Input:
        """What the expressions of a policy may name. `asked` is what the authorizer said before."""
        resource = invocation.resource
        new, old = (None if obj is None else self.shown(write, obj, resource) for obj in (write.new, write.old))
        request = facts_of_request(write, resource, context.user)
        of_user, of_write = user_authorizer(context.user, asked), write_authorizer(context.user, write, asked)
        return Input(new, old, request, invocation.params, namespace, of_user, of_write)

    def shown(self, write: Write, obj: Object, resource: Resource) -> Object:
        return obj if write.kind is not None else self.convert(write.resource, obj, resource)


class PolicyRound:
    """MutatingAdmissionPolicies of one write."""

    def __init__(self, policies: Policies, reader: Reader, context: RequestContext, write: Write) -> None:
        self._policies, self._reader, self._context, self._write = policies, reader, context, write
        self._asked: list[tuple[str, str, str]] = []
        self._anew: set[tuple[str, str, str]] = set()
        self._left: Object | None = None

    async def go(self, *, again: bool) -> bool:
        """Whether an object was changed, which is `write.new` then. `again`: only those that asked for it see an
        object that others have changed since. Raises StatusError."""
        write = self._write
        if again and write.new != self._left:
            self._changed()
        first = write.new
        errors: list[tuple[str, str]] = []
        policies = await self._reader.list(MUTATINGADMISSIONPOLICIES)
        bindings = await self._reader.list(MUTATINGADMISSIONPOLICYBINDINGS)
        invocations: list[_Invocation] = []
        for policy, bound in _hooks(policies, bindings):
            fails = policy["spec"].get("failurePolicy") != "Ignore"
            named = name_of(policy)
            try:
                more, problems = await self._policies.invocations(self._reader, write, policy, bound)
            except NotConfigured as error:
                errors += [(f'policy "{named}" denied request: failed to configure policy: {error}', "")] * fails
                continue
            invocations += more
            for binding, problem in problems:
                told = f"policy '{named}' with binding '{name_of(binding)}' denied request: failed to configure binding"
                errors += [(f"{told}: {problem}", "")] * fails
        namespace = await self._policies.namespace(self._reader, write) if invocations else None
        for invocation in invocations:
            errors += await self._invoke(invocation, namespace, again=again)
        self._left = write.new
        if errors:
            raise _denied(write, errors)
        return write.new != first

    async def _invoke(self, invocation: _Invocation, namespace: Object | None, *, again: bool) -> list[tuple[str, str]]:
        policies, context, write = self._policies, self._context, self._write
        policy, key = invocation.policy, invocation.key
        programs = policies.mutating_programs(policy)
        failure_policy = policy["spec"].get("failurePolicy")
        told = f"policy '{name_of(policy)}' with binding '{name_of(invocation.binding)}' denied request"

        def conditions(asked: Asked, limit: int) -> Matched:
            inputs = policies.input(context, write, invocation, namespace, asked)
            evaluation = Evaluation(inputs, programs.variables, CONDITIONS_BUDGET, limit)
            return conditions_met(evaluation, programs.conditions, failure_policy)

        matched = await policies.decider.decided(conditions)
        if matched.error:
            return [(f"{told}: {matched.error}", "Invalid")]
        if not matched.yes or (again and key not in self._anew):
            return []
        errors: list[tuple[str, str]] = []
        specs = policy["spec"].get("mutations") or ()
        before = write.new
        for mutation, spec in zip(programs.mutations, specs, strict=True):
            if write.new is None:
                break

            def mutate(asked: Asked, limit: int, mutation: Compiled = mutation) -> Object:
                inputs = policies.input(context, write, invocation, namespace, asked)
                assert inputs.new is not None
                evaluation = Evaluation(inputs, programs.variables, limit=limit)
                return mutated(mutation, evaluation, invocation.resource, inputs.new)

            try:
                made = await policies.decider.decided(mutate)
            except NotMutated as error:
                errors += [(f"{told}: {error}", "Invalid")] * (failure_policy != "Ignore")
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


def _hooks(policies: Sequence[Object], bindings: Sequence[Object]) -> Iterator[tuple[Object, list[Object]]]:
    """Each policy that is bound, with its bindings, by name."""
    for policy in sorted(policies, key=name_of):
        bound = [each for each in bindings if each["spec"].get("policyName") == name_of(policy)]
        if bound:
            yield policy, sorted(bound, key=name_of)


def _remembered(known: dict[str, tuple[str, T]], policy: Object, make: Callable[[Object], T]) -> T:
    """What `make` makes of the policy's spec; a policy that has gone is forgotten with the next one."""
    name, version = name_of(policy), policy["metadata"].get("resourceVersion", "")
    found = known.get(name)
    if found is None or found[0] != version:
        found = known[name] = (version, make(policy["spec"]))
    return found[1]


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
