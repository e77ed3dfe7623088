"""node-semantics 13 in virtual time, with the cases of upstream prober/worker_test.go and prober_manager_test.go."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lastcall.kube.cri.api import ExecSyncResponse, RuntimeServiceError, TCPListener
from lastcall.kube.node.interfaces import DialError, HTTPResponse
from lastcall.kube.node.prober.manager import PodProbeManager
from lastcall.kube.node.prober.probe import ProbeError, expand_static, probe_headers, resolve_port
from lastcall.kube.node.status.features import status_features
from lastcall.world.clock import Clock, monotonic, now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

NOW = status_features("1.36")


class Node:
    """The runtime, the dialer, the recorders and the status cache of one Pod with one container `app`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.status: dict[str, Any] | None = None
        self.exit_codes: list[int | Exception] = []
        self.answers: list[int | Exception] = []
        self.calls: list[float] = []
        self.requests: list[Any] = []
        self.events: list[tuple[str, str, str]] = []
        self.results: list[tuple[float, str, str, str]] = []
        self.records: list[dict[str, Any]] = []
        self.failing: list[dict[str, Any]] = []
        self.open: tuple[TCPListener, ...] | Exception | None = None

    async def exec_sync(self, container_id: str, cmd: tuple[str, ...], timeout: float) -> ExecSyncResponse:
        self.calls.append(monotonic(self.world.clock))
        self.requests.append((container_id, cmd, timeout))
        code = self.exit_codes.pop(0) if len(self.exit_codes) > 1 else self.exit_codes[0]
        if isinstance(code, Exception):
            raise code
        return ExecSyncResponse(b"out", b"err", code)

    async def http_get(self, url: str, headers: Any, timeout: float | None, **more: Any) -> HTTPResponse:
        self.requests.append((url, headers, timeout))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return HTTPResponse(answer, b"body")

    async def tcp_connect(self, host: str, port: int, timeout: float | None) -> None:
        self.requests.append((host, port, timeout))
        if isinstance(self.answers[0], Exception):
            raise self.answers[0]

    def event(self, obj: Any, event_type: str, reason: str, message: str, *, field_path: str = "") -> None:
        assert event_type == "Warning"
        self.events.append((reason, message, field_path))

    def record(self, kind: str, *, facts: dict[str, Any] | None = None, **more: Any) -> str:
        kept = self.failing if kind == "ProbeFailing" else self.records
        kept.append(facts or {})
        return ""

    async def listeners(self, container_id: str) -> tuple[TCPListener, ...] | None:
        if isinstance(self.open, Exception):
            raise self.open
        return self.open

    def get_pod_status(self, uid: str) -> dict[str, Any] | None:
        return self.status

    def on_result(self, kind: str, uid: str, container_id: str, result: str) -> None:
        self.results.append((monotonic(self.world.clock), kind, container_id, result))

    def run_container(self, container_id: str = "c1", started: bool = True) -> None:
        self.status = {
            "phase": "Running",
            "podIP": "10.0.0.9",
            "containerStatuses": [
                {
                    "name": "app",
                    "containerID": f"lastcall://{container_id}",
                    "state": {"running": {"startedAt": rfc3339(now(self.world.clock))}},
                    "ready": False,
                    "started": started,
                }
            ],
        }

    def end_container(self) -> None:
        assert self.status is not None
        self.status["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 0}}


def make_pod(policy: str = "Always", **probes: Any) -> dict[str, Any]:
    container = {"name": "app", "ports": [{"name": "web", "containerPort": 8080}], **probes}
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": [container], "restartPolicy": policy},
        "status": {"phase": "Pending"},
    }


def probe(**more: Any) -> dict[str, Any]:
    return {"exec": {"command": ["true"]}, "periodSeconds": 10, "timeoutSeconds": 1, **more}


def play(
    body: Callable[[PodProbeManager, Node], Awaitable[None]],
    version: str = "1.36",
    clock: Callable[[Clock], Clock] = lambda clock: clock,
) -> Node:
    nodes: list[Node] = []

    async def main(world: World) -> None:
        world.clock = clock(world.clock)
        node = Node(world)
        nodes.append(node)
        async with Tasks() as tasks:
            manager = PodProbeManager(
                world=world,
                tasks=tasks,
                runtime=node,  # type: ignore[arg-type]
                dialer=node,
                events=node,
                recorder=node,
                statuses=node,
                features=status_features(version),
            )
            manager.on_result(node.on_result)
            await body(manager, node)
            tasks.cancel()

    run_virtual(main)
    return nodes[0]


def test_a_started_container_is_probed_at_once_after_the_kick_and_then_every_period() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        pod = make_pod(readinessProbe=probe(periodSeconds=2))
        node.exit_codes = [0]
        manager.add_pod(pod)
        await node.world.clock.sleep(0.5)
        node.run_container()
        assert node.status is not None
        manager.update_pod_status(pod, node.status)
        assert node.status["containerStatuses"][0]["ready"] is False
        await node.world.clock.sleep(4.6)
        manager.update_pod_status(pod, node.status)
        assert node.status["containerStatuses"][0]["ready"] is True

    node = play(body)
    assert node.calls == pytest.approx([0.5, 2.5, 4.5])
    assert [(kind, result) for _, kind, _, result in node.results] == [
        ("readiness", "failure"),
        ("readiness", "success"),
    ]
    assert node.records == [{"probe": "readiness", "result": "success", "output": "outerr", "port": None}]


class _EarlyTimers:
    """A clock by which every timer fires a little early, as those of uvloop do."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def monotonic_ns(self) -> int:
        return int(self._clock.monotonic_ns() * 0.9999)

    def wall_ns(self) -> int:
        return self._clock.wall_ns()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


def test_a_timer_that_fires_early_causes_no_second_probe_in_a_period() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.exit_codes = [0]
        node.run_container()
        manager.add_pod(make_pod(readinessProbe=probe(periodSeconds=2)))
        await node.world.clock.sleep(9)

    assert play(body, clock=_EarlyTimers).calls == pytest.approx([0, 2, 4, 6, 8])


@pytest.mark.rule("node-semantics 13/delay")
@pytest.mark.parametrize(("delay", "first"), [(0, 0.0), (15, 20.0)])
def test_the_initial_delay_counts_from_the_start_of_the_container(delay: int, first: float) -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        node.exit_codes = [0]
        manager.add_pod(make_pod(readinessProbe=probe(initialDelaySeconds=delay)))
        await node.world.clock.sleep(25)

    assert play(body).calls[0] == first


@pytest.mark.rule("node-semantics 13/hold, 13/thresholds")
def test_liveness_fails_after_three_failures_in_a_row_and_holds_until_there_is_a_new_container() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        node.exit_codes = [1, 1, 0, 1, 1, 1]
        manager.add_pod(make_pod(livenessProbe=probe(periodSeconds=1)))
        await node.world.clock.sleep(20.5)
        assert manager.liveness_result("lastcall://c1") == "failure"
        assert len(node.calls) == 6
        node.run_container("c2")
        node.exit_codes = [0]
        await node.world.clock.sleep(2)
        assert manager.liveness_result("c2") == "success"
        assert manager.liveness_result("c1") == "success"

    node = play(body)
    assert [(at, result) for at, _, _, result in node.results if result == "failure"] == [(5.0, "failure")]
    assert node.events == [("Unhealthy", "Liveness probe failed: outerr", "spec.containers{app}")] * 5


@pytest.mark.rule("node-semantics 13/thresholds")
def test_success_threshold_needs_consecutive_successes() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        node.exit_codes = [0, 1, 0, 0, 0]
        manager.add_pod(make_pod(readinessProbe=probe(periodSeconds=1, successThreshold=3)))
        await node.world.clock.sleep(6)

    assert [r[0] for r in play(body).results if r[3] == "success"] == [4.0]


@pytest.mark.rule("node-semantics 13/gate, 13/initial")
def test_startup_gates_the_other_probes_and_is_not_run_again_once_it_has_succeeded() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        pod = make_pod(startupProbe=probe(periodSeconds=1), readinessProbe=probe(periodSeconds=1))
        node.run_container(started=False)
        assert node.status is not None
        node.exit_codes = [1, 1, 0]
        manager.add_pod(pod)
        manager.update_pod_status(pod, node.status)
        assert node.status["containerStatuses"][0]["started"] is False
        assert manager.startup_result("c1") == "unknown"  # before the first tick: whoever comes next has to wait
        await node.world.clock.sleep(2.5)
        manager.update_pod_status(pod, node.status)
        assert node.status["containerStatuses"][0]["started"] is True
        await node.world.clock.sleep(2)

    node = play(body)
    startup = [result for _, kind, _, result in node.results if kind == "startup"]
    assert startup == ["unknown", "success"]
    assert [r[0] for r in node.results if r[1:] == ("readiness", "c1", "success")] == [2.5]


@pytest.mark.rule("node-semantics 13/termination")
def test_when_the_end_begins_liveness_stops_and_readiness_goes_on() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        pod = make_pod(readinessProbe=probe(periodSeconds=1), livenessProbe=probe(periodSeconds=1))
        node.run_container()
        node.exit_codes = [0]
        manager.add_pod(pod)
        await node.world.clock.sleep(2.5)
        assert len(node.calls) == 6
        manager.stop_liveness_and_startup(pod)
        node.exit_codes = [1]
        await node.world.clock.sleep(3)
        assert len(node.calls) == 9
        manager.remove_pod(pod)
        await node.world.clock.sleep(3)
        assert len(node.calls) == 9

    node = play(body)
    assert (5.0, "readiness", "c1", "failure") in node.results
    assert not [r for r in node.results if r[1] == "liveness" and r[3] == "failure"]


@pytest.mark.rule("node-semantics 13/ended")
@pytest.mark.parametrize(("policy", "goes_on"), [("Always", True), ("Never", False)])
def test_a_container_that_ended_is_not_ready_and_its_worker_ends_if_it_never_runs_again(
    policy: str, goes_on: bool
) -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        node.exit_codes = [0]
        manager.add_pod(make_pod(policy, readinessProbe=probe(periodSeconds=1)))
        await node.world.clock.sleep(1.5)
        node.end_container()
        await node.world.clock.sleep(1)
        node.run_container("c2")
        await node.world.clock.sleep(3)

    node = play(body)
    assert (2.0, "readiness", "c1", "failure") in node.results
    assert bool([r for r in node.results if r[2:] == ("c2", "success")]) is goes_on


@pytest.mark.rule("node-semantics 13/errors, 13/events")
def test_a_probe_that_cannot_be_carried_out_is_tried_three_times_and_its_result_thrown_away() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        node.exit_codes = [0, RuntimeServiceError("container is in CONTAINER_EXITED state")]
        manager.add_pod(make_pod(readinessProbe=probe(periodSeconds=1, failureThreshold=1)))
        await node.world.clock.sleep(1.5)

    node = play(body)
    assert len(node.calls) == 4
    error = "rpc error: code = Unknown desc = container is in CONTAINER_EXITED state"
    text = f"Readiness probe errored and resulted in unknown state: {error}"
    assert node.events == [("Unhealthy", text, "spec.containers{app}")]
    assert node.results[-1][3] == "success"


@pytest.mark.rule("node-semantics 13/exec")
def test_an_exec_probe_that_takes_too_long_fails_with_kubernetes_words() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        node.exit_codes = [RuntimeServiceError("late", "DeadlineExceeded")]
        manager.add_pod(make_pod(livenessProbe=probe(exec={"command": ["sh", "-c", "sleep 20"]})))
        await node.world.clock.sleep(1)

    node = play(body)
    assert node.events[0][1] == 'Liveness probe failed: command timed out: "sh -c sleep 20" timed out after 1s'
    assert node.requests[0] == ("c1", ("sh", "-c", "sleep 20"), 1.0)


REFUSED = DialError("dial tcp 10.0.0.9:81: connect: connection refused")
ASKS_81 = {"tcpSocket": {"port": 81}, "periodSeconds": 1, "failureThreshold": 2}


def failing(*answers: Exception | int, seconds: float, open_: Any = (), **probes: Any) -> Node:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        node.answers, node.open = list(answers), open_
        manager.add_pod(make_pod(**probes))
        await node.world.clock.sleep(seconds)

    return play(body)


def test_a_readiness_probe_that_never_succeeded_says_once_how_it_fails_and_who_listens() -> None:
    listener = TCPListener("127.0.0.1", 81)
    assert failing(REFUSED, seconds=0.5, readinessProbe=ASKS_81).failing == []
    node = failing(REFUSED, seconds=5, open_=(listener,), readinessProbe=ASKS_81)
    said = {
        "probe": "readiness",
        "output": str(REFUSED),
        "port": 81,
        "listeners": [{"address": "127.0.0.1", "port": 81}],
    }
    assert node.failing == [said]
    assert failing(REFUSED, seconds=5, livenessProbe=ASKS_81).failing == []


@pytest.mark.parametrize("open_", [None, RuntimeServiceError("the shim is gone")])
def test_who_listens_is_not_known_where_the_runtime_does_not_tell(open_: Any) -> None:
    assert [each["listeners"] for each in failing(REFUSED, seconds=5, open_=open_, readinessProbe=ASKS_81).failing] == [
        None
    ]


def test_another_failure_is_told_too_and_none_after_a_success() -> None:
    asks = {"httpGet": {"port": 81}, "periodSeconds": 1, "failureThreshold": 1}
    node = failing(REFUSED, REFUSED, 500, 500, 200, 500, seconds=7, readinessProbe=asks)
    assert [each["output"] for each in node.failing] == [str(REFUSED), "HTTP probe failed with statuscode: 500"]
    assert [each["listeners"] for each in node.failing] == [[], None]


@pytest.mark.rule("node-semantics 13/http, 13/events, 23/probes")
@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        (500, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500"),
        (302, "ProbeWarning", "Readiness probe warning: Probe terminated redirects, Response body: body"),
        (DialError("Get x: EOF"), "Unhealthy", "Readiness probe failed: Get x: EOF"),
    ],
)
def test_http_probe_events(answer: int | Exception, reason: str, message: str) -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        node.answers = [answer]
        action = {"port": "web", "path": "/r", "httpHeaders": [{"name": "X-A", "value": "1"}]}
        manager.add_pod(make_pod(readinessProbe={"httpGet": action, "periodSeconds": 10, "timeoutSeconds": 3}))
        await node.world.clock.sleep(1)

    node = play(body)
    assert node.events == [(reason, message, "spec.containers{app}")]
    headers = [("User-Agent", "kube-probe/1.36"), ("Accept", "*/*"), ("X-A", "1"), ("Connection", "close")]
    assert node.requests == [("http://10.0.0.9:8080/r", headers, 3.0)]


@pytest.mark.rule("node-semantics 13/tcp")
def test_a_tcp_probe_connects_to_the_pod() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        node.answers = [DialError("dial tcp 10.0.0.9:80: connect: connection refused")]
        manager.add_pod(make_pod(readinessProbe={"tcpSocket": {"port": 80}}))
        await node.world.clock.sleep(1)

    node = play(body)
    assert node.requests == [("10.0.0.9", 80, 1.0)]
    assert node.events[0][1] == "Readiness probe failed: dial tcp 10.0.0.9:80: connect: connection refused"


def test_a_container_without_probes_is_ready_as_soon_as_it_runs() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        assert node.status is not None
        manager.update_pod_status(make_pod(), node.status)
        status = node.status["containerStatuses"][0]
        assert (status["started"], status["ready"]) == (True, True)
        node.end_container()
        manager.update_pod_status(make_pod(), node.status)
        assert (status["started"], status["ready"]) == (False, False)

    play(body)


@pytest.mark.rule("node-semantics 13/kept, 24/ready")
def test_readiness_survives_a_restart_of_the_kubelet_until_it_is_probed() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        pod = make_pod(readinessProbe=probe())
        before = {
            "name": "app",
            "containerID": "lastcall://c1",
            "state": {"running": {"startedAt": "2029-12-31T23:00:00Z"}},
            "ready": True,
            "started": True,
        }
        pod["status"] = {"phase": "Running", "containerStatuses": [before]}
        node.status = {"phase": "Running", "containerStatuses": [{**before, "ready": False, "started": False}]}
        node.exit_codes = [1]
        manager.add_pod(pod)
        manager.update_pod_status(pod, node.status)
        assert node.status["containerStatuses"][0]["ready"] is True
        await node.world.clock.sleep(9.9)
        assert [r for r in node.results if r[3] == "failure"] == []
        await node.world.clock.sleep(30)
        manager.update_pod_status(pod, node.status)
        assert node.status["containerStatuses"][0]["ready"] is False

    play(body)


@pytest.mark.rule("node-semantics 4.6/probes, 13/manager")
def test_pods_that_are_not_wanted_lose_their_workers() -> None:
    async def body(manager: PodProbeManager, node: Node) -> None:
        node.run_container()
        node.exit_codes = [0]
        manager.add_pod(make_pod(readinessProbe=probe(periodSeconds=1)))
        manager.add_pod(make_pod(readinessProbe=probe(periodSeconds=1)))
        await node.world.clock.sleep(0.5)
        manager.cleanup_pods({"other"})
        await node.world.clock.sleep(5)

    assert len(play(body).calls) == 1


@pytest.mark.rule("node-semantics 13/named-ports, 13/exec")
def test_ports_headers_and_variables() -> None:
    container = {"name": "c", "ports": [{"name": "web", "containerPort": 80}], "env": [{"name": "A", "value": "x"}]}
    assert [resolve_port(port, container) for port in ("web", 81, "82")] == [80, 81, 82]
    with pytest.raises(ProbeError, match=r'^strconv\.Atoi: parsing "other": invalid syntax$'):
        resolve_port("other", container)
    with pytest.raises(ProbeError, match="invalid port number: 70000"):
        resolve_port(70000, container)
    assert expand_static("$(A)-$$(A)-$(B)-$", container) == "x-$(A)-$(B)-$"
    assert probe_headers({"httpHeaders": [{"name": "user-agent", "value": ""}]}, NOW) == [("Accept", "*/*")]
