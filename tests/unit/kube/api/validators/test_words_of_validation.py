# ruff: noqa: E501 (the words of Kubernetes are long)
"""What is said of an object that may not be stored, in the order of Kubernetes's own validation.

Source: pkg/apis/{core,apps,batch,rbac}/validation/validation.go.
"""

from typing import Any

import pytest

from lastcall.kube.api.defaults import kinds as defaults
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import (
    DEPLOYMENTS,
    ENDPOINTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    ROLEBINDINGS,
    SERVICES,
    Resource,
)
from lastcall.kube.api.schema.pruning import prune
from lastcall.kube.api.validation import validate_create, validate_update

LABEL_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
C = "spec.containers[0]"


def made(resource: Resource, obj: Object) -> Object:
    obj = copy_object(obj)
    obj["metadata"] = {"name": "x", "uid": "u", "resourceVersion": "1", **obj.get("metadata", {})}
    if resource.namespaced:
        obj["metadata"].setdefault("namespace", "n")
    prune(resource, obj)
    defaults.set_defaults(resource, obj)
    return obj


def texts(resource: Resource, obj: Object) -> list[str]:
    return [str(error) for error in validate_create(resource, made(resource, obj))]


def pod(container: Object | None = None, **spec: Any) -> Object:
    return {"spec": {"containers": [{"name": "m", "image": "i", **(container or {})}], **spec}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            pod(dnsPolicy="None"),
            ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        ),
        (
            pod(dnsPolicy="None", dnsConfig={"searches": ["a"]}),
            [
                "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` "
                "is None"
            ],
        ),
        (
            pod(dnsConfig={"searches": ["_a.b.", ".", "-x"], "options": [{"value": "1"}]}),
            [
                'spec.dnsConfig.searches[2]: Invalid value: "-x": a lowercase RFC 1123 subdomain must consist of lower '
                "case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character "
                "(e.g. 'example.com', regex used for validation is "
                "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')",
                "spec.dnsConfig.options[0]: Required value: must not be empty",
            ],
        ),
        (
            pod({"env": [{"name": "a", "valueFrom": {"secretKeyRef": {"key": "k"}}}]}),
            [f'{C}.env[0].valueFrom.secretKeyRef.name: Invalid value: "": {SUBDOMAIN}'],
        ),
        (
            pod(
                {"env": [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}]}
            ),
            [
                f'{C}.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor\'s values 1m '
                "and 1 are supported with the cpu resource"
            ],
        ),
        (
            pod({"envFrom": [{}]}),
            [f'{C}.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
        ),
        (
            pod(
                {"volumeMounts": [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]},
                volumes=[{"name": "v", "emptyDir": {}}],
            ),
            [
                f"{C}.volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to "
                "privileged containers"
            ],
        ),
        (
            pod(
                {"resizePolicy": [{"resourceName": "disk", "restartPolicy": "RestartContainer"}]}, restartPolicy="Never"
            ),
            [
                f'{C}.resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"',
                f"{C}.resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when `restartPolicy` is "
                "'Never'",
            ],
        ),
        (
            pod({"resources": {"limits": {"foo": "1"}}}),
            [
                f'{C}.resources.limits[foo]: Invalid value: "foo": must be a standard resource type or fully qualified',
                f'{C}.resources.limits[foo]: Invalid value: "foo": must be a standard resource for containers',
                f'{C}.resources.requests[foo]: Invalid value: "foo": must be a standard resource type or fully qualified',
                f'{C}.resources.requests[foo]: Invalid value: "foo": must be a standard resource for containers',
            ],
        ),
        (
            pod({"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}}),
            [
                f'{C}.securityContext: Invalid value: {{"Capabilities":null,"Privileged":true,"SELinuxOptions":null,'
                '"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,'
                '"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,'
                '"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true'
            ],
        ),
        (pod(imagePullSecrets=[{}]), []),
        (
            pod(
                topologySpreadConstraints=[
                    {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1},
                    {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"},
                ]
            ),
            [
                "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
                '"{a, ScheduleAnyway}"',
                "spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if "
                "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
            ],
        ),
        (
            pod(os={"name": ""}, restartPolicy="Sometimes", hostNetwork=True) | {"metadata": {"labels": {"a b": "c"}}},
            [
                f'metadata.labels: Invalid value: "a b": {LABEL_KEY}',
                'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
                "spec.os.name: Required value",
            ],
        ),
    ],
)
def test_words_about_pods(obj: Object, expected: list[str]) -> None:
    assert texts(PODS, obj) == expected


def job(template: Object | None = None, **spec: Any) -> Object:
    inner = {"restartPolicy": "Never", "containers": [{"name": "m", "image": "i"}], **(template or {})}
    labels = {
        "batch.kubernetes.io/controller-uid": "u",
        "batch.kubernetes.io/job-name": "x",
        "controller-uid": "u",
        "job-name": "x",
    }
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    return {"spec": {"selector": selector, "template": {"metadata": {"labels": labels}, "spec": inner}, **spec}}


NO_MATCH = "`selector` does not match template `labels`"


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            job({"restartPolicy": "Always"}),
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
        ),
        (
            job(selector={"matchLabels": {"b": "c", "a": "b"}}),
            [
                'spec.selector: Invalid value: {"matchLabels":{"a":"b","b":"c"}}: `selector` not auto-generated',
                'spec.template.metadata.labels: Invalid value: {"batch.kubernetes.io/controller-uid":"u",'
                '"batch.kubernetes.io/job-name":"x","controller-uid":"u","job-name":"x"}: ' + NO_MATCH,
            ],
        ),
        (
            job(backoffLimitPerIndex=1, podReplacementPolicy="Never"),
            [
                "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
                'spec.podReplacementPolicy: Unsupported value: "Never": supported values: "Failed", '
                '"TerminatingOrFailed"',
            ],
        ),
        (
            job(maxFailedIndexes=1, completionMode="Indexed", completions=1, parallelism=1),
            ["spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"],
        ),
        (
            job(podFailurePolicy={"rules": [{"action": "Fail"}, {"onExitCodes": {"values": [2, 1]}}]}),
            [
                'spec.podFailurePolicy.rules[0].action: Unsupported value: "Fail": supported values: "Count", '
                '"FailIndex", "FailJob", "Ignore"',
                "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is "
                "required",
                'spec.podFailurePolicy.rules[1].action: Required value: valid values: ["Count" "FailIndex" "FailJob" '
                '"Ignore"]',
                'spec.podFailurePolicy.rules[1].onExitCodes.operator: Required value: valid values: ["In" "NotIn"]',
                "spec.podFailurePolicy.rules[1].onExitCodes.values: Invalid value: [2,1]: must be ordered",
            ],
        ),
        (
            job(completionMode="Indexed", completions=3) | {"metadata": {"name": "x" * 62}},
            None,
        ),
    ],
)
def test_words_about_jobs(obj: Object, expected: list[str] | None) -> None:
    found = texts(JOBS, obj)
    if expected is None:
        why = f"will not able to create pod with invalid DNS label: {'x' * 62}-2"
        assert found[-1] == f'metadata.name: Invalid value: "{"x" * 62}": {why}'
    else:
        assert found == expected


def test_a_job_of_which_a_put_leaves_the_selector_out() -> None:
    old = made(JOBS, job(suspend=True))
    new = copy_object(old)
    del new["spec"]["selector"], new["spec"]["template"]["metadata"]
    assert [str(error) for error in validate_update(JOBS, new, old)] == [
        "spec.selector: Required value",
        f"spec.template.metadata.labels: Invalid value: null: {NO_MATCH}",
        "spec.selector: Required value",
        f"spec.template.metadata.labels: Invalid value: null: {NO_MATCH}",
        "spec.selector: Invalid value: null: field is immutable",
    ]


def test_the_selector_of_a_deployment_is_compared_after_the_template_was_checked() -> None:
    labels, spec = {"metadata": {"labels": {"a": "b"}}}, {"spec": {"containers": [{"name": "m", "image": "i"}]}}
    old = made(DEPLOYMENTS, {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": labels | spec}})
    new = copy_object(old)
    new["spec"]["selector"]["matchLabels"]["a"] = "c"
    assert [str(error) for error in validate_update(DEPLOYMENTS, new, old)] == [
        f'spec.template.metadata.labels: Invalid value: {{"a":"b"}}: {NO_MATCH}',
        'spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable',
    ]


def test_the_role_of_a_binding_is_shown_with_the_names_of_the_internal_type() -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}
    old = made(ROLEBINDINGS, {"roleRef": role})
    new = made(ROLEBINDINGS, {"roleRef": {**role, "name": "b"}})
    assert [str(error) for error in validate_update(ROLEBINDINGS, new, old)] == [
        'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"b"}: cannot change roleRef'
    ]


def service(**spec: Any) -> Object:
    return {"spec": {"ports": [{"port": 80}], **spec}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (service(type="LoadBalancer", ports=[{"port": 10250}]), []),
        (
            service(clusterIPs=["10.96.0.5", "10.96.0.6"], clusterIP="10.96.0.5"),
            [
                'spec.clusterIPs: Invalid value: ["10.96.0.5","10.96.0.6"]: may specify no more than one IP for each IP '
                "family"
            ],
        ),
        (
            service(clusterIP="10.96.0.5", ipFamilies=["IPv6", "IPv7"], ipFamilyPolicy="Both"),
            [
                'spec.ipFamilies[1]: Unsupported value: "IPv7": supported values: "IPv4", "IPv6"',
                'spec.ipFamilyPolicy: Unsupported value: "Both": supported values: "PreferDualStack", '
                '"RequireDualStack", "SingleStack"',
                'spec.clusterIPs[0]: Invalid value: "10.96.0.5": expected an IPv6 value as indicated by `ipFamilies[0]`',
            ],
        ),
        (
            service(externalIPs=["127.0.0.1", "x"]),
            [
                'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, '
                "::1/128)",
                'spec.externalIPs[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
            ],
        ),
        (
            service(
                loadBalancerSourceRanges=["x"], allocateLoadBalancerNodePorts=True, loadBalancerClass="a",
                healthCheckNodePort=31000, trafficDistribution="Far",
            ),
            [
                "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
                'spec.LoadBalancerSourceRanges[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or '
                "2001:db8::/64)",
                "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'",
                "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
                "spec.healthCheckNodePort: Invalid value: 31000: may only be set when `type` is 'LoadBalancer' and "
                "`externalTrafficPolicy` is 'Local'",
                'spec.trafficDistribution: Unsupported value: "Far": supported values: "PreferClose", "PreferSameZone", '
                '"PreferSameNode"',
            ],
        ),
    ],
)  # fmt: skip
def test_words_about_services(obj: Object, expected: list[str]) -> None:
    assert texts(SERVICES, obj) == expected


def test_words_about_endpoints_nodes_and_namespaces() -> None:
    assert texts(ENDPOINTS, {"subsets": [{}, {"addresses": [{"ip": "169.254.0.1"}], "ports": [{"port": 0}]}]}) == [
        "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
        'subsets[1].addresses[0].ip: Invalid value: "169.254.0.1": may not be in the link-local range (169.254.0.0/16, '
        "fe80::/10)",
        "subsets[1].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
    ]
    old = made(NODES, {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}})
    new = made(NODES, {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}})
    assert [str(error) for error in validate_update(NODES, new, old)] == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'
    ]
    living = made(NAMESPACES, {"status": {"phase": "Active"}})
    ending = copy_object(living)
    ending["status"]["phase"] = "Terminating"
    assert [str(error) for error in validate_update(NAMESPACES, ending, living, "status")] == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (
            {"conditions": [{"type": "a b", "status": "True"}]},
            f'status.conditions[0].Type: Invalid value: "a b": {LABEL_KEY}',
        ),
        (
            {"podIPs": [{"ip": "x"}]},
            'status.podIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ),
        (
            {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
            'status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more than one IP for each IP family',
        ),
        (
            {"hostIPs": [{"ip": "10.0.0.1"}]},
            'status.hostIPs[0].ip: Invalid value: "10.0.0.1": must be equal to `hostIP`',
        ),
        ({"observedGeneration": -1}, "status.observedGeneration: Invalid value: -1: must be a non-negative integer"),
        ({"nominatedNodeName": "A B"}, f'status.nominatedNodeName: Invalid value: "A B": {SUBDOMAIN}'),
        ({"qosClass": "Guaranteed"}, 'status.qosClass: Invalid value: "Guaranteed": field is immutable'),
    ],
)
def test_words_about_statuses_of_pods(status: Object, expected: str) -> None:
    old = made(PODS, pod()) | {"status": {"phase": "Pending", "qosClass": "BestEffort"}}
    new = copy_object(old)
    new["status"].update(status)
    assert [str(error) for error in validate_update(PODS, new, old, "status")] == [expected]
