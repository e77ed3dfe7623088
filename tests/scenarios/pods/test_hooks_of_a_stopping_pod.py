"""preStop and postStart in whole clusters: every handler, every way it can go (node-semantics 5.3, 7, 25.3 to 25.6)."""

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import PODS
from lastcall.kube.cri.simulated_program import ExecResult, HTTPAnswer, Listener, Program
from lastcall.records import kinds


def near(value: float):
    return pytest.approx(value, abs=0.05)


def ended(hook: dict, program: Program, *, grace: int = 5, wait: float = 1, **more) -> VirtualCluster:
    spec = {"terminationGracePeriodSeconds": grace, **more.pop("spec", {})}

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(**pre_stop(**hook))], **spec))
        await cluster.wait_ready()
        await cluster.sleep(wait)
        await cluster.delete()
        await cluster.wait_gone()
        await cluster.sleep(30)

    return run_cluster(scenario, {"app": program}, **more)


def failed_events(cluster: VirtualCluster) -> list[str]:
    return [line for line in cluster.events() if "FailedPreStopHook" in line]


IGNORES = Program(on_term="ignore", execs={"hang": ExecResult(seconds=3600)})
WARNING = "Warning FailedPreStopHook [containers{app}]: PreStopHook failed"


@pytest.mark.rule("node-semantics 5.3/outlives, 25/3, 23/hooks")
def test_a_hook_that_hangs_is_awaited_for_the_whole_grace_period_and_fails_when_the_container_dies() -> None:
    """25.3 with golden correction 3: the Event comes after the SIGKILL."""
    cluster = ended({"exec": ["hang"]}, IGNORES)
    assert cluster.signals() == [(near(5), "SIGTERM"), (near(7), "SIGKILL")]
    assert failed_events(cluster) == [WARNING]
    assert cluster.event_times("FailedPreStopHook")[0] >= cluster.at(kinds.PROCESS_EXITED)
    outlived = next(r for r in cluster.records(kinds.PRE_STOP_FINISHED) if r.facts["outcome"] == "outlived")
    assert outlived.facts["seconds"] == near(5)


def test_a_hook_that_hangs_warns_even_when_the_app_exits_0() -> None:
    """Golden correction 3; recorded: prestop-hangs-exits-on-term."""
    cluster = ended({"exec": ["hang"]}, Program(execs={"hang": ExecResult(seconds=3600)}))
    assert (cluster.exits(), failed_events(cluster)) == ([(near(5), 0)], [WARNING])
    assert cluster.status()["phase"] == "Succeeded"


@pytest.mark.rule("node-semantics 5.3/hook-error, 7/failure, 25/4")
def test_a_hook_that_fails_after_a_second_costs_that_second_and_nothing_else() -> None:
    """25.4."""
    cluster = ended({"exec": ["sh", "-c", "sleep 1; exit 3"]}, IGNORES)
    assert failed_events(cluster) == [WARNING]
    assert cluster.records(kinds.STOP_REQUESTED)[0].facts["timeoutSeconds"] == 4
    assert cluster.signals() == [(near(1), "SIGTERM"), (near(5), "SIGKILL")]


@pytest.mark.rule("node-semantics 7/http, 25/5")
@pytest.mark.parametrize("status", [200, 404, 500])
def test_any_http_status_is_success_for_a_hook(status: int) -> None:
    """25.5; the request is as recorded (golden correction 26)."""
    listener = Listener(HTTPAnswer(status=status))
    get = {"path": "/drain?x=1", "port": 8080, "httpHeaders": [{"name": "X-Hook", "value": "yes"}]}
    cluster = ended({"httpGet": get}, Program(ports={8080: listener}))
    assert cluster.signals() == [(near(0), "SIGTERM")] and failed_events(cluster) == []
    ((url, headers),) = cluster.dialer.requests
    assert url == "http://10.244.0.2:8080/drain?x=1"
    assert {"User-Agent": "kube-lifecycle/1.37", "Accept": "*/*", "X-Hook": "yes"}.items() <= dict(headers).items()


def test_an_http_hook_that_is_never_answered_fails_when_the_container_ends() -> None:
    """Golden correction 3; recorded: prestop-http-hang."""
    listener = Listener(HTTPAnswer(hangs=True))
    cluster = ended({"httpGet": {"path": "/", "port": 8080}}, Program(ports={8080: listener}), grace=3)
    assert cluster.signals() == [(near(3), "SIGTERM")]
    assert failed_events(cluster) == [WARNING]


@pytest.mark.rule("node-semantics 7/http-host-network, 25/6")
def test_an_http_hook_on_the_host_network_without_a_host_fails_at_once() -> None:
    """25.6, golden correction 27."""
    cluster = ended({"httpGet": {"path": "/", "port": 8080}}, IGNORES, spec={"hostNetwork": True})
    assert failed_events(cluster) == [WARNING]
    assert cluster.signals() == [(near(0), "SIGTERM"), (near(5), "SIGKILL")]
    assert cluster.dialer.requests == []


@pytest.mark.rule("node-semantics 7/sleep, 23/silent")
@pytest.mark.parametrize(("seconds", "term"), [(0, 0), (2, 2), (5, 5)])
def test_a_sleep_hook_sleeps_and_is_cut_without_an_event(seconds: int, term: float) -> None:
    """5.3 and golden correction 3: only a sleep hook cut by the grace period gives no Event."""
    cluster = ended({"sleep": seconds}, Program(), grace=5)
    assert cluster.signals() == [(near(term), "SIGTERM")]
    assert failed_events(cluster) == []


@pytest.mark.rule("node-semantics 7/self-exit, 25/27")
def test_a_container_that_exits_during_a_sleep_hook_is_awaited_all_the_same() -> None:
    """25.27 as golden correction 10 has it: sleep hooks only."""
    cluster = ended({"sleep": 20}, Program(exits_after=2.0, natural_exit_code=7), grace=30)
    assert cluster.at(kinds.STOP_REQUESTED) - cluster.at(kinds.KILLING) == near(20)
    assert cluster.signals() == []
    assert cluster.container_status()["state"]["terminated"]["exitCode"] == 7
    assert cluster.status()["phase"] == "Failed"


@pytest.mark.rule("node-semantics 7/self-exit")
def test_a_container_that_exits_during_an_exec_hook_ends_the_hook() -> None:
    """Golden correction 10; recorded: exit-during-prestop-exec."""
    cluster = ended({"exec": ["sleep", "20"]}, Program(exits_after=3.0, natural_exit_code=7), grace=30)
    assert cluster.at(kinds.STOP_REQUESTED) - cluster.at(kinds.KILLING) < 3
    assert failed_events(cluster) == [WARNING]
    assert cluster.is_gone() and cluster.gone_at() < 5


@pytest.mark.rule("node-semantics 7/tcp")
def test_a_tcp_hook_is_accepted_and_fails() -> None:
    """node-semantics 7: not implemented by the kubelet, yet accepted."""
    cluster = ended({"tcpSocket": {"port": 8080}}, Program())
    assert failed_events(cluster) == [WARNING]
    assert cluster.signals() == [(near(0), "SIGTERM")]


@pytest.mark.rule("node-semantics 7/tcp")
@pytest.mark.parametrize(("port", "fails"), [(8080, False), (8081, True)])
def test_a_tcp_hook_connects_with_its_gate(port: int, fails: bool) -> None:
    """Ours, as older documentation has it: a connection is a success, a refused one is not."""
    program = Program(ports={8080: Listener()})
    cluster = ended({"tcpSocket": {"port": port}}, program, feature_gates={"TCPSocketLifecycleHook": True})
    assert failed_events(cluster) == ([WARNING] if fails else [])
    assert cluster.signals() == [(near(0), "SIGTERM")]
    (started,) = cluster.records(kinds.PRE_STOP_STARTED)
    assert (started.facts["handler"], started.facts["detail"]) == ("tcpSocket", f"connect to POD:{port}")
    finished = cluster.records(kinds.PRE_STOP_FINISHED)[0].facts
    assert finished["outcome"] == ("failed" if fails else "succeeded")
    if fails:
        assert finished["message"].endswith("dial tcp 10.244.0.2:8081: connect: connection refused")


def test_a_tcp_hook_on_the_host_network_needs_a_host() -> None:
    gates = {"TCPSocketLifecycleHook": True}
    cluster = ended({"tcpSocket": {"port": 80}}, Program(), spec={"hostNetwork": True}, feature_gates=gates)
    assert failed_events(cluster) == [WARNING]
    message = cluster.records(kinds.PRE_STOP_FINISHED)[0].facts["message"]
    assert "failed to find networking container" in message


@pytest.mark.rule("node-semantics 21.1/gate-on, 21.1/gate-off")
@pytest.mark.parametrize("gate", [True, False])
def test_a_stop_signal_of_the_spec_is_sent_and_shown_with_its_gate_only(gate: bool) -> None:
    """node-semantics 21.1."""
    seen: list[dict] = []

    async def scenario(cluster: VirtualCluster) -> None:
        lifecycle = {"stopSignal": "SIGUSR1", "preStop": {"sleep": {"seconds": 1}}}
        await cluster.create(pod_manifest(os={"name": "linux"}, containers=[container(lifecycle=lifecycle)]))
        await cluster.wait_ready()
        seen.append(await cluster.client.get(PODS, "p", cluster.namespace))
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program()}, feature_gates={"ContainerStopSignals": gate})
    (pod,) = seen
    assert pod["spec"]["containers"][0]["lifecycle"].get("stopSignal") == ("SIGUSR1" if gate else None)
    assert pod["status"]["containerStatuses"][0].get("stopSignal") == ("SIGUSR1" if gate else None)
    assert cluster.signals() == [(near(1), "SIGUSR1" if gate else "SIGTERM")]


@pytest.mark.rule("node-semantics 7/events, 24/hook-events")
def test_before_the_text_was_fixed_the_event_said_what_went_wrong() -> None:
    """node-semantics 21, 23: 1.23 put the error into the Event."""
    cluster = ended({"exec": ["sh", "-c", "exit 3"]}, Program(), kubernetes_version="1.23")
    (line,) = failed_events(cluster)
    assert "Exec lifecycle hook ([sh -c exit 3]) for Container" in line


@pytest.mark.rule("node-semantics 7/post-start-blocks, 25/16")
def test_a_delete_waits_for_a_post_start_hook_of_a_minute() -> None:
    """25.16: nothing is signalled until postStart returns."""

    async def scenario(cluster: VirtualCluster) -> None:
        post_start = {"lifecycle": {"postStart": {"exec": {"command": ["sleep", "60"]}}}}
        await cluster.create(pod_manifest(terminationGracePeriodSeconds=5, containers=[container(**post_start)]))
        await cluster.wait_until(lambda: cluster.records(kinds.POST_START_STARTED))
        await cluster.sleep(1)
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program(on_term="ignore")})
    (record,) = cluster.records(kinds.POST_START_FINISHED)
    assert record.facts == {"handler": "exec", "outcome": "succeeded", "seconds": near(60), "message": ""}
    finished = cluster.at(kinds.POST_START_FINISHED)
    assert finished - cluster.at(kinds.POST_START_STARTED) == near(60)
    assert cluster.at(kinds.SIGNAL_SENT) == near(finished)
    assert cluster.signals() == [(near(0), "SIGTERM"), (near(5), "SIGKILL")]


@pytest.mark.rule("node-semantics 7/post-start-fails")
def test_a_failing_post_start_hook_kills_the_container_with_its_pre_stop_hook_and_restarts_it() -> None:
    """node-semantics 9, golden correction 20."""

    async def scenario(cluster: VirtualCluster) -> None:
        lifecycle = {
            "postStart": {"exec": {"command": ["sh", "-c", "exit 1"]}},
            "preStop": {"exec": {"command": ["sleep", "1"]}},
        }
        await cluster.create(pod_manifest(containers=[container(lifecycle=lifecycle)]))
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_STARTED)) == 2)

    cluster = run_cluster(scenario, {"app": Program()})
    assert "Warning FailedPostStartHook [containers{app}]: PostStartHook failed" in " ".join(cluster.events())
    assert any(line.startswith("Normal Killing [containers{app}]: FailedPostStartHook") for line in cluster.events())
    assert cluster.signals()[0] == (near(1), "SIGTERM")
    assert not any("app state=running" in group for group in cluster.milestones())


@pytest.mark.rule("node-semantics 7/sleep-validation")
@pytest.mark.parametrize(("seconds", "taken"), [(-1, False), (0, True), (5, True), (6, False)])
def test_a_sleep_is_no_longer_than_the_grace_period(seconds: int, taken: bool) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        manifest = pod_manifest(terminationGracePeriodSeconds=5, containers=[container(**pre_stop(sleep=seconds))])
        if taken:
            await cluster.create(manifest)
        else:
            with pytest.raises(
                StatusError, match=r"lifecycle\.preStop\.sleep: Invalid value: -?\d: must be non-negative"
            ):
                await cluster.create(manifest)

    run_cluster(scenario)


@pytest.mark.rule("node-semantics 7/alone")
@pytest.mark.parametrize("seconds", [3600, 20])
def test_a_retry_waits_for_the_hook_that_outlived_its_budget_and_does_not_start_it_again(seconds: float) -> None:
    """Neither container nor sandbox could be stopped, so the container and its hook live on until the next try."""

    async def scenario(cluster: VirtualCluster) -> None:
        manifest = pod_manifest(terminationGracePeriodSeconds=5, containers=[container(**pre_stop(exec=["hang"]))])
        await cluster.create(manifest)
        await cluster.wait_ready()
        cluster.runtime.fail_next("stop_container", "injected")
        cluster.runtime.fail_next("stop_pod_sandbox", "injected")
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program(execs={"hang": ExecResult(seconds=seconds)})})
    assert len(cluster.records(kinds.EXEC_STARTED)) == len(cluster.records(kinds.PRE_STOP_STARTED)) == 1
    assert len(cluster.records(kinds.KILLING)) == 2
    (skipped,) = cluster.records(kinds.PRE_STOP_SKIPPED)
    assert "still runs" in skipped.facts["why"]
    hook = cluster.at(kinds.EXEC_STARTED)
    began = cluster.at(kinds.KILLING, nth=1)
    assert cluster.at(kinds.SIGNAL_SENT) == near(min(began + 5, hook + seconds))
    assert cluster.exits()[-1][1] == 0
