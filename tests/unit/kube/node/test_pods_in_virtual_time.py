"""Starts, restarts, sidecars, natural ends, orphans and kubelet restarts on the real kubelet in virtual time."""

import pytest
from node_world import Node, container, exec_hook, on_node, pre_stop

from lastcall.kube.api.resources import CONFIGMAPS, PODS
from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.simulated import SimulatedImage
from lastcall.kube.cri.simulated_program import ExecResult, Program

TOLERANCE = 0.05


def near(value):
    return pytest.approx(value, abs=TOLERANCE)


def sidecar(name: str, **more) -> dict:
    return container(name, restartPolicy="Always", **more)


def ended(*, pods: dict, programs: dict, grace: int | None = None, version="1.36", natural=False):
    """Run one Pod to its end; answer the node and the moment the end began."""

    async def scenario(node: Node):
        node.create(**pods)
        if not natural:
            await node.until_running()
            began = node.now
            node.delete(grace=grace)
            await node.until_gone()
        else:
            began = node.now
            await node.until(lambda: node.records("WorkerFinished"))
            await node.sleep(1)
        return node, began

    return on_node(scenario, programs, version=version)


# -- the network ------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 9.1/network-not-ready")
def test_without_a_network_only_pods_of_the_hosts_network_start_and_the_node_says_why():
    async def scenario(node: Node):
        node.runtime.network_error = "cni plugin not initialized"
        await node.sleep(6)
        why = (
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
            "message:Network plugin returns error: cni plugin not initialized"
        )
        assert node.kubelet.not_ready() == why
        node.create("host", hostNetwork=True, containers=[container("app")])
        node.create("pod", containers=[container("app")])
        await node.until_running("host")
        await node.sleep(10)
        assert node.pod("pod")["status"]["phase"] == "Pending"
        events = [(each["type"], each["message"]) for each in node.events.of("NetworkNotReady")]
        assert set(events) == {("Warning", f"network is not ready: {why}")}
        node.runtime.network_error = ""
        await node.until_running("pod")
        assert node.kubelet.not_ready() == ""

    on_node(scenario, {"app": Program()})


def test_a_node_whose_container_runtime_does_not_answer_for_30_s_says_so(monkeypatch: pytest.MonkeyPatch):
    """kubelet runtime.go:runtimeErrors."""

    async def scenario(node: Node):
        await node.sleep(6)
        status = node.runtime.status

        async def silent():
            raise RuntimeServiceError("connection refused")

        monkeypatch.setattr(node.runtime, "status", silent)
        await node.sleep(24)
        assert node.kubelet.not_ready() == ""
        await node.sleep(10)
        assert node.kubelet.not_ready() == "container runtime is down"
        node.runtime.network_error = "cni plugin not initialized"
        monkeypatch.setattr(node.runtime, "status", status)
        await node.sleep(6)
        assert node.kubelet.not_ready().startswith("container runtime network not ready: ")
        monkeypatch.setattr(node.runtime, "status", silent)
        await node.sleep(40)
        assert node.kubelet.not_ready().startswith("[container runtime is down, container runtime network not ready: ")

    on_node(scenario, {"app": Program()})


# -- sidecars ---------------------------------------------------------------------------------------


def times_of(node: Node, kind: str, began: float) -> dict[str, float]:
    return {r["container"]: r["at"] - began for r in node.records(kind)}


@pytest.mark.rule("node-semantics 8/regular-first, 8/budget")
def test_sidecars_stop_after_the_app_and_in_reverse_order():
    node, began = ended(
        pods={"initContainers": [sidecar("a"), sidecar("b")], "containers": [container("app")]},
        programs={"app": Program(drain_seconds=5), "a": Program(drain_seconds=2), "b": Program(drain_seconds=2)},
        grace=30,
    )
    assert times_of(node, "SignalSent", began) == {"app": near(0), "b": near(5), "a": near(7)}
    assert times_of(node, "Killing", began) == {"app": near(0), "b": near(0), "a": near(0)}
    timeouts = {r["container"]: r["facts"]["timeoutSeconds"] for r in node.records("StopRequested")}
    assert timeouts == {"app": 30, "b": 25, "a": 23}
    assert node.last_status()["phase"] == "Succeeded"


@pytest.mark.rule("node-semantics 8/hooks-together")
def test_all_pre_stop_hooks_of_a_pod_with_sidecars_start_at_once():
    hook = pre_stop(exec_hook("sleep", "1"))
    node, began = ended(
        pods={
            "initContainers": [sidecar("a", **hook), sidecar("b", **hook)],
            "containers": [container("app", **pre_stop(exec_hook("sleep", "2")))],
        },
        programs={"": Program()},
    )
    assert times_of(node, "PreStopStarted", began) == {"app": near(0), "a": near(0), "b": near(0)}
    assert times_of(node, "SignalSent", began) == {"app": near(2), "b": near(2), "a": near(2)}


@pytest.mark.rule("node-semantics 8/budget")
def test_sidecars_stop_waiting_when_the_grace_period_is_over():
    node, began = ended(
        pods={"initContainers": [sidecar("a"), sidecar("b")], "containers": [container("app")]},
        programs={"app": Program(on_term="ignore"), "": Program(on_term="ignore")},
        grace=4,
    )
    signals = [(r["container"], r["facts"]["signal"], r["at"] - began) for r in node.records("SignalSent")]
    assert sorted(signals) == [
        ("a", "SIGKILL", near(6)), ("a", "SIGTERM", near(4)),
        ("app", "SIGKILL", near(4)), ("app", "SIGTERM", near(0)),
        ("b", "SIGKILL", near(6)), ("b", "SIGTERM", near(4)),
    ]  # fmt: skip


@pytest.mark.rule("node-semantics 8/before-1.29, 24/sidecars")
def test_before_1_29_everything_stops_in_parallel():
    node, began = ended(
        pods={"initContainers": [sidecar("a")], "containers": [container("app")]},
        programs={"": Program(drain_seconds=2)},
        version="1.27",
    )
    assert times_of(node, "SignalSent", began) == {"app": near(0), "a": near(0)}


@pytest.mark.rule("node-semantics 8/natural-end")
def test_a_pod_whose_app_ends_stops_its_sidecars_and_then_succeeds():
    node, _ = ended(
        pods={
            "restartPolicy": "Never",
            "initContainers": [sidecar("a"), sidecar("b")],
            "containers": [container("app")],
        },
        programs={"app": Program(exits_after=2.0), "": Program(drain_seconds=1)},
        natural=True,
    )
    killed = sorted(event["message"] for event in node.events.of("Killing"))
    assert killed == ["Stopping container a", "Stopping container b"]
    assert node.pod()["status"]["phase"] == "Succeeded"
    assert node.records("TerminationObserved")[0]["facts"]["cause"] == "completed"


@pytest.mark.rule("node-semantics 8/restart")
def test_a_sidecar_that_crashes_is_restarted_while_the_pod_runs():
    async def scenario(node: Node):
        node.create(initContainers=[sidecar("s")], containers=[container("app")])
        await node.until_running()
        await node.until(lambda: node.pod()["status"]["initContainerStatuses"][0]["restartCount"] == 1)
        assert node.pod()["status"]["phase"] == "Running"

    on_node(scenario, {"s": Program(exits_after=3.0, natural_exit_code=1), "app": Program()})


# -- starts -----------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 9.4/events, 23/start, 15/present")
def test_a_start_tells_its_events_and_records_in_order():
    async def scenario(node: Node):
        node.create(containers=[container()])
        await node.until_running()
        return node

    node = on_node(scenario, {"": Program()})
    assert [(e["reason"], e["message"]) for e in node.events.events] == [
        ("Pulled", 'Container image "busybox:1.36" already present on machine and can be accessed by the pod'),
        ("Created", "Container created"),
        ("Started", "Container started"),
    ]
    kinds = [r["kind"] for r in node.recorder.records if r["kind"] != "StatusSent"]
    assert kinds == [
        "PodAdmitted", "NetworkAttached", "SandboxCreated", "ContainerCreated", "ProcessStarted", "ContainerStarted",
        "PodRunning",
    ]  # fmt: skip


@pytest.mark.rule("node-semantics 9.3/order")
def test_init_containers_run_one_after_the_other_before_the_app():
    async def scenario(node: Node):
        node.create(initContainers=[container("i1"), container("i2")], containers=[container("app")])
        await node.until_running()
        return node

    node = on_node(scenario, {"i1": Program(exits_after=2.0), "i2": Program(exits_after=1.0), "app": Program()})
    started = {r["container"]: r["at"] - 0.5 for r in node.records("ContainerStarted")}
    assert started == {"i1": near(0), "i2": near(2), "app": near(3)}


@pytest.mark.rule("node-semantics 9.5/event, 23/back-off")
def test_crashes_back_off_10_then_20_seconds():
    async def scenario(node: Node):
        node.create(containers=[container()])
        await node.until(lambda: len(node.records("ContainerStarted")) == 4)
        return node

    node = on_node(scenario, {"app": Program(exits_after=0.3, natural_exit_code=1)})
    at = [r["at"] for r in node.records("ContainerStarted")]
    assert at[1] - at[0] == near(0.3)
    assert 10.2 <= at[2] - at[1] <= 15.5
    assert 20.2 <= at[3] - at[2] <= 30.5
    event = node.events.of("BackOff")[0]
    uid = node.pod()["metadata"]["uid"]
    assert event["message"] == f"Back-off restarting failed container app in pod p_default({uid})"
    assert event["path"] == "spec.containers{app}"


@pytest.mark.rule("node-semantics 9.5/exit-0")
def test_a_container_that_exits_0_backs_off_too():
    async def scenario(node: Node):
        node.create(containers=[container()])
        await node.until(lambda: node.events.of("BackOff"))
        return node

    assert on_node(scenario, {"app": Program(exits_after=0.5)}).now < 5


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [("Never", 0, "Succeeded"), ("Never", 1, "Failed"), ("OnFailure", 0, "Succeeded")],
)
def test_how_pods_end_by_themselves(policy, code, phase):
    program = Program(exits_after=1.0, natural_exit_code=code)
    node, _ = ended(pods={"restartPolicy": policy, "containers": [container()]}, programs={"": program}, natural=True)
    assert node.pod()["status"]["phase"] == phase
    assert node.signals() == [] and node.records("FinalDeleteSent") == []


def test_a_missing_command_is_tried_twice_at_once_and_then_backs_off():
    async def scenario(node: Node):
        node.create(containers=[container()])
        await node.until(lambda: node.events.of("BackOff"))
        return node

    text = 'exec: "/no/such/file": stat /no/such/file: no such file or directory: unknown'
    node = on_node(scenario, {"app": Program(start_error=text)})
    assert [e["message"] for e in node.events.of("Failed")] == [f"Error: {text}"] * 2
    assert node.now < 1
    waiting = node.pod()["status"]["containerStatuses"][0]["state"]
    assert "waiting" in waiting or "terminated" in waiting


@pytest.mark.rule("node-semantics 9.4/errors")
def test_a_missing_config_map_keeps_the_container_waiting_until_it_is_there():
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "missing", "key": "a"}}}]

    async def scenario(node: Node):
        node.create(containers=[container(env=env)])
        await node.until(lambda: node.events.of("Failed"))
        assert node.events.of("Failed")[0]["message"] == 'Error: configmap "missing" not found'
        failed = node.records("ContainerStartFailed")[0]["facts"]
        assert failed == {"reason": "CreateContainerConfigError", "message": 'configmap "missing" not found'}
        node.api.put(CONFIGMAPS, {"metadata": {"name": "missing", "namespace": "default"}, "data": {"a": "1"}})
        await node.until_running()

    on_node(scenario, {"": Program()})


@pytest.mark.rule("node-semantics 11.4/unknown, 12.4/6")
def test_an_image_that_cannot_be_had_fails_the_start_and_the_pod_can_still_be_deleted():
    async def scenario(node: Node):
        node.create(containers=[container(image="absent:1")])
        await node.until(lambda: node.events.of("Failed"))
        await node.sleep(3)
        node.delete()
        await node.until_gone(limit=5)
        return node

    node = on_node(scenario, {"": Program()}, images={"absent:1": SimulatedImage(present=False, error="not found")})
    status = node.last_status()
    assert status["phase"] == "Failed"
    terminated = status["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == ("ContainerStatusUnknown", 137)


@pytest.mark.rule("node-semantics 15/not-cancelled")
def test_a_delete_waits_for_a_pull_and_then_kills_what_it_started():
    async def scenario(node: Node):
        node.create(containers=[container(image="slow:1")])
        await node.sleep(1)
        node.delete(grace=5)
        await node.until_gone()
        return node

    node = on_node(scenario, {"": Program()}, images={"slow:1": SimulatedImage(present=False, pull_seconds=6)})
    order = [e["reason"] for e in node.events.events]
    assert order == ["Pulling", "Pulled", "Created", "Started", "Killing"]
    assert node.events.of("Killing")[0]["at"] == near(6.5)


@pytest.mark.rule("node-semantics 6/cancel, 9.1/mount, 16/missing, 16/never-blocks, 23/mount")
def test_a_delete_interrupts_the_wait_for_volumes():
    async def scenario(node: Node):
        node.volumes.failures["v"] = 'configmap "missing" not found'
        node.create(containers=[container()], volumes=[{"name": "v", "configMap": {"name": "missing"}}])
        await node.sleep(5)
        node.delete()
        await node.until_gone(limit=2)
        return node

    node = on_node(scenario, {"": Program()})
    assert node.events.of("FailedMount") and not node.records("SandboxCreated")


@pytest.mark.rule("node-semantics 7/post-start-blocks, 7/post-start-fails, 23/killing")
def test_a_post_start_hook_holds_back_the_next_container_and_its_failure_kills():
    post_start = {"lifecycle": {"postStart": exec_hook("hook"), "preStop": exec_hook("sleep", "1")}}

    async def scenario(node: Node):
        node.create(restartPolicy="Never", containers=[container("app", **post_start), container("next")])
        await node.until(lambda: node.records("ContainerStarted", "next"))
        return node

    programs = {"app": Program(execs={"hook": ExecResult(seconds=3, exit_code=1)}), "next": Program()}
    node = on_node(scenario, programs)
    messages = [(e["reason"], e["message"]) for e in node.events.events if e["path"] == "spec.containers{app}"]
    assert messages[3:] == [("FailedPostStartHook", "PostStartHook failed"), ("Killing", "FailedPostStartHook")]
    assert node.records("ContainerStarted", "next")[0]["at"] == near(0.5 + 3 + 1)
    assert node.records("PreStopStarted", "app")


@pytest.mark.rule("node-semantics 7/every-kill")
def test_a_liveness_failure_restarts_the_container_after_its_hook():
    probe = {"exec": {"command": ["alive"]}, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 1}

    async def scenario(node: Node):
        spec = container(livenessProbe=probe, **pre_stop(exec_hook("sleep", "1")))
        node.create(terminationGracePeriodSeconds=3, containers=[spec])
        await node.until(lambda: len(node.records("ContainerStarted")) == 2)
        return node

    program = Program(on_term="ignore", execs={"alive": (ExecResult(), ExecResult(), ExecResult(exit_code=1))})
    node = on_node(scenario, {"app": program})
    killing = node.events.of("Killing")[0]
    assert killing["message"] == "Container app failed liveness probe, will be restarted"
    assert [s for _, s in node.signals()] == ["SIGTERM", "SIGKILL"]
    at = [at - killing["at"] for at, _ in node.signals()]
    assert at == [near(1), near(3)]


@pytest.mark.rule("node-semantics 9.2/kill")
def test_an_image_change_restarts_the_container():
    async def scenario(node: Node):
        pod = node.create(containers=[container()])
        await node.until_running()
        pod = {**node.pod(), "spec": {**pod["spec"], "containers": [container(image="busybox:1.36-b")]}}
        node.api.put(PODS, pod)
        await node.until(lambda: len(node.records("ContainerStarted")) == 2)
        assert node.events.of("Killing")[0]["message"] == "Container app definition changed, will be restarted"

    on_node(scenario, {"": Program()})


def test_an_active_deadline_ends_a_pod_with_its_own_grace_period():
    async def scenario(node: Node):
        node.create(activeDeadlineSeconds=5, terminationGracePeriodSeconds=3, containers=[container()])
        await node.until(lambda: node.records("WorkerFinished"))
        await node.sleep(1)
        return node

    node = on_node(scenario, {"app": Program(on_term="ignore")})
    at = [at for at, _ in node.signals()]
    assert 4.9 <= at[0] <= 6 and at[1] - at[0] == near(3)
    status = node.pod()["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert node.events.of("DeadlineExceeded")


# -- orphans and restarts ---------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 10/no-hook, 10/events")
def test_a_pod_force_deleted_while_the_kubelet_was_down_is_killed_at_once_without_hook():
    async def scenario(node: Node):
        node.create(containers=[container(**pre_stop(exec_hook("sleep", "2")))])
        await node.until_running()
        await node.stop_kubelet()
        node.api.remove(PODS, "p", "default")
        node.start_kubelet()
        restarted = node.now
        await node.until(lambda: node.records("WorkerFinished"))
        return node, restarted

    node, restarted = on_node(scenario, {"app": Program(on_term="ignore")})
    assert [(s, at - restarted) for at, s in node.signals()] == [("SIGKILL", near(2))]
    assert node.records("PreStopStarted") == [] and node.records("PreStopSkipped")
    assert node.events.of("Killing")[0]["message"] == "Stopping container app"


@pytest.mark.rule("node-semantics 20/1, 20/7")
def test_a_kubelet_killed_in_a_hook_runs_it_again_and_the_clock_starts_anew():
    async def scenario(node: Node):
        node.create(containers=[container(**pre_stop(exec_hook("sleep", "8")))])
        await node.until_running()
        node.delete(grace=10)
        await node.sleep(2)
        await node.stop_kubelet()
        await node.sleep(3)
        node.start_kubelet()
        restarted = node.now
        await node.until_gone()
        return node, restarted

    node, restarted = on_node(scenario, {"app": Program(on_term="ignore")})
    assert len(node.events.of("Killing")) == 2 and len(node.records("PreStopStarted")) == 2
    assert [(s, at - restarted) for at, s in node.signals()] == [("SIGTERM", near(8)), ("SIGKILL", near(10))]
    assert any(r["facts"]["killedBecause"] == "caller gone" for r in node.records("ExecExited"))


def test_a_restarted_kubelet_leaves_running_and_completed_pods_alone():
    async def scenario(node: Node):
        node.create("runs", containers=[container("app")])
        node.create("done", restartPolicy="Never", containers=[container("short")])
        await node.until_running("runs")
        await node.until(lambda: node.pod("done")["status"]["phase"] == "Succeeded")
        await node.sleep(5)
        await node.stop_kubelet()
        node.start_kubelet()
        await node.sleep(10)
        assert len(node.records("ContainerStarted")) == 2
        assert node.pod("runs")["status"]["phase"] == "Running"
        assert node.pod("runs")["status"]["containerStatuses"][0]["restartCount"] == 0

    on_node(scenario, {"app": Program(), "short": Program(exits_after=1.0)})


@pytest.mark.rule("node-semantics 6/exit-codes")
def test_a_pod_that_ended_while_the_kubelet_was_down_keeps_its_exit_code_without_a_second_killing():
    async def scenario(node: Node):
        node.create(containers=[container()])
        await node.until_running()
        node.delete(grace=20)
        await node.sleep(1)
        await node.stop_kubelet()
        await node.sleep(4)
        node.start_kubelet()
        await node.until_gone()
        return node

    node = on_node(scenario, {"app": Program(drain_seconds=3, exit_code=0)})
    assert len(node.events.of("Killing")) == 1
    assert node.last_status()["phase"] == "Succeeded"


@pytest.mark.rule("node-semantics 4.6/forget, 6/removed-later, 17.1/kept, 17.1/containers")
def test_what_a_gone_pod_leaves_in_the_runtime_is_removed():
    async def scenario(node: Node):
        node.create(containers=[container()])
        await node.until_running()
        node.delete()
        await node.until_gone()
        await node.sleep(5)
        assert await node.runtime.list_containers() == []
        assert await node.runtime.list_pod_sandbox() == []
        assert node.kubelet._work.workers.known_uids() == [] and node.kubelet._work.pleg.known_uids() == []

    on_node(scenario, {"": Program()})


def test_what_fails_again_and_again_is_logged_once(caplog):
    async def scenario(node: Node):
        node.runtime.fail_next("cni_add", "no room", times=20)
        node.create(containers=[container("app")])
        await node.until_running()

    with caplog.at_level("WARNING"):
        on_node(scenario, {"app": Program()})
    assert [line for line in caplog.messages if "no room" in line] == [
        next(m for m in caplog.messages if "no room" in m)
    ]
    assert caplog.messages[0].startswith("pod p_default (")


@pytest.mark.rule("node-semantics 9.3/sandbox-errors, 23/sandbox")
def test_a_sandbox_that_keeps_failing_is_not_tried_in_a_hot_loop():
    async def scenario(node: Node):
        node.runtime.fail_next("cni_add", "no addresses left", times=1000)
        node.create(containers=[container()])
        await node.sleep(60)
        assert 3 <= len(node.events.of("FailedCreatePodSandBox")) <= 70
        return node

    node = on_node(scenario, {"": Program()})
    assert node.events.events[0]["message"] == "Failed to create pod sandbox: no addresses left"


def test_two_runs_with_one_seed_tell_the_same_story():
    async def scenario(node: Node):
        for name in ("one", "two"):
            node.create(name, containers=[container("a"), container("b")])
            await node.until_running(name)
        node.delete("one", 4)
        node.delete("two", 2)
        await node.until_gone("one")
        await node.until_gone("two")
        return [(r["at"], r["kind"], r["pod_uid"], r["container"]) for r in node.recorder.records]

    programs = {"a": Program(drain_seconds=1), "b": Program(on_term="ignore")}
    assert on_node(scenario, programs, seed=7) == on_node(scenario, programs, seed=7)


@pytest.mark.rule("node-semantics 11.3/older, 24/final-delete")
def test_older_versions_delete_only_once_the_containers_are_removed():
    async def scenario(node: Node):
        node.create(containers=[container()])
        await node.until_running()
        started = node.now
        node.delete()
        await node.until_gone(limit=30)
        return node.now - started

    assert on_node(scenario, {"": Program()}, version="1.23") < 1
