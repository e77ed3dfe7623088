"""How a probe ends, and what its result changes: the tables of prober/prober.go, prober/worker.go and pkg/probe."""

import asyncio
from typing import Any

import pytest

from lastcall.kube.cri.api import ExecSyncResponse, RuntimeServiceError
from lastcall.kube.node.interfaces import DialError, HTTPResponse, RPCError
from lastcall.kube.node.prober.decide import (
    Decision,
    WorkerState,
    decide,
    find_container_status,
    probe_of,
    take_result,
)
from lastcall.kube.node.prober.probe import (
    MAX_OUTPUT_BYTES,
    Probed,
    ProbeError,
    asked_port,
    probe_headers,
    resolve_port,
    run_probe,
)
from lastcall.kube.node.status.features import status_features

NOW = status_features("1.36")
APP: dict[str, Any] = {
    "name": "app",
    "ports": [{"name": "web", "containerPort": 8080}],
    "env": [{"name": "A", "value": "x"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
}


class World:
    """The runtime and the dialer of one probe: it gives `answer`, or raises it, and keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[Any, ...]] = []

    def _answer(self, *asked: Any) -> Any:
        self.asked.append(asked)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def exec_sync(self, container_id: str, command: tuple[str, ...], timeout: float) -> Any:
        return self._answer(container_id, command, timeout)

    async def http_get(self, url: str, headers: Any, timeout: float) -> Any:
        return self._answer(url, headers, timeout)

    async def tcp_connect(self, host: str, port: int, timeout: float) -> None:
        self._answer(host, port, timeout)

    async def grpc_health(self, host: str, port: int, service: str, timeout: float, agent: str) -> Any:
        return self._answer(host, port, service, timeout, agent)


def probed(
    probe: dict[str, Any], answer: Any, ip: str = "10.0.0.9", features: Any = NOW
) -> tuple[Probed, tuple[Any, ...]]:
    """What came of a probe, and what it asked for."""
    world = World(answer)
    run = run_probe(probe, APP, "id", ip, runtime=world, dialer=world, features=features)  # type: ignore[arg-type]
    return asyncio.run(run), world.asked[0]


# -- exec --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ExecSyncResponse(b"out", b"err", 0), Probed("success", "outerr")),
        (ExecSyncResponse(b"", b"err", 1), Probed("failure", "err")),
        (ExecSyncResponse(b"", b"", -1), Probed("failure", "")),
        (ExecSyncResponse(b"\xff", b"", 0), Probed("success", "\ufffd")),
        (ExecSyncResponse(b"x" * 20_000, b"", 0), Probed("success", "x" * MAX_OUTPUT_BYTES)),
        (
            RuntimeServiceError("late", "DeadlineExceeded"),
            Probed("failure", 'command timed out: "cat x $(B)" timed out after 3s'),
        ),
    ],
)
def test_a_command_s_exit_code_is_the_outcome_and_its_output_is_cut(answer: Any, expected: Probed) -> None:
    probe = {"exec": {"command": ["cat", "$(A)", "$(B)"]}, "timeoutSeconds": 3}
    found, asked = probed(probe, answer)
    assert found == expected
    assert asked == ("id", ("cat", "x", "$(B)"), 3.0)


def test_a_command_that_cannot_be_run_is_no_result() -> None:
    with pytest.raises(ProbeError, match="not found"):
        probed({"exec": {}}, RuntimeServiceError("not found", "NotFound"))


def test_the_time_limit_of_a_command_is_a_second_unless_the_probe_says_otherwise() -> None:
    ended = ExecSyncResponse(b"", b"", 0)
    assert probed({"exec": {}, "timeoutSeconds": 3}, ended)[1] == ("id", (), 3.0)
    assert probed({"exec": {}}, ended)[1] == ("id", (), 1.0)


# -- HTTP, TCP, gRPC --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (199, Probed("failure", "HTTP probe failed with statuscode: 199")),
        (200, Probed("success", "body")),
        (299, Probed("success", "body")),
        (300, Probed("warning", "Probe terminated redirects, Response body: body")),
        (399, Probed("warning", "Probe terminated redirects, Response body: body")),
        (400, Probed("failure", "HTTP probe failed with statuscode: 400")),
    ],
)
def test_an_answer_below_400_is_a_success_and_a_redirect_a_warning(status: int, expected: Probed) -> None:
    """pkg/probe/http/http.go:DoHTTPProbe."""
    assert probed({"httpGet": {"port": 80}}, HTTPResponse(status, b"body"))[0] == expected


@pytest.mark.parametrize(
    ("action", "ip", "url"),
    [
        ({"port": 80}, "10.0.0.9", "http://10.0.0.9:80/"),
        ({"port": "web", "path": "x?y=1"}, "10.0.0.9", "http://10.0.0.9:8080/x?y=1"),
        ({"port": 80, "path": "/x", "scheme": "HTTPS"}, "10.0.0.9", "https://10.0.0.9:80/x"),
        ({"port": 80, "host": "other"}, "10.0.0.9", "http://other:80/"),
        ({"port": 80}, "fd00::9", "http://[fd00::9]:80/"),
    ],
)
def test_the_address_of_a_request(action: dict[str, Any], ip: str, url: str) -> None:
    asked = probed({"httpGet": action, "timeoutSeconds": 2}, HTTPResponse(200, b""), ip)[1]
    assert (asked[0], asked[2]) == (url, 2.0)
    assert asked[1] == [("User-Agent", "kube-probe/1.36"), ("Accept", "*/*"), ("Connection", "close")]


def test_a_long_body_is_cut() -> None:
    assert len(probed({"httpGet": {"port": 80}}, HTTPResponse(200, b"x" * 20_000))[0].output) == MAX_OUTPUT_BYTES


@pytest.mark.parametrize(
    ("custom", "headers"),
    [
        ([], [("User-Agent", "kube-probe/1.36"), ("Accept", "*/*")]),
        ([("X", "1")], [("User-Agent", "kube-probe/1.36"), ("Accept", "*/*"), ("X", "1")]),
        ([("X", "")], [("User-Agent", "kube-probe/1.36"), ("Accept", "*/*"), ("X", "")]),
        ([("ACCEPT", "a")], [("User-Agent", "kube-probe/1.36"), ("ACCEPT", "a")]),
        ([("accept", ""), ("User-Agent", "")], []),
    ],
)
def test_own_headers_replace_the_kubelet_s(custom: list[tuple[str, str]], headers: list[tuple[str, str]]) -> None:
    action = {"httpHeaders": [{"name": name, "value": value} for name, value in custom]}
    assert probe_headers(action, NOW) == headers


@pytest.mark.parametrize("handler", ["httpGet", "tcpSocket"])
def test_who_cannot_be_reached_has_failed_in_go_s_words(handler: str) -> None:
    assert probed({handler: {"port": 80}}, DialError("refused"))[0] == Probed("failure", "refused")


@pytest.mark.parametrize(("action", "host"), [({"port": "web"}, "10.0.0.9"), ({"port": 8080, "host": "h"}, "h")])
def test_a_connection_is_a_success(action: dict[str, Any], host: str) -> None:
    assert probed({"tcpSocket": action, "timeoutSeconds": 4}, None) == (Probed("success", ""), (host, 8080, 4.0))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (1, Probed("success", "service healthy")),
        (0, Probed("failure", 'service unhealthy (responded with "UNKNOWN")')),
        (2, Probed("failure", 'service unhealthy (responded with "NOT_SERVING")')),
        (3, Probed("failure", 'service unhealthy (responded with "SERVICE_UNKNOWN")')),
        (9, Probed("failure", 'service unhealthy (responded with "9")')),
        (
            DialError("late"),
            Probed("failure", 'timeout: failed to connect service "[fd00::9]:90" within 2s: late'),
        ),
        (
            RPCError("Unimplemented", "no"),
            Probed(
                "failure", "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): no"
            ),
        ),
        (RPCError("DeadlineExceeded", "late"), Probed("failure", "timeout: health rpc did not complete within 2s")),
        (
            RPCError("NotFound", "no"),
            Probed("failure", "error: health rpc probe failed: rpc error: code = NotFound desc = no"),
        ),
    ],
)
def test_a_service_that_serves_is_healthy(answer: Any, expected: Probed) -> None:
    """pkg/probe/grpc/grpc.go:Probe."""
    probe = {"grpc": {"port": 90, "service": "s"}, "timeoutSeconds": 2}
    found, asked = probed(probe, answer, "fd00::9")
    assert (found, asked) == (expected, ("fd00::9", 90, "s", 2.0, "kube-probe/1.36"))


def test_a_probe_without_a_handler_is_no_result() -> None:
    with pytest.raises(ProbeError, match="missing probe handler for container app"):
        probed({}, None)


@pytest.mark.parametrize(
    ("port", "number"),
    [(1, 1), (65535, 65535), ("65535", 65535), ("web", 8080), (0, None), (65536, None), ("0", None), ("other", None)],
)
def test_a_port_is_a_number_or_the_name_of_one(port: Any, number: int | None) -> None:
    """pkg/probe/util.go:ResolveContainerPort."""
    if number is not None:
        assert resolve_port(port, APP) == number
    else:
        with pytest.raises(ProbeError):
            resolve_port(port, APP)


@pytest.mark.parametrize(
    ("probe", "port"),
    [
        ({"httpGet": {"port": "web"}}, 8080),
        ({"httpGet": {"port": 80, "host": "other"}}, None),
        ({"tcpSocket": {"port": 81}}, 81),
        ({"tcpSocket": {"port": 81, "host": "other"}}, None),
        ({"grpc": {"port": 82}}, 82),
        ({"httpGet": {"port": "none"}}, None),
        ({"exec": {}}, None),
    ],
)
def test_the_port_of_its_own_container_that_a_probe_asks(probe: dict[str, Any], port: int | None) -> None:
    assert asked_port(probe, APP) == port


# -- whether to probe, and what a result changes ----------------------------------------------------------------------


def pod(deleting: bool = False, policy: str = "Always") -> dict[str, Any]:
    metadata = {"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleting else {}
    return {"metadata": metadata, "spec": {"containers": [{"name": "app"}], "restartPolicy": policy}}


def status(state: dict[str, Any], started: bool | None = True) -> dict[str, Any]:
    return {"name": "app", "containerID": "x://c", "state": state, "started": started}


RUNNING = {"running": {"startedAt": "1970-01-01T00:01:40Z"}}  # 100 s
ENDED, WAITING = {"terminated": {"exitCode": 0}}, {"waiting": {}}
PROBE, SKIP, END = Decision("probe"), Decision("skip"), Decision("end")


@pytest.mark.parametrize(
    ("kind", "container", "more", "expected"),
    [
        ("liveness", status(RUNNING), {}, PROBE),
        ("liveness", status(RUNNING), {"phase": "Succeeded"}, END),
        ("liveness", status(RUNNING), {"phase": "Failed"}, END),
        ("liveness", status(RUNNING), {"on_hold": True}, SKIP),
        ("liveness", status(RUNNING), {"deleting": True}, Decision("end", "success")),
        ("startup", status(RUNNING, False), {"deleting": True}, Decision("end", "success")),
        ("readiness", status(RUNNING), {"deleting": True}, PROBE),
        ("liveness", status(RUNNING), {"delay": 10, "age": 9.9}, SKIP),
        ("liveness", status(RUNNING), {"delay": 10, "age": 10}, PROBE),
        ("liveness", status(RUNNING), {"age": 0}, PROBE),
        ("liveness", status(RUNNING, False), {}, SKIP),
        ("readiness", status(RUNNING, None), {}, SKIP),
        ("startup", status(RUNNING, False), {}, PROBE),
        ("startup", status(RUNNING), {}, SKIP),
        ("liveness", status(WAITING), {}, Decision("skip", "failure")),
        ("liveness", status(WAITING), {"policy": "Never"}, Decision("skip", "failure")),
        ("liveness", status(ENDED), {}, Decision("skip", "failure")),
        ("liveness", status(ENDED), {"policy": "Never"}, Decision("end", "failure")),
        ("liveness", status(ENDED), {"policy": "Never", "is_sidecar": True}, Decision("skip", "failure")),
    ],
)
def test_when_a_worker_probes_waits_or_ends(
    kind: Any, container: dict[str, Any], more: dict[str, Any], expected: Decision
) -> None:
    """pkg/kubelet/prober/worker_test.go:TestDoProbe, TestInitialDelay."""
    found = decide(
        kind,
        {"initialDelaySeconds": more.get("delay")},
        pod(more.get("deleting", False), more.get("policy", "Always")),
        {"phase": more.get("phase", "Running")},
        container,
        WorkerState(on_hold=more.get("on_hold", False)),
        100 + more.get("age", 50),
        is_sidecar=more.get("is_sidecar", False),
    )
    assert found == expected


def test_a_container_with_a_rule_to_restart_is_probed_again() -> None:
    never = pod(policy="Never")
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]
    never["spec"]["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": rules}
    found = decide("liveness", {}, never, {}, status(ENDED), WorkerState(), 0, is_sidecar=False)
    assert found.step == "skip"
    never["spec"]["containers"][0]["name"] = "other"
    assert decide("liveness", {}, never, {}, status(ENDED), WorkerState(), 0, is_sidecar=False).step == "end"


@pytest.mark.parametrize(
    ("kind", "probe", "results", "counted", "on_hold"),
    [
        ("liveness", {}, "fff", [False, False, True], True),
        ("readiness", {}, "ffff", [False, False, True, True], False),
        ("readiness", {}, "ss", [True, True], False),
        ("readiness", {"successThreshold": 2}, "sss", [False, True, True], False),
        ("readiness", {"failureThreshold": 1}, "f", [True], False),
        ("liveness", {}, "ffsff", [False, False, True, False, False], False),
        ("readiness", {"successThreshold": 2}, "sfss", [False, False, False, True], False),
        ("startup", {}, "s", [True], True),
        ("startup", {"failureThreshold": 2}, "ff", [False, True], True),
    ],
)
def test_a_result_counts_when_it_came_often_enough_in_a_row(
    kind: Any, probe: dict[str, Any], results: str, counted: list[bool], on_hold: bool
) -> None:
    """pkg/kubelet/prober/worker_test.go:TestFailureThreshold, TestSuccessThreshold, TestOnHoldOnLivenessOrStartup…"""
    state, words = WorkerState(), {"f": "failure", "s": "success"}
    assert [take_result(kind, probe, state, words[each]) for each in results] == counted  # type: ignore[arg-type]
    assert state.on_hold is on_hold
    assert (state.result_run == 0) is on_hold, "what comes after a hold is counted anew"


def test_the_probe_of_each_kind() -> None:
    kinds = ("startup", "liveness", "readiness")
    container = {f"{kind}Probe": {"periodSeconds": number} for number, kind in enumerate(kinds)}
    assert [probe_of(container, kind)["periodSeconds"] for kind in kinds] == [0, 1, 2]  # type: ignore[arg-type, index]
    assert [probe_of({}, kind) for kind in kinds] == [None] * 3  # type: ignore[arg-type]


def test_a_container_that_was_not_created_has_no_status_yet() -> None:
    created = {"name": "app", "containerID": "x://c"}
    found = {"containerStatuses": [{"name": "other", "containerID": "x://o"}, created]}
    assert find_container_status(found, "app") is created
    assert find_container_status({"initContainerStatuses": [created]}, "app") is created
    assert find_container_status({"containerStatuses": [{"name": "app"}]}, "app") is None
    assert find_container_status({}, "app") is None
