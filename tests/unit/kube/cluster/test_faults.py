"""What the guards of the roles caught, added up and shown."""

from typing import Any

from lastcall.cli.status import text_of
from lastcall.kube.cluster.health.faults import MOST_OF_A_ROLE, CaughtFaults
from lastcall.records import kinds
from lastcall.records.memory import MemoryRecorder
from lastcall.records.record import Record
from lastcall.world import crash_guard


def caught(role: str, key: str, times: int = 1, error: str = "ValueError: x", at: int = 1_700_000_000) -> Record:
    facts = {"role": role, "component": "job-controller", "key": key, "error": error, "times": times, "count": 9}
    return Record("id", 0, at * 10**9, "apiserver", kinds.FAULT_CAUGHT, facts=facts)


def test_faults_are_counted_by_role_component_and_key() -> None:
    faults = CaughtFaults()
    faults.add(caught("control-plane", "default/a"))
    faults.add(caught("node-1", "default/a"))
    faults.add(caught("control-plane", "default/b"))
    faults.add(caught("control-plane", "default/a", times=4, error="KeyError: 'y'", at=1_700_000_100))
    assert faults.facts_of("control-plane") == [
        {
            "component": "job-controller",
            "key": "default/b",
            "count": 1,
            "error": "ValueError: x",
            "at": "2023-11-14T22:13:20Z",
        },
        {
            "component": "job-controller",
            "key": "default/a",
            "count": 5,
            "error": "KeyError: 'y'",
            "at": "2023-11-14T22:15:00Z",
        },
    ]
    assert len(faults.of("node-1")) == 1 and faults.of("shim-1") == []


def test_the_table_of_a_role_is_bounded() -> None:
    faults = CaughtFaults()
    for number in range(3 * MOST_OF_A_ROLE):
        faults.add(caught("node-1", f"default/{number}"))
    assert len(faults.of("node-1")) == MOST_OF_A_ROLE
    assert faults.of("node-1")[-1].key == f"default/{3 * MOST_OF_A_ROLE - 1}"


def test_what_a_role_tells_is_what_front_reads() -> None:
    class Clock:
        def monotonic_ns(self) -> int:
            return 5

        def wall_ns(self) -> int:
            return 1_700_000_000 * 10**9

    recorder = MemoryRecorder("kubelet", Clock())

    def tell(fault: crash_guard.Fault) -> None:
        recorder.record(kinds.FAULT_CAUGHT, facts=crash_guard.as_facts(fault, "node-1"))

    with crash_guard.installed(crash_guard.Faults(tell, clock=Clock())):
        for _ in range(3):
            with crash_guard.Turn("kubelet prober", "uid/c/liveness"):
                raise OverflowError("date value out of range")
    faults = CaughtFaults()
    for record in recorder.records:
        faults.add(record)
    (shown,) = faults.facts_of("node-1")
    assert (shown["key"], shown["count"], shown["error"]) == (
        "uid/c/liveness",
        3,
        "OverflowError: date value out of range",
    )


def status(*processes: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "one",
        "phase": "running",
        "since": "now",
        "kubernetesVersion": "1.36",
        "server": "https://127.0.0.1:1",
        "kubeconfig": "/k",
        "state": "",
        "nodes": [],
        "published": [],
        "pods": None,
        "pss": 0,
        "containers": {"processes": 0, "pss": 0},
        "processes": [{"pid": 1, "restarts": 0, "pss": 0, **process} for process in processes],
    }


def test_status_says_nothing_of_faults_where_there_are_none() -> None:
    text = text_of(status({"role": "front"}, {"role": "node-1", "faults": []}))
    assert "unexpected error" not in text


def test_status_says_how_many_there_are_and_the_last_of_them() -> None:
    faults = CaughtFaults()
    for number in range(8):
        faults.add(caught("control-plane", f"default/{number}", at=1_700_000_000 + number))
    text = text_of(status({"role": "control-plane", "faults": faults.facts_of("control-plane")}))
    assert "8 unexpected errors caught (lastcall logs has the tracebacks)" in text
    assert "control-plane: job-controller default/7: ValueError: x (1 times, last 2023-11-14T22:13:27Z)" in text
    assert "and 3 more" in text and "default/2" not in text
