"""Feature gates: settings, versions, and the fields and values they turn off."""

import copy

import pytest

from lastcall.kube.api.features.disabled_fields import (
    disabled_values,
    drop_disabled_fields,
    drop_disabled_status,
    dropped_fields,
)
from lastcall.kube.api.features.gates import (
    FeatureGateError,
    FeatureGates,
    feature_gates,
    gates_of_server,
    parse_feature_gates,
)
from lastcall.kube.api.features.releases import DEFAULT_VERSION
from lastcall.kube.api.resources import DEPLOYMENTS, PODS, STATEFULSETS
from lastcall.kube.api.validators.containers.hooks import STOP_SIGNALS
from lastcall.kube.api.validators.pod import validate_spec

RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}


@pytest.mark.parametrize(
    ("version", "followed"),
    [("v1.36.2", "1.36"), ("v1.37.0-rc.1+x", "1.37"), ("v1.31.4", DEFAULT_VERSION), ("", DEFAULT_VERSION)],
)
def test_a_part_follows_the_version_of_the_server_that_it_works_for(version: str, followed: str) -> None:
    assert gates_of_server(version).version == followed


def test_settings_are_read_and_a_later_one_wins() -> None:
    settings = parse_feature_gates(
        ["ContainerStopSignals=true, TCPSocketLifecycleHook=TRUE", "ContainerStopSignals=false"]
    )
    assert settings == {"ContainerStopSignals": False, "TCPSocketLifecycleHook": True}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Nonsense=true", "unknown feature gate 'Nonsense': known are ContainerRestartRules,"),
        ("ContainerStopSignals", "write ContainerStopSignals=true or ContainerStopSignals=false"),
        ("ContainerStopSignals=yes", "the value of a feature gate is true or false"),
    ],
)
def test_a_setting_that_cannot_be_says_what_can(text: str, words: str) -> None:
    with pytest.raises(FeatureGateError) as caught:
        parse_feature_gates([text])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("version", "settings", "words"),
    [
        ("1.27", {"ContainerStopSignals": True}, "Kubernetes 1.27 has no feature gate 'ContainerStopSignals'"),
        ("1.36", {"EphemeralContainers": False}, "locked to true since Kubernetes 1.25"),
        ("1.36", {"ContainerRestartRules": False}, "set RestartAllContainersOnContainerExits=false too"),
        ("1.37", {"SidecarContainers": True}, "Kubernetes 1.37 has no feature gate 'SidecarContainers'"),
        ("1.36", {"StatefulSetRecreateStrategy": True}, "Kubernetes 1.36 has no feature gate"),
    ],
)
def test_a_version_has_only_its_own_gates(version: str, settings: dict[str, bool], words: str) -> None:
    with pytest.raises(FeatureGateError, match=words.replace("(", r"\(")):
        feature_gates(version, settings)


@pytest.mark.parametrize(
    ("name", "on"),
    [
        ("ContainerStopSignals", ()),
        ("TCPSocketLifecycleHook", ()),
        ("EphemeralContainers", ("1.23", "1.27", "1.36", "1.37")),
        ("GRPCContainerProbe", ("1.27", "1.36", "1.37")),
        ("ContainerRestartRules", ("1.36", "1.37")),
        ("RestartAllContainersOnContainerExits", ("1.36", "1.37")),
        ("SidecarContainers", ("1.36", "1.37")),  # its gate is gone since 1.37, and sidecars stay
        ("MaxUnavailableStatefulSet", ("1.37",)),
        ("HPAScaleToZero", ("1.37",)),
        ("StatefulSetRecreateStrategy", ()),
    ],
)
def test_defaults_by_version(name: str, on: tuple[str, ...]) -> None:
    assert tuple(v for v in ("1.23", "1.27", "1.36", "1.37") if FeatureGates(v).enabled(name)) == on


def pod(**container: object) -> dict:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "app", "image": "i", **container}]}}


@pytest.mark.rule("node-semantics 21.1/gate-off")
def test_a_stop_signal_is_dropped_while_its_gate_is_off_unless_it_is_there_already() -> None:
    new = pod(lifecycle={"stopSignal": "SIGUSR1"})
    stored = copy.deepcopy(new)
    drop_disabled_fields(PODS, new, None, FeatureGates())
    assert new == pod()
    both = pod(lifecycle={"stopSignal": "SIGUSR1", "preStop": {"sleep": {"seconds": 1}}})
    drop_disabled_fields(PODS, both, None, FeatureGates())
    assert both == pod(lifecycle={"preStop": {"sleep": {"seconds": 1}}})
    kept = copy.deepcopy(stored)
    drop_disabled_fields(PODS, kept, stored, FeatureGates())
    assert kept == stored
    on = copy.deepcopy(stored)
    drop_disabled_fields(PODS, on, None, FeatureGates("1.36", {"ContainerStopSignals": True}))
    assert on == stored


def test_fields_of_gates_that_nobody_turns_on_are_dropped() -> None:
    new = pod()
    new["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    stored = copy.deepcopy(new)
    drop_disabled_fields(PODS, new, None, FeatureGates())
    assert new == pod()
    kept = copy.deepcopy(stored)
    drop_disabled_fields(PODS, kept, stored, FeatureGates())
    assert kept == stored
    mount = {"name": "v", "mountPath": "/v"}
    told = {"volumeMounts": [{**mount, "volumeStatus": {"image": {"imageRef": "i"}}}]}
    status = {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}], "containerStatuses": [told]}
    reported = {**pod(), "status": status}
    drop_disabled_status(PODS, reported, FeatureGates())
    assert reported["status"] == {"containerStatuses": [{"volumeMounts": [mount]}]}


def test_templates_lose_disabled_fields_too() -> None:
    deployment = {"spec": {"template": pod(lifecycle={"stopSignal": "SIGUSR1"})}}
    drop_disabled_fields(DEPLOYMENTS, deployment, None, FeatureGates())
    assert deployment == {"spec": {"template": pod()}}


def test_before_restart_rules_a_container_had_no_policy_of_its_own() -> None:
    new = pod(restartPolicy="Never", restartPolicyRules=[RULE])
    new["spec"]["initContainers"] = [{"name": "s", "restartPolicy": "Always"}, {"name": "i", "restartPolicy": "Never"}]
    drop_disabled_fields(PODS, new, None, FeatureGates("1.32"))
    assert new["spec"] == {
        "containers": [{"name": "app", "image": "i"}],
        "initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}],
    }


def test_restarting_all_containers_needs_its_gate() -> None:
    new = pod(restartPolicy="Never", restartPolicyRules=[{**RULE, "action": "RestartAllContainers"}])
    off = FeatureGates("1.36", {"RestartAllContainersOnContainerExits": False})
    (error,) = disabled_values(PODS, new, None, off)
    assert str(error) == (
        'spec.containers[0].restartPolicyRules[0].action: Unsupported value: "RestartAllContainers": '
        'supported values: "Restart"'
    )
    assert disabled_values(PODS, new, new, off) == []
    assert disabled_values(PODS, new, None, FeatureGates()) == []


def problems(**fields: object) -> list[str]:
    container = {"name": "app", "image": "i", "imagePullPolicy": "Always", **fields.pop("container", {})}  # type: ignore[dict-item]
    spec = {"containers": [container], "restartPolicy": "Always", "dnsPolicy": "Default", **fields}
    return [str(error) for error in validate_spec({"spec": spec})]


@pytest.mark.rule("node-semantics 21.1/gate-on")
def test_a_stop_signal_is_one_of_the_pod_s_system() -> None:
    assert len(STOP_SIGNALS["linux"]) == 65
    signal = {"lifecycle": {"stopSignal": "SIGRTMAX-2"}}
    assert problems(container=signal, os={"name": "linux"}) == []
    assert problems(container=signal) == [
        "spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`"
    ]
    assert problems(container=signal, os={"name": "windows"}) == [
        'spec.containers[0].lifecycle.stopSignal: Unsupported value: "SIGRTMAX-2": '
        'supported values: "SIGKILL", "SIGTERM"'
    ]
    assert problems(os={"name": "plan9"}) == [
        'spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'
    ]


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"restartPolicyRules": [RULE]},
         ["spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"]),
        ({"restartPolicy": "Never", "restartPolicyRules": [RULE] * 21},
         ["spec.containers[0].restartPolicyRules: Too many: 21: must have at most 20 items"]),
        ({"restartPolicy": "Never", "restartPolicyRules": [{"action": "Explode"}]},
         ['spec.containers[0].restartPolicyRules[0].action: Unsupported value: "Explode": supported values: "Restart", '
          '"RestartAllContainers"',
          "spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified"]),
        ({"restartPolicy": "Never",
          "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "Is", "values": list(range(256))}}]},
         ['spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: "Is": supported values: '
          '"In", "NotIn"',
          "spec.containers[0].restartPolicyRules[0].exitCodes.values: Too many: 256: must have at most 255 items"]),
    ],
)  # fmt: skip
def test_restart_rules_are_checked(container: dict, expected: list[str]) -> None:
    assert problems(container=container) == expected


def test_what_a_version_does_not_know_yet_is_dropped_and_named() -> None:
    new = pod(
        lifecycle={"preStop": {"sleep": {"seconds": 3}}},
        livenessProbe={"exec": {"command": ["true"]}, "terminationGracePeriodSeconds": 5},
    )
    new["spec"]["initContainers"] = [{"name": "s", "restartPolicy": "Always"}]
    deployment = {"spec": {"template": copy.deepcopy(new)}}
    dropped = [
        "initContainers[0].restartPolicy",
        "containers[0].lifecycle.preStop.sleep",
        "containers[0].livenessProbe.terminationGracePeriodSeconds",
    ]
    assert sorted(dropped_fields(PODS, new, FeatureGates("1.23"))) == sorted(f"spec.{each}" for each in dropped)
    found = dropped_fields(DEPLOYMENTS, deployment, FeatureGates("1.23"))
    assert sorted(found) == sorted(f"spec.template.spec.{each}" for each in dropped)
    assert not dropped_fields(PODS, new, FeatureGates("1.36"))
    probe = ["spec.containers[0].livenessProbe.terminationGracePeriodSeconds"]
    assert [each for each in dropped_fields(PODS, new, FeatureGates("1.27")) if "Probe" in each] == []
    assert [each for each in dropped_fields(PODS, new, FeatureGates("1.23")) if "Probe" in each] == probe
    gates = FeatureGates("1.23", {"ProbeTerminationGracePeriod": True})
    assert [each for each in dropped_fields(PODS, new, gates) if "Probe" in each] == []


def test_of_a_field_that_is_dropped_the_gate_is_named() -> None:
    new = pod(lifecycle={"stopSignal": "SIGQUIT", "preStop": {"exec": {"command": ["true"]}}})
    new["spec"]["schedulingGroup"] = {"podGroupName": "x"}
    stop_signal = {"spec.containers[0].lifecycle.stopSignal": "ContainerStopSignals"}
    assert dropped_fields(PODS, new, FeatureGates("1.36")) == {"spec.schedulingGroup": "", **stop_signal}
    on = FeatureGates("1.36", {"ContainerStopSignals": True})
    assert dropped_fields(PODS, new, on) == {"spec.schedulingGroup": ""}
    rolling = {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}, "template": pod()}}
    path = "spec.updateStrategy.rollingUpdate.maxUnavailable"
    assert dropped_fields(STATEFULSETS, rolling, FeatureGates("1.36")) == {path: "MaxUnavailableStatefulSet"}


def test_before_1_26_no_pod_is_said_to_be_disrupted() -> None:
    def conditions(version: str) -> list[str]:
        status = {"conditions": [{"type": "Ready"}, {"type": "DisruptionTarget"}]}
        obj = {**pod(), "status": status}
        drop_disabled_status(PODS, obj, FeatureGates(version))
        return [each["type"] for each in obj["status"]["conditions"]]

    assert conditions("1.23") == ["Ready"]
    assert conditions("1.27") == ["Ready", "DisruptionTarget"]
