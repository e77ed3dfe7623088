"""Refusals as a real Kubernetes 1.36.2 words them, found by the differential tester."""

import copy

import pytest

from lastcall.kube.api import resources as kinds
from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.field import message_of
from lastcall.kube.api.protobuf.internal import as_internal
from lastcall.kube.api.schema.unstructured import convert_numbers, integer
from lastcall.kube.api.table.rows import columns_for
from lastcall.kube.api.validation import validate_create, validate_update


def workload(selector, **spec):
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"metadata": {"name": "x", "namespace": "n"}, "spec": {"selector": selector, "template": template, **spec}}


def refused(resource, obj):
    obj = copy.deepcopy(obj)
    set_defaults(resource, obj)
    return message_of(validate_create(resource, obj))


def refused_update(resource, new, old):
    new, old = copy.deepcopy(new), copy.deepcopy(old)
    for each in (new, old):
        set_defaults(resource, each)
        each["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    return message_of(validate_update(resource, new, old))


BAD = {"matchExpressions": [{"key": "a", "operator": "Bad"}]}
NO_OPERATOR = 'spec.selector.matchExpressions[0].operator: Invalid value: "Bad": not a valid selector operator'
SHOWN = 'spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Bad"}]}'
NO_MATCH = 'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`'


@pytest.mark.parametrize(
    ("resource", "selector", "message"),
    [
        (kinds.DEPLOYMENTS, BAD, f"[{NO_OPERATOR}, {SHOWN}: invalid label selector]"),
        (kinds.REPLICASETS, BAD, f"[{NO_OPERATOR}, {SHOWN}: invalid label selector]"),
        (kinds.STATEFULSETS, BAD, f"[{NO_OPERATOR}, {SHOWN}]"),
        (kinds.DAEMONSETS, BAD, NO_OPERATOR),
        (kinds.DEPLOYMENTS, {}, "spec.selector: Invalid value: {}: empty selector is invalid for deployment"),
        (kinds.DEPLOYMENTS, {"matchLabels": {"app": "b"}}, NO_MATCH),
        (kinds.STATEFULSETS, None, f"[spec.selector: Required value, {NO_MATCH}]"),
        (kinds.DAEMONSETS, None, NO_MATCH),
    ],
)
def test_a_template_is_not_compared_with_a_selector_that_cannot_be_read(resource, selector, message):
    assert refused(resource, workload(selector)) == message


def test_a_stateful_set_and_its_service_have_names_without_dots():
    obj = workload({"matchLabels": {"app": "a"}}, serviceName="a.b")
    obj["metadata"]["name"] = "x.y"
    assert refused(kinds.STATEFULSETS, obj) == (
        '[metadata.name: Invalid value: "x.y": must not contain dots, '
        'spec.serviceName: Invalid value: "a.b": must not contain dots]'
    )


def test_a_daemon_set_is_told_of_its_selector_first():
    old, new = workload({"matchLabels": {"app": "a"}}), workload({"matchLabels": {"app": "b"}})
    fixed = 'spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable'
    assert refused_update(kinds.DAEMONSETS, new, old) == f"[{fixed}, {NO_MATCH}]"
    assert refused_update(kinds.DEPLOYMENTS, new, old) == f"[{NO_MATCH}, {fixed}]"


def test_messages_show_the_fields_of_the_internal_types():
    strategy = {"type": "X", "rollingUpdate": {"partition": 1}}
    obj = workload({"matchLabels": {"app": "a"}}, updateStrategy=strategy)
    assert refused(kinds.STATEFULSETS, obj) == (
        'spec.updateStrategy: Invalid value: {"Type":"X","RollingUpdate":{"Partition":1,"MaxUnavailable":null}}: '
        "must be 'RollingUpdate' or 'OnDelete'"
    )


def test_an_internal_pod_spec_has_its_order_and_the_host_s_namespaces_in_its_security_context():
    shown = as_internal("core.v1.PodTemplateSpec", {
        "metadata": {"labels": {"b": "c", "a": "b"}},
        "spec": {"hostNetwork": True, "volumes": [{"name": "v", "hostPath": {"path": "/x"}}], "containers": []},
    })  # fmt: skip
    assert list(shown) == ["labels", "Spec"] and list(shown["labels"]) == ["a", "b"]
    spec = shown["Spec"]
    assert list(spec)[:4] == ["Volumes", "InitContainers", "Containers", "EphemeralContainers"]
    assert spec["SecurityContext"]["HostNetwork"] is True and spec["SecurityContext"]["RunAsUser"] is None
    assert spec["Hostname"] == "" and spec["Priority"] is None
    volume = spec["Volumes"][0]
    assert list(volume)[:3] == ["Name", "HostPath", "EmptyDir"]
    assert volume["HostPath"] == {"Path": "/x", "Type": None}


def autoscaler(**spec):
    target = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}
    return {"metadata": {"name": "h", "namespace": "n"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3} | spec}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"maxReplicas": 0}, "[spec.maxReplicas: Required value: must be set and greater than 0, "
         "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`]"),
        ({"scaleTargetRef": {"kind": "A", "name": "a/b", "apiVersion": "v1"}},
         "[spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/', "
         'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group]'),
        ({"metrics": [{"type": "Resource"}]},
         "spec.metrics[0].resource: Required value: must populate information for the given metric source"),
        ({"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {
            "type": "Utilization", "averageUtilization": 5, "averageValue": "1"}}}]},
         "spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a target "
         "utilization"),
        ({"behavior": {"scaleUp": {"selectPolicy": "X"}}},
         'spec.behavior.scaleUp.selectPolicy: Unsupported value: "X": supported values: "Disabled", "Max", "Min"'),
        ({"behavior": {"scaleUp": {}}}, ""),
    ],
)  # fmt: skip
def test_an_autoscaler_is_asked_for_its_target_metrics_and_behavior(spec, message):
    assert refused(kinds.HORIZONTALPODAUTOSCALERS, autoscaler(**spec)) == message


def test_behavior_gets_what_it_leaves_out():
    obj = autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 4}})
    set_defaults(kinds.HORIZONTALPODAUTOSCALERS, obj)
    everything = {"type": "Percent", "value": 100, "periodSeconds": 15}
    assert obj["spec"]["behavior"]["scaleDown"] == {
        "stabilizationWindowSeconds": 4, "selectPolicy": "Max", "policies": [everything],
    }  # fmt: skip
    assert obj["spec"]["behavior"]["scaleUp"]["policies"][1] == everything


def test_a_storage_class_is_checked_before_its_change_and_says_what_is_fixed():
    old = {"metadata": {"name": "s"}, "provisioner": "p.e", "parameters": {"a": "b"}}
    new = {**old, "parameters": None, "reclaimPolicy": "Bad"}
    assert refused_update(kinds.STORAGECLASSES, new, old) == (
        '[reclaimPolicy: Unsupported value: "Bad": supported values: "Delete", "Retain", '
        "parameters: Invalid value: null: field is immutable, "
        'reclaimPolicy: Invalid value: "Bad": field is immutable]'
    )
    twice = {**old, "allowedTopologies": [{"matchLabelExpressions": [{"key": "k", "values": ["v"]}]}] * 2}
    assert refused(kinds.STORAGECLASSES, twice) == ('allowedTopologies[1].matchLabelExpressions: Duplicate value: ""')


@pytest.mark.parametrize(
    ("cidrs", "message"),
    [
        (["10.201.0.0/24", "fd00::/64"], ""),
        ([], "spec.cidrs: Invalid value: []: field is immutable"),
        (["10.202.0.0/24", "fd00::/64"], 'spec.cidrs[0]: Invalid value: "10.202.0.0/24": field is immutable'),
        (["10.202.0.0/24"], 'spec.cidrs[0]: Invalid value: "10.202.0.0/24": field is immutable'),
    ],
)
def test_a_service_cidr_may_get_one_of_the_other_family(cidrs, message):
    old = {"metadata": {"name": "c"}, "spec": {"cidrs": ["10.201.0.0/24"]}}
    new = {"metadata": {"name": "c"}, "spec": {"cidrs": cidrs}}
    assert refused_update(kinds.SERVICECIDRS, new, old) == message


def test_the_name_of_whatever_object_may_be_any_that_a_path_can_have_and_then_what_its_kind_says():
    old = {"metadata": {"name": "s"}, "provisioner": "p.e"}
    new = {**old, "metadata": {"name": "s", "generateName": "a/b"}}
    told = refused_update(kinds.STORAGECLASSES, new, old)
    assert told.startswith(
        "[metadata.generateName: Invalid value: \"a/b\": may not contain '/', metadata.generateName:"
    )


def test_an_event_of_the_new_group_changes_its_series_only():
    old = {
        "metadata": {"name": "e", "namespace": "n"}, "involvedObject": {"kind": "Pod", "name": "a", "namespace": "n"},
        "reason": "R", "message": "m", "type": "Normal",
    }  # fmt: skip
    new = {**old, "involvedObject": {**old["involvedObject"], "name": "z"}, "type": "X"}
    assert refused_update(kinds.EVENTS, new, old) == ""
    assert refused_update(kinds.EVENTS_V1, new, old) == (
        '[involvedObject: Invalid value: {"Kind":"Pod","Namespace":"n","Name":"z","UID":"","APIVersion":"",'
        '"ResourceVersion":"","FieldPath":""}: field is immutable, type: Invalid value: "X": field is immutable]'
    )
    assert "series.count" in refused_update(kinds.EVENTS_V1, {**old, "series": {"count": 1}}, old)


@pytest.mark.parametrize(
    ("value", "bits", "expected"),
    [
        (5, 32, 5), (2**31, 32, -(2**31)), (2**63 - 1, 32, -1), (2**63, 32, 0), (2**63, 64, -(2**63)), (2.0, 32, 2),
        (1.5, 32, 1.5), ("x", 32, "x"), (True, 32, True),
    ],
)  # fmt: skip
def test_without_json_in_between_an_integer_loses_its_high_bits(value, bits, expected):
    assert integer(value, bits) == expected and type(integer(value, bits)) is type(expected)


def test_only_integers_of_the_schema_are_converted():
    obj = {
        "spec": {"replicas": 2.0, "template": {"spec": {"containers": [{"ports": [{"containerPort": 2**32 + 80}]}]}}}
    }
    assert convert_numbers(kinds.DEPLOYMENTS, obj)
    assert obj["spec"]["replicas"] == 2
    assert obj["spec"]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80}]
    assert not convert_numbers(kinds.DEPLOYMENTS, obj)


def test_columns_say_which_of_them_are_no_text():
    types = {each["name"]: each["type"] for each in columns_for(kinds.DAEMONSETS, 36)}
    assert types["Desired"] == types["Available"] == "integer" and types["Name"] == "string"
    assert columns_for(kinds.CUSTOMRESOURCEDEFINITIONS, 36)[1]["type"] == "date"


def status_refused(resource, status, before=None, **obj):
    made = {"metadata": {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "1"}, **obj}
    return message_of(validate_update(resource, {**made, "status": status}, {**made, "status": before or {}}, "status"))


@pytest.mark.parametrize(
    ("resource", "status", "message"),
    [
        (kinds.DEPLOYMENTS, {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}, ""),
        (kinds.DEPLOYMENTS, {"replicas": 1, "readyReplicas": 2},
         "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"),
        (kinds.REPLICASETS, {"replicas": 3, "readyReplicas": 1, "availableReplicas": 2},
         "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"),
        (kinds.STATEFULSETS, {"replicas": 3, "readyReplicas": 1, "availableReplicas": 2},
         "status.availableReplicas: Invalid value: 2: cannot be greater than status.readyReplicas"),
        (kinds.DAEMONSETS, {"numberReady": -1},
         "status.numberReady: Invalid value: -1: must be greater than or equal to 0"),
        (kinds.REPLICATIONCONTROLLERS, {"replicas": 0, "fullyLabeledReplicas": 1},
         "status.fullyLabeledReplicas: Invalid value: 1: cannot be greater than status.replicas"),
    ],
)  # fmt: skip
def test_counts_of_a_status_fit_each_other(resource, status, message):
    assert status_refused(resource, status) == message


def test_a_count_of_collisions_never_sinks():
    sinks = "status.collisionCount: Invalid value: 1: cannot be decremented"
    assert status_refused(kinds.DEPLOYMENTS, {"collisionCount": 1}, {"collisionCount": 2}) == sinks
    assert status_refused(kinds.DEPLOYMENTS, {"collisionCount": 1}, {}) == ""


def test_addresses_of_a_load_balancer_are_addresses_and_of_a_load_balancer():
    status = {
        "loadBalancer": {"ingress": [{"ip": "01.2.3.4", "ipMode": "VIP"}, {"hostname": "1.2.3.4"}, {"ipMode": "VIP"}]}
    }
    assert status_refused(kinds.SERVICES, status, spec={"type": "ClusterIP"}) == (
        "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"
    )
    assert status_refused(kinds.SERVICES, status, spec={"type": "LoadBalancer"}) == (
        '[status.loadBalancer.ingress[0].ip: Invalid value: "01.2.3.4": must not have leading 0s, '
        'status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address, '
        "status.loadBalancer.ingress[2].ipMode: Forbidden: may not be specified when `ip` is not set]"
    )
    without_mode = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}
    assert status_refused(kinds.SERVICES, without_mode, spec={"type": "LoadBalancer"}) == (
        "status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set"
    )
    assert status_refused(kinds.INGRESSES, without_mode) == ""


BACKEND = {"service": {"name": "s", "port": {"number": 80}}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"defaultBackend": BACKEND}, ""),
        ({"defaultBackend": {}}, 'spec.defaultBackend: Invalid value: "": resource or service backend is required'),
        ({"defaultBackend": {"service": {"name": "s", "port": {"name": "a", "number": 1}}}},
         'spec.defaultBackend: Invalid value: "": cannot set both port name & port number'),
        ({"rules": [{"http": {}}]}, "spec.rules[0].http.paths: Required value"),
        ({"rules": [{"host": "1.2.3.4"}]},
         'spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'),
        ({"rules": [{"host": "*.a.example.com"}]}, ""),
        ({"defaultBackend": {"resource": {"kind": "a/b", "name": ""}}},
         "[spec.defaultBackend.resource.kind: Invalid value: \"a/b\": may not contain '/', "
         "spec.defaultBackend.resource.name: Required value]"),
    ],
)  # fmt: skip
def test_an_ingress_names_hosts_and_backends(spec, message):
    assert refused(kinds.INGRESSES, {"metadata": {"name": "i", "namespace": "n"}, "spec": spec}) == message


def test_an_ingress_class_and_hosts_with_certificates_have_names():
    spec = {"defaultBackend": BACKEND, "ingressClassName": "A", "tls": [{"hosts": ["*.b", "a b"], "secretName": "X"}]}
    told = refused(kinds.INGRESSES, {"metadata": {"name": "i", "namespace": "n"}, "spec": spec})
    wrong = ("spec.ingressClassName", "spec.tls[0].hosts[1]", "spec.tls[0].secretName")
    assert all(f"{path}: Invalid value" in told for path in wrong) and "hosts[0]" not in told


def test_a_node_names_ranges_and_keeps_what_it_was_called_outside():
    old = {"metadata": {"name": "n"}, "spec": {"podCIDRs": ["10.1.0.0/24"]}}
    once = "may specify no more than one CIDR for each IP family"
    fixed = 'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'
    twice = {"metadata": {"name": "n"}, "spec": {"podCIDRs": ["10.1.0.0/24", "10.2.0.0/24"]}}
    shown = 'spec.podCIDRs: Invalid value: ["10.1.0.0/24","10.2.0.0/24"]'
    assert refused_update(kinds.NODES, twice, old) == f"[{shown}: {once}, {fixed}]"
    assert "spec.podCIDRs[0]: Invalid value" in refused(
        kinds.NODES, {"metadata": {"name": "n"}, "spec": {"podCIDR": "*"}}
    )
    outside = {"metadata": {"name": "n"}, "spec": {"podCIDRs": ["10.1.0.0/24"], "externalID": "x"}}
    assert refused_update(kinds.NODES, outside, old) == "spec.externalID: Forbidden: may not be updated"


def test_an_address_has_a_parent_and_keeps_it():
    old = {
        "metadata": {"name": "10.0.0.1"},
        "spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "a"}},
    }
    assert refused_update(kinds.IPADDRESSES, {**old, "spec": {}}, old) == (
        "[spec.parentRef: Required value, spec.parentRef: Invalid value: null: field is immutable]"
    )


def test_a_finalizer_that_is_not_one_s_own_is_a_cause_of_each_check_of_the_kind():
    old = {"metadata": {"name": "c", "namespace": "n"}, "data": {}, "revision": 1}
    new = {**old, "metadata": {**old["metadata"], "finalizers": ["a_b"]}}
    for each in (old, new):
        each["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    errors = validate_update(kinds.CONTROLLERREVISIONS, new, old)
    assert [error.field for error in errors] == ["metadata.finalizers[0]"] * 2


def test_where_a_node_s_range_and_its_ranges_do_not_agree_the_one_counts():
    old = {"metadata": {"name": "n"}, "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}}
    assert refused_update(kinds.NODES, {**old, "spec": {**old["spec"], "podCIDRs": ["x", "y"]}}, old) == ""


def test_a_quota_s_unknown_scopes_are_told_before_their_change():
    old = {"metadata": {"name": "q", "namespace": "n"}, "spec": {}}
    shown = 'spec.scopes: Invalid value: ["OnDelete"]: '
    assert refused_update(kinds.RESOURCEQUOTAS, {**old, "spec": {"scopes": ["OnDelete"]}}, old) == (
        f"[{shown}unsupported scope, {shown}field is immutable]"
    )


def test_application_protocols_of_endpoints_and_slices_are_qualified_names():
    meta = {"name": "e", "namespace": "n"}
    subset = {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 0, "appProtocol": "\n"}]}
    told = refused(kinds.ENDPOINTS, {"metadata": meta, "subsets": [subset]})
    assert told.startswith("[subsets[0].ports[0].port: ")
    protocol = told.partition("subsets[0].ports[0].appProtocol: ")[2]
    assert protocol.startswith('Invalid value: "\\n": name part must consist of')
    one = {"metadata": meta, "addressType": "IPv4", "endpoints": [], "ports": [{"name": "", "appProtocol": "/"}]}
    assert 'ports[0].appProtocol: Invalid value: "/": prefix part must be non-empty' in refused(
        kinds.ENDPOINTSLICES, one
    )
