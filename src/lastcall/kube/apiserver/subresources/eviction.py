"""The Eviction API: a DELETE that asks the PodDisruptionBudget first.

The rules are pure (`may_ignore_budgets`, `decide_budget`, `checked_and_decremented`); `evict` does the writes: the
budget's status, the Pod's condition DisruptionTarget, the DELETE. A budget is decremented by a compare-and-swap on what
is stored, so that two evictions never use one allowance.

Source: pkg/registry/core/pod/storage/eviction.go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.kube.api.disruption import (
    DISRUPTION_ALLOWED,
    SYNC_FAILED,
    budget_selector,
    disruption_target,
    update_disruption_allowed_condition,
)
from lastcall.kube.api.errors import (
    StatusError,
    bad_request,
    forbidden,
    is_conflict,
    is_not_found,
    plain_failure,
    status_success,
    too_many_requests,
)
from lastcall.kube.api.meta import Object, copy_object, is_terminating, labels_of, name_of, namespace_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_ready, is_pod_terminal, set_condition
from lastcall.kube.api.resources import PODDISRUPTIONBUDGETS, PODS, Resource
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.deletion import DeleteOptions, check_preconditions
from lastcall.kube.apiserver.fieldmanager.requests import Tracking, manager_of, scope_of
from lastcall.kube.apiserver.registry.generic import GenericStore
from lastcall.kube.apiserver.registry.objectmeta import OTHER_NAMESPACE, with_owners_once
from lastcall.kube.apiserver.updated_object import UpdatedObject
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.options import parse_delete_options
from lastcall.kube.apiserver.wire.preparing import prepare
from lastcall.records import rules
from lastcall.world.clock import now, rfc3339
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.parts import GroundsOfDecision

EVICTIONS = Resource("policy", "v1", "evictions", "Eviction", True)
"""What a POST to pods/eviction carries; policy/v1beta1 is the same object."""

TYPED_SINCE = 37
"""Minor version whose API server says in a cause what is wrong with a budget."""
MAX_DISRUPTED_PODS = 2000
MAX_TRIES = 20
RETRY_AFTER_SECONDS = 10

WOULD_VIOLATE = "Cannot evict pod as it would violate the pod's disruption budget."
MORE_THAN_ONE = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."

_API_SERVER = UserInfo("system:apiserver", ("system:masters",))


# -- rules -----------------------------------------------------------------------------------------------------------


def eviction_options(context: RequestContext, body: Object, namespace: str, name: str) -> DeleteOptions:
    """Return what the body and the query ask for. Raises StatusError."""
    meta = body.get("metadata") or {}
    if (meta.get("namespace") or namespace) != namespace:
        raise bad_request(OTHER_NAMESPACE)
    if meta.get("name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    asked = body.get("deleteOptions")
    wanted = list((asked or {}).get("dryRun") or ())
    if wanted and context.dry_run and wanted != ["All"]:
        raise plain_failure(
            f"Non-matching dry-run options in request and content: [All] and [{' '.join(map(str, wanted))}]"
        )
    options = parse_delete_options(asked if asked is not None else {}, {}, ())
    context.dry_run = context.dry_run or options.dry_run
    return replace(options, dry_run=context.dry_run)


def may_ignore_budgets(pod: Object) -> bool:
    """Return whether its end disrupts nothing: it has ended, has not begun, or is ending anyway. (`canIgnorePDB`)"""
    return is_pod_terminal(pod) or _is_pending(pod) or is_terminating(pod)


def _is_pending(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Pending"


@dataclass(frozen=True, slots=True)
class BudgetDecision:
    """`budget` is the one that selects the Pod. `decrement`: an allowance is used. `unchanged_only`: the decision went
    by the Pod not being Ready, so the Pod must not have changed since. `why` is for people."""

    budget: Object | None
    decrement: bool
    unchanged_only: bool
    why: str


def decide_budget(pod: Object, budgets: Sequence[Object]) -> BudgetDecision:
    """Decide which of the namespace's `budgets` counts, and whether it is to be asked.

    Raises the 500 StatusError of a Pod with several.
    """
    matching = [each for each in budgets if budget_selector(each).matches(labels_of(pod))]
    if len(matching) > 1:
        raise plain_failure(MORE_THAN_ONE)
    if not matching:
        return BudgetDecision(None, False, False, "no PodDisruptionBudget selects it")
    (budget,) = matching
    name, status = name_of(budget), budget.get("status") or {}
    if not is_pod_ready(pod):
        if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            why = f"it is not Ready, and PodDisruptionBudget {name} always allows that"
            return BudgetDecision(budget, False, True, why)
        healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
        if healthy >= desired > 0:
            why = f"it is not Ready, and PodDisruptionBudget {name} has {healthy} healthy of {desired} needed"
            return BudgetDecision(budget, False, True, why)
    return BudgetDecision(budget, True, False, f"PodDisruptionBudget {name} allowed it")


def checked_and_decremented(budget: Object, pod_name: str, moment: str, *, typed: bool = False) -> Object:
    """Return the budget with one allowance less, used for `pod_name` at `moment` (RFC 3339). (`checkAndDecrement`)

    Raises the StatusError of a budget without any. `typed`: a budget whose status cannot be has a cause of its own, as
    since 1.37 (kubernetes#138003).
    """
    name, status = name_of(budget), budget.get("status") or {}
    if (status.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        raise still_processed(name)
    allowed = status.get("disruptionsAllowed") or 0
    if allowed < 0:
        raise _broken(name, "pdb disruptions allowed is negative", "NegativeAllowedDisruptions" if typed else "")
    if len(status.get("disruptedPods") or ()) > MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise _broken(name, why, "TooManyDisruptedPods" if typed else "")
    if allowed == 0:
        raise _refused(why_not(name, status))
    new = copy_object(budget)
    status = new["status"]
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        update_disruption_allowed_condition(status, moment)
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod_name: moment}
    return new


def _broken(name: str, why: str, cause: str) -> StatusError:
    causes = [{"reason": f"DisruptionBudget{cause}", "message": why}] if cause else []
    return forbidden("poddisruptionbudget.policy", name, why, causes)


def why_not(name: str, status: Object) -> str:
    """Return why a budget without an allowance has none."""
    healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    text = f"The disruption budget {name} does not allow evicting pods currently"
    condition = get_condition(status, DISRUPTION_ALLOWED) or {}
    message = condition.get("message")
    if not message:
        return text
    if condition.get("reason") == SYNC_FAILED:
        return f"{text} because it failed sync: {message}"
    return f"{text} ({condition.get('reason')}): {message}"


def _refused(why: str, retry_after: int = 0) -> StatusError:
    """429; without a time to wait clients do not try again by themselves."""
    return too_many_requests(WOULD_VIOLATE, retry_after, [{"reason": "DisruptionBudget", "message": why}])


def still_processed(name: str) -> StatusError:
    """Return the error for a spec of the budget that the controller has not seen, or a Pod that changed meanwhile."""
    return _refused(f"The disruption budget {name} is still being processed by the server.", RETRY_AFTER_SECONDS)


# -- writes ----------------------------------------------------------------------------------------------------------


async def evict(
    kinds: Mapping[Resource, GenericStore], context: RequestContext, body: Object, namespace: str, name: str
) -> Object:
    """Answer POST pods/<name>/eviction with a Status; raises StatusError (429 when the budget forbids it)."""
    if (body.get("apiVersion"), body.get("kind")) == ("policy/v1beta1", "Eviction"):
        body["apiVersion"] = EVICTIONS.api_version
    eviction = prepare(context, EVICTIONS, body)
    with_owners_once(context, eviction["metadata"])
    options = eviction_options(context, eviction, namespace, name)
    await kinds[PODS].shared.admission.namespace_lifecycle(PODS, namespace, name)
    decided = _Eviction(kinds, context, options, namespace, name)
    if not await decided.without_budget():
        await decided.with_budget()
    return status_success(code=201)


class _Eviction:
    def __init__(
        self,
        kinds: Mapping[Resource, GenericStore],
        context: RequestContext,
        options: DeleteOptions,
        namespace: str,
        name: str,
    ) -> None:
        self._pods, self._budgets = kinds[PODS], kinds[PODDISRUPTIONBUDGETS]
        self._typed = self._pods.shared.gates.minor >= TYPED_SINCE
        self._context, self._options = context, options
        self._namespace, self._name = namespace, name
        self._pod: Object = {}

    async def without_budget(self) -> bool:
        """True when the Pod is one that no budget protects, and is deleted. `_pod` is the Pod as it is."""
        for attempt in range(MAX_TRIES):
            pod = self._pod = (await self._pods.get(self._namespace, self._name)).object
            if not may_ignore_budgets(pod):
                return False
            options, phase = self._options, (pod.get("status") or {}).get("phase")
            pending = _is_pending(pod) and not is_terminating(pod) and options.resource_version is None
            if pending:
                # It may have started meanwhile: then its budget has a say.
                options = replace(options, resource_version=pod["metadata"]["resourceVersion"])
            try:
                await self._delete(options, f"no budget is asked for a Pod in phase {phase}", {})
            except StatusError as error:
                if not is_conflict(error) or self._options.resource_version is not None or attempt == MAX_TRIES - 1:
                    raise
            else:
                return True
        return False

    async def with_budget(self) -> None:
        decision = decide_budget(self._pod, await self._listed())
        facts: GroundsOfDecision = {}
        if decision.budget is not None:
            budget = decision.budget
            if decision.decrement:
                budget = await self._decrement(budget)
            facts = _facts(budget)
        options = self._options
        if decision.unchanged_only:
            options = replace(options, resource_version=self._pod["metadata"]["resourceVersion"])
        try:
            await self._delete(options, decision.why, facts)
        except StatusError as error:
            ours = decision.unchanged_only and self._options.resource_version is None
            if not (ours and is_conflict(error)):
                raise
            assert decision.budget is not None
            raise still_processed(name_of(decision.budget)) from error

    async def _listed(self) -> list[Object]:
        entries, _, _ = await self._budgets.shared.store.list(self._budgets.collection(self._namespace))
        return [self._budgets.decode(entry.value) for entry in entries]

    async def _decrement(self, budget: Object) -> Object:
        """Use one allowance of what is stored now; the answer is the budget as written."""

        def use(stored: Object) -> Object:
            return checked_and_decremented(stored, self._name, self._moment(), typed=self._typed)

        context = RequestContext(_API_SERVER, "kube-apiserver", dry_run=self._context.dry_run)
        tracking = Tracking(scope_of(self._budgets.resource, "status"), manager_of(context), self._moment)
        try:
            answer = await self._budgets.update(
                context, self._namespace, name_of(budget), UpdatedObject(use, tracking.track), "status"
            )
        except StatusError as error:
            if not is_not_found(error):
                raise
            return budget  # deleted meanwhile: it forbids nothing any more
        return answer.object

    async def _delete(self, options: DeleteOptions, why: str, facts: "GroundsOfDecision") -> None:
        """Say in the Pod's status that it is a target, then delete it. (`addConditionAndDeletePod`)"""
        if not self._context.dry_run:
            marked = await self._mark(options)
            if options.resource_version is not None:
                options = replace(options, resource_version=marked["metadata"]["resourceVersion"])
            if not is_terminating(marked):
                self._pods.shared.records.evicted(self._context, marked, rules.CREATE_EVICTION, why, facts)
        await self._pods.delete(self._context, self._namespace, self._name, options)

    async def _mark(self, options: DeleteOptions) -> Object:
        """Write the condition DisruptionTarget; the Pod must be the one that `options` names."""

        def mark(stored: Object) -> Object:
            check_preconditions(self._pods.strategy.delete_rules, stored, options)
            new = copy_object(stored)
            condition = disruption_target("EvictionByEvictionAPI", "Eviction API: evicting")
            set_condition(new.setdefault("status", {}), condition, self._moment())
            return new

        context = replace(self._context, dry_run=False)
        return (await self._pods.update(context, self._namespace, self._name, UpdatedObject(mark), "status")).object

    def _moment(self) -> str:
        return rfc3339(now(self._pods.shared.world.clock))


def _facts(budget: Object) -> "GroundsOfDecision":
    status = budget.get("status") or {}
    return {
        "podDisruptionBudget": f"{namespace_of(budget)}/{name_of(budget)}",
        "disruptionsAllowed": status.get("disruptionsAllowed") or 0,
        "currentHealthy": status.get("currentHealthy") or 0,
        "desiredHealthy": status.get("desiredHealthy") or 0,
    }
