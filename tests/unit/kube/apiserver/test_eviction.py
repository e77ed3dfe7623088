"""The Eviction API: what a budget allows, what is answered, what is written (control-plane-semantics 2.6)."""

from copy import deepcopy

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.resources import PODDISRUPTIONBUDGETS, PODS
from lastcall.kube.apiserver.subresources.eviction import (
    MORE_THAN_ONE,
    WOULD_VIOLATE,
    checked_and_decremented,
    decide_budget,
    may_ignore_budgets,
    why_not,
)
from lastcall.records import kinds

NOW = "2030-01-01T00:00:00Z"


def a_pod(*, ready: bool = True, phase: str = "Running", terminating: bool = False, **labels: str) -> dict:
    meta: dict = {"name": "p", "namespace": "default", "labels": labels or {"app": "g"}}
    if terminating:
        meta["deletionTimestamp"] = NOW
    return {
        "metadata": meta,
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def a_budget(name: str = "guard", *, generation: int = 1, policy: str = "", selector: object = None, **status) -> dict:
    spec: dict = {"selector": {"matchLabels": {"app": "g"}} if selector is None else selector, "minAvailable": 1}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    counts = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    return {
        "metadata": {"name": name, "namespace": "default", "generation": generation},
        "spec": spec,
        "status": {"observedGeneration": 1, **counts, **status},
    }


@pytest.mark.parametrize(
    ("pod", "ignores"),
    [
        (a_pod(), False),
        (a_pod(ready=False), False),
        (a_pod(phase="Unknown"), False),
        (a_pod(phase="Pending"), True),
        (a_pod(phase="Succeeded"), True),
        (a_pod(phase="Failed"), True),
        (a_pod(terminating=True), True),
    ],
)
def test_only_the_end_of_a_running_pod_disrupts_anything(pod, ignores):
    assert may_ignore_budgets(pod) is ignores


@pytest.mark.parametrize(
    ("budget", "ready", "decrement"),
    [
        (a_budget(currentHealthy=1, desiredHealthy=1), True, True),
        (a_budget(currentHealthy=1, desiredHealthy=1), False, False),
        (a_budget(currentHealthy=0, desiredHealthy=1), False, True),
        (a_budget(currentHealthy=0, desiredHealthy=0), False, True),
        (a_budget(currentHealthy=0, desiredHealthy=1, policy="IfHealthyBudget"), False, True),
        (a_budget(currentHealthy=0, desiredHealthy=1, policy="AlwaysAllow"), False, False),
        (a_budget(currentHealthy=0, desiredHealthy=1, policy="AlwaysAllow"), True, True),
    ],
)
def test_a_pod_that_is_not_ready_may_go_without_an_allowance(budget, ready, decrement):
    decision = decide_budget(a_pod(ready=ready), [budget])
    assert decision.decrement is decrement
    assert decision.unchanged_only is not decrement


def test_an_empty_selector_takes_all_pods_and_none_takes_none():
    assert decide_budget(a_pod(), [a_budget(selector={})]).budget is not None
    unselecting = a_budget()
    del unselecting["spec"]["selector"]
    assert decide_budget(a_pod(), [unselecting, a_budget(selector={"matchLabels": {"app": "x"}})]).budget is None


def test_two_budgets_for_one_pod_are_refused():
    with pytest.raises(StatusError) as refused:
        decide_budget(a_pod(), [a_budget(), a_budget("other", selector={})])
    assert (refused.value.code, refused.value.reason, refused.value.message) == (500, "", MORE_THAN_ONE)


@pytest.mark.parametrize(
    ("budget", "code", "text", "retry"),
    [
        (a_budget(generation=2, disruptionsAllowed=1), 429, "guard is still being processed by the server.", "10"),
        (a_budget(currentHealthy=1, desiredHealthy=1), 429, "guard needs 1 healthy pods and has 1 currently", None),
        (a_budget(currentHealthy=1), 429, "guard does not allow evicting pods currently", None),
    ],
)
def test_a_refusal_says_what_the_budget_lacks(budget, code, text, retry):
    with pytest.raises(StatusError) as refused:
        checked_and_decremented(budget, "p", NOW)
    (cause,) = refused.value.status["details"]["causes"]
    assert (refused.value.code, refused.value.message) == (code, WOULD_VIOLATE)
    assert cause == {"reason": "DisruptionBudget", "message": f"The disruption budget {text}"}
    assert refused.value.headers.get("Retry-After") == retry


@pytest.mark.parametrize(
    ("status", "text", "cause"),
    [
        (
            {"disruptionsAllowed": -1},
            "pdb disruptions allowed is negative",
            "DisruptionBudgetNegativeAllowedDisruptions",
        ),
        (
            {"disruptionsAllowed": 1, "disruptedPods": {f"p{number}": NOW for number in range(2001)}},
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            "DisruptionBudgetTooManyDisruptedPods",
        ),
    ],
)
def test_a_budget_that_cannot_be_right_forbids_and_since_1_37_says_so_in_a_cause(status, text, cause):
    """(kubernetes#138003)"""
    for typed, causes in ((False, None), (True, [{"reason": cause, "message": text}])):
        with pytest.raises(StatusError) as refused:
            checked_and_decremented(a_budget(**status), "p", NOW, typed=typed)
        assert refused.value.code == 403
        assert refused.value.message.endswith(text)
        assert refused.value.status["details"].get("causes") == causes


@pytest.mark.parametrize(
    ("condition", "end"),
    [
        ({"reason": "SyncFailed", "message": "no owner"}, " because it failed sync: no owner"),
        ({"reason": "Other", "message": "why"}, " (Other): why"),
        ({"reason": "InsufficientPods", "message": ""}, ""),
    ],
)
def test_the_condition_explains_a_budget_that_has_enough_pods(condition, end):
    status = {"currentHealthy": 2, "desiredHealthy": 1, "conditions": [{"type": "DisruptionAllowed", **condition}]}
    assert why_not("b", status) == f"The disruption budget b does not allow evicting pods currently{end}"


def test_an_allowance_is_used_for_the_pod_and_the_last_one_turns_the_condition():
    first = checked_and_decremented(a_budget(disruptionsAllowed=2), "p", NOW)
    assert first["status"]["disruptionsAllowed"] == 1
    assert "conditions" not in first["status"]
    second = checked_and_decremented(first, "q", NOW)
    assert second["status"]["disruptedPods"] == {"p": NOW, "q": NOW}
    assert second["status"]["conditions"][0]["reason"] == "InsufficientPods"


# -- through the API -------------------------------------------------------------------------------------------------


def eviction(name: str = "p", **options) -> dict:
    body: dict = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return {**body, **({"deleteOptions": options} if options else {})}


async def a_running_pod(api, name: str = "p") -> None:
    pod = {
        "metadata": {"name": name, "labels": {"app": "g"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    }
    await api.admin.create(PODS, pod, "default")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.node.patch(PODS, name, {"status": status}, "default", subresource="status")


async def a_stored_budget(api, **counts: int) -> None:
    spec = {"selector": {"matchLabels": {"app": "g"}}, "minAvailable": 1}
    budget = deepcopy(
        await api.admin.create(PODDISRUPTIONBUDGETS, {"metadata": {"name": "guard"}, "spec": spec}, "default")
    )
    budget["status"] |= {"observedGeneration": 1, **counts}
    await api.admin.update(PODDISRUPTIONBUDGETS, budget, "default", subresource="status")


async def evict(api, name: str = "p", body: dict | None = None) -> dict:
    return await api.admin.create(PODS, body or eviction(name), "default", name=name, subresource="eviction")


async def refusal(api, name: str = "p", body: dict | None = None) -> StatusError:
    with pytest.raises(StatusError) as refused:
        await evict(api, name, body)
    return refused.value


def test_an_eviction_marks_the_pod_as_a_target_and_then_deletes_it(virtual):
    async def scenario(api):
        await a_running_pod(api)
        await a_stored_budget(api, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
        answer = await evict(api)
        assert (answer["status"], answer["code"]) == ("Success", 201)
        pod = await api.admin.get(PODS, "p", "default")
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
        target = next(c for c in pod["status"]["conditions"] if c["type"] == "DisruptionTarget")
        assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")
        budget = await api.admin.get(PODDISRUPTIONBUDGETS, "guard", "default")
        assert budget["status"]["disruptionsAllowed"] == 0
        assert list(budget["status"]["disruptedPods"]) == ["p"]
        assert api.records.kinds[-3:] == [kinds.POD_STATUS_WRITTEN, kinds.DELETION_DECIDED, kinds.DELETE_ACCEPTED]
        decided = api.records.facts[-2]
        assert decided["why"] == "evicted by lastcall (user admin): PodDisruptionBudget guard allowed it"
        assert decided["podDisruptionBudget"] == "default/guard"
        assert decided["disruptionsAllowed"] == 0

    virtual(scenario)


def test_a_refused_eviction_leaves_no_trace(virtual):
    async def scenario(api):
        await a_running_pod(api)
        await a_stored_budget(api, currentHealthy=1, desiredHealthy=1)
        before = await api.admin.get(PODS, "p", "default")
        assert (await refusal(api)).code == 429
        assert await api.admin.get(PODS, "p", "default") == before

    virtual(scenario)


def test_a_dry_run_writes_nothing_and_is_still_refused(virtual):
    async def scenario(api):
        await a_running_pod(api)
        before = await api.admin.get(PODS, "p", "default")
        await evict(api, body=eviction(dryRun=["All"]))
        await a_stored_budget(api, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1)
        await evict(api, body=eviction(dryRun=["All"]))
        assert await api.admin.get(PODS, "p", "default") == before
        budget = copy_object(await api.admin.get(PODDISRUPTIONBUDGETS, "guard", "default"))
        assert budget["status"]["disruptionsAllowed"] == 1
        budget["status"]["disruptionsAllowed"] = 0
        await api.admin.update(PODDISRUPTIONBUDGETS, budget, "default", subresource="status")
        assert (await refusal(api, body=eviction(dryRun=["All"]))).code == 429

    virtual(scenario)


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ({"metadata": {}}, 400, "name in URL does not match name in Eviction object"),
        (eviction("other"), 400, "name in URL does not match name in Eviction object"),
        ({"apiVersion": "v1", "kind": "Pod"}, 400, "unknown conversion"),
        (eviction(propagationPolicy="Later"), 422, "Unsupported value"),
        (eviction(preconditions={"uid": "x"}), 409, "does not match the UID in record"),
        (eviction(preconditions={"resourceVersion": "1"}), 409, "does not match the ResourceVersion in record"),
    ],
)
def test_bad_evictions_are_refused_and_change_nothing(virtual, body, code, text):
    async def scenario(api):
        await a_running_pod(api)
        before = await api.admin.get(PODS, "p", "default")
        error = await refusal(api, body=dict(body))
        assert error.code == code
        assert text in error.message
        assert await api.admin.get(PODS, "p", "default") == before

    virtual(scenario)


def test_a_precondition_on_the_version_holds_over_the_servers_own_write(virtual):
    async def scenario(api):
        await a_running_pod(api)
        pod = await api.admin.get(PODS, "p", "default")
        preconditions = {"uid": pod["metadata"]["uid"], "resourceVersion": pod["metadata"]["resourceVersion"]}
        await evict(api, body=eviction(preconditions=preconditions, gracePeriodSeconds=7))
        pod = await api.admin.get(PODS, "p", "default")
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 7

    virtual(scenario)


def test_the_older_version_of_the_body_is_the_same_eviction(virtual):
    async def scenario(api):
        await a_running_pod(api)
        await evict(api, body={**eviction(), "apiVersion": "policy/v1beta1"})
        assert "deletionTimestamp" in (await api.admin.get(PODS, "p", "default"))["metadata"]
        assert (await refusal(api, "missing")).reason == "NotFound"

    virtual(scenario)


def test_a_terminating_pod_may_be_evicted_again_and_its_deadline_stays(virtual):
    async def scenario(api):
        await a_running_pod(api)
        await a_stored_budget(api, currentHealthy=1, desiredHealthy=1)
        deleted = await api.admin.delete(PODS, "p", "default", grace_period_seconds=20)
        await evict(api)
        pod = await api.admin.get(PODS, "p", "default")
        assert pod["metadata"]["deletionTimestamp"] == deleted["metadata"]["deletionTimestamp"]
        assert any(c["type"] == "DisruptionTarget" for c in pod["status"]["conditions"])
        assert kinds.DELETION_DECIDED not in api.records.kinds

    virtual(scenario)
