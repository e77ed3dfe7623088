"""What a resize of a Pod in place may say. Every text is the answer of Kubernetes 1.36.2 to the same request."""

from collections.abc import Callable
from typing import Any

import pytest

from lastcall.kube.api.defaults import kinds as defaults
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.pods.resize import resized
from lastcall.kube.api.pods.spec import qos_class
from lastcall.kube.api.resources import PODS
from lastcall.kube.api.schema.pruning import prune
from lastcall.kube.api.validation import validate_create, validate_update

Change = Callable[[Object], Any]
ONLY = "only cpu and memory resources are mutable"
OF_INIT = "only cpu and memory resources for init or sidecar containers are mutable"


def amounts(cpu: str, memory: str, most_cpu: str, most_memory: str) -> Object:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": most_cpu, "memory": most_memory}}


def burstable(**spec: Any) -> Object:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    return stored(
        {
            "containers": [
                {"name": "a", "image": "x", "resources": amounts("100m", "50Mi", "200m", "100Mi")},
                {
                    "name": "b",
                    "image": "x",
                    "resizePolicy": policy,
                    "resources": amounts("100m", "50Mi", "200m", "100Mi"),
                },
            ],
            "initContainers": [
                {
                    "name": "s",
                    "image": "x",
                    "restartPolicy": "Always",
                    "resources": amounts("10m", "10Mi", "20m", "20Mi"),
                },
                {"name": "i", "image": "x", "resources": amounts("10m", "10Mi", "20m", "20Mi")},
            ],
            **spec,
        }
    )


def stored(spec: Object, **meta: Any) -> Object:
    pod = {"metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "1", **meta}, "spec": spec}
    prune(PODS, pod)
    defaults.set_defaults(PODS, pod)
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(pod)}
    return pod


def texts(old: Object, change: Change) -> list[str]:
    wanted = copy_object(old)
    change(wanted["spec"])
    defaults.set_defaults(PODS, wanted)
    new = {**old, "spec": resized(old["spec"], wanted["spec"])}
    return [str(error) for error in validate_update(PODS, new, old, "resize")]


def of(group: str, index: int, kind: str, **values: str | None) -> Change:
    def change(spec: Object) -> None:
        chosen = spec[group][index]["resources"][kind]
        for name, value in values.items():
            key = name.replace("_", "-")
            if value is None:
                del chosen[key]
            else:
                chosen[key] = value

    return change


def in_reverse(spec: Object) -> None:
    spec["containers"].reverse()


def without_resources(spec: Object) -> None:
    del spec["containers"][0]["resources"]


def one_less(spec: Object) -> None:
    del spec["containers"][1]


def without_spec(spec: Object) -> None:
    del spec["containers"], spec["initContainers"]


def restart_for_cpu(group: str, index: int) -> Change:
    def change(spec: Object) -> None:
        spec[group][index]["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]

    return change


def another_image(spec: Object) -> None:
    spec["containers"][0]["image"] = "y"
    spec["hostname"] = "h"


REFUSED: dict[str, tuple[Change, list[str]]] = {
    "more than the limit": (
        of("containers", 0, "requests", cpu="500m"),
        [
            'spec.containers[0].resources.requests: Invalid value: "500m": '
            "must be less than or equal to cpu limit of 200m"
        ],
    ),
    "a limit is taken away": (
        of("containers", 0, "limits", cpu=None),
        ["spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"],
    ),
    "all are taken away": (
        without_resources,
        [
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed",
        ],
    ),
    "another resource": (of("containers", 0, "requests", ephemeral_storage="1Gi"), [f"spec: Forbidden: {ONLY}"]),
    "another resource of a sidecar": (
        of("initContainers", 0, "requests", ephemeral_storage="1Gi"),
        [f"spec.initContainers[0]: Forbidden: {OF_INIT}"],
    ),
    "another order": (
        in_reverse,
        [
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
            "spec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize",
        ],
    ),
    "one container less": (
        one_less,
        ["spec.containers: Forbidden: containers may not be added or removed on resize"],
    ),
    "no containers": (
        without_spec,
        [
            "spec.containers: Required value",
            'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
            "spec.containers: Forbidden: containers may not be added or removed on resize",
            "spec.initContainers: Forbidden: initContainers may not be added or removed on resize",
        ],
    ),
    "another resize policy": (restart_for_cpu("containers", 0), [f"spec: Forbidden: {ONLY}"]),
    "a resize policy of an init container": (
        restart_for_cpu("initContainers", 1),
        [
            'spec.initContainers[1].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": '
            "must not be set to 'RestartContainer' for non-sidecar initContainers",
            f"spec.initContainers[1]: Forbidden: {OF_INIT}",
            "spec.initContainers[1]: Forbidden: "
            "non-sidecar init containers with a resize policy of RestartContainer cannot be resized",
        ],
    ),
}
TAKEN: dict[str, Change] = {
    "more CPU": of("containers", 0, "requests", cpu="150m"),
    "less memory, without a restart": of("containers", 0, "limits", memory="60Mi"),
    "a request that its limit makes": of("containers", 0, "requests", memory=None),
    "a sidecar": of("initContainers", 0, "requests", cpu="15m"),
    "an init container": of("initContainers", 1, "requests", cpu="15m"),
    "nothing at all": lambda spec: None,
    "what is not heard": another_image,
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_resize_is_refused_in_kubernetes_words(case: str) -> None:
    change, expected = REFUSED[case]
    assert texts(burstable(), change) == expected


@pytest.mark.parametrize("case", TAKEN)
def test_a_resize_of_cpu_and_memory_is_taken(case: str) -> None:
    assert texts(burstable(), TAKEN[case]) == []


def test_a_resize_may_not_change_the_qos_class() -> None:
    old = stored({"containers": [{"name": "a", "image": "x", "resources": amounts("1", "1Gi", "1", "1Gi")}]})
    why = 'spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing'
    assert texts(old, of("containers", 0, "requests", cpu="500m")) == [why]


def test_resources_of_the_pod_itself_may_grow_and_may_not_be_taken_away() -> None:
    old = burstable(resources=amounts("400m", "400Mi", "800m", "800Mi"))
    assert texts(old, lambda spec: spec["resources"]["requests"].update(cpu="500m")) == []
    without_cpu = texts(old, lambda spec: spec["resources"]["limits"].pop("cpu"))
    assert without_cpu == ["spec.resources.limits: Forbidden: pod-level resource limits cannot be removed"]
    assert texts(old, lambda spec: spec.pop("resources")) == [
        "spec.resources: Forbidden: pod-level resources cannot be removed"
    ]

    def huge(spec: Object) -> None:
        for kind in ("limits", "requests"):
            spec["resources"][kind]["hugepages-2Mi"] = "2Mi"

    assert texts(old, huge) == ["spec: Forbidden: only cpu and memory resources are mutable at pod-level"]


def test_a_pod_may_get_resources_of_its_own() -> None:
    add = {"resources": {"requests": {"cpu": "500m", "memory": "500Mi"}}}
    assert texts(burstable(), lambda spec: spec.update(add)) == []


def test_pods_from_files_and_pods_for_windows_are_not_resized() -> None:
    spec = {"containers": [{"name": "a", "image": "x"}]}
    mirror = stored(spec, annotations={"kubernetes.io/config.mirror": "x"})
    assert texts(mirror, lambda spec: None) == ["[]: Forbidden: static pods cannot be resized"]
    windows = stored({**spec, "os": {"name": "windows"}})
    assert texts(windows, lambda spec: None) == ["[]: Forbidden: windows pods cannot be resized"]


def test_containers_may_not_ask_for_more_than_their_pod() -> None:
    spec = {
        "resources": {"requests": {"cpu": "50m", "memory": "10Mi"}, "limits": {"cpu": "60m"}},
        "containers": [
            {"name": "a", "image": "x", "resources": amounts("1", "20Mi", "2", "40Mi")},
            {"name": "b", "image": "x", "resources": {"requests": {"cpu": "1"}}},
        ],
    }
    assert [str(error) for error in validate_create(PODS, stored(spec))] == [
        'spec.resources.requests[cpu]: Invalid value: "50m": '
        "must be greater than or equal to aggregate container requests of 2",
        'spec.resources.requests[memory]: Invalid value: "10Mi": '
        "must be greater than or equal to aggregate container requests of 20Mi",
        'spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 60m',
    ]
