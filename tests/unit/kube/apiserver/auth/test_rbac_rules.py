"""What rules allow, whom bindings mean, and which rules cover which, as tables."""

import pytest

from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.auth.rbac import (
    FULL_AUTHORITY,
    compact,
    compact_text,
    described,
    missing_text,
    rule_allows,
    subject_of,
    uncovered,
)
from lastcall.kube.apiserver.requestinfo import RequestInfo, exact_name

BOB = UserInfo("bob", ("devs", "system:authenticated"))
ROBOT = UserInfo("system:serviceaccount:ns:robot", ("system:serviceaccounts", "system:serviceaccounts:ns"))


def rule(verbs: str, resources: str = "", groups: str = '""', names: str = "", urls: str = "") -> dict:
    parts = {"verbs": verbs, "resources": resources, "apiGroups": groups if resources else "", "resourceNames": names}
    made = {key: [each.strip('"') for each in text.split()] for key, text in parts.items() if text}
    return {**made, "nonResourceURLs": urls.split()} if urls else made


def asked(text: str) -> RequestInfo:
    """`get pods/log.group name`, or `get /path`."""
    verb, what, *name = text.split()
    if what.startswith("/"):
        return RequestInfo(False, what, verb)
    what, _, group = what.partition(".")
    resource, _, subresource = what.partition("/")
    return RequestInfo(True, "", verb, group, "v1", "ns", resource, name[0] if name else "", subresource)


@pytest.mark.parametrize(
    ("given", "request_text", "allowed"),
    [
        (rule("get list", "pods"), "get pods p", True),
        (rule("get list", "pods"), "watch pods", False),
        (rule("get list", "pods"), "get secrets s", False),
        (rule("get", "pods"), "get pods/log p", False),
        (rule("get", "pods/log"), "get pods/log p", True),
        (rule("get", "pods/log"), "get pods p", False),
        (rule("get", "*"), "get pods/log p", True),
        (rule("get", "*/log"), "get pods/log p", True),
        (rule("get", "*/log"), "get pods/status p", False),
        (rule("get", "*/log"), "get pods p", False),
        (rule("get", "pods/*"), "get pods/log p", False),  # no pattern of Kubernetes
        (rule("*", "pods"), "deletecollection pods", True),
        (rule("get", "pods"), "get pods.metrics.k8s.io p", False),
        (rule("get", "deployments", "apps"), "get deployments.apps d", True),
        (rule("get", "deployments", "*"), "get deployments.apps d", True),
        (rule("get", "configmaps", names="a b"), "get configmaps a", True),
        (rule("get", "configmaps", names="a b"), "get configmaps c", False),
        (rule("list create", "configmaps", names="a"), "list configmaps", False),
        (rule("list", "configmaps", names="a"), "list configmaps a", True),
        (rule("get", urls="/healthz"), "get /healthz", True),
        (rule("get", urls="/healthz"), "get /healthz/etcd", False),
        (rule("get", urls="/healthz/*"), "get /healthz/etcd", True),
        (rule("get", urls="/healthz/*"), "get /healthz", False),
        (rule("get", urls="/health*"), "get /healthz", True),
        (rule("get", urls="*"), "get /metrics", True),
        (rule("get", urls="*"), "post /metrics", False),
        (rule("get", urls="*"), "get pods p", False),
        (rule("*", "*", "*"), "get /metrics", False),
    ],
)
def test_what_a_rule_allows(given: dict, request_text: str, allowed: bool) -> None:
    assert rule_allows(given, asked(request_text)) is allowed


@pytest.mark.parametrize(
    ("subject", "user", "means"),
    [
        ({"kind": "User", "name": "bob"}, BOB, True),
        ({"kind": "User", "name": "devs"}, BOB, False),
        ({"kind": "Group", "name": "devs"}, BOB, True),
        ({"kind": "Group", "name": "bob"}, BOB, False),
        ({"kind": "Group", "name": "system:serviceaccounts:ns"}, ROBOT, True),
        ({"kind": "ServiceAccount", "name": "robot"}, ROBOT, True),
        ({"kind": "ServiceAccount", "name": "robot", "namespace": "ns"}, ROBOT, True),
        ({"kind": "ServiceAccount", "name": "robot", "namespace": "other"}, ROBOT, False),
        ({"kind": "User", "name": "system:serviceaccount:ns:robot"}, ROBOT, True),
    ],
)
def test_whom_a_binding_means(subject: dict, user: UserInfo, means: bool) -> None:
    binding = {"metadata": {"name": "b", "namespace": "ns"}, "subjects": [{"kind": "User", "name": "x"}, subject]}
    assert subject_of(binding, user) == (subject if means else None)


def test_a_service_account_without_namespace_in_a_cluster_wide_binding_is_nobody() -> None:
    binding = {"metadata": {"name": "b"}, "subjects": [{"kind": "ServiceAccount", "name": "robot"}]}
    assert subject_of(binding, ROBOT) is None
    assert subject_of({"metadata": {"name": "b"}}, ROBOT) is None


def test_a_binding_is_told_as_kubernetes_tells_it() -> None:
    reference = {"kind": "ClusterRole", "name": "view"}
    account = {"kind": "ServiceAccount", "name": "robot"}
    local = {"metadata": {"name": "b", "namespace": "ns"}, "roleRef": reference}
    assert described(local, account) == 'RoleBinding "b/ns" of ClusterRole "view" to ServiceAccount "robot/ns"'
    wide = {"metadata": {"name": "b"}, "roleRef": reference}
    assert (
        described(wide, {"kind": "Group", "name": "g"}) == 'ClusterRoleBinding "b" of ClusterRole "view" to Group "g"'
    )


@pytest.mark.parametrize(
    ("owned", "wanted", "missing"),
    [
        ([rule("*", "*", "*")], rule("get", "pods/log"), []),
        ([rule("get", "pods"), rule("list", "pods")], rule("get list", "pods"), []),
        ([rule("get", "pods")], rule("get list", "pods secrets"),
         ["list pods", "get secrets", "list secrets"]),
        ([rule("get", "*/log")], rule("get", "pods/log"), []),
        ([rule("get", "pods")], rule("get", "pods/log"), ["get pods/log"]),
        ([rule("get", "*")], rule("get", "*/log"), []),
        ([rule("get", "pods", names="a")], rule("get", "pods", names="a"), []),
        ([rule("get", "pods", names="a")], rule("get", "pods", names="a b"), ["get pods b"]),
        ([rule("get", "pods", names="a")], rule("get", "pods"), ["get pods"]),
        ([rule("get", "pods")], rule("get", "pods", names="a"), []),
        ([rule("get", "pods")], rule("*", "pods"), ["* pods"]),
        ([rule("get", "pods")], rule("get", "*"), ["get *"]),
        ([rule("get", urls="/a/*")], rule("get", urls="/a/b /c"), ["get /c"]),
        ([rule("*", "*", "*")], rule("get", urls="/c"), ["get /c"]),
        (list(FULL_AUTHORITY), rule("*", urls="*"), []),
    ],
)  # fmt: skip
def test_which_permissions_are_not_covered(owned: list[dict], wanted: dict, missing: list[str]) -> None:
    def text(part: dict) -> str:
        what = part.get("resources") or part["nonResourceURLs"]
        return " ".join([*part["verbs"], *what, *part.get("resourceNames", [])])

    assert [text(part) for part in uncovered(owned, [wanted])] == missing


def test_missing_permissions_are_put_together_again() -> None:
    parts = uncovered([], [rule("get list", "pods secrets"), rule("get", "pods", names="a b"), rule("get", urls="/x")])
    assert [compact_text(each) for each in compact(parts)] == [
        '{NonResourceURLs:["/x"], Verbs:["get"]}',
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}',
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}',
    ]
    assert missing_text(BOB, uncovered([], [rule("get", "secrets")])) == (
        'user "bob" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently '
        'held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    )


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name==a", "a"),
        ("status.phase=Running,metadata.name=a", "a"),
        ("metadata.name!=a", ""),
        ("metadata.name=a/b", ""),
        ("metadata.name=..", ""),
        ("", ""),
    ],
)
def test_the_one_name_that_a_field_selector_asks_for(selector: str, name: str) -> None:
    assert exact_name(selector) == name
