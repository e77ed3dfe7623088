"""What a whole cluster counts, in the names, labels and bounds of a real one."""

from itertools import chain

from scenario.metrics import unlike_kubernetes, value
from virtual_cluster import container, pod_manifest, run_cluster, service
from virtual_proxy import proxies
from workloads import workload

from lastcall.kube.api.metrics.text import exposition
from lastcall.kube.cri.simulated_program import Program
from lastcall.kube.node.metrics.kubelet import kubelet_families, probe_families, running_families


def test_scheduler_controllers_kubelet_and_service_proxy_count_what_they_do():
    async def scenario(cluster):
        probe = {"httpGet": {"port": 80}, "periodSeconds": 1}
        await cluster.create(workload("Deployment", replicas=3), service(app="web"))
        await cluster.create(pod_manifest("probed", containers=[container(readinessProbe=probe)]))
        huge = {"requests": {"cpu": "100"}}
        await cluster.create(pod_manifest("huge", containers=[container(resources=huge)]))
        async with proxies(cluster):
            await cluster.sleep(10)
            node = cluster.first
            parts = node.kubelet.counted
            text = exposition(
                chain(
                    cluster.world.counted.families(),
                    kubelet_families(parts, node.name, node.kubelet.active_pods()),
                    await running_families(parts.runtime),
                    probe_families(parts),
                )
            )
        assert unlike_kubernetes(text) == []
        assert value(text, "scheduler_schedule_attempts_total", result="scheduled") == 4
        assert value(text, "scheduler_schedule_attempts_total", result="unschedulable") >= 1
        assert value(text, "scheduler_pending_pods", queue="unschedulable") == 1
        assert value(text, "scheduler_pending_pods") == 1
        assert value(text, "scheduler_unschedulable_pods", plugin="NodeResourcesFit") == 1
        assert value(text, "scheduler_pod_scheduling_attempts_count") == 4
        assert value(text, "scheduler_cache_size", type="nodes") == 1
        assert value(text, "scheduler_preemption_attempts_total") >= 1
        assert value(text, "workqueue_adds_total", name="deployment") >= 1
        assert value(text, "workqueue_work_duration_seconds_count", name="replicaset") == value(
            text, "workqueue_queue_duration_seconds_count", name="replicaset"
        )
        assert value(text, "workqueue_depth") == 0
        assert value(text, "kubelet_running_pods") == value(text, "kubelet_running_containers") == 4
        assert value(text, "kubelet_started_pods_total") == 4
        assert value(text, "kubelet_started_containers_total", container_type="container") == 4
        assert value(text, "kubelet_runtime_operations_total", operation_type="start_container") == 4
        assert value(text, "kubelet_working_pods", lifecycle="sync", config="desired") == 4
        assert value(text, "kubelet_pleg_relist_duration_seconds_count") >= 1
        assert value(text, "prober_probe_total", pod="probed", probe_type="Readiness") >= 8
        assert value(text, "kubeproxy_sync_proxy_rules_duration_seconds_count") >= 1
        assert value(text, "kubeproxy_sync_proxy_rules_service_changes_total") >= 1

    run_cluster(scenario, {"app": Program(drain_seconds=0)})
