"""What may change in an object, in Kubernetes's words."""

from typing import Any

import pytest

from lastcall.kube.api import errors
from lastcall.kube.api.defaults import kinds as defaults
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import (
    APISERVICES,
    CONFIGMAPS,
    HORIZONTALPODAUTOSCALERS,
    PODDISRUPTIONBUDGETS,
    PODS,
    SECRETS,
    SERVED,
    SERVICES,
)
from lastcall.kube.api.schema.pruning import prune
from lastcall.kube.api.validation import validate_create, validate_update
from lastcall.kube.api.validators.pod import UPDATE_TEXT


def pod(**spec: Any) -> Object:
    obj = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 1},
        "spec": {"containers": [{"name": "main", "image": "busybox:1.36"}], **spec},
    }
    prune(PODS, obj)
    defaults.set_defaults(PODS, obj)
    return obj


def texts(new: Object, old: Object, subresource: str = "") -> list[str]:
    """Each once: what is found in metadata is a cause several times."""
    return list(dict.fromkeys(str(error) for error in validate_update(PODS, new, old, subresource)))


def changed(obj: Object, change: Any) -> Object:
    new = copy_object(obj)
    change(new)
    return new


def test_an_image_that_is_none_is_told_twice_when_it_changes() -> None:
    new = changed(pod(), lambda p: p["spec"]["containers"][0].update(image=""))
    told = [str(error) for error in validate_update(PODS, new, pod(), "")]
    assert told.count("spec.containers[0].image: Required value") == 2


def test_a_problem_of_metadata_is_a_cause_as_often_as_kubernetes_looks() -> None:
    reference = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    old = {"metadata": {"name": "h", "namespace": "n"}, "spec": {"maxReplicas": 1, "scaleTargetRef": reference}}
    new = changed(old, lambda h: h["metadata"].update(labels={"a": "::1"}))
    found = validate_update(HORIZONTALPODAUTOSCALERS, new, old)
    assert [error.field for error in found].count("metadata.labels") == 3


def test_a_budget_may_have_any_name_that_a_path_can_have() -> None:
    made = {"metadata": {"name": "a" * 300, "namespace": "n"}, "spec": {"maxUnavailable": 1, "selector": {}}}
    assert validate_create(PODDISRUPTIONBUDGETS, made) == []


def test_metadata_that_stays_is_not_looked_at_again_but_for_a_name_that_follows_from_the_rest() -> None:
    old = changed(pod(), lambda p: p["metadata"].update(labels={"a": "::1"}))
    new = changed(old, lambda p: p["metadata"].update(managedFields=[]))
    assert validate_update(PODS, new, old, "status") == []
    found = validate_update(PODS, changed(new, lambda p: p["metadata"].update(annotations={"b": "c"})), old, "status")
    assert {error.field for error in found} == {"metadata.labels"}
    spec = {"group": "g.io", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15}
    service = {"metadata": {"name": "v1.g.io", "resourceVersion": "1"}, "spec": spec}
    assert validate_update(APISERVICES, service, service) == []
    other = changed(service, lambda each: each["spec"].update(version="v2"))
    assert "metadata.name" in [error.field for error in validate_update(APISERVICES, other, service)]


def test_an_unchanged_pod_passes_create_and_update() -> None:
    assert validate_create(PODS, pod()) == []
    assert texts(pod(), pod()) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p["spec"]["containers"][0].update(image="quick:1"),
        lambda p: p["spec"].update(activeDeadlineSeconds=5),
        lambda p: p["spec"].update(tolerations=[{"key": "a", "operator": "Exists"}]),
        lambda p: p["metadata"].update(labels={"a": "b"}, annotations={"c": "d"}),
    ],
)
def test_the_mutable_fields_of_a_pod_may_change(change: Any) -> None:
    assert texts(changed(pod(), change), pod()) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p["spec"].update(nodeName="node-2"),
        lambda p: p["spec"].update(terminationGracePeriodSeconds=5),
        lambda p: p["spec"]["containers"][0].update(command=["true"]),
        lambda p: p["spec"].update(ephemeralContainers=[{"name": "z", "image": "q:1", "imagePullPolicy": "Always"}]),
        lambda p: p["spec"]["containers"][0]["resources"].update(requests={"cpu": "10m"}),
    ],
)
def test_another_change_of_the_pod_spec_is_forbidden_with_a_diff(change: Any) -> None:
    found = texts(changed(pod(), change), pod())
    assert len(found) == 1
    assert found[0].startswith(f"spec: Forbidden: {UPDATE_TEXT}\n@@ -")


def test_containers_may_not_be_added() -> None:
    new = changed(pod(), lambda p: p["spec"]["containers"].append({**p["spec"]["containers"][0], "name": "two"}))
    assert texts(new, pod()) == ["spec.containers: Forbidden: pod updates may not add or remove containers"]


def test_a_deadline_may_only_shrink_and_not_vanish() -> None:
    old = pod(activeDeadlineSeconds=10)
    assert texts(pod(activeDeadlineSeconds=9), old) == []
    longer = "spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value"
    assert texts(pod(activeDeadlineSeconds=11), old) == [longer]
    gone = "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"
    assert gone in texts(pod(), old)


def test_a_negative_grace_period_may_become_one_and_nothing_else_may() -> None:
    old = pod()
    old["spec"]["terminationGracePeriodSeconds"] = -5
    assert texts(pod(terminationGracePeriodSeconds=1), old) == []
    assert texts(pod(terminationGracePeriodSeconds=2), old) != []


def test_scheduling_gates_may_only_be_removed() -> None:
    gated = pod(schedulingGates=[{"name": "a/b"}])
    assert texts(pod(), gated) == []
    assert texts(gated, pod()) == [
        "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a/b'"
    ]


def test_an_existing_toleration_may_change_only_its_seconds() -> None:
    old = pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}])
    new = changed(old, lambda p: p["spec"]["tolerations"][0].update(tolerationSeconds=5))
    assert texts(new, old) == []
    why = "existing toleration can not be modified except its tolerationSeconds"
    assert texts(pod(tolerations=[]), old) == [f"spec.tolerations: Forbidden: {why}"]


def test_a_problem_of_metadata_is_two_causes_and_one_message() -> None:
    old = pod()
    old["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    new = changed(old, lambda p: p["metadata"].update(finalizers=["a/b"]))
    status = errors.invalid(PODS, "p", validate_update(PODS, new, old)).status
    why = (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"a/b"}'
    )
    assert status["message"] == f'Pod "p" is invalid: {why}'
    assert len(status["details"]["causes"]) == 2


def test_deletion_fields_cannot_be_set_by_an_update_and_are_kept_when_left_out() -> None:
    old = pod()
    new = changed(old, lambda p: p["metadata"].update(deletionTimestamp="2030-01-01T00:00:00Z"))
    why = 'metadata.deletionTimestamp: Invalid value: "2030-01-01T00:00:00Z": field is immutable'
    assert texts(new, old) == [why]
    terminating = changed(new, lambda p: p["metadata"].update(deletionGracePeriodSeconds=30))
    assert texts(pod(), terminating) == []
    longer = changed(terminating, lambda p: p["metadata"].update(deletionGracePeriodSeconds=77))
    assert texts(longer, terminating) == ["metadata.deletionGracePeriodSeconds: Invalid value: 77: field is immutable"]


def with_state(obj: Object, state: Object) -> Object:
    return {**obj, "status": {"containerStatuses": [{"name": "main", "state": state}]}}


@pytest.mark.parametrize(
    ("policy", "code", "allowed"),
    [("Always", 0, True), ("OnFailure", 1, True), ("OnFailure", 0, False), ("Never", 1, False)],
)
def test_a_terminated_container_stays_so_unless_the_policy_restarts_it(policy: str, code: int, allowed: bool) -> None:
    base = pod(restartPolicy=policy)
    old, new = with_state(base, {"terminated": {"exitCode": code}}), with_state(base, {"running": {}})
    path = "status.containerStatuses[0].state"
    expected = [] if allowed else [f"{path}: Forbidden: may not be transitioned to non-terminated state"]
    assert texts(new, old, "status") == expected


def test_the_binding_subresource_may_set_the_node() -> None:
    assert texts(pod(nodeName="node-1"), pod(), "binding") == []


def test_ephemeral_containers_are_append_only() -> None:
    def add(name: str, image: str) -> Object:
        return pod(ephemeralContainers=[{"name": name, "image": image, "imagePullPolicy": "IfNotPresent"}])

    old = add("d", "busybox:1.36")
    assert texts(old, pod(), "ephemeralcontainers") == []
    found = texts(add("d", "quick:1"), old, "ephemeralcontainers")
    assert found[0].startswith(
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be changed'
    )
    assert '- "Image": "busybox:1.36",' in found[0]
    taken = texts(add("main", "quick:1"), pod(), "ephemeralcontainers")
    assert taken == ['spec.ephemeralContainers[0].name: Duplicate value: "main"']


def test_a_resize_may_not_change_the_qos_class() -> None:
    new = changed(pod(), lambda p: p["spec"]["containers"][0]["resources"].update(requests={"cpu": "10m"}))
    why = 'spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing'
    assert texts(new, pod(), "resize") == [why]


def stored(**more: Any) -> Object:
    return {"metadata": {"name": "x", "namespace": "n", "resourceVersion": "1"}, **more}


def test_an_immutable_config_map_keeps_its_data_and_stays_immutable() -> None:
    old = stored(immutable=True, data={"a": "1"})
    found = [str(error) for error in validate_update(CONFIGMAPS, stored(data={"a": "2"}), old)]
    why = "Forbidden: field is immutable when `immutable` is set"
    assert found == [f"immutable: {why}", f"data: {why}"]


def test_the_type_of_a_secret_is_immutable() -> None:
    found = validate_update(
        SECRETS, stored(type="kubernetes.io/basic-auth", data={"username": "dQ=="}), stored(type="Opaque")
    )
    assert [str(error) for error in found] == ['type: Invalid value: "kubernetes.io/basic-auth": field is immutable']


def test_the_address_of_a_service_may_not_change_once_set() -> None:
    def service(address: str) -> Object:
        obj = stored(spec={"clusterIP": address, "clusterIPs": [address], "ports": [{"port": 80}]})
        defaults.set_defaults(SERVICES, obj)
        return obj

    assert validate_update(SERVICES, service("10.96.0.9"), service("10.96.0.9")) == []
    found = validate_update(SERVICES, service("10.96.0.10"), service("10.96.0.9"))
    assert [str(e) for e in found] == ['spec.clusterIPs[0]: Invalid value: ["10.96.0.10"]: may not change once set']


LOOKS_AT_METADATA = {
    (4, 3): "persistentvolumes",
    (4, 2): (
        "configmaps endpoints namespaces nodes persistentvolumeclaims pods secrets serviceaccounts "
        "apps/controllerrevisions batch/jobs networking.k8s.io/ingressclasses networking.k8s.io/ingresses "
        "rbac.authorization.k8s.io/clusterrolebindings rbac.authorization.k8s.io/clusterroles "
        "rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/roles "
        "storage.k8s.io/csistoragecapacities storage.k8s.io/storageclasses storage.k8s.io/volumeattributesclasses "
        "node.k8s.io/runtimeclasses resource.k8s.io/deviceclasses resource.k8s.io/resourceclaims "
        "resource.k8s.io/resourceclaimtemplates"
    ),
    (3, 2): (
        "limitranges storage.k8s.io/csinodes storage.k8s.io/volumeattachments "
        "admissionregistration.k8s.io/mutatingadmissionpolicies "
        "admissionregistration.k8s.io/mutatingadmissionpolicybindings "
        "admissionregistration.k8s.io/mutatingwebhookconfigurations "
        "admissionregistration.k8s.io/validatingadmissionpolicies "
        "admissionregistration.k8s.io/validatingadmissionpolicybindings "
        "admissionregistration.k8s.io/validatingwebhookconfigurations discovery.k8s.io/endpointslices "
        "flowcontrol.apiserver.k8s.io/flowschemas flowcontrol.apiserver.k8s.io/prioritylevelconfigurations"
    ),
    (3, 1): (
        "podtemplates replicationcontrollers resourcequotas services apps/daemonsets apps/deployments "
        "apps/replicasets apps/statefulsets batch/cronjobs networking.k8s.io/networkpolicies "
        "networking.k8s.io/servicecidrs storage.k8s.io/csidrivers scheduling.k8s.io/priorityclasses "
        "coordination.k8s.io/leases resource.k8s.io/resourceslices"
    ),
    (2, 1): "policy/poddisruptionbudgets",
}  # fmt: skip
"""How often an update of each kind tells of a bad label, and of a bad finalizer: asked of Kubernetes 1.36.2."""


def test_a_problem_of_metadata_is_told_as_often_as_the_kind_looks_at_metadata() -> None:
    plain = {"metadata": {"name": "x", "resourceVersion": "1"}, "spec": {"template": {"spec": {"containers": []}}}}
    found = {}
    for counts, kinds in LOOKS_AT_METADATA.items():
        for name in kinds.split():
            group, _, plural = name.rpartition("/")
            resource = next(each for each in SERVED if (each.group, each.plural) == (group, plural))
            old = plain | {"metadata": plain["metadata"] | ({"namespace": "n"} if resource.namespaced else {})}
            told = []
            for field, value in (("labels", {"-": "v"}), ("finalizers", ["a b/c"])):
                new = changed(old, lambda obj, field=field, value=value: obj["metadata"].update({field: value}))
                problems = validate_update(resource, new, old)
                told.append(sum(each.field == f"metadata.{field}" for each in problems))
            found[name] = (tuple(told), counts)
    assert {name: pair for name, pair in found.items() if pair[0] != pair[1]} == {}
