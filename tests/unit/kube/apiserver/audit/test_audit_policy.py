"""Which requests an audit policy writes down, and how much of each."""

from typing import Any

import pytest

from lastcall.kube.apiserver.audit.policy import AUDIT_EVERYTHING, LEVELS, PolicyError, decide, parse_policy
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.requestinfo import request_info

ALICE = UserInfo("alice", ("devs", "system:authenticated"))


def policy(*rules: dict[str, Any], **more: Any) -> Any:
    return parse_policy({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": list(rules), **more})


def level(rule: dict[str, Any], method: str, path: str, user: UserInfo | None = ALICE) -> str:
    return LEVELS[decide(policy({"level": "Request", **rule}), user, request_info(method, path, {})).level]


POD, LOG = "/api/v1/namespaces/n/pods/p", "/api/v1/namespaces/n/pods/p/log"


@pytest.mark.parametrize(
    ("rule", "method", "path", "wanted"),
    [
        ({}, "GET", POD, True),
        ({}, "GET", "/healthz", True),
        ({"users": ["alice"]}, "GET", POD, True),
        ({"users": ["bob"]}, "GET", POD, False),
        ({"userGroups": ["ops", "devs"]}, "GET", POD, True),
        ({"userGroups": ["ops"]}, "GET", POD, False),
        ({"verbs": ["delete"]}, "DELETE", POD, True),
        ({"verbs": ["delete"]}, "DELETE", "/api/v1/namespaces/n/pods", False),
        ({"verbs": ["deletecollection"]}, "DELETE", "/api/v1/namespaces/n/pods", True),
        ({"namespaces": ["n"]}, "GET", POD, True),
        ({"namespaces": ["m"]}, "GET", POD, False),
        ({"namespaces": [""]}, "GET", "/api/v1/nodes", True),
        ({"namespaces": ["n"]}, "GET", "/healthz", False),
        ({"resources": [{"group": ""}]}, "GET", LOG, True),
        ({"resources": [{"group": "apps"}]}, "GET", POD, False),
        ({"resources": [{"resources": ["pods"]}]}, "GET", POD, True),
        ({"resources": [{"resources": ["pods"]}]}, "GET", LOG, False),
        ({"resources": [{"resources": ["pods/log"]}]}, "GET", LOG, True),
        ({"resources": [{"resources": ["pods/*"]}]}, "GET", LOG, True),
        ({"resources": [{"resources": ["pods/*"]}]}, "GET", POD, True),
        ({"resources": [{"resources": ["*/log"]}]}, "GET", LOG, True),
        ({"resources": [{"resources": ["*/log"]}]}, "GET", POD, False),
        ({"resources": [{"resources": ["*"]}]}, "GET", LOG, True),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["q"]}]}, "GET", POD, False),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["p"]}]}, "GET", POD, True),
        ({"nonResourceURLs": ["/healthz"]}, "GET", "/healthz", True),
        ({"nonResourceURLs": ["/health"]}, "GET", "/healthz", False),
        ({"nonResourceURLs": ["/version*"]}, "GET", "/version/", True),
        ({"nonResourceURLs": ["*"]}, "GET", "/metrics", True),
        ({"nonResourceURLs": ["*"]}, "GET", POD, False),
    ],
)
def test_a_rule_matches_as_in_kube_apiserver(rule: dict[str, Any], method: str, path: str, wanted: bool) -> None:
    assert level(rule, method, path) == ("Request" if wanted else "None")


def test_a_request_of_nobody_known_matches_no_rule_about_users() -> None:
    assert level({"users": ["alice"]}, "GET", POD, None) == "None"
    assert level({"userGroups": ["devs"]}, "GET", POD, None) == "None"
    assert level({}, "GET", POD, None) == "Request"


def test_the_first_rule_decides_and_stages_and_managed_fields_of_policy_and_rule_come_together() -> None:
    rules = policy(
        {"level": "None", "users": ["bob"]},
        {"level": "Metadata", "verbs": ["get"], "omitStages": ["Panic"], "omitManagedFields": False},
        {"level": "RequestResponse"},
        omitStages=["RequestReceived"],
        omitManagedFields=True,
    )
    got = decide(rules, ALICE, request_info("GET", POD, {}))
    assert (LEVELS[got.level], got.omit_managed_fields) == ("Metadata", False)
    assert got.omit_stages == {"Panic", "RequestReceived"}
    deleted = decide(rules, ALICE, request_info("DELETE", POD, {}))
    assert (LEVELS[deleted.level], deleted.omit_managed_fields) == ("RequestResponse", True)
    assert LEVELS[decide(rules, UserInfo("bob"), request_info("DELETE", POD, {})).level] == "None"
    assert LEVELS[decide(AUDIT_EVERYTHING, ALICE, request_info("GET", "/x", {})).level] == "Metadata"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "is not a Policy"),
        ({"kind": "Pod", "apiVersion": "v1"}, "it is a Pod of v1"),
        ({"kind": "Policy", "apiVersion": "audit.k8s.io/v1beta1"}, "write kind: Policy"),
        ({"rules": []}, "rules: there are none"),
        ({"rules": "x"}, "rules: is not a list of objects"),
        ({"rules": [{}]}, r"rules\[0\].level: is missing"),
        ({"rules": [{"level": "All"}]}, "'All' is not a level"),
        (
            {"rules": [{"level": "None", "omitStages": ["Begin"]}]},
            r"rules\[0\].omitStages\[0\]: 'Begin' is not a stage",
        ),
        ({"rules": [{"level": "None"}], "omitStages": ["End"]}, r"^omitStages\[0\]"),
        ({"rules": [{"level": "None", "nonResourceURLs": ["x"]}]}, "does not begin with /"),
        ({"rules": [{"level": "None", "nonResourceURLs": ["/*/x"]}]}, "before its end"),
        ({"rules": [{"level": "None", "nonResourceURLs": ["/x"], "namespaces": ["n"]}]}, "write two rules"),
        ({"rules": [{"level": "None", "resources": [{"group": "apps/v1"}]}]}, "without its version"),
        ({"rules": [{"level": "None", "resources": [{"resourceNames": ["x"]}]}]}, "needs resources"),
        ({"rules": [{"level": "None", "users": [1]}]}, "users: is not a list of strings"),
        ({"rules": [{"level": "None", "omitManagedFields": "yes"}]}, "is not true or false"),
    ],
)
def test_a_policy_that_kube_apiserver_refuses_is_refused_with_its_field(document: Any, words: str) -> None:
    if isinstance(document, dict) and "kind" not in document:
        document = {"kind": "Policy", "apiVersion": "audit.k8s.io/v1", **document}
    with pytest.raises(PolicyError, match=words):
        parse_policy(document)


def test_a_field_that_no_policy_has_is_a_warning() -> None:
    assert policy({"level": "None", "user": ["x"]}).warnings == (
        "rules[0].user is not a field of a policy, and is ignored",
    )
