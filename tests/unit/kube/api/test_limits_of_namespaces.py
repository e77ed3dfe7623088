"""ResourceQuotas and LimitRanges themselves: what may be stored; and what quotas count."""

from datetime import UTC, datetime

import pytest

from lastcall.kube.api.quota.counting import concerned, gives_back, handles, in_scope, unspecified, usage
from lastcall.kube.api.resource_lists import parse, pod_limits, pod_requests, written
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    EVENTS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    RESOURCEQUOTAS,
    SECRETS,
    SERVICES,
)
from lastcall.kube.api.validators.limits import (
    update_resource_quota,
    update_resource_quota_status,
    validate_limit_range,
    validate_resource_quota,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def container(name="a", requests=None, limits=None, **more):
    kinds = {"requests": requests, "limits": limits}
    return {"name": name, "resources": {kind: its for kind, its in kinds.items() if its}, **more}


def pod(*containers, init=(), status=None, meta=None, **spec):
    return {
        "metadata": {"name": "p", **(meta or {})},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
        "status": status or {},
    }


# -- what is stored --------------------------------------------------------------------------------------------------


def quota(hard=None, **spec):
    return {"metadata": {"name": "q"}, "spec": {"hard": hard or {}, **spec}}


def selected(scope, operator):
    return {"scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": operator}]}}


EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (quota({"pods": "3", "requests.cpu": "1.5", "count/deployments.apps": "1", "requests.a.com/gpu": "2"}), []),
        (quota({"gold.storageclass.storage.k8s.io/requests.storage": "5Gi", "services.nodeports": "0"}), []),
        (quota({"hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"}), []),
        (
            quota({"foo": "1"}),
            [
                'spec.hard[foo]: Invalid value: "foo": must be a standard resource type or fully qualified',
                'spec.hard[foo]: Invalid value: "foo": must be a standard resource for quota',
            ],
        ),
        (quota({"storage": "1"}), [
            'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota'
        ]),
        (quota({"pods": "-1"}), ['spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0']),
        (quota({"pods": "500m"}), ['spec.hard[pods]: Invalid value: "500m": must be an integer']),
        (quota({"example.com/dongle": "1500m"}), [
            'spec.hard[example.com/dongle]: Invalid value: "1500m": must be an integer'
        ]),
        (quota({"pods": "1"}, scopes=["Terminating", "NotBestEffort"]), []),
        (quota({"pods": "1"}, scopes=["Odd"]), ['spec.scopes: Invalid value: ["Odd"]: unsupported scope']),
        (
            quota({"services": "1"}, scopes=["Terminating"]),
            ['spec.scopes: Invalid value: ["Terminating"]: unsupported scope applied to resource'],
        ),
        (
            quota({"cpu": "1"}, scopes=["BestEffort"]),
            ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
        ),
        (
            quota({"pods": "1"}, scopes=["BestEffort", "NotBestEffort"]),
            ['spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes'],
        ),
        (
            quota({"pods": "1"}, **selected("PriorityClass", "In")),
            [
                "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when "
                "`operator` is 'In' or 'NotIn' for scope selector"
            ],
        ),
        (
            quota({"pods": "1"}, scopeSelector={
                "matchExpressions": [{"scopeName": "BestEffort", "operator": "In", "values": ["a"]}]
            }),
            [f'spec.scopeSelector.matchExpressions.operator: Invalid value: "In": {EXIST}'],
        ),
        (
            quota({"pods": "1"}, scopeSelector={
                "matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}]
            }),
            [
                'spec.scopeSelector.matchExpressions.values: Invalid value: ["a"]: must be no value when `operator` is '
                "'Exist' or 'DoesNotExist' for scope selector"
            ],
        ),
        (
            quota({"pods": "1"}, **selected("PriorityClass", "Is")),
            ['spec.scopeSelector.matchExpressions.operator: Invalid value: "Is": not a valid selector operator'],
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_quota(made, expected):
    assert [str(error) for error in validate_resource_quota(made)] == expected


def test_the_scopes_of_a_quota_stay_and_its_status_has_amounts():
    old, new = quota(scopes=["Terminating"]), quota(scopes=["NotTerminating"])
    assert [str(error) for error in update_resource_quota(new, old)] == [
        'spec.scopes: Invalid value: ["NotTerminating"]: field is immutable'
    ]
    assert update_resource_quota(old, old) == []
    wrong = {**old, "status": {"hard": {"pods": "1"}, "used": {"pods": "-2"}}}
    assert [str(error) for error in update_resource_quota_status(wrong, old)] == [
        'status.used[pods]: Invalid value: "-2": must be greater than or equal to 0'
    ]


def limit(type_="Container", **item):
    return {"metadata": {"name": "l"}, "spec": {"limits": [{"type": type_, **item}]}}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (limit(min={"cpu": "100m"}, max={"cpu": "1"}, default={"cpu": "500m"}, defaultRequest={"cpu": "200m"}), []),
        (limit("PersistentVolumeClaim", min={"storage": "1Gi"}), []),
        (
            limit("PersistentVolumeClaim", default={"storage": "1Gi"}),
            [
                "spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but "
                "neither was provided"
            ],
        ),
        (
            limit("Pod", default={"cpu": "1"}),
            ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
        ),
        (limit("Node", max={"cpu": "1"}), [
            'spec.limits[0].type: Invalid value: "Node": must be a standard limit type or fully qualified'
        ]),
        (limit(max={"foo": "1"}), [
            'spec.limits[0].max[foo]: Invalid value: "foo": must be a standard resource type or fully qualified',
            'spec.limits[0].max[foo]: Invalid value: "foo": must be a standard resource for containers',
        ]),
        (limit(min={"cpu": "2"}, max={"cpu": "1"}), [
            'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'
        ]),
        (limit(min={"cpu": "2"}, defaultRequest={"cpu": "1"}), [
            'spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request '
            "value 1"
        ]),
        (limit(max={"cpu": "1"}, defaultRequest={"cpu": "2"}), [
            'spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than max '
            "value 1"
        ]),
        (limit(default={"cpu": "1"}, defaultRequest={"cpu": "2"}), [
            'spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than default '
            "limit value 1"
        ]),
        (limit(min={"cpu": "2"}, default={"cpu": "1"}), [
            'spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1'
        ]),
        (limit(max={"cpu": "1"}, default={"cpu": "2"}), [
            'spec.limits[0].default[cpu]: Invalid value: "1": default value 2 is greater than max value 1'
        ]),
        (limit(maxLimitRequestRatio={"cpu": "500m"}), [
            'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'
        ]),
        (limit(min={"cpu": "1"}, max={"cpu": "2"}, maxLimitRequestRatio={"cpu": "3"}), [
            'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000'
        ]),
        (limit(default={"a.com/gpu": "2"}, defaultRequest={"a.com/gpu": "1"}), [
            'spec.limits[0].defaultRequest[a.com/gpu]: Invalid value: "1": default value 2 must equal to '
            "defaultRequest value 1 in a.com/gpu"
        ]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_limit_range(made, expected):
    assert [str(error) for error in validate_limit_range(made)] == expected


def test_a_type_of_limits_stands_once():
    made = {"spec": {"limits": [{"type": "Pod"}, {"type": "Pod"}]}}
    assert [str(error) for error in validate_limit_range(made)] == ['spec.limits[1].type: Duplicate value: "Pod"']


# -- what Pods ask for -----------------------------------------------------------------------------------------------

CPU = {"cpu": "100m"}


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        (pod(container(requests=CPU), container("b", requests={"cpu": "1", "memory": "1Mi"})), "cpu=1100m memory=1Mi"),
        (pod(container(requests=CPU), init=[container("i", requests={"cpu": "2"})]), "cpu=2"),
        (pod(container(requests=CPU), init=[container("i", requests=CPU, restartPolicy="Always")]), "cpu=200m"),
        (
            pod(
                container(requests=CPU),
                init=[
                    container("side", requests=CPU, restartPolicy="Always"),
                    container("first", requests={"cpu": "500m"}),
                ],
            ),
            "cpu=600m",
        ),
        (pod(container(requests=CPU), overhead={"cpu": "50m"}), "cpu=150m"),
        (pod(container(requests=CPU), resources={"requests": {"cpu": "3"}}), "cpu=3"),
        (pod(container()), ""),
    ],
)
def test_what_a_pod_asks_for_in_all(spec, requests):
    found = written(pod_requests(spec["spec"]))
    assert " ".join(f"{name}={amount}" for name, amount in found.items()) == requests


def test_overhead_counts_towards_a_limit_that_there_is():
    spec = pod(container(limits={"memory": "1Mi"}), overhead={"memory": "1Mi", "cpu": "1"})["spec"]
    assert written(pod_limits(spec)) == {"memory": "2Mi"}


# -- what quotas count -----------------------------------------------------------------------------------------------

DONGLES = {"a.com/dongle": "2"}


@pytest.mark.parametrize(
    ("resource", "obj", "expected"),
    [
        (PODS, pod(container()), {"count/pods": "1", "pods": "1"}),
        (
            PODS,
            pod(container(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Gi"})),
            {"count/pods": "1", "pods": "1", "cpu": "1", "requests.cpu": "1", "limits.cpu": "2",
             "limits.memory": "1Gi"},
        ),
        (PODS, pod(container(requests=DONGLES, limits=DONGLES)), {
            "count/pods": "1", "pods": "1", "requests.a.com/dongle": "2"
        }),
        (PODS, pod(container(requests=CPU), status={"phase": "Succeeded"}), {"count/pods": "1"}),
        (PODS, pod(container(requests=CPU), status={"phase": "Failed"}), {"count/pods": "1"}),
        (
            PODS,
            pod(container(), meta={"deletionTimestamp": "2029-12-31T23:59:29Z", "deletionGracePeriodSeconds": 30}),
            {"count/pods": "1"},
        ),
        (
            PODS,
            pod(container(), meta={"deletionTimestamp": "2029-12-31T23:59:31Z", "deletionGracePeriodSeconds": 30}),
            {"count/pods": "1", "pods": "1"},
        ),
        (SERVICES, {"spec": {"ports": [{}, {}]}}, {
            "count/services": "1", "services": "1", "services.nodeports": "0", "services.loadbalancers": "0"
        }),
        (SERVICES, {"spec": {"type": "NodePort", "ports": [{}, {}]}}, {
            "count/services": "1", "services": "1", "services.nodeports": "2", "services.loadbalancers": "0"
        }),
        (SERVICES, {"spec": {"type": "LoadBalancer", "ports": [{}, {}]}}, {
            "count/services": "1", "services": "1", "services.nodeports": "2", "services.loadbalancers": "1"
        }),
        (
            SERVICES,
            {
                "spec": {
                    "type": "LoadBalancer",
                    "allocateLoadBalancerNodePorts": False,
                    "ports": [{"nodePort": 30000}, {}],
                }
            },
            {"count/services": "1", "services": "1", "services.nodeports": "1", "services.loadbalancers": "1"},
        ),
        (
            PERSISTENTVOLUMECLAIMS,
            {"metadata": {}, "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1.5Gi"}}}},
            {
                "count/persistentvolumeclaims": "1",
                "persistentvolumeclaims": "1",
                "requests.storage": "1536Mi",
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                "gold.storageclass.storage.k8s.io/requests.storage": "1536Mi",
            },
        ),
        (
            PERSISTENTVOLUMECLAIMS,
            {
                "metadata": {},
                "spec": {"resources": {"requests": {"storage": "1500m"}}},
                "status": {"allocatedResources": {"storage": "2500m"}},
            },
            {"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "3"},
        ),
        (SECRETS, {}, {"count/secrets": "1", "secrets": "1"}),
        (DEPLOYMENTS, {}, {"count/deployments.apps": "1"}),
    ],
)  # fmt: skip
def test_what_an_object_uses(resource, obj, expected):
    assert usage(resource, obj, NOW) == parse(expected)


@pytest.mark.parametrize(
    ("resource", "names"),
    [
        (PODS, ["count/pods", "hugepages-2Mi", "limits.memory", "pods", "requests.a.com/x", "requests.cpu"]),
        (SERVICES, ["services", "services.nodeports"]),
        (PERSISTENTVOLUMECLAIMS, ["a.storageclass.storage.k8s.io/requests.storage", "requests.storage"]),
        (CONFIGMAPS, ["configmaps", "count/configmaps"]),
        (DEPLOYMENTS, ["count/deployments.apps"]),
        (RESOURCEQUOTAS, ["resourcequotas"]),
    ],
)
def test_which_limits_concern_a_kind(resource, names):
    everything = [
        "count/pods", "hugepages-2Mi", "limits.memory", "pods", "requests.a.com/x", "requests.cpu", "services",
        "services.nodeports", "a.storageclass.storage.k8s.io/requests.storage", "requests.storage", "configmaps",
        "count/configmaps", "count/deployments.apps", "count/deployments", "resourcequotas",
    ]  # fmt: skip
    assert concerned(resource, everything) == names


def expressions(scope, operator="Exists", *values):
    return {"scopeSelector": {"matchExpressions": [{"scopeName": scope, "operator": operator, "values": list(values)}]}}


AFFINE = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {"namespaceSelector": {}}}]
    }
}


@pytest.mark.parametrize(
    ("spec", "obj", "expected"),
    [
        ({"scopes": ["BestEffort"]}, pod(container()), True),
        ({"scopes": ["NotBestEffort"]}, pod(container()), False),
        ({"scopes": ["NotBestEffort"]}, pod(container(requests=CPU)), True),
        ({"scopes": ["Terminating"]}, pod(container(), activeDeadlineSeconds=0), True),
        ({"scopes": ["Terminating"]}, pod(container(), meta={"deletionTimestamp": "2030-01-01T00:00:00Z"}), False),
        ({"scopes": ["NotTerminating"]}, pod(container()), True),
        ({"scopes": ["NotTerminating", "NotBestEffort"]}, pod(container()), False),
        (expressions("PriorityClass"), pod(container()), False),
        (expressions("PriorityClass"), pod(container(), priorityClassName="a"), True),
        (expressions("PriorityClass", "DoesNotExist"), pod(container()), True),
        (expressions("PriorityClass", "In", "a", "b"), pod(container(), priorityClassName="b"), True),
        (expressions("PriorityClass", "In", "a"), pod(container()), False),
        (expressions("PriorityClass", "NotIn", "a"), pod(container()), True),
        (expressions("PriorityClass", "NotIn", "a"), pod(container(), priorityClassName="a"), False),
        (expressions("CrossNamespacePodAffinity"), pod(container()), False),
        (expressions("CrossNamespacePodAffinity"), pod(container(), affinity=AFFINE), True),
    ],
)
def test_which_pods_are_of_a_scope(spec, obj, expected):
    assert in_scope({"spec": spec}, PODS, obj) is expected


def test_only_pods_are_of_a_scope():
    assert in_scope({"spec": {"scopes": ["BestEffort"]}}, SECRETS, {}) is False
    assert in_scope({"spec": {}}, SECRETS, {}) is True


@pytest.mark.parametrize(
    ("obj", "names", "expected"),
    [
        (pod(container()), ["pods", "requests.ephemeral-storage"], ""),
        (pod(container()), ["requests.cpu"], "must specify requests.cpu for: a"),
        (
            pod(container("b", requests=CPU), container("a"), init=[container("c")]),
            ["memory", "cpu"],
            "must specify cpu for: a,c; memory for: a,b,c",
        ),
        (pod(container(), resources={"limits": {"cpu": "1"}}), ["requests.cpu"], ""),
        (pod(container(limits=CPU)), ["limits.cpu", "limits.memory"], "must specify limits.memory for: a"),
    ],
)
def test_what_a_quota_wants_to_be_said(obj, names, expected):
    assert unspecified(obj, names) == expected


def test_which_writes_admission_looks_at():
    plain, ends = pod(container()), pod(container(), activeDeadlineSeconds=5)
    assert handles(PODS, plain, None)
    assert not handles(EVENTS, {}, None)
    assert not handles(PODS, plain, plain)
    assert handles(PODS, ends, plain)
    assert handles(SERVICES, {}, {})
    assert not handles(DEPLOYMENTS, {}, {})


def test_what_an_update_gives_back():
    runs, ended = pod(container()), pod(container(), status={"phase": "Succeeded"})
    assert gives_back(PODS, runs, ended, NOW)
    assert not gives_back(PODS, runs, runs, NOW)
    assert not gives_back(PODS, ended, ended, NOW)
    assert gives_back(SERVICES, {"spec": {"type": "NodePort"}}, {"spec": {"type": "ClusterIP"}}, NOW)
    assert not gives_back(SERVICES, {"spec": {"type": "ExternalName"}}, {"spec": {"type": "ClusterIP"}}, NOW)
    assert not gives_back(SECRETS, {}, {"data": {}}, NOW)
