"""DaemonSets on a virtual cluster of one node, and their rules on many."""

import pytest
from virtual_cluster import run_cluster
from workloads import events_about, listed, most_at_once, pods, template, workload

from lastcall.kube.api.meta import is_terminating, labels_of, name_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.resources import CONTROLLERREVISIONS, DAEMONSETS, EVENTS, PODS
from lastcall.kube.controllers.daemonset.decide import limits, manage, rolling_update, should_run, status_of
from lastcall.kube.controllers.pods.control import is_pod_active
from lastcall.kube.cri.simulated_program import Program

DRAINS = {"app": Program(drain_seconds=2)}


async def settled(cluster) -> bool:
    owner = await cluster.client.get(DAEMONSETS, "web", cluster.namespace)
    status = owner.get("status") or {}
    counts = [status.get(key, 0) for key in ("numberReady", "updatedNumberScheduled", "numberAvailable")]
    wanted = status.get("desiredNumberScheduled", 0)
    return bool(wanted) and counts == [wanted] * 3 and status["observedGeneration"] == owner["metadata"]["generation"]


def test_a_daemon_set_has_one_pinned_pod_per_node_that_bears_the_nodes_troubles():
    async def scenario(cluster):
        await cluster.create(workload("DaemonSet"))
        await cluster.wait_until_async(lambda: settled(cluster))
        (pod,) = await pods(cluster)
        term = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
        assert term == {"nodeSelectorTerms": [{"matchFields": [field]}]}
        assert [(each["key"].partition("/")[2], each["effect"]) for each in pod["spec"]["tolerations"]] == [
            ("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule"),
            ("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule"),
        ]  # fmt: skip
        assert labels_of(pod)["pod-template-generation"] == "1"
        owner = await cluster.client.get(DAEMONSETS, "web", "default")
        assert owner["status"] == {
            "currentNumberScheduled": 1, "numberMisscheduled": 0, "desiredNumberScheduled": 1, "numberReady": 1,
            "observedGeneration": 1, "updatedNumberScheduled": 1, "numberAvailable": 1,
        }  # fmt: skip
        assert events_about(cluster, "web") == [f"SuccessfulCreate: Created pod: {name_of(pod)}"]

    run_cluster(scenario, DRAINS)


def test_a_replacement_waits_until_the_old_pod_has_ended():
    async def scenario(cluster):
        await cluster.create(workload("DaemonSet"))
        await cluster.wait_until_async(lambda: settled(cluster))
        old = name_of((await pods(cluster))[0])
        await cluster.patch("daemonset/web", {"spec": {"template": template("app:2")}})
        await cluster.wait_until_async(lambda: settled(cluster))
        ended = next(v.at for v in cluster.versions(old) if v.object["status"]["phase"] == "Succeeded")
        new_at = next(s.at for s in cluster.history[PODS] if s.type == "ADDED" and s.name != old)
        assert new_at >= ended
        assert most_at_once(cluster, is_pod_active) == 1
        assert len(await listed(cluster, CONTROLLERREVISIONS)) == 2

    run_cluster(scenario, DRAINS)


def test_a_pod_that_is_being_made_counts_as_unavailable():
    """The new Pods never become ready: the other node keeps its old one (e2e `should rollback without unnecessary`)."""

    async def scenario(cluster):
        await cluster.create(workload("DaemonSet"))
        await cluster.wait_until_async(lambda: settled(cluster))
        (revision,) = await listed(cluster, CONTROLLERREVISIONS)
        hashes = {labels_of(each)["controller-revision-hash"] for each in [revision, *await pods(cluster)]}
        assert len(hashes) == 1
        held = revision["data"]["spec"]["template"]
        assert next(iter(held)) == "$patch" and list(held["spec"]) == sorted(held["spec"]), "compared byte by byte"
        never = template("app:2")
        never["spec"]["containers"][0]["readinessProbe"] = {"exec": {"command": ["false"]}, "initialDelaySeconds": 600}
        await cluster.patch("daemonset/web", {"spec": {"template": never}})
        await cluster.sleep(60)
        images = sorted(each["spec"]["containers"][0]["image"] for each in await pods(cluster))
        assert images[1:] == ["app:2"] and images[0] != "app:2"

    run_cluster(scenario, DRAINS, nodes=2)


def test_with_surge_the_new_pod_is_available_before_the_old_one_goes():
    async def scenario(cluster):
        update = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await cluster.create(workload("DaemonSet", updateStrategy=update))
        await cluster.wait_until_async(lambda: settled(cluster))
        old = name_of((await pods(cluster))[0])
        await cluster.patch("daemonset/web", {"spec": {"template": template("app:2")}})
        await cluster.wait_gone(old)
        marked = next(v.at for v in cluster.versions(old) if is_terminating(v.object))
        ready = next(s.at for s in cluster.history[PODS] if s.name != old and is_pod_ready(s.object))
        assert ready <= marked

    run_cluster(scenario, DRAINS)


SURGE = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def test_with_surge_a_deleted_pod_is_replaced_while_it_ends():
    async def scenario(cluster):
        await cluster.create(workload("DaemonSet", updateStrategy=SURGE))
        await cluster.wait_until_async(lambda: settled(cluster))
        old = name_of((await pods(cluster))[0])
        at = cluster.now
        await cluster.delete(f"pod/{old}")
        await cluster.sleep(1)
        new_at = next(s.at for s in cluster.history[PODS] if s.type == "ADDED" and s.name != old)
        assert new_at - at < 0.5

    run_cluster(scenario, DRAINS)


def test_with_surge_an_old_pod_that_is_not_ready_goes_as_soon_as_it_has_a_successor():
    async def scenario(cluster):
        bad = template()
        bad["spec"]["containers"][0]["readinessProbe"] = {"exec": {"command": ["false"]}, "periodSeconds": 1}
        await cluster.create(workload("DaemonSet", updateStrategy=SURGE, pods=bad, minReadySeconds=30))
        await cluster.sleep(3)
        await cluster.patch("daemonset/web", {"spec": {"template": {"metadata": {"labels": {"app": "web", "v": "2"}}}}})
        await cluster.sleep(5)
        (left,) = await pods(cluster)
        assert labels_of(left)["v"] == "2"

    run_cluster(scenario, DRAINS)


def test_on_delete_waits_for_the_user():
    async def scenario(cluster):
        await cluster.create(workload("DaemonSet", updateStrategy={"type": "OnDelete"}))
        await cluster.wait_until_async(lambda: settled(cluster))
        old = name_of((await pods(cluster))[0])
        await cluster.patch("daemonset/web", {"spec": {"template": template("app:2")}})
        await cluster.sleep(20)
        assert name_of((await pods(cluster))[0]) == old
        await cluster.delete(f"pod/{old}")
        await cluster.wait_until_async(lambda: settled(cluster))
        assert (await pods(cluster))[0]["spec"]["containers"][0]["image"] == "app:2"

    run_cluster(scenario, DRAINS)


def test_a_pod_that_fails_is_replaced_with_a_growing_back_off():
    async def scenario(cluster):
        await cluster.create(workload("DaemonSet"))
        await cluster.wait_until_async(lambda: settled(cluster))
        made_at = []
        for _ in range(4):
            (pod,) = [each for each in await pods(cluster) if is_pod_active(each)]
            at = cluster.now
            await cluster.patch(f"pod/{name_of(pod)}", {"status": {"phase": "Failed"}}, subresource="status")
            await cluster.wait_gone(name_of(pod))

            async def replaced() -> bool:
                return any(map(is_pod_active, await pods(cluster)))

            await cluster.wait_until_async(replaced)
            made_at.append(cluster.now - at)
        assert made_at[0] < 1 <= made_at[2] <= made_at[3]
        assert any(text.startswith("FailedDaemonPod: Found failed daemon pod default/web-") for text in
                   events_about(cluster, "web"))  # fmt: skip

    run_cluster(scenario, DRAINS)


def test_a_cordoned_node_keeps_its_pod_and_one_with_a_strange_taint_does_not_get_one():
    async def scenario(cluster):
        await cluster.patch("node/node-1", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})
        await cluster.create(workload("DaemonSet"))
        await cluster.sleep(5)
        assert await pods(cluster) == []
        await cluster.patch("node/node-1", {"spec": {"taints": None}})
        await cluster.wait_until_async(lambda: settled(cluster))
        await cluster.patch("node/node-1", {"spec": {"unschedulable": True}})
        await cluster.sleep(5)
        assert len(await pods(cluster)) == 1
        await cluster.patch("node/node-1", {"metadata": {"labels": {"kubernetes.io/os": "other"}}})
        await cluster.patch(
            "daemonset/web", {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/os": "x"}}}}}
        )
        await cluster.sleep(10)
        assert await pods(cluster) == []

    run_cluster(scenario, DRAINS)


def test_a_converged_daemon_set_is_left_alone():
    async def scenario(cluster):
        await cluster.create(workload("DaemonSet"))
        await cluster.wait_until_async(lambda: settled(cluster))
        await cluster.sleep(30)
        version = (await listed(cluster, DAEMONSETS))[0]["metadata"]["resourceVersion"]
        events = len(cluster.history[EVENTS])
        await cluster.sleep(3600)
        assert (await listed(cluster, DAEMONSETS))[0]["metadata"]["resourceVersion"] == version
        assert len(cluster.history[EVENTS]) == events

    run_cluster(scenario, DRAINS)


# -- the rules on many nodes ---------------------------------------------------------------------------------------


def owner(**spec):
    obj = workload("DaemonSet", **spec)
    obj["metadata"] |= {
        "namespace": "default", "uid": "u", "annotations": {"deprecated.daemonset.template.generation": "2"}
    }  # fmt: skip
    return obj


def node(name, **spec):
    return {"metadata": {"name": name, "labels": {}}, "spec": spec}


def pod(name, on, *, new=True, ready=True, terminating=False, created="1970-01-01T00:00:00Z"):
    labels = {"controller-revision-hash": "new" if new else "old", "pod-template-generation": "2" if new else "1"}
    meta = {"name": name, "uid": name, "labels": labels, "creationTimestamp": created}
    if terminating:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    since = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": "1970-01-01T00:00:00Z"}
    return {"metadata": meta, "spec": {"nodeName": on}, "status": {"phase": "Running", "conditions": [since]}}


NODES = [node(f"n{number}") for number in range(4)]


@pytest.mark.parametrize(
    ("rolling", "desired", "expected"),
    [
        ({"maxUnavailable": 1, "maxSurge": 0}, 10, (0, 1)), ({"maxUnavailable": "30%", "maxSurge": 0}, 10, (0, 3)),
        ({"maxUnavailable": "31%", "maxSurge": 0}, 10, (0, 4)), ({"maxUnavailable": 0, "maxSurge": "10%"}, 5, (1, 0)),
        ({"maxUnavailable": 0, "maxSurge": 0}, 5, (0, 1)),
    ],
)  # fmt: skip
def test_both_limits_round_up(rolling, desired, expected):
    assert limits(owner(updateStrategy={"rollingUpdate": rolling}), desired) == expected


def test_nodes_without_a_pod_get_one_and_surplus_pods_go():
    older, younger = pod("a", "n1", created="1970-01-01T00:00:01Z"), pod("b", "n1", created="1970-01-01T00:00:02Z")
    plan = manage(owner(), NODES, {"n0": [pod("x", "n0", terminating=True)], "n1": [older, younger]}, "new", 9.0)
    assert plan.create == ("n2", "n3")  # n0's Pod is still ending
    assert [removal.pod for removal in plan.remove] == [younger]


UPDATES = [
    ("old ones go as far as maxUnavailable allows", 2, {f"n{n}": [pod(f"p{n}", f"n{n}", new=False)] for n in range(4)},
     ["p0", "p1"]),
    ("a node without a Pod counts as unavailable", 2,
     {"n0": [], **{f"n{n}": [pod(f"p{n}", f"n{n}", new=False)] for n in (1, 2, 3)}}, ["p1"]),
    ("old ones that serve nobody go for free", 1,
     {**{f"n{n}": [pod(f"p{n}", f"n{n}", new=False, ready=False)] for n in (0, 1)},
      **{f"n{n}": [pod(f"p{n}", f"n{n}", new=False)] for n in (2, 3)}}, ["p0", "p1"]),
    ("a new one that is not available uses the budget", 1,
     {"n0": [pod("p0", "n0", ready=False)], **{f"n{n}": [pod(f"p{n}", f"n{n}", new=False)] for n in (1, 2, 3)}}, []),
    ("nothing is left to do", 1, {f"n{n}": [pod(f"p{n}", f"n{n}")] for n in range(4)}, []),
]  # fmt: skip


@pytest.mark.parametrize(("unavailable", "here", "gone"), [u[1:] for u in UPDATES], ids=[u[0] for u in UPDATES])
def test_a_rolling_update(unavailable, here, gone):
    obj = owner(
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": 0}}
    )
    plan = rolling_update(obj, NODES, here, "new", 9.0)
    assert [name_of(removal.pod) for removal in plan.remove] == gone


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (True, True)),
        ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, (False, True)),
        ({"taints": [{"key": "a", "effect": "NoExecute"}]}, (False, False)),
        ({"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}, (True, True)),
        ({"unschedulable": True}, (True, True)),
    ],
)
def test_where_a_pod_may_start_and_stay(spec, expected):
    assert should_run(owner(), node("n", **spec)) == expected


def test_the_status_counts_nodes():
    here = {"n0": [pod("a", "n0")], "n1": [pod("b", "n1", new=False, ready=False)], "gone": [pod("c", "gone")]}
    assert status_of(owner(), NODES, here, "new", 9.0, observe=False) == {
        "currentNumberScheduled": 2, "numberMisscheduled": 0, "desiredNumberScheduled": 4, "numberReady": 1,
        "updatedNumberScheduled": 1, "numberAvailable": 1, "numberUnavailable": 3,
    }  # fmt: skip
