"""What an object that is being deleted waits for is one sentence, with what ends it safely."""

from datetime import UTC, datetime
from typing import Any

import pytest
from ending_stories import begin

from lastcall.endings.still_there import is_held, kinds_left, wait_of
from lastcall.records import kinds as k

NOW = datetime(2026, 1, 1, 0, 0, 12, tzinfo=UTC)
ENDS = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
RUNS = {"name": "app", "state": {"running": {}}}
DONE = {"name": "app", "state": {"terminated": {"exitCode": 0}}}
HOOK = {"preStop": {"exec": {"command": ["drain"]}}}


def pod(status: dict[str, Any] = RUNS, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    own = {"nodeName": "node-1", "containers": [{"name": "app", "lifecycle": HOOK}], "volumes": [{"name": "data"}]}
    return {
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", **ENDS, **metadata},
        "spec": {**own, **(spec or {})},
        "status": {"containerStatuses": [status]},
    }


def node(ready: str, message: str = "") -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "message": message}
    return {"metadata": {"name": "node-1"}, "status": {"conditions": [condition]}}


def claim(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "data", "namespace": "shop", **ENDS, **metadata}}


USES = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(
    ("obj", "kind", "more", "what", "ends"),
    [
        (pod(), "Pod", {"now": NOW}, "18.0 s of its grace period of 30 s are left. Still running: app (preStop hooks: "
         "app: exec).", ""),
        (pod(), "Pod", {}, "to be over by 2026-01-01T00:00:30Z (grace period 30 s). Still running: app", ""),
        (pod(), "Pod", {"now": NOW, "node": node("Unknown")}, "waits for node node-1, which is not Ready",
         "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"),
        (pod(), "Pod", {"now": NOW, "node": node("False", "container runtime is down")},
         "waits for node node-1, whose container runtime does not answer", "systemctl restart containerd"),
        (pod(), "Pod", {"now": NOW, "node": node("True")}, "Still running: app", ""),
        (pod(), "Pod", {"now": datetime(2026, 1, 1, 0, 2, tzinfo=UTC)},
         "was over 90.0 s ago: node node-1 has not reported the end of app", "kubectl describe node node-1"),
        (pod(DONE), "Pod", {"now": NOW}, "it unmounts volumes (data) and takes the network down", ""),
        (pod(finalizers=["ops.example.com/guard"]), "Pod", {"now": NOW}, "Still running: app", ""),
        (pod(DONE, finalizers=["ops.example.com/guard"], deletionGracePeriodSeconds=0), "Pod", {"now": NOW},
         "finalizers hold it (ops.example.com/guard). Usually removed by: ops.example.com/guard: the controller of "
         "ops.example.com that added it.", "kubectl patch pod web -n shop"),
        (pod(spec={"nodeName": ""}, finalizers=["a/b"]), "Pod", {"now": NOW}, "finalizers hold it (a/b)", "patch"),
        (claim(finalizers=["kubernetes.io/pvc-protection"]), "PersistentVolumeClaim",
         {"pods": [pod(spec=USES), pod(spec={**USES, "nodeName": ""}, name="new"), pod(name="other")]},
         "PersistentVolumeClaim shop/data is ending, and stays because Pods use it: web.", "Delete the Pods"),
        (claim(finalizers=["kubernetes.io/pvc-protection"]), "PersistentVolumeClaim", {},
         "finalizers hold it (kubernetes.io/pvc-protection)", "patch persistentvolumeclaim data"),
        ({"metadata": {"name": "pv-1", **ENDS, "finalizers": ["kubernetes.io/pv-protection"]},
          "spec": {"claimRef": {"namespace": "shop", "name": "data"}}}, "PersistentVolume", {},
         "claim shop/data is bound to it", "Delete claim shop/data"),
        ({"metadata": {"name": "node-1", **ENDS, "finalizers": ["cloud.example.com/machine"]}}, "Node", {},
         "Node node-1 is ending, and finalizers hold it (cloud.example.com/machine)", "kubectl patch node node-1"),
    ],
)  # fmt: skip
def test_it_says_what_is_waited_for_and_what_ends_it(
    obj: dict[str, Any], kind: str, more: dict[str, Any], what: str, ends: str
) -> None:
    wait = wait_of(obj, kind, **more)
    assert wait is not None
    assert what in wait.what
    assert (ends in wait.ends) if ends else not wait.ends


def test_what_nobody_deleted_waits_for_nothing() -> None:
    living = {"metadata": {"name": "web", "finalizers": ["a/b"]}}
    assert wait_of(living, "Pod") is None


def test_a_namespace_says_what_its_conditions_say() -> None:
    conditions = [
        {
            "type": "NamespaceContentRemaining",
            "status": "True",
            "message": "lamps.example.com has 1 resource instances",
        },
        {
            "type": "NamespaceFinalizersRemaining",
            "status": "True",
            "message": "example.com/hold in 1 resource instances",
        },
        {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "all discovered"},
    ]
    namespace = {"metadata": {"name": "shop", **ENDS}, "status": {"conditions": conditions}}
    wait = wait_of(namespace, "Namespace")
    assert wait is not None and is_held(namespace) and kinds_left(namespace) == ["lamps.example.com"]
    assert wait.what.startswith("Namespace shop is ending: example.com/hold in 1") and "lamps.example.com" in wait.what
    assert "while the operator that removes their finalizers still runs" in wait.ends


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([], "app got SIGTERM 4.0 s ago and has not ended; SIGKILL comes in 6.0 s."),
        ([(k.SIGNAL_SENT, {"signal": "SIGKILL", "pid": 7, "why": "grace over"})], "app got SIGKILL 0.0 s ago"),
    ],
)
def test_a_story_that_goes_on_says_what_its_containers_wait_for(
    new_tape: Any, records: list[tuple[str, dict[str, Any]]], sentence: str
) -> None:
    tape = new_tape()
    begin(tape)
    for kind, facts in records:
        tape.add(4.005, "runtime", kind, "app", **facts)
    tape.output(4.005, "still at work")
    found = [each for each in tape.ending().findings if each.id == "waitsFor"]
    assert [each.text.startswith(sentence) for each in found] == [True]


def test_a_hook_that_runs_says_how_long_it_has_left(new_tape: Any) -> None:
    tape = new_tape()
    tape.started()
    tape.accepted(10)
    tape.observed(10)
    tape.hook(0.0, 2.0)
    tape.records[:] = [each for each in tape.records if each.kind != k.PRE_STOP_FINISHED]
    tape.output(3.0, "draining")
    (found,) = [each for each in tape.ending().findings if each.id == "waitsFor"]
    assert "preStop hook (exec), which has run for 3.0 s and has 7.0 s left" in found.text
