"""Ephemeral containers in whole clusters (node-semantics 9.2, 21.3)."""

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, run_cluster

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import PODS
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH
from lastcall.kube.cri.simulated import SimulatedImage
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

NEVER_EXITS = Program(on_term="ignore")


async def add(cluster: VirtualCluster, name: str = "debug", **fields) -> dict:
    one = {"name": name, "image": "busybox:1.36", **fields}
    patch = {"spec": {"ephemeralContainers": [one]}}
    return await cluster.client.patch(
        PODS, "p", patch, cluster.namespace, content_type=STRATEGIC_MERGE_PATCH, subresource="ephemeralcontainers"
    )


def debug_status(cluster: VirtualCluster, name: str = "debug") -> dict:
    found = cluster.status().get("ephemeralContainerStatuses") or []
    return next((status for status in found if status["name"] == name), {})


def state(cluster: VirtualCluster, name: str = "debug") -> str:
    return next(iter(debug_status(cluster, name).get("state", {})), "")


@pytest.mark.rule("node-semantics 21.3/start, 21.3/subresource, 21.3/phase")
def test_an_ephemeral_container_is_started_once_and_never_again() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        answer = await add(cluster, targetContainerName="app")
        assert answer["metadata"]["generation"] == 2
        assert answer["spec"]["ephemeralContainers"][0]["imagePullPolicy"] == "IfNotPresent"
        await cluster.wait_until(lambda: state(cluster) == "terminated")
        await cluster.sleep(400)

    cluster = run_cluster(scenario, {"app": Program(), "debug": Program(exits_after=2.0, natural_exit_code=3)})
    status = debug_status(cluster)
    assert (status["restartCount"], status["ready"], "started" in status) == (0, False, False)
    assert status["state"]["terminated"]["exitCode"] == 3
    assert (cluster.status()["phase"], cluster.condition("p", "Ready")) == ("Running", "True")
    assert sum(record.container == "debug" for record in cluster.records(kinds.PROCESS_STARTED)) == 1
    assert "Normal Started [ephemeralContainers{debug}]: Container started" in cluster.events()
    (added,) = cluster.records(kinds.EPHEMERAL_CONTAINERS_ADDED)
    assert added.facts["containers"] == [{"name": "debug", "target": "app"}]


@pytest.mark.rule("node-semantics 21.3/stop")
def test_it_is_stopped_beside_the_app_with_the_same_grace_and_does_not_count_for_the_phase() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        sidecar = container("proxy", restartPolicy="Always")
        await cluster.create(pod_manifest(terminationGracePeriodSeconds=5, initContainers=[sidecar]))
        await cluster.wait_ready()
        await add(cluster)
        await cluster.wait_until(lambda: state(cluster) == "running")
        await cluster.delete()
        await cluster.wait_gone()

    programs = {"app": Program(drain_seconds=1.0), "proxy": Program(), "debug": NEVER_EXITS}
    cluster = run_cluster(scenario, programs)
    stops = {r.container: round(cluster.since_killing(r), 1) for r in cluster.records(kinds.STOP_REQUESTED)}
    assert stops == {"app": 0.0, "debug": 0.0, "proxy": 1.0}  # the sidecar waits for the app, not for it
    assert [signal for _, signal in cluster.signals("debug")] == ["SIGTERM", "SIGKILL"]
    assert cluster.signals("debug")[1][0] == pytest.approx(5, abs=0.1)
    assert cluster.status()["phase"] == "Succeeded"


@pytest.mark.rule("node-semantics 9.2/ephemeral")
def test_it_starts_while_init_containers_still_run() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(initContainers=[container("init")]))
        await cluster.wait_until(lambda: cluster.records(kinds.PROCESS_STARTED))
        await add(cluster)
        await cluster.wait_until(lambda: state(cluster) == "running")
        assert cluster.status()["phase"] == "Pending"

    run_cluster(scenario, {"init": Program(exits_after=60.0), "app": Program(), "debug": NEVER_EXITS})


@pytest.mark.parametrize(("fields", "code"), [({}, 137), ({"targetContainerName": "app"}, 143)])
def test_beside_a_target_it_is_not_pid_1_and_a_signal_without_handler_ends_it(fields: dict, code: int) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(terminationGracePeriodSeconds=3))
        await cluster.wait_ready()
        await add(cluster, **fields)
        await cluster.wait_until(lambda: state(cluster) == "running")
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program(), "debug": Program(on_term="default")})
    assert debug_status(cluster)["state"]["terminated"]["exitCode"] == code


@pytest.mark.rule("node-semantics 21.3/target")
def test_a_target_that_does_not_run_is_a_config_error() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        late = container("late", image="slow:1")
        await cluster.create(pod_manifest(containers=[container(), late]))
        await cluster.wait_until(lambda: cluster.records(kinds.PROCESS_STARTED))
        await add(cluster, targetContainerName="late")
        await cluster.wait_until(lambda: "waiting" in debug_status(cluster).get("state", {}))
        await cluster.sleep(25)

    images = {"slow:1": SimulatedImage(present=False, error="no such image")}
    cluster = run_cluster(scenario, {"app": Program(), "late": Program(), "debug": Program()}, images=images)
    assert debug_status(cluster)["state"]["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": "unable to find target container late",
    }


def test_what_may_not_be_is_refused() -> None:
    texts: list[str] = []

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        for fields in (
            {"livenessProbe": {"exec": {"command": ["true"]}}},
            {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}},
            {"resources": {"limits": {"cpu": "1"}}},
            {"ports": [{"containerPort": 80}]},
            {"restartPolicy": "Always"},
            {"targetContainerName": "nobody"},
            {"name": "app"},
        ):
            with pytest.raises(StatusError) as caught:
                await add(cluster, **fields)
            texts.append(str(caught.value).removeprefix('Pod "p" is invalid: '))
        await add(cluster)
        with pytest.raises(StatusError) as caught:
            await add(cluster, image="other:1")
        texts.append(str(caught.value).partition("\n")[0])

    run_cluster(scenario, {"app": Program(), "debug": Program()})
    at = "spec.ephemeralContainers[0]"
    why = "Forbidden: cannot be set for an Ephemeral Container"
    assert texts == [
        f"{at}.livenessProbe: {why}",
        f"{at}.lifecycle: {why}",
        f"{at}.resources: {why}",
        f"{at}.ports: {why}",
        f"{at}.restartPolicy: {why}",
        f'{at}.targetContainerName: Not found: "nobody"',
        f'{at}.name: Duplicate value: "app"',
        'Pod "p" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be '
        "changed",
    ]


def test_a_change_of_anything_else_through_the_subresource_is_not_heard() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        patch = {"metadata": {"labels": {"other": "yes"}}, "spec": {"nodeName": "elsewhere", "containers": []}}
        answer = await cluster.client.patch(
            PODS, "p", patch, cluster.namespace, content_type=STRATEGIC_MERGE_PATCH, subresource="ephemeralcontainers"
        )
        assert answer["spec"]["nodeName"] == "node-1" and "other" not in answer["metadata"]["labels"]

    run_cluster(scenario, {"app": Program()})


def test_without_their_gate_the_subresource_does_not_exist() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        with pytest.raises(StatusError) as caught:
            await add(cluster)
        assert str(caught.value) == "the server could not find the requested resource"

    gates = {"EphemeralContainers": False}
    run_cluster(scenario, {"app": Program()}, kubernetes_version="1.23", feature_gates=gates)
