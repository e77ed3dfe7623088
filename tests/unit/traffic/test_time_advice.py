"""More time is advised only if it can help: the program got its stop signal, and what it waited for has an end."""

from typing import Any

import pytest
from rollout_lives import pod_life

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.account import account
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.verdict import Judgement, judge

OWNER: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "terminationGracePeriodSeconds": 4,
                "containers": [{"name": "app", "image": "app:1", "ports": [{"containerPort": 8080}]}],
            },
        },
    },
}
SHELL = ("sh", "-c", "python3 app.py")
CHILD = {"pid": 9, "containerPid": 2, "name": "python3", "state": "S", "disposition": "default", "child": True}


def stop(disposition: str, argv: tuple[str, ...] = ("app",), *left: dict[str, Any]) -> list[Record]:
    """Records of a container that was signalled at 10 and killed at 14."""
    exe = "/bin/busybox" if argv[0] == "sh" else "/bin/app"
    state = {"pid": 7, "exe": exe, "name": argv[0], "signal": "SIGTERM", "disposition": disposition, "caught": []}
    told: list[tuple[float, str, dict[str, Any]]] = [
        (1.0, kinds.PROCESS_STARTED, {"pid": 7, "exe": exe, "argv": list(argv)}),
        (8.0, kinds.DELETE_ACCEPTED, {"gracePeriodSeconds": 4, "user": "u", "resourceVersion": "1"}),
        (10.0, kinds.STOP_REQUESTED, {"timeoutSeconds": 4, "floor": False, "deductedSeconds": 0}),
        (10.0, kinds.PROCESS_SIGNAL_STATE, {**state, "ignored": [], "blocked": []}),
        (10.0, kinds.SIGNAL_SENT, {"signal": "SIGTERM", "pid": 7, "why": "StopContainer"}),
        (14.0, kinds.PROCESSES_LEFT, {"when": "SIGKILL", "signal": "SIGTERM", "processes": list(left), "more": 0}),
        (14.0, kinds.SIGNAL_SENT, {"signal": "SIGKILL", "pid": 7, "why": "grace over"}),
        (14.01, kinds.PROCESS_EXITED, {"pid": 7, "exitCode": 137, "signal": "SIGKILL", "oomKills": 0}),
    ]
    return [
        Record(f"r{i}", round(at * 1e9), 0, "runtime", kind, "e", "app", facts=facts)
        for i, (at, kind, facts) in enumerate(told)
    ]


def judged(records: list[Record], kind: str = "slow") -> Judgement:
    ending = pod_life(
        "e", name="web-1", ip="10.244.0.2", ready=0.5, routed=1.0, deleted=8.0, term=10.0, exited=14.0, unrouted=9.0,
        killed=True,
    )  # fmt: skip
    ending.records += records
    good = Outcome(1, kind, 5.0, 5.0, 6.0, 1, 0.0, 200, "10.244.0.2", "")  # type: ignore[arg-type]
    cut = Outcome(2, kind, 9.5, 9.5, 14.0, 1, 0.0, 0, "10.244.0.2", "reset after bytes")  # type: ignore[arg-type]
    return judge(account([good, cut], [ending], [], 8.0), [ending], OWNER, 8080)


def test_a_program_that_handles_its_signal_is_given_more_time() -> None:
    (advice,) = judged(stop("handled")).advice
    assert (advice.id, advice.patch["spec"]["template"]["spec"]) == (
        "requestKilled",
        {"terminationGracePeriodSeconds": 8},
    )
    assert "was not observed" not in advice.sentence


def test_what_it_does_on_its_signal_is_a_condition_where_nobody_saw_it() -> None:
    (advice,) = judged([]).advice
    assert advice.id == "requestKilled" and "What it does on SIGTERM was not observed." in advice.sentence


@pytest.mark.parametrize(
    ("records", "id_", "patch"),
    [
        (stop("default", SHELL, CHILD), "shellKeepsSignal", {"shareProcessNamespace": True}),
        (stop("ignored"), "stopSignalNotHandled", None),
        (stop("default"), "stopSignalNotHandled", {"shareProcessNamespace": True}),
        (stop("handled", SHELL, CHILD), "shellKeepsSignal", "exec python3 app.py"),
    ],
)
def test_a_program_that_never_acted_on_its_signal_is_not_given_more_time(
    records: list[Record], id_: str, patch: Any
) -> None:
    (advice,) = judged(records).advice
    assert advice.id == id_
    assert "terminationGracePeriodSeconds" not in str(advice.patch)
    assert str(patch or "") in str(advice.patch)


@pytest.mark.parametrize("kind", ["stream", "websocket"])
def test_streams_that_a_killed_program_waited_for_are_its_own_to_end(kind: str) -> None:
    (advice,) = judged(stop("handled"), kind).advice
    assert (advice.id, advice.program, advice.patch) == ("requestKilled", "endStreams", {})
    assert "on SIGTERM" in advice.sentence
