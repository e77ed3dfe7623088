"""Pods that one rollout ended have one decision to link to."""

from virtual_cluster import run_cluster
from workloads import pods, workload

from lastcall.endings.ending import build_endings
from lastcall.endings.story import PodFacts
from lastcall.kube.api.meta import is_terminating
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.cri.simulated_program import Program
from lastcall.trace.exporting.spans import spans_of
from lastcall.trace.exporting.workload import workload_of


def test_the_pods_of_a_rollout_link_to_one_decision_and_another_rollout_to_another():
    async def scenario(cluster):
        async def ready():
            return sum(is_pod_ready(each) and not is_terminating(each) for each in await pods(cluster)) == 3

        await cluster.create(workload("Deployment", replicas=3))
        await cluster.wait_until_async(ready)
        for version in ("2", "3"):
            await cluster.patch(
                "deployment/web", {"spec": {"template": {"metadata": {"annotations": {"version": version}}}}}
            )
            await cluster.wait_until(lambda count=int(version): len(_ended(cluster)) == 3 * (count - 1))

    cluster = run_cluster(scenario, {"app": Program(drain_seconds=2)})
    endings = _ended(cluster)
    assert {workload_of(each).name for each in endings} == {"deployment/web"}
    traces = [spans_of(each) for each in endings]
    decisions = [spans[-1] for spans in traces]
    assert [spans[0].links[0].to for spans in traces] == [each.id for each in decisions]
    assert all(each.name == "decision: rolledOut" for each in decisions)
    assert [decisions.count(each) for each in decisions] == [3] * 6
    assert len({spans[0].id.trace for spans in traces}) == 6


def _ended(cluster):
    uids = dict.fromkeys(record.pod_uid for record in cluster.all_records if record.pod_uid)
    made = build_endings(cluster.all_records, [PodFacts(uid, "", "") for uid in uids], kubernetes_version="1.36")
    return [each for each in made if each.gone is not None]
