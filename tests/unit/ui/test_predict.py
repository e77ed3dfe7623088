"""What will happen to a Pod, by the kubelet's rules."""

from dataclasses import replace
from typing import Any

import pytest

from lastcall.endings.story import Budget, ContainerEnding, Ending, Exit, PodFacts, PreStop, Stop
from lastcall.ui.predict import Next, what_comes_next, what_if_deleted


def pod(hook: dict[str, Any] | None = None, grace: int | None = 30, **meta: Any) -> dict[str, Any]:
    container = {"name": "app", **({"lifecycle": {"preStop": hook}} if hook else {})}
    spec = {"nodeName": "n", "containers": [container], "terminationGracePeriodSeconds": grace}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running"}}


def times(found: list[Next]) -> dict[str, tuple[float, float | None]]:
    return {each.what: (each.earliest, each.latest) for each in found}


@pytest.mark.parametrize(
    ("hook", "grace", "expected"),
    [
        (None, None, {"term": (0, 0), "kill": (30, 30), "gone": (0, 30)}),
        (None, 5, {"term": (0, 0), "kill": (5, 5), "gone": (0, 5)}),
        (None, 0, {"term": (0, 0), "kill": (1, 1), "gone": (0, 0)}),
        ({"sleep": {"seconds": 3}}, 10, {"hook": (0, 0), "term": (3, 3), "kill": (10, 10), "gone": (3, 10)}),
        ({"sleep": {"seconds": 20}}, 10, {"hook": (0, 0), "term": (10, 10), "kill": (12, 12), "gone": (10, 12)}),
        ({"exec": {}}, 10, {"hook": (0, 0), "term": (0, 10), "kill": (10, 12), "gone": (0, 12)}),
    ],
)
def test_a_pod_that_would_be_deleted(hook: Any, grace: Any, expected: dict[str, tuple[float, float]]) -> None:
    assert times(what_if_deleted(pod(hook), grace)) == expected


def test_a_stop_signal_is_named_where_the_pod_says_it_and_only_there() -> None:
    def signal(made: dict[str, Any]) -> str:
        return next(each.detail for each in what_if_deleted(made) if each.what == "term")

    asks, told = pod(), pod()
    assert signal(pod()) == ""  # the image may have another one than SIGTERM
    asks["spec"]["containers"][0]["lifecycle"] = {"stopSignal": "SIGUSR1"}
    assert signal(asks) == "SIGUSR1"
    told["status"]["containerStatuses"] = [runs("app", "running", stopSignal="SIGQUIT")]
    assert signal(told) == "SIGQUIT"


def test_a_pod_without_a_node_or_that_has_ended_goes_at_once() -> None:
    assert times(what_if_deleted({"spec": {}})) == {"gone": (0, 0)}
    ended = {**pod(), "status": {"phase": "Succeeded"}}
    assert times(what_if_deleted(ended)) == {"gone": (0, 0)}


def test_a_finalizer_holds_the_object() -> None:
    found = what_if_deleted(pod(finalizers=["example.com/hold"]))
    assert found[-1].what == "held" and found[-1].detail == "example.com/hold" and found[-1].latest is None


def runs(name: str, state: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "state": {state: {}}, **fields}


def test_what_does_not_run_is_not_stopped() -> None:
    two = pod()
    two["spec"]["containers"].append({"name": "short"})
    two["status"]["containerStatuses"] = [runs("app", "running"), runs("short", "terminated")]
    assert {each.container for each in what_if_deleted(two)} == {"app", ""}
    two["status"]["containerStatuses"][0] = runs("app", "waiting")  # CrashLoopBackOff
    assert times(what_if_deleted(two)) == {"gone": (0, None)}


def test_an_init_container_that_runs_is_stopped_and_those_after_it_were_never_started() -> None:
    waits = pod(grace=5)
    waits["spec"]["initContainers"] = [{"name": "one"}, {"name": "two"}]
    waits["status"] = {"phase": "Pending", "initContainerStatuses": [runs("one", "terminated"), runs("two", "running")],
                       "containerStatuses": [runs("app", "waiting")]}  # fmt: skip
    found = what_if_deleted(waits)
    assert [(each.what, each.container) for each in found] == [("term", "two"), ("kill", "two"), ("gone", "")]


def with_sidecars() -> dict[str, Any]:
    made = pod({"sleep": {"seconds": 3}}, grace=8)
    made["spec"]["initContainers"] = [{"name": name, "restartPolicy": "Always"} for name in ("mesh", "logs")]
    return made


def test_sidecars_end_after_the_others_in_the_reverse_of_their_order() -> None:
    found = what_if_deleted(with_sidecars())
    signals = [(each.container, each.earliest, each.latest) for each in found if each.what == "term"]
    assert signals == [("app", 3, 3), ("logs", 3, 8), ("mesh", 3, 8)]
    assert [(e.earliest, e.latest) for e in found if e.what == "kill"] == [(8, 8), (8, 10), (8, 10)]
    assert (found[-1].earliest, found[-1].latest) == (3, 10)


def test_a_sidecar_waits_for_its_turn_and_is_not_late_meanwhile() -> None:
    app = ContainerEnding("app", "container", True, stop=Stop(signal_at=3.0, timeout=5.0))
    mesh = ContainerEnding("mesh", "sidecar", True)
    made = replace(ending(app), containers=(app, mesh), budget=replace(BUDGET, grace=8))
    found = [each for each in what_comes_next(made, with_sidecars(), 6.5) if each.container == "mesh"]
    assert [(each.what, each.earliest, each.latest) for each in found] == [("term", 6.5, 8), ("kill", 8.5, 10)]
    alone = replace(made, containers=(replace(app, exit=Exit(at=4.0, code=0)), mesh))
    found = [each for each in what_comes_next(alone, with_sidecars(), 6.5) if each.container == "mesh"]
    assert [each.what for each in found] == ["term", "kill"]


def test_a_hook_takes_whole_seconds_off_the_grace_period() -> None:
    hook = PreStop("exec", "succeeded", 2.1, started_at=0.02, finished_at=2.1)
    stopping = ContainerEnding("app", "container", True, hook=hook)
    found = times(what_comes_next(ending(stopping), pod({"exec": {}}), 2.1))
    assert found["kill"] == (10.1, 10.1)


def test_a_pod_that_has_ended_is_held_by_its_finalizers_too() -> None:
    ended = {**pod(finalizers=["example.com/hold"]), "status": {"phase": "Failed"}}
    assert times(what_if_deleted(ended)) == {"held": (0, None)}


BUDGET = Budget("app", 10, 0, 0, 0, 0, 0)


def ending(container: ContainerEnding, zero: str = "DeleteAccepted", gone: float | None = None) -> Ending:
    return Ending(PodFacts("u", "n", "p"), 1, zero, 1, 10, "unknown", containers=(container,), budget=BUDGET, gone=gone)


def test_after_the_stop_signal_sigkill_is_left() -> None:
    stopping = ContainerEnding("app", "container", True, stop=Stop(signal_at=3.0, timeout=7.0))
    assert times(what_comes_next(ending(stopping), pod(), 4.0)) == {"kill": (10, 10), "gone": (4, 10)}


def test_while_the_hook_runs_its_own_time_counts() -> None:
    hook = PreStop("exec", "unknown", 0.0, started_at=0.5)
    waits = ContainerEnding("app", "container", True, hook=hook)
    found = times(what_comes_next(ending(waits), pod({"exec": {}}), 2.0))
    assert found["term"] == (0.5, 10.5) and found["kill"] == (10.5, 12.5) and "hook" not in found


def test_a_pod_that_lives_or_is_gone_has_nothing_to_come() -> None:
    runs = ContainerEnding("app", "container", True)
    assert what_comes_next(ending(runs, zero=""), pod(), 1.0) == []
    assert what_comes_next(ending(runs, gone=2.0), None, 3.0) == []
