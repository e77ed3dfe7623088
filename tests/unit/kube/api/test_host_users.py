"""`hostUsers: false`: what it excludes, in the words of a real Kubernetes 1.36.2, and which versions have it."""

import pytest

from lastcall.kube.api.defaults import kinds as defaults
from lastcall.kube.api.features.disabled_fields import drop_disabled_fields
from lastcall.kube.api.features.gates import FeatureGateError, FeatureGates, feature_gates
from lastcall.kube.api.resources import DEPLOYMENTS, PODS
from lastcall.kube.api.schema.pruning import prune
from lastcall.kube.api.validation import validate_create

WHY = "when `hostUsers` is false"


def texts(container=None, **spec):
    obj = {
        "metadata": {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "1"},
        "spec": {"hostUsers": False, "containers": [{"name": "a", "image": "x", **(container or {})}], **spec},
    }
    prune(PODS, obj)
    defaults.set_defaults(PODS, obj)
    return [str(error) for error in validate_create(PODS, obj)]


CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "p"}}
DEVICES = {"volumeDevices": [{"name": "v", "devicePath": "/dev/x"}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"hostNetwork": True}, [f"spec.hostNetwork: Forbidden: {WHY}"]),
        (
            {"hostNetwork": True, "hostPID": True, "hostIPC": True},
            [f"spec.{name}: Forbidden: {WHY}" for name in ("hostNetwork", "HostPID", "HostIPC")],
        ),
        ({"hostUsers": True, "hostPID": True}, []),
        ({"container": DEVICES, "volumes": [CLAIM]}, [f"spec.containers[0].volumeDevices: Forbidden: {WHY}"]),
        (
            {"initContainers": [{"name": "i", "image": "x", **DEVICES}], "volumes": [CLAIM]},
            [f"spec.initContainers[0].volumeDevices: Forbidden: {WHY}"],
        ),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/tmp"}}]}, []),
        ({"container": {"securityContext": {"privileged": True, "runAsUser": 100_000}}}, []),
        ({"container": {"securityContext": {"procMount": "Unmasked"}}}, []),
        (
            {"hostUsers": True, "container": {"securityContext": {"procMount": "Unmasked"}}},
            [
                'spec.containers[0].securityContext.procMount: Invalid value: "Unmasked": '
                "`hostUsers` must be false to use `Unmasked`"
            ],
        ),
        ({"os": {"name": "windows"}}, ["spec.hostUsers: Forbidden: cannot be set for a windows pod"]),
    ],
)
def test_what_it_excludes(spec, expected):
    assert texts(**spec) == expected


@pytest.mark.parametrize(("version", "kept"), [("1.27", False), ("1.32", False), ("1.36", True)])
def test_versions_without_it_drop_it(version, kept):
    pod = {"spec": {"hostUsers": False, "containers": []}}
    drop_disabled_fields(PODS, pod, None, FeatureGates(version))
    assert ("hostUsers" in pod["spec"]) is kept
    deployment = {"spec": {"template": {"spec": {"hostUsers": True, "containers": []}}}}
    drop_disabled_fields(DEPLOYMENTS, deployment, None, FeatureGates(version))
    assert ("hostUsers" in deployment["spec"]["template"]["spec"]) is kept


def test_its_gate():
    assert feature_gates("1.30", {"UserNamespacesSupport": True}).enabled("UserNamespacesSupport")
    with pytest.raises(FeatureGateError, match=r"locked to true since Kubernetes 1\.36"):
        feature_gates("1.36", {"UserNamespacesSupport": False})
    with pytest.raises(FeatureGateError, match="no feature gate"):
        feature_gates("1.27", {"UserNamespacesSupport": True})
