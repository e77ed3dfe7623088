"""The right that a 403 names, and the commands that give it (tests/engines tries them on a real API server)."""

import shlex

import pytest

from lastcall.kube.client.access.rights import Right, commands_for, missing_right


def status(message: str, name: str = "") -> dict:
    return {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message, "details": {"name": name}}


@pytest.mark.parametrize(
    ("message", "name", "right"),
    [
        (
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "shop"',
            "",
            Right("jane", "list", "pods", namespace="shop"),
        ),
        (
            'pods "web" is forbidden: User "jane" cannot get resource "pods/log" in API group "" '
            'in the namespace "shop"',
            "web",
            Right("jane", "get", "pods/log", namespace="shop"),
        ),
        (
            'deployments.apps "web" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "deployments" '
            'in API group "apps" in the namespace "shop": RBAC: role.rbac.authorization.k8s.io "x" not found',
            "web",
            Right("system:serviceaccount:a:b", "patch", "deployments", "apps", "shop", "web"),
        ),
        (
            'nodes is forbidden: User "a\\"b" cannot watch resource "nodes" in API group "" at the cluster scope',
            "",
            Right('a"b', "watch", "nodes"),
        ),
        (
            'forbidden: User "jane" cannot get path "/metrics"',
            "",
            Right("jane", "get", path="/metrics"),
        ),
        ('pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged', "x", None),
    ],
)
def test_a_refusal_names_the_right_that_is_missing(message, name, right):
    assert missing_right(status(message, name)) == right


def test_an_answer_that_is_not_a_403_names_none():
    message = 'User "jane" cannot list resource "pods" in API group "" at the cluster scope'
    assert missing_right({**status(message), "code": 401}) is None
    assert missing_right({"code": 403, "message": None}) is None


PODS = "lastcall-list-watch-pods-for-jane"
BOTH = "lastcall-list-pods-endpointslices-for-jane"
ROBOT = "lastcall-patch-deployments-web-for-system:serviceaccount:a:b"
METRICS = "lastcall-get-metrics-for-jane"


@pytest.mark.parametrize(
    ("rights", "commands"),
    [
        (
            [Right("jane", "list", "pods", namespace="shop"), Right("jane", "watch", "pods", namespace="shop")],
            [
                f"kubectl create role {PODS} --verb=list,watch --resource=pods -n shop",
                f"kubectl create rolebinding {PODS} --role={PODS} --user=jane -n shop",
            ],
        ),
        (
            [Right("jane", "list", "pods"), Right("jane", "list", "endpointslices", "discovery.k8s.io")],
            [
                f"kubectl create clusterrole {BOTH} --verb=list --resource=pods,endpointslices.discovery.k8s.io",
                f"kubectl create clusterrolebinding {BOTH} --clusterrole={BOTH} --user=jane",
            ],
        ),
        (
            [Right("system:serviceaccount:a:b", "patch", "deployments", "apps", "shop", "web")],
            [
                f"kubectl create role {ROBOT} --verb=patch --resource=deployments.apps --resource-name=web -n shop",
                f"kubectl create rolebinding {ROBOT} --role={ROBOT} --serviceaccount=a:b -n shop",
            ],
        ),
        (
            [Right("jane", "get", path="/metrics")],
            [
                f"kubectl create clusterrole {METRICS} --verb=get --non-resource-url=/metrics",
                f"kubectl create clusterrolebinding {METRICS} --clusterrole={METRICS} --user=jane",
            ],
        ),
        ([Right("system:anonymous", "list", "pods")], []),
        ([Right("", "list", "pods")], []),
        ([Right("jane", "list", "pods --as=root")], []),
        ([Right("jane", "list", "pods", namespace="$(reboot)")], []),
        ([], []),
    ],
)
def test_the_commands_give_what_is_missing_and_nothing_else(rights, commands):
    assert commands_for(rights) == commands


def test_what_a_hostile_server_calls_the_user_is_one_word_for_the_shell():
    hostile = "x; rm -rf ~ $(reboot) `id`"
    for command in commands_for([Right(hostile, "list", "pods", namespace="shop")]):
        words = shlex.split(command)
        assert words[:2] == ["kubectl", "create"]
        assert all(word.startswith(("--user=", "lastcall-")) or hostile not in word for word in words)
    assert shlex.split(commands_for([Right(hostile, "list", "pods")])[1])[-1] == f"--user={hostile}"


def test_roles_of_different_rights_have_different_names():
    one, two = (commands_for([Right("jane", "get", "pods", name=name)])[0] for name in ("a/b", "a-b"))
    assert one.split()[3] != two.split()[3]
