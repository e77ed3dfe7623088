"""The smaller rules of starts, of the sync loop and of what is cleared away: node-semantics 2 to 4, 9, 11, 14, 17."""

from typing import Any

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, run_cluster

from lastcall.kube.api.resources import PODS
from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.records import kinds

RUNS = Program()
OK, BAD = ExecResult(), ExecResult(exit_code=1)


def near(value: float) -> Any:
    return pytest.approx(value, abs=0.05)


def ran(programs: dict[str, Program], seconds: float = 10.0, **spec: Any) -> VirtualCluster:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(**spec))
        await cluster.sleep(seconds)

    return run_cluster(scenario, programs)


def started(cluster: VirtualCluster) -> list[str]:
    return [record.container for record in cluster.records(kinds.PROCESS_STARTED)]


# -- 3, 4: the loop ---------------------------------------------------------------------------------------------------


class Updates:
    """Counts what the kubelet's workers are told about Pods."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.types: list[str] = []
        update_pod = cluster.kubelet._work.workers.update_pod

        def counted(options: Any) -> None:
            self.types.append(options.update_type.value)
            update_pod(options)

        cluster.kubelet._work.workers.update_pod = counted  # type: ignore[method-assign]


@pytest.mark.rule("node-semantics 3/pleg")
def test_a_container_that_ends_makes_the_worker_look_and_one_that_is_removed_does_not() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(restartPolicy="Never", containers=[container("ends"), container("runs")]))
        await cluster.wait_ready()
        updates = Updates(cluster)
        await cluster.wait_until(lambda: "terminated" in cluster.container_status("ends").get("state", {}))
        assert updates.types == ["sync"]
        ended = next(c for c in await cluster.runtime.list_containers() if c.metadata.name == "ends")
        await cluster.runtime.remove_container(ended.id)
        await cluster.sleep(5)
        assert updates.types == ["sync"]

    run_cluster(scenario, {"ends": Program(exits_after=3.0), "": RUNS})


@pytest.mark.rule("node-semantics 3/liveness")
def test_of_liveness_results_only_a_failure_makes_the_worker_look() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        liveness = {"exec": {"command": ["alive"]}, "periodSeconds": 5, "failureThreshold": 1}
        await cluster.create(pod_manifest(containers=[container(livenessProbe=liveness)]))
        await cluster.wait_ready()
        await cluster.sleep(0.5)
        updates = Updates(cluster)
        await cluster.sleep(12)
        assert updates.types == [], "two successes"
        await cluster.wait_until(lambda: cluster.records(kinds.KILLING), 10)
        assert updates.types == ["sync"]

    run_cluster(scenario, {"": Program(execs={"alive": (OK, OK, OK, BAD)})})


@pytest.mark.rule("node-semantics 4.3/failed-sync, 23/failed-sync")
def test_a_status_that_cannot_be_read_is_told_and_read_again() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        cluster.runtime.fail_next("list_containers", "connection refused", times=2)
        await cluster.delete()
        await cluster.wait_gone(limit=60)

    cluster = run_cluster(scenario, {"": RUNS})
    assert "Warning FailedSync: error determining status: connection refused" in cluster.events()


@pytest.mark.rule("node-semantics 1/cri-deadlines, 9.4/errors")
@pytest.mark.parametrize(
    ("verb", "limit", "event"),
    [
        ("run_pod_sandbox", 240, "Warning FailedCreatePodSandBox: Failed to create pod sandbox: "),
        ("create_container", 120, "Warning Failed [containers{app}]: Error: "),
        ("start_container", 120, "Warning Failed [containers{app}]: Error: "),
    ],
)
def test_a_runtime_that_does_not_answer_holds_a_pod_for_minutes_and_not_for_ever(
    verb: str, limit: float, event: str
) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        real = getattr(cluster.runtime, verb)

        async def hangs(*arguments: Any) -> Any:
            setattr(cluster.runtime, verb, real)
            await cluster.sleep(3600)

        setattr(cluster.runtime, verb, hangs)
        await cluster.create(pod_manifest())
        await cluster.wait_ready(limit=limit + 20)

    cluster = run_cluster(scenario, {"": RUNS})
    assert event + "rpc error: code = DeadlineExceeded desc = context deadline exceeded" in cluster.events()
    assert cluster.at(kinds.PROCESS_STARTED) >= limit


@pytest.mark.rule("node-semantics 1/cri-deadlines")
def test_a_stop_has_two_minutes_beside_its_own_time() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        real = cluster.runtime.stop_container

        async def hangs(*arguments: Any) -> None:
            cluster.runtime.stop_container = real  # type: ignore[method-assign]
            await cluster.sleep(3600)

        cluster.runtime.stop_container = hangs  # type: ignore[method-assign]
        await cluster.delete(grace=30)
        await cluster.wait_gone(limit=180)

    cluster = run_cluster(scenario, {"": RUNS})
    assert cluster.records(kinds.STOP_FINISHED)[0].facts["seconds"] == near(150)
    assert "FailedKillPod" in str(cluster.events())


@pytest.mark.rule("node-semantics 4.6/statuses")
def test_nothing_is_remembered_of_a_pod_that_is_gone() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("p"), pod_manifest("q"))
        await cluster.wait_ready("p", "q")
        await cluster.delete("pod/p", grace=0)  # so that there is no last status of it
        await cluster.wait_gone("p")
        await cluster.sleep(5)
        statuses = cluster.kubelet._reports.statuses
        assert statuses.get_pod_status(cluster.uid("p")) is None
        assert statuses.get_pod_status(cluster.uid("q")) is not None

    run_cluster(scenario, {"": RUNS})


# -- 9: starts --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 9.3/order, 22.1/start")
def test_the_runtime_is_asked_for_one_thing_after_the_other() -> None:
    calls: list[str] = []

    async def scenario(cluster: VirtualCluster) -> None:
        for verb in ("run_pod_sandbox", "pod_sandbox_status", "image_status", "create_container", "start_container",
                     "exec_sync"):  # fmt: skip
            _listen(cluster.runtime, verb, calls)
        hook = {"lifecycle": {"postStart": {"exec": {"command": ["sleep", "2"]}}}}
        await cluster.create(pod_manifest(containers=[container("a", **hook), container("b")]))
        await cluster.wait_ready()

    cluster = run_cluster(scenario, {"": RUNS})
    each = ["image_status", "create_container", "start_container"]
    assert calls == ["run_pod_sandbox", "pod_sandbox_status", *each, "exec_sync", *each]
    first, second = (cluster.at(kinds.PROCESS_STARTED, name) for name in ("a", "b"))
    assert second - first >= 2


def _listen(runtime: Any, verb: str, calls: list[str]) -> None:
    real = getattr(runtime, verb)

    async def told(*arguments: Any, **options: Any) -> Any:
        calls.append(verb)
        return await real(*arguments, **options)

    setattr(runtime, verb, told)


@pytest.mark.rule("node-semantics 9.3/regular-failure, 9.4/errors")
def test_a_container_that_cannot_be_made_does_not_hold_back_the_next() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        cluster.runtime.fail_next("create_container", "no space left", times=1)
        await cluster.create(pod_manifest(containers=[container("a"), container("b")]))
        await cluster.wait_until(
            lambda: cluster.container_status("a").get("state", {}).get("waiting", {}).get("message")
        )
        assert cluster.container_status("a")["state"]["waiting"] == {
            "reason": "CreateContainerError", "message": "no space left",
        }  # fmt: skip
        await cluster.wait_ready()

    cluster = run_cluster(scenario, {"": RUNS})
    assert started(cluster) == ["b", "a"]
    assert "Warning Failed [containers{a}]: Error: no space left" in cluster.events()


@pytest.mark.rule("node-semantics 9.3/init-failure, 9.4/errors")
def test_an_init_container_that_cannot_be_made_holds_back_all_that_follow() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        create = cluster.runtime.create_container

        async def without_space(sandbox_id: str, config: Any, sandbox_config: Any) -> str:
            tried.append(config.metadata.name)
            if cluster.now < 30:
                raise RuntimeServiceError("no space left")
            return await create(sandbox_id, config, sandbox_config)

        cluster.runtime.create_container = without_space  # type: ignore[method-assign]
        await cluster.create(pod_manifest(initContainers=[container("i"), container("j")]))
        await cluster.sleep(30)
        assert set(tried) == {"i"}
        await cluster.wait_ready()

    tried: list[str] = []
    cluster = run_cluster(scenario, {"i": Program(exits_after=1.0), "j": Program(exits_after=1.0), "": RUNS})
    assert started(cluster) == ["i", "j", "app"]


@pytest.mark.rule("node-semantics 9.4/names, 9.4/errors")
def test_a_container_is_named_and_not_numbered_in_the_error_of_its_start() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        start = cluster.runtime.start_container

        async def fails(container_id: str) -> None:
            cluster.runtime.start_container = start  # type: ignore[method-assign]
            raise RuntimeServiceError(f'failed to start container "{container_id}": too many files')

        cluster.runtime.start_container = fails  # type: ignore[method-assign]
        await cluster.create(pod_manifest())
        await cluster.wait_ready()

    cluster = run_cluster(scenario, {"": RUNS})
    assert (
        'Warning Failed [containers{app}]: Error: failed to start container "app": too many files' in cluster.events()
    )
    (failed,) = cluster.records(kinds.CONTAINER_START_FAILED)
    assert failed.facts["reason"] == "RunContainerError"


@pytest.mark.rule("node-semantics 9.5/key")
def test_another_image_ends_the_back_off() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(image="crashes:1")]))
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_EXITED)) == 4)  # 40 s would follow
        await cluster.sleep(1)
        await cluster.patch("pod/p", {"spec": {"containers": [container(image="runs:1")]}})
        patched = cluster.now
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_STARTED)) == 5)
        assert cluster.now - patched < 1

    run_cluster(scenario, {"crashes": Program(exits_after=0.5, natural_exit_code=1), "runs": RUNS})


@pytest.mark.rule("node-semantics 9.3/sandbox-errors")
def test_a_sandbox_that_fails_after_the_end_was_asked_for_is_not_told() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        cluster.runtime.fail_next("run_pod_sandbox", "no addresses left", times=1, seconds=3.0)
        await cluster.create(pod_manifest())
        await cluster.sleep(1)
        await cluster.delete()
        await cluster.wait_gone()

    assert "FailedCreatePodSandBox" not in str(run_cluster(scenario, {"": RUNS}).events())


# -- 11: the status ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 11.2/conditions")
def test_conditions_of_others_stay_and_those_of_the_kubelet_are_put_right() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        mine = {"type": "example.com/mine", "status": "True"}
        wrong = [{**c, "status": "False"} if c["type"] == "Ready" else c for c in cluster.status()["conditions"]]
        await cluster.patch("pod/p", {"status": {"conditions": [*wrong, mine]}}, subresource="status")
        await cluster.wait_until(lambda: cluster.condition("p", "Ready") == "False")
        await cluster.wait_ready(limit=11)
        assert cluster.condition("p", "example.com/mine") == "True"
        await cluster.delete()
        await cluster.wait_gone()

    assert run_cluster(scenario, {"": RUNS}).condition("p", "example.com/mine") == "True"


# -- 14, 17: news, and what is cleared away ---------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 14/stream")
def test_what_happened_while_the_stream_of_events_was_broken_is_found_by_a_listing() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(restartPolicy="Never"))
        await cluster.wait_ready()
        await cluster.runtime.close()  # every stream ends
        (running,) = await cluster.runtime.list_containers()
        cluster.runtime.kill(running.id, 3)
        await cluster.wait_phase("p", "Failed", limit=2)
        await cluster.create(pod_manifest("q"))
        await cluster.wait_ready("q", limit=2)

    run_cluster(scenario, {"": RUNS})


@pytest.mark.rule("node-semantics 17.1/sandboxes, 9.2/changed, 23/sandbox, 17.1/containers")
def test_a_sandbox_that_died_is_replaced_and_removed_when_it_is_empty() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(initContainers=[container("i")]))
        await cluster.wait_ready()
        (first,) = await cluster.runtime.list_pod_sandbox()
        await cluster.runtime.stop_pod_sandbox(first.id)
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_STARTED, "app")) == 2)
        await cluster.wait_ready()
        assert len(cluster.records(kinds.PROCESS_STARTED, "i")) == 2
        for ended in [c for c in await cluster.runtime.list_containers() if c.pod_sandbox_id == first.id]:
            await cluster.runtime.remove_container(ended.id)
        await cluster.sleep(130)
        assert first.id not in [sandbox.id for sandbox in await cluster.runtime.list_pod_sandbox()]

    cluster = run_cluster(scenario, {"i": Program(exits_after=1.0), "": RUNS})
    assert "Normal SandboxChanged: Pod sandbox changed, it will be killed and re-created." in cluster.events()


# -- 24: versions -----------------------------------------------------------------------------------------------------


def shut_down(version: str) -> VirtualCluster:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(terminationGracePeriodSeconds=2))
        await cluster.wait_ready()
        await cluster.kubelet.shutdown.shut_down()
        await cluster.sleep(5)

    return run_cluster(scenario, {"": Program(on_term="ignore")}, kubernetes_version=version)


@pytest.mark.rule("node-semantics 24/disruption-target")
@pytest.mark.parametrize(("version", "told"), [("1.23", False), ("1.27", True), ("1.36", True)])
def test_disruption_targets_are_those_of_the_version(version: str, told: bool) -> None:
    cluster = shut_down(version)
    assert (cluster.condition("p", "DisruptionTarget") == "True") is told


@pytest.mark.rule("node-semantics 24/sandbox-condition, 12.2/sandbox")
@pytest.mark.parametrize(("version", "states"), [("1.23", []), ("1.27", []), ("1.36", ["False", "True", "False"])])
def test_the_condition_of_the_sandbox_is_that_of_the_version(version: str, states: list[str]) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"": RUNS}, kubernetes_version=version)
    seen = [
        condition["status"]
        for each in cluster.versions()
        for condition in each.object["status"].get("conditions", [])
        if condition["type"] == "PodReadyToStartContainers"
    ]
    assert [s for n, s in enumerate(seen) if n == 0 or seen[n - 1] != s] == states


@pytest.mark.rule("node-semantics 2/sources-ready, 3/housekeeping")
def test_nothing_is_ended_before_the_api_server_has_said_what_is_wanted() -> None:
    class Slow:
        """The node's first list of Pods takes a minute after its restart."""

        seconds = 0.0

        def __init__(self, client: Any, component: str) -> None:
            self._client = client
            self._world: Any = None
            self._is_node = component.startswith("node:")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._client, name)

        async def list(self, resource: Any, *arguments: Any, **options: Any) -> Any:
            if self._is_node and resource is PODS and Slow.seconds:
                await clusters[0].sleep(Slow.seconds)
            return await self._client.list(resource, *arguments, **options)

    clusters: list[VirtualCluster] = []

    async def scenario(cluster: VirtualCluster) -> None:
        clusters.append(cluster)
        await cluster.create(pod_manifest("gone"), pod_manifest("stays"))
        await cluster.wait_ready("gone", "stays")
        await cluster.kill_kubelet()
        await cluster.delete("pod/gone", grace=0)
        Slow.seconds = 60.0
        cluster.start_kubelet()
        await cluster.sleep(50)
        assert cluster.records(kinds.KILLING) == []
        await cluster.wait_until(lambda: cluster.records(kinds.KILLING), 30)

    cluster = run_cluster(scenario, {"": RUNS}, wrap=Slow)
    assert [cluster.alias(r.pod_uid) for r in cluster.records(kinds.KILLING)] == ["gone"]
