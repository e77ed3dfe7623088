"""Which Pods a drain evicts, and for which it needs an option: the filters of kubectl."""

from typing import Any

import pytest

from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.cluster.drain.decide import DrainOptions, plan_drain

ALL = DrainOptions(force=True, ignore_daemonsets=True, delete_emptydir_data=True)
AGENT = frozenset({("default", "agent")})


def pod(name: str, owner: str = "", phase: str = "Running", **spec: Any) -> Object:
    kind, _, owner_name = owner.partition("/")
    references = [{"kind": kind, "name": owner_name, "controller": True}] if owner else []
    meta = {"name": name, "namespace": "default", "ownerReferences": references}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


def mirror(name: str) -> Object:
    made = pod(name)
    made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    return made


SCRATCH = {"volumes": [{"name": "v", "emptyDir": {}}]}

NEEDS = [
    (pod("p", "ReplicaSet/web"), ""),
    (pod("p"), "force"),
    (pod("p", phase="Succeeded"), ""),
    (pod("p", phase="Failed", **SCRATCH), ""),
    (pod("p", "ReplicaSet/web", **SCRATCH), "delete_emptydir_data"),
    (pod("p", **SCRATCH), "delete_emptydir_data"),
    (pod("p", "DaemonSet/agent"), "ignore_daemonsets"),
    (pod("p", "DaemonSet/agent", phase="Failed"), ""),
    (pod("p", "DaemonSet/deleted"), "force"),
]


@pytest.mark.parametrize(("of", "needed"), NEEDS)
def test_a_pod_needs_the_option_that_it_needs_with_kubectl(of: Object, needed: str) -> None:
    plan = plan_drain([of], AGENT, DrainOptions())
    assert plan.refused == ({needed: ["default/p"]} if needed else {})
    assert plan.evicted == ([] if needed else [of])
    assert bool(plan.refusal()) == bool(needed)
    whole = plan_drain([of], AGENT, ALL)
    assert not whole.refused and not whole.refusal()
    assert whole.ignored == ([of] if needed == "ignore_daemonsets" else [])


def test_a_mirror_of_a_static_pod_is_left_without_an_option() -> None:
    plan = plan_drain([mirror("static")], (), DrainOptions())
    assert not plan.refused and [name_of(each) for each in plan.ignored] == ["static"]


def test_a_daemon_set_s_pod_with_scratch_data_is_left_by_one_option() -> None:
    plan = plan_drain([pod("p", "DaemonSet/agent", **SCRATCH)], AGENT, DrainOptions(ignore_daemonsets=True))
    assert not plan.refused and len(plan.ignored) == 1


def test_a_refusal_names_each_pod_why_and_the_option() -> None:
    plan = plan_drain([pod("b"), pod("a"), pod("c", "DaemonSet/agent")], AGENT, DrainOptions())
    assert plan.refusal() == (
        "default/a, default/b: no controller would replace them (add --force to end them all the same); "
        "default/c: their DaemonSet would replace them on the node (add --ignore-daemonsets to end them all the same)"
    )
