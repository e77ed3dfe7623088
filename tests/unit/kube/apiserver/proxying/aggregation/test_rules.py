"""Rules of aggregation; the texts are those that a real 1.36.2 answered."""

import pytest

from lastcall.kube.api.apiservices.local import Priority, in_order, local_service, priority_of, version_key
from lastcall.kube.api.apiservices.routes import Routes, Service, remote_of
from lastcall.kube.api.resources import APISERVICES
from lastcall.kube.api.validation import validate_create
from lastcall.kube.api.validators.apiservices import validate_api_service_status
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.proxying.aggregation.availability import PASSED, endpoints_of, look, with_verdict
from lastcall.kube.apiserver.proxying.aggregation.entries import aggregated_entries, entries_of_list
from lastcall.kube.apiserver.proxying.aggregation.front_proxy import user_headers

SERVICE = Service("ns", "api", 443)
REMOTE = {"service": {"namespace": "ns", "name": "api", "port": 443}}


def api_service(name: str = "v1.a.example.com", **spec: object) -> dict:
    version, _, group = name.partition(".")
    whole = {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 10, **spec}
    return {"metadata": {"name": name}, "spec": whole}


@pytest.mark.parametrize(
    ("changed", "problems"),
    [
        ({}, []),
        (REMOTE, []),
        (
            {"service": {"namespace": "", "name": "", "port": 443}, "group": "", "version": ""},
            [
                'metadata.name: Invalid value: "v1.a.example.com": must be `spec.version+"."+spec.group`: "."',
                "spec.group: Required value: only v1 may have an empty group and it better be legacy kube",
                'spec.version: Invalid value: "": a DNS-1035 label must consist of lower case alphanumeric characters '
                "or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  "
                "or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
                "spec.service.namespace: Required value",
                "spec.service.name: Required value",
            ],
        ),
        (
            {"groupPriorityMinimum": 0, "versionPriority": 1001},
            [
                "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
                "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
            ],
        ),
        (
            {
                "service": {"namespace": "a", "name": "b", "port": 70000},
                "insecureSkipTLSVerify": True,
                "caBundle": "YQ==",
            },
            [
                "spec.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
                "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
            ],
        ),
        (
            {"insecureSkipTLSVerify": True, "caBundle": "aGVsbG8="},
            [
                'spec.caBundle: Invalid value: "5 bytes": local APIServices may not have a caBundle',
                "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify",
            ],
        ),
    ],
)
def test_what_is_wrong_with_an_api_service_is_said_as_the_real_server_says_it(
    changed: dict, problems: list[str]
) -> None:
    assert [str(each) for each in validate_create(APISERVICES, api_service(**changed))] == problems


def test_a_condition_has_one_of_three_statuses() -> None:
    assert validate_api_service_status({"status": {"conditions": [{"status": "True"}]}}, {}) == []
    assert len(validate_api_service_status({"status": {"conditions": [{"status": "Maybe"}, {}]}}, {})) == 2


def of_type(kind: str, port: int = 443, name: str = "") -> dict:
    return {"spec": {"type": kind, "ports": [{"port": port, "name": name}]}}


def slices(ready: bool | None = True, name: str = "") -> list[dict]:
    return [
        {
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {} if ready is None else {"ready": ready}}],
            "ports": [{"name": name, "port": 6443}],
        }
    ]


@pytest.mark.parametrize(
    ("found", "of", "reason", "message"),
    [
        (None, [], "ServiceNotFound", 'service/api in "ns" is not present'),
        (of_type("ClusterIP", 80), [], "ServicePortError", 'service/api in "ns" is not listening on port 443'),
        (of_type("ClusterIP"), [], "EndpointsNotFound", 'cannot find endpointslices for service/api in "ns"'),
        (
            of_type("ClusterIP", name="https"),
            slices(),
            "MissingEndpoints",
            'endpointslices for service/api in "ns" have no addresses with port name "https"',
        ),
        (
            of_type("ClusterIP"),
            slices(ready=False),
            "MissingEndpoints",
            'endpointslices for service/api in "ns" have no addresses with port name ""',
        ),
        (of_type("ClusterIP"), slices(ready=None), "Passed", "all checks passed"),
        (of_type("ExternalName"), [], "Passed", "all checks passed"),
    ],
)
def test_a_service_without_endpoints_is_not_asked(
    found: dict | None, of: list[dict], reason: str, message: str
) -> None:
    verdict = look(SERVICE, found, of)
    assert (verdict.reason, verdict.message, verdict.available) == (reason, message, reason == "Passed")


def test_a_verdict_is_written_once_and_its_time_is_that_of_the_last_change() -> None:
    first = with_verdict({"status": {}}, PASSED, "t1")
    assert first is not None
    assert with_verdict({"status": first}, PASSED, "t2") is None
    gone = look(SERVICE, None, [])
    second = with_verdict({"status": first}, gone, "t3")
    assert second is not None
    assert [each["lastTransitionTime"] for each in second["conditions"]] == ["t3"]
    other = with_verdict({"status": second}, gone._replace(message="else"), "t4")
    assert other is not None
    assert other["conditions"][0]["lastTransitionTime"] == "t3"


def test_only_ready_endpoints_of_the_named_port_are_connected_to() -> None:
    assert endpoints_of([*slices(), *slices(ready=False), *slices(name="other")], "") == [("10.0.0.1", 6443)]


def test_groups_and_versions_are_listed_by_priority_then_name_and_the_registration_s_own_group_first() -> None:
    own = [
        (group, "v1") for group in ("", "policy", "apps", "b.example.com", "apiregistration.k8s.io", "discovery.k8s.io")
    ]
    own += [("autoscaling", "v1"), ("autoscaling", "v2"), ("b.example.com", "v1beta1"), ("b.example.com", "v2alpha1")]
    listed = [(*each, priority_of(*each)) for each in own] + [("a.example.com", "v1", Priority(2000, 10))]
    ordered = in_order(listed)
    assert list(ordered) == [
        "apiregistration.k8s.io", "", "apps", "autoscaling", "policy", "discovery.k8s.io", "a.example.com",
        "b.example.com",
    ]  # fmt: skip
    assert ordered["autoscaling"] == ["v2", "v1"]
    assert ordered["b.example.com"] == ["v1", "v1beta1", "v2alpha1"]


def test_versions_are_ordered_as_kubernetes_knows_them() -> None:
    texts = [
        "foo10",
        "v1alpha1",
        "v10beta3",
        "v3beta1",
        "v12alpha1",
        "v10",
        "v2",
        "foo1",
        "v11beta2",
        "v11alpha2",
        "v1",
    ]
    assert sorted(texts, key=version_key) == [
        "v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "v1alpha1", "foo1", "foo10",
    ]  # fmt: skip


def test_the_local_ones_have_the_real_server_s_numbers() -> None:
    spec = local_service("autoscaling", "v2", "onstart")["spec"]
    assert spec == {"group": "autoscaling", "version": "v2", "groupPriorityMinimum": 17500, "versionPriority": 30}
    core = local_service("", "v1", "onstart")
    assert (core["metadata"]["name"], core["spec"]) == (
        "v1.", {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}
    )  # fmt: skip
    assert local_service("b.example.com", "v1", "true")["spec"]["groupPriorityMinimum"] == 1000


def test_a_request_goes_by_its_path_to_whom_the_last_write_said() -> None:
    told: list[int] = []
    routes = Routes(lambda: told.append(1))
    undo = routes.put(api_service(**REMOTE))
    for path, known in (
        ("/apis/a.example.com/v1", True),
        ("/apis/a.example.com/v1/namespaces/x/foos", True),
        ("/apis/a.example.com", False),
        ("/apis/a.example.com/v2", False),
        ("/api/v1/pods", False),
        ("/", False),
    ):
        assert (routes.of_path(path) is not None) is known, path
    undo()
    assert routes.remote == {}
    routes.put(api_service(**REMOTE))
    routes.put(api_service())
    assert routes.remote == {}
    assert len(told) == 4
    routes.remove(api_service())
    assert len(told) == 4


def test_what_a_server_said_stays_while_it_is_the_same_server() -> None:
    routes = Routes()
    routes.put(api_service(**REMOTE))
    key, entry = ("a.example.com", "v1"), {"resource": "foos"}
    routes.discovered(key, SERVICE, (entry,))
    routes.put({**api_service(**REMOTE), "status": {"conditions": [{"type": "Available", "status": "True"}]}})
    assert (routes.remote[key].resources, routes.remote[key].available) == ((entry,), True)
    routes.discovered(key, SERVICE, None)
    assert (routes.remote[key].resources, routes.remote[key].current) == ((entry,), False)
    routes.discovered(key, Service("ns", "another", 443), ())
    assert routes.remote[key].resources == (entry,)
    other = api_service(service={"namespace": "ns", "name": "other", "port": 443})
    routes.put(other)
    assert routes.remote[key] == remote_of(other)


def test_a_list_of_resources_becomes_entries_of_aggregated_discovery() -> None:
    listed = [
        {
            "name": "foos",
            "singularName": "foo",
            "namespaced": True,
            "kind": "Foo",
            "verbs": ["get"],
            "shortNames": ["f"],
        },
        {"name": "foos/status", "singularName": "", "namespaced": True, "kind": "Foo", "verbs": ["update"]},
    ]
    kind = {"group": "", "version": "", "kind": "Foo"}
    assert entries_of_list({"kind": "APIResourceList", "resources": listed}) == (
        {
            "resource": "foos",
            "responseKind": kind,
            "scope": "Namespaced",
            "singularResource": "foo",
            "verbs": ["get"],
            "shortNames": ["f"],
            "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["update"]}],
        },
    )
    for hostile in (
        None,
        [],
        {},
        {"kind": "APIResourceList", "resources": 3},
        {"kind": "APIResourceList", "resources": [1]},
    ):
        assert not entries_of_list(hostile)
        assert not aggregated_entries(hostile, "g", "v1")


def test_a_user_is_told_in_headers_that_the_front_proxy_s_certificate_vouches_for() -> None:
    user = UserInfo("jane", ("a", "b"), "u1", {"example.com/Scope": ["x", "y"]})
    assert list(user_headers(user)) == [
        ("X-Remote-User", "jane"),
        ("X-Remote-Uid", "u1"),
        ("X-Remote-Group", "a"),
        ("X-Remote-Group", "b"),
        ("X-Remote-Extra-example.com%2Fscope", "x"),
        ("X-Remote-Extra-example.com%2Fscope", "y"),
    ]
