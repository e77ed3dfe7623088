"""Quotas, limit ranges and the Pod Security Standards as kubectl shows them, on the real kernel."""

import json
import re

import pytest
from kubectls import Kubectl
from waiting import eventually

pytestmark = pytest.mark.real_kernel


def rows(text: str, first: str) -> dict[str, list[str]]:
    """The rows of describe's table that begins with the column `first`."""
    lines = [line.split() for line in text.splitlines()]
    begin = next(number for number, line in enumerate(lines) if line[:1] == [first])
    return {line[0]: line[1:] for line in lines[begin + 2 :] if len(line) == 3}


def counted(kubectl: Kubectl, **used: str) -> None:
    def is_so() -> bool:
        return kubectl.get("quota", "few").get("status", {}).get("used") == used

    eventually(is_so)


def test_a_quota_refuses_what_is_too_much_and_describe_shows_what_is_used(kubectl: Kubectl) -> None:
    assert kubectl("create", "quota", "few", "--hard=pods=2,configmaps=3") == "resourcequota/few created\n"
    counted(kubectl, pods="0", configmaps="1")
    for name in ("a", "b"):
        kubectl("run", name, "--image=quick:1", "--restart=Never")
    code, _, error = kubectl.run("run", "c", "--image=quick:1", "--restart=Never")
    assert code == 1
    assert error == (
        'Error from server (Forbidden): pods "c" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, '
        "limited: pods=2\n"
    )
    assert kubectl("create", "configmap", "one") == "configmap/one created\n"
    table = rows(kubectl("describe", "quota", "few"), "Resource")
    assert (table["configmaps"], table["pods"]) == (["2", "3"], ["2", "2"])
    text = kubectl("describe", "namespace", kubectl.get("quota", "few")["metadata"]["namespace"])
    assert rows(text[text.index("Resource Quotas") :], "Resource")["configmaps"] == ["2", "3"]
    kubectl("delete", "configmap", "one")
    counted(kubectl, pods="2", configmaps="1")
    kubectl("delete", "pods", "--all", "--grace-period=1")
    counted(kubectl, pods="0", configmaps="1")


def test_a_deployment_whose_pods_a_quota_refuses_says_why(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "few", "--hard=pods=1")
    counted(kubectl, pods="0")
    kubectl("create", "deployment", "web", "--image=quick:1")
    kubectl("scale", "deployment", "web", "--replicas=2")
    why = "is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"

    def refused() -> bool:
        conditions = kubectl.get("deployment", "web")["status"].get("conditions") or []
        return any(each["type"] == "ReplicaFailure" and why in each["message"] for each in conditions)

    eventually(refused)
    assert re.search(r"ReplicaFailure +True +FailedCreate", kubectl("describe", "deployment", "web"))
    eventually(lambda: re.search(rf"FailedCreate .*{why}", kubectl("describe", "replicasets")))
    assert len(kubectl.get("pods")["items"]) == 1
    kubectl("patch", "quota", "few", "-p", '{"spec":{"hard":{"pods":"2"}}}')
    # The ReplicaSet tries again by itself, after a back-off as long as it has tried so far.
    eventually(lambda: kubectl.get("deployment", "web")["status"].get("availableReplicas") == 2, seconds=180)
    counted(kubectl, pods="2")


LIMITS = [
    {"type": "Container", "default": {"cpu": "200m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "500m"}},
    {"type": "Pod", "max": {"cpu": "700m"}},
]


def pod(name: str, *limits: str, **spec: object) -> str:
    containers = [
        {"name": f"c{number}", "image": "quick:1", "resources": {"limits": {"cpu": cpu}} if cpu else {}}
        for number, cpu in enumerate(limits)
    ]
    made = {"containers": containers, "terminationGracePeriodSeconds": 1, **spec}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": made})


def test_a_limit_range_fills_in_and_refuses_and_describe_shows_it(kubectl: Kubectl) -> None:
    kind = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}}
    kubectl("create", "-f", "-", stdin=json.dumps({**kind, "spec": {"limits": LIMITS}}))
    text = kubectl("describe", "limitrange", "l")
    assert re.search(r"Container +cpu +- +500m +100m +200m +-", text)
    assert re.search(r"Pod +cpu +- +700m +- +- +-", text)
    kubectl("create", "-f", "-", stdin=pod("given", ""))
    made = kubectl.get("pod", "given")
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "200m"}, "requests": {"cpu": "100m"}}
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu request for container c0; cpu limit for container c0"
    )
    for limits, why in (
        (["600m"], "maximum cpu usage per Container is 500m, but limit is 600m"),
        (["400m", "400m"], "maximum cpu usage per Pod is 700m, but limit is 800m"),
    ):
        code, _, error = kubectl.run("create", "-f", "-", stdin=pod("refused", *limits))
        assert code == 1
        assert (
            error == f'Error from server (Forbidden): error when creating "STDIN": pods "refused" is forbidden: {why}\n'
        )
    wrong = {"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}
    error = kubectl("create", "-f", "-", stdin=json.dumps({**kind, "spec": wrong}), status=1)
    assert "min value 2 is greater than max value 1" in error


RESTRICTED = (
    'would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "c0" must set '
    'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c0" must set '
    'securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c0" must set '
    'securityContext.runAsNonRoot=true), seccompProfile (pod or container "c0" must set '
    'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
)


def test_the_labels_of_a_namespace_refuse_pods_and_warn_of_them(kubectl: Kubectl) -> None:
    namespace = kubectl.get("serviceaccount", "default")["metadata"]["namespace"]
    prefix = "pod-security.kubernetes.io"
    kubectl("label", "namespace", namespace, f"{prefix}/enforce=baseline", f"{prefix}/warn=restricted")
    code, out, error = kubectl.run("create", "-f", "-", stdin=pod("careless", ""))
    assert (code, out, error) == (0, "pod/careless created\n", f"Warning: {RESTRICTED}\n")
    code, _, error = kubectl.run("create", "-f", "-", stdin=pod("host", "", hostNetwork=True))
    assert code == 1
    assert error == (
        'Error from server (Forbidden): error when creating "STDIN": pods "host" is forbidden: violates PodSecurity '
        '"baseline:latest": host namespaces (hostNetwork=true)\n'
    )
    code, _, error = kubectl.run("create", "deployment", "web", "--image=quick:1", "--replicas=0")
    assert code == 0
    assert error == f"Warning: {RESTRICTED.replace('c0', 'quick')}\n"
    code, _, error = kubectl.run("label", "namespace", namespace, f"{prefix}/enforce=restricted", "--overwrite")
    assert code == 0
    assert error == (
        f'Warning: existing pods in namespace "{namespace}" violate the new PodSecurity enforce level '
        '"restricted:latest"\n'
        "Warning: careless: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, "
        "seccompProfile\n"
    )
    error = kubectl("label", "namespace", namespace, f"{prefix}/audit=loud", status=1)
    assert 'Invalid value: "loud": must be one of privileged, baseline, restricted' in error
