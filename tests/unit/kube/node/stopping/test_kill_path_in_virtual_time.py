"""Ends of Pods on the real kubelet with a simulated runtime: the tables 5.4 and 5.6, hooks, versions, retries."""

import pytest
from node_world import Node, container, exec_hook, on_node, pre_stop

from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.resources import PODS
from lastcall.kube.cri.simulated_program import ExecResult, HTTPAnswer, Listener, Program

IGNORES = Program(on_term="ignore")
TOLERANCE = 0.05


def near(value):
    return pytest.approx(value, abs=TOLERANCE)


def end_of(scenario_grace, lifecycle, program, *, delete_grace=None, version="1.36", act=None):
    """Delete one Pod; answer (node, seconds from Killing of each signal, of the exit, of its end)."""

    async def scenario(node: Node):
        node.create(terminationGracePeriodSeconds=scenario_grace, containers=[container(**lifecycle)])
        await node.until_running()
        (act or (lambda n: n.delete(grace=delete_grace)))(node)
        await node.until(lambda: node.records("WorkerFinished"))
        killing = node.events.of("Killing")[0]["at"]
        signals = [(signal, at - killing) for at, signal in node.signals()]
        exited = node.records("ProcessExited")[0]
        return node, signals, exited["at"] - killing, exited["facts"]["exitCode"]

    return on_node(scenario, {"app": program}, version=version)


SLEEP = Program(on_term="ignore", execs={"hang": ExecResult(seconds=10_000)})


@pytest.mark.parametrize(
    ("grace", "hook", "program", "term", "kill", "end", "code"),
    [
        pytest.param(30, None, Program(drain_seconds=3), 0, None, 3, 0, id="exits in 3 s"),
        pytest.param(5, None, IGNORES, 0, 5, 5, 137, id="ignores TERM"),
        pytest.param(30, exec_hook("sleep", "10"), IGNORES, 10, 30, 30, 137, id="hook 10 s"),
        pytest.param(30, exec_hook("hang"), SLEEP, 30, 32, 32, 137, id="hook hangs"),
        pytest.param(30, exec_hook("sleep", "29.5"), IGNORES, 29.5, 31.5, 31.5, 137, id="hook 29.5 s"),
        pytest.param(1, exec_hook("sleep", "5"), IGNORES, 1, 3, 3, 137, id="grace 1, hook 5 s"),
        pytest.param(1, None, IGNORES, 0, 2, 2, 137, id="grace 1, no hook"),
        pytest.param(0, exec_hook("sleep", "5"), IGNORES, 1, 3, 3, 137, id="grace 0 with a finalizer"),
        pytest.param(6, {"sleep": {"seconds": 2}}, IGNORES, 2, 6, 6, 137, id="sleep hook"),
        pytest.param(2, {"sleep": {"seconds": 6}}, IGNORES, 2, 4, 4, 137, id="sleep hook cut by the grace period"),
    ],
)  # fmt: skip
def test_when_the_signals_come(grace, hook, program, term, kill, end, code):
    _, signals, exited, exit_code = end_of(30, pre_stop(hook) if hook else {}, program, delete_grace=grace)
    assert signals[0] == ("SIGTERM", near(term))
    assert signals[1:] == ([("SIGKILL", near(kill))] if kill is not None else [])
    assert (exited, exit_code) == (near(end), code)


@pytest.mark.parametrize(("version", "kill"), [("1.23", 12), ("1.27", 12), ("1.36", 10)])
def test_the_sigkill_demo_by_version(version, kill):
    node, signals, _, _ = end_of(10, pre_stop(exec_hook("sleep", "2")), IGNORES, version=version)
    assert signals == [("SIGTERM", near(2)), ("SIGKILL", near(kill))]
    requested = node.records("StopRequested")[0]["facts"]
    if kill == 12:
        assert requested["timeoutSeconds"] == 10 and requested["deductedSeconds"] == 0
        assert version in requested["why"]
    else:
        assert requested["timeoutSeconds"] == 8 and requested["deductedSeconds"] == 2 and "why" not in requested


@pytest.mark.rule("node-semantics 9.4/events, 24/hook-events")
def test_event_texts_of_older_versions():
    node, *_ = end_of(10, pre_stop(exec_hook("false")), Program(), version="1.23")
    assert node.events.of("Created")[0]["message"] == "Created container app"
    message = node.events.of("FailedPreStopHook")[0]["message"]
    assert message.startswith('Exec lifecycle hook ([false]) for Container "app" in Pod "p_default(')
    assert "exited with 1: , message:" in message


@pytest.mark.rule("node-semantics 6/order, 23/silent, 22.1/stop")
def test_the_order_of_an_end_is_that_of_kubernetes():
    node, *_ = end_of(10, pre_stop(exec_hook("sleep", "2")), Program(drain_seconds=1))
    # Status writes go on beside it, in their own time.
    kinds = [r["kind"] for r in node.recorder.records if r["kind"] not in ("ProcessSignalState", "StatusSent")]
    assert kinds[kinds.index("TerminationObserved") :] == [
        "TerminationObserved", "GraceDecided", "Killing", "PreStopStarted", "ExecStarted", "ExecExited",
        "PreStopFinished", "StopRequested", "SignalSent", "ProcessExited", "StopFinished", "NetworkDetached",
        "SandboxStopped", "VolumesUnmounted", "WorkerFinished", "FinalDeleteSent",
    ]  # fmt: skip
    assert node.events.reasons() == ["Pulled", "Created", "Started", "Killing"]


def test_every_record_of_the_kill_path_names_its_rule_and_its_cause():
    node, *_ = end_of(10, pre_stop(exec_hook("sleep", "2")), Program())
    for kind in ("GraceDecided", "Killing", "PreStopStarted", "PreStopFinished", "StopRequested", "StopFinished"):
        assert ".go:" in node.records(kind)[0]["rule"], kind


@pytest.mark.rule("node-semantics 7/exec, 7/events, 23/hooks, 23/field-path")
def test_a_failing_hook_gives_one_fixed_event_and_the_rest_of_the_budget():
    program = Program(on_term="ignore", execs={"fail": ExecResult(seconds=1, exit_code=3, stderr=b"no")})
    node, signals, _, _ = end_of(5, pre_stop(exec_hook("fail")), program)
    events = node.events.of("FailedPreStopHook")
    assert [(e["type"], e["message"], e["path"]) for e in events] == [
        ("Warning", "PreStopHook failed", "spec.containers{app}")
    ]
    assert signals == [("SIGTERM", near(1)), ("SIGKILL", near(5))]
    facts = node.records("PreStopFinished")[0]["facts"]
    assert (facts["outcome"], facts["exitCode"], facts["stderr"]) == ("failed", 3, "no")


@pytest.mark.rule("node-semantics 7/exec")
@pytest.mark.parametrize("command", ["no-such-file", "false"])
def test_a_missing_binary_and_a_non_zero_exit_give_the_same_event(command):
    node, signals, _, code = end_of(5, pre_stop(exec_hook(command)), Program())
    assert [e["message"] for e in node.events.of("FailedPreStopHook")] == ["PreStopHook failed"]
    assert signals[0] == ("SIGTERM", near(0)) and code == 0


def test_an_exec_hook_that_outlives_its_budget_fails_when_the_container_dies():
    """Recorded: FailedPreStopHook comes right after the SIGKILL, once."""
    node, signals, _, _ = end_of(4, pre_stop(exec_hook("hang")), SLEEP)
    killing = node.events.of("Killing")[0]["at"]
    failed = node.events.of("FailedPreStopHook")
    assert len(failed) == 1 and failed[0]["at"] - killing == near(6)
    outcomes = [(r["facts"]["outcome"], r["facts"].get("late")) for r in node.records("PreStopFinished")]
    assert outcomes == [("outlived", None), ("failed", True)]
    assert signals == [("SIGTERM", near(4)), ("SIGKILL", near(6))]


@pytest.mark.rule("node-semantics 23/silent")
def test_a_sleep_hook_that_is_cut_gives_no_event():
    node, *_ = end_of(2, pre_stop({"sleep": {"seconds": 60}}), Program())
    assert node.events.of("FailedPreStopHook") == []


def test_an_exec_hook_dies_with_a_container_that_exits_by_itself():
    program = Program(exits_after=2.0)
    node, signals, exited, _ = end_of(30, pre_stop(exec_hook("sleep", "20")), program)
    assert exited == near(2)
    assert signals == [] and len(node.events.of("FailedPreStopHook")) == 1


def test_a_sleep_hook_is_awaited_even_if_the_container_exits_by_itself():
    node, signals, exited, _ = end_of(30, pre_stop({"sleep": {"seconds": 20}}), Program(exits_after=2.0))
    finished = node.records("PreStopFinished")[0]["at"] - node.events.of("Killing")[0]["at"]
    assert (exited, finished, signals) == (near(2), near(20), [])


def http(path="/drain", **more):
    return {"httpGet": {"path": path, "port": 8080, **more}}


@pytest.mark.rule("node-semantics 7/http, 7/http-request")
@pytest.mark.parametrize("status", [200, 404, 500])
def test_any_http_answer_is_a_success(status):
    program = Program(ports={8080: Listener(HTTPAnswer(status))})
    node, signals, _, _ = end_of(5, pre_stop(http(httpHeaders=[{"name": "X-Hook", "value": "yes"}])), program)
    assert node.events.of("FailedPreStopHook") == []
    assert signals[0] == ("SIGTERM", near(0))
    url, headers = node.dialer.requests[0]
    assert url == "http://10.244.0.2:8080/drain"
    assert headers == [
        ("User-Agent", "kube-lifecycle/1.36"),
        ("Accept", "*/*"),
        ("X-Hook", "yes"),
        ("Accept-Encoding", "gzip"),
    ]


def test_a_hanging_http_hook_is_awaited_for_the_whole_grace_period_and_fails_when_the_container_dies():
    program = Program(ports={8080: Listener(HTTPAnswer(hangs=True))})
    node, signals, _, _ = end_of(3, pre_stop(http()), program)
    assert signals[0] == ("SIGTERM", near(3))
    assert node.events.of("FailedPreStopHook")[0]["at"] - node.events.of("Killing")[0]["at"] == near(3)


@pytest.mark.rule("node-semantics 7/http-host-network")
def test_an_http_hook_on_the_host_network_without_host_fails_at_once():
    async def scenario(node: Node):
        node.create(hostNetwork=True, containers=[container(**pre_stop(http()))])
        await node.until_running()
        node.delete()
        await node.until_gone()
        return node

    node = on_node(scenario, {"app": Program()})
    assert len(node.events.of("FailedPreStopHook")) == 1
    assert "failed to find networking container" in node.records("PreStopFinished")[0]["facts"]["message"]


@pytest.mark.rule("node-semantics 7/tcp")
def test_a_tcp_socket_hook_is_not_implemented():
    node, *_ = end_of(3, pre_stop({"tcpSocket": {"port": 80}}), Program())
    assert len(node.events.of("FailedPreStopHook")) == 1
    assert "invalid handler" in node.records("PreStopFinished")[0]["facts"]["message"]


# -- shortening and force deletion (5.5, 5.6) -------------------------------------------------------


@pytest.mark.rule("node-semantics 5.5/recorded, 5.5/not-interrupted")
def test_shortening_does_not_interrupt_a_stop_under_way():
    async def scenario(node: Node):
        node.create(containers=[container()])
        await node.until_running()
        node.delete(grace=12)
        await node.sleep(2)
        node.delete(grace=5)
        await node.until_gone()
        return node

    node = on_node(scenario, {"app": IGNORES})
    at = [at for at, _ in node.signals()]
    assert at[1] - at[0] == near(12)
    assert [r["facts"]["gracePeriodSeconds"] for r in node.records("GraceDecided")] == [12, 5]
    assert len(node.events.of("Killing")) == 1


def test_a_force_delete_gets_a_grace_of_one_because_the_node_sees_grace_0_first():
    node, signals, _, code = end_of(5, pre_stop(exec_hook("sleep", "2")), IGNORES, act=lambda n: n.force_delete())
    assert signals == [("SIGTERM", near(1)), ("SIGKILL", near(3))]
    assert node.records("FinalDeleteSent") == [] and code == 137


def test_a_force_delete_without_hook_kills_after_two_seconds():
    _, signals, _, _ = end_of(8, {}, IGNORES, act=lambda n: n.force_delete())
    assert signals == [("SIGTERM", near(0)), ("SIGKILL", near(2))]


@pytest.mark.rule("node-semantics 5.6/1")
def test_a_force_delete_that_the_node_sees_only_as_a_removal_keeps_the_spec_grace():
    node, signals, _, _ = end_of(20, {}, IGNORES, act=lambda n: n.api.remove(PODS, "p", "default"))
    assert signals == [("SIGTERM", near(0)), ("SIGKILL", near(20))]
    assert node.records("TerminationObserved")[0]["facts"]["cause"] == "kill"


@pytest.mark.rule("node-semantics 5.6/3")
def test_a_force_delete_on_top_of_a_graceful_one_keeps_the_first_plan():
    async def scenario(node: Node):
        node.create(containers=[container(**pre_stop(exec_hook("sleep", "5")))])
        await node.until_running()
        node.delete(grace=7)
        await node.sleep(1)
        node.force_delete()
        await node.until(lambda: node.records("WorkerFinished"))
        return node

    node = on_node(scenario, {"app": IGNORES})
    killing = node.events.of("Killing")[0]["at"]
    assert [(s, at - killing) for at, s in node.signals()] == [("SIGTERM", near(5)), ("SIGKILL", near(7))]


def test_a_pod_of_the_same_name_runs_beside_a_force_deleted_one():
    async def scenario(node: Node):
        node.create(containers=[container()])
        await node.until_running()
        node.force_delete()
        node.create(containers=[container()])
        await node.until_running()
        assert len(node.signals()) == 1  # the old one has SIGTERM and still runs
        await node.until(lambda: node.records("WorkerFinished"))
        await node.sleep(5)
        assert node.pod()["status"]["phase"] == "Running"

    on_node(scenario, {"app": IGNORES})


# -- what goes wrong --------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 6/failed-kill, 6/sandbox")
def test_a_failed_stop_is_told_and_tried_again_with_the_sandbox_stopped_anyway():
    async def scenario(node: Node):
        node.create(containers=[container(**pre_stop(exec_hook("sleep", "1")))])
        await node.until_running()
        node.runtime.fail_next("stop_container", "shim is gone")
        started = node.now
        node.delete(grace=5)
        await node.until_gone()
        return node, node.now - started

    node, seconds = on_node(scenario, {"app": IGNORES})
    assert [e["message"] for e in node.events.of("FailedKillPod")] == [
        'error killing pod: failed to "KillContainer" for "app" with KillContainerError: "shim is gone"'
    ]
    assert seconds <= 16.1  # at once when the runtime tells of the kill, else after 10 to 15 s
    assert len(node.records("PreStopStarted")) == 1  # the sandbox stop had killed the container


@pytest.mark.rule("node-semantics 22.2/failed-del")
def test_network_teardown_that_fails_twice_delays_the_end_but_runs_no_second_hook():
    async def scenario(node: Node):
        node.create(containers=[container(**pre_stop(exec_hook("sleep", "1")))])
        await node.until_running()
        node.runtime.fail_next("cni_del", "plugin failed", times=2)
        node.delete(grace=5)
        await node.until_gone()
        return node

    node = on_node(scenario, {"app": Program()})
    assert len(node.events.of("FailedKillPod")) == 2
    assert len(node.records("PreStopStarted")) == 1 and len(node.events.of("Killing")) == 1
    assert node.records("PreStopSkipped")[0]["facts"]["why"] == "the container had already ended"


@pytest.mark.rule("node-semantics 6/parallel")
def test_containers_stop_in_parallel():
    async def scenario(node: Node):
        node.create(containers=[container("one"), container("two"), container("three")])
        await node.until_running()
        started = node.now
        node.delete(grace=9)
        await node.until_gone()
        return node, started

    program = Program(drain_seconds=3)
    node, started = on_node(scenario, {"one": program, "two": program, "three": program})
    assert [at - started for at, _ in node.signals()] == [near(0)] * 3
    assert node.now - started == near(3)


def test_a_finalizer_holds_the_object_but_not_the_containers():
    async def scenario(node: Node):
        pod = node.create(containers=[container(**pre_stop(exec_hook("sleep", "5")))])
        held = copy_object(pod)
        held["metadata"]["finalizers"] = ["example.com/hold"]
        node.api.put(PODS, held)
        await node.until_running()
        node.delete(grace=0)
        await node.until(lambda: node.records("WorkerFinished"))
        killing = node.events.of("Killing")[0]["at"]
        assert [(s, at - killing) for at, s in node.signals()] == [("SIGTERM", near(1)), ("SIGKILL", near(3))]

    on_node(scenario, {"app": IGNORES})
