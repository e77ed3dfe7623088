"""What is said of a Pod that may be stored and is probably not what was meant."""

from typing import Any

from lastcall.kube.api.names import is_dns1123_label
from lastcall.kube.api.pods.warnings import MOST_PORTS, pod_warnings, warnings_on_create, warnings_on_update
from lastcall.kube.api.resources import CONFIGMAPS, CRONJOBS, DEPLOYMENTS, PODS

M: dict[str, Any] = {"name": "m", "image": "i"}


def test_a_pod_that_is_in_order_is_not_spoken_of() -> None:
    env = [{"name": "A", "value": "x"}, {"name": "A", "value": "$(A)y"}]
    spec = {"containers": [{**M, "env": env}], "terminationGracePeriodSeconds": 30}
    assert warnings_on_create(PODS, {"metadata": {"name": "p"}, "spec": spec}) == []
    assert warnings_on_create(CONFIGMAPS, {"metadata": {"name": "a.b"}}) == []


def test_what_is_said_of_a_pod() -> None:
    container = {
        **M,
        "env": [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}, {"name": "A", "value": "$(A)"}],
        "ports": [
            {"containerPort": 80, "protocol": "TCP"},
            {"containerPort": 80, "protocol": "TCP"},
            {"containerPort": 80, "protocol": "TCP", "hostPort": 1},
        ],
        "resources": {"requests": {"memory": "100m"}},
    }
    term = {"topologyKey": "a"}
    spec = {
        "nodeSelector": {"beta.kubernetes.io/os": "linux"},
        "containers": [container],
        "volumes": [{"name": "v", "gitRepo": {"repository": "r"}}],
        "hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}],
        "imagePullSecrets": [{}, {"name": "a"}, {"name": "a"}],
        "terminationGracePeriodSeconds": -1,
        "topologySpreadConstraints": [{"topologyKey": "a"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    }
    none = "labelSelector: a null labelSelector results in matching no pod"
    assert pod_warnings(spec, "spec") == [
        'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
        f"spec.topologySpreadConstraints[0].{none}",
        "spec.volumes[0].gitRepo: deprecated in v1.11",
        'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"',
        'spec.imagePullSecrets[2].name: duplicate name "a"',
        'spec.imagePullSecrets[0].name: invalid empty name ""',
        'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer',
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
        'spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply',
        "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
        "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[0]",
        "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[1]",
        "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        f"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].{none}",
    ]


def test_templates_are_spoken_of_where_they_stand_and_when_they_change() -> None:
    template = {"spec": {"containers": [M], "imagePullSecrets": [{}]}}
    deployment = {"metadata": {"name": "a.b", "generation": 1}, "spec": {"template": template}}
    said = 'spec.template.spec.imagePullSecrets[0].name: invalid empty name ""'
    assert warnings_on_create(DEPLOYMENTS, deployment) == [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label "
        "is recommended: [must not contain dots]",
        said,
    ]
    assert warnings_on_update(DEPLOYMENTS, deployment, deployment) == []
    changed = {**deployment, "metadata": {"name": "a.b", "generation": 2}}
    assert warnings_on_update(DEPLOYMENTS, changed, deployment) == [said]
    assert warnings_on_update(PODS, changed, deployment) == []
    cron = {"metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": {"template": template}}}}
    assert warnings_on_create(CRONJOBS, cron) == [
        'spec.jobTemplate.spec.template.spec.imagePullSecrets[0].name: invalid empty name ""'
    ]


def test_a_label_with_dots_that_is_a_subdomain_is_told_of_its_dots() -> None:
    assert is_dns1123_label("a.b") == ["must not contain dots"]


def test_of_many_equal_ports_not_every_pair_is_told() -> None:
    ports = [{"containerPort": 80}] * 20_000
    said = pod_warnings({"containers": [{"name": "m", "image": "i", "ports": ports}]}, "spec")
    assert len([text for text in said if "port definition" in text]) == MOST_PORTS
