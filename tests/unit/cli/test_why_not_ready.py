"""Why a Pod is not Ready: in one line while it is waited for, in full when the time is over."""

from typing import Any

import pytest

from lastcall.cli.why_not_ready import in_short, why_no_pods, why_not_ready, why_still_there


def pod(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web-1", "namespace": "default", **metadata}, "status": status or {}}


def waits(reason: str, message: str) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "app", "state": {"waiting": {"reason": reason, "message": message}}}]}


def event(reason: str, message: str, count: int = 1) -> dict[str, Any]:
    return {"type": "Warning", "reason": reason, "message": message, "count": count}


RUNS = {"phase": "Running", "containerStatuses": [{"name": "app", "ready": False, "state": {"running": {}}}]}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
IN_SHORT = [
    ("just made", {}, [], "web-1 is Pending and not Ready"),
    (
        "unschedulable by its condition",
        {"conditions": [UNSCHEDULABLE]},
        [],
        "web-1 is Pending and not Ready (Unschedulable: 0/1 nodes)",
    ),
    (
        "a pull that backs off",
        waits("ImagePullBackOff", "Back-off"),
        [event("Failed", "x")],
        "web-1 is Pending and not Ready (ImagePullBackOff: Back-off)",
    ),
    (
        "a failing readiness probe",
        RUNS,
        [event("Unhealthy", "Readiness probe failed: HTTP 404", 7)],
        "web-1 is Running and not Ready (Unhealthy: Readiness probe failed: HTTP 404 (7 times))",
    ),
    (
        "a probe that has not answered yet",
        RUNS,
        [],
        "web-1 is Running and not Ready (Running: but not ready: its readiness probe has not succeeded)",
    ),
]


@pytest.mark.parametrize(("status", "events", "told"), [row[1:] for row in IN_SHORT], ids=[row[0] for row in IN_SHORT])
def test_one_line_has_the_newest_reason(status: dict[str, Any], events: list[Any], told: str) -> None:
    assert in_short(pod(status), events) == told


@pytest.mark.parametrize(
    ("reason", "way_out"),
    [
        ("FailedScheduling", "ask for less (resources.requests)"),
        ("Unhealthy", "correct the probe"),
        ("FailedMount", "add the ConfigMap"),
    ],
)
def test_an_event_has_a_way_out_that_is_told_once(reason: str, way_out: str) -> None:
    lines = why_not_ready(pod(), [event(reason, "first"), event(reason, "second")])
    assert lines[1:3] == [f"  Event {reason}: first", f"  Event {reason}: second"]
    assert [line for line in lines if way_out in line] == [lines[-1]] and lines[-1].startswith("  way out: ")


def test_an_owner_whose_pods_are_refused_has_one_too() -> None:
    lines = why_no_pods("ReplicaSet web", {}, 0, 3, [event("FailedCreate", "forbidden: exceeded quota")])
    assert lines == [
        "ReplicaSet web: 0 of its 3 Pods are Ready",
        "  Event FailedCreate: forbidden: exceeded quota",
        "  way out: the API server refuses the Pods, as the message says: correct the template",
    ]


def test_a_pod_that_is_ending_tells_what_holds_it() -> None:
    ending = {"deletionTimestamp": "2026-01-01T00:10:00Z", "deletionGracePeriodSeconds": 600}
    assert why_still_there(pod(**ending)) == [
        "default/web-1 is ending since its DELETE, to be over by 2026-01-01T00:10:00Z "
        "(grace period 600 s: terminationGracePeriodSeconds, or a longer --timeout)"
    ]
    (held,) = why_still_there(pod(finalizers=["example.com/held"], **ending))
    assert "finalizers hold it (example.com/held)" in held and in_short(
        pod(finalizers=["a"], **ending)
    ) in held.replace("example.com/held", "a")
