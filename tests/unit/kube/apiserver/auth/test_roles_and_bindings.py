"""Roles and bindings give what they say, at once, and nobody gives what he has not."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import (
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    CONFIGMAPS,
    NAMESPACES,
    NODES,
    PODS,
    ROLEBINDINGS,
    ROLES,
    SECRETS,
    SELFSUBJECTACCESSREVIEWS,
    SELFSUBJECTRULESREVIEWS,
    SUBJECTACCESSREVIEWS,
)
from lastcall.kube.apiserver.auth.authentication import ALL_AUTHENTICATED, UserInfo
from lastcall.kube.apiserver.auth.rbac import uncovered
from lastcall.kube.client.api import APPLY_PATCH

BOB = UserInfo("bob", (ALL_AUTHENTICATED,))
ROBOT = UserInfo(
    "system:serviceaccount:default:robot",
    ("system:serviceaccounts", "system:serviceaccounts:default", ALL_AUTHENTICATED),
)
RBAC = "rbac.authorization.k8s.io"
READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
READ_SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}


def role(name: str, *rules: dict, **more: object) -> dict:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def binding(name: str, kind: str, to: str, *subjects: dict) -> dict:
    reference = {"apiGroup": RBAC, "kind": kind, "name": to}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": list(subjects) or [USER]}


USER = {"kind": "User", "name": "bob"}
ACCOUNT = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}


def manages(*verbs: str) -> dict:
    """A rule by which somebody may write roles and bindings."""
    resources = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]
    return {"apiGroups": [RBAC], "resources": resources, "verbs": ["create", "update", "patch", *verbs]}


async def refused(call) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await call
    return caught.value


def test_a_role_binding_gives_a_role_in_its_namespace_until_it_is_gone(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(NAMESPACES, {"metadata": {"name": "other"}})
        robot = api.server.client(ROBOT)
        text = f'pods is forbidden: User "{ROBOT.name}" cannot list resource "pods" in API group "" in the namespace '
        assert (await refused(robot.list(PODS, "default"))).message == text + '"default"'
        await api.admin.create(ROLES, role("r", READ_PODS), "default")
        await api.admin.create(ROLEBINDINGS, binding("b", "Role", "r", ACCOUNT), "default")
        assert (await robot.list(PODS, "default")).items == []
        assert (await refused(robot.list(PODS, "other"))).message == text + '"other"'
        assert (await refused(robot.list(PODS))).code == 403
        assert (await refused(robot.delete(PODS, "p", "default"))).code == 403
        assert (await refused(robot.get(PODS, "p", "default"))).code == 404
        await api.admin.patch(ROLES, "r", {"rules": [READ_SECRETS]}, "default")
        assert (await refused(robot.list(PODS, "default"))).code == 403
        assert (await refused(robot.get(SECRETS, "s", "default"))).code == 404
        await api.admin.delete(ROLEBINDINGS, "b", "default")
        assert (await refused(robot.get(SECRETS, "s", "default"))).code == 403

    virtual(scenario)


def test_a_cluster_role_holds_where_it_is_bound(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(NAMESPACES, {"metadata": {"name": "other"}})
        bob = api.server.client(BOB)
        await api.admin.create(ROLEBINDINGS, binding("b", "ClusterRole", "view"), "other")
        assert (await bob.list(PODS, "other")).items == []
        assert (await refused(bob.list(PODS, "default"))).code == 403
        assert (await refused(bob.list(SECRETS, "other"))).code == 403
        everything = {"apiGroups": [""], "resources": ["*"], "verbs": ["*"]}
        await api.admin.create(CLUSTERROLES, role("core", everything))
        await api.admin.create(CLUSTERROLEBINDINGS, binding("core", "ClusterRole", "core"))
        assert (await bob.list(PODS)).items == (await bob.list(NODES)).items == []
        assert (await bob.create(CONFIGMAPS, {"metadata": {"name": "c"}}, "default"))["metadata"]["uid"]
        assert (await refused(bob.list(ROLES))).code == 403

    virtual(scenario)


def test_a_binding_to_a_missing_role_is_told_in_the_refusal(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CLUSTERROLEBINDINGS, binding("b", "ClusterRole", "none"))
        bob = api.server.client(BOB)
        missing = f'clusterrole.{RBAC} "none" not found'
        assert (await refused(bob.list(NODES))).message == (
            'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope: RBAC: '
            + missing
        )
        await api.admin.create(ROLEBINDINGS, binding("b", "Role", "gone"), "default")
        refusal = await refused(bob.list(PODS, "default"))
        assert refusal.message.endswith(f'"default": RBAC: [{missing}, role.{RBAC} "gone" not found]')
        rules = await bob.create(SELFSUBJECTRULESREVIEWS, {"spec": {"namespace": "kube-system"}})
        assert rules["status"]["incomplete"] is True and rules["status"]["evaluationError"] == missing

    virtual(scenario)


def test_access_reviews_answer_by_the_same_rules(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(ROLEBINDINGS, binding("b", "ClusterRole", "edit"), "default")
        delete = {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "default"}}
        why = 'RBAC: allowed by RoleBinding "b/default" of ClusterRole "edit" to User "bob"'
        answer = await api.server.client(BOB).create(SELFSUBJECTACCESSREVIEWS, {"spec": delete})
        assert answer["status"] == {"allowed": True, "reason": why}
        answer = await api.admin.create(SUBJECTACCESSREVIEWS, {"spec": {"user": "bob", **delete}})
        assert answer["status"] == {"allowed": True, "reason": why}
        delete["resourceAttributes"]["namespace"] = "other"
        answer = await api.admin.create(SUBJECTACCESSREVIEWS, {"spec": {"user": "bob", **delete}})
        assert answer["status"] == {"allowed": False}
        rules = (await api.server.client(BOB).create(SELFSUBJECTRULESREVIEWS, {"spec": {"namespace": "default"}}))[
            "status"
        ]
        assert {"verbs": ["create"], "apiGroups": [""], "resources": ["pods/eviction"]} in rules["resourceRules"]
        assert any("/openapi/*" in rule["nonResourceURLs"] for rule in rules["nonResourceRules"])

    virtual(scenario)


def test_nobody_writes_a_role_with_more_than_he_has(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(ROLES, role("m", manages(), READ_PODS), "default")
        await api.admin.create(ROLEBINDINGS, binding("m", "Role", "m"), "default")
        bob = api.server.client(BOB)
        held = (
            'user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently '
            'held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
        )
        refusal = await refused(bob.create(ROLES, role("esc", READ_PODS, READ_SECRETS), "default"))
        assert refusal.message == f'roles.{RBAC} "esc" is forbidden: {held}'
        assert refusal.status["details"] == {"name": "esc", "group": RBAC, "kind": "roles"}
        own = await bob.create(ROLES, role("own", READ_PODS), "default")
        refusal = await refused(bob.update(ROLES, {**own, "rules": [READ_SECRETS]}, "default"))
        assert refusal.message == f'roles.{RBAC} "own" is forbidden: {held}'
        assert (await refused(bob.patch(ROLES, "own", {"rules": [READ_SECRETS]}, "default"))).code == 403
        assert await bob.patch(ROLES, "own", {"rules": []}, "default")
        # What only the garbage collector looks at gives nobody anything.
        await api.admin.create(ROLES, role("far", READ_SECRETS), "default")
        assert await bob.patch(ROLES, "far", {"metadata": {"finalizers": ["example.com/x"]}}, "default")
        assert (await refused(bob.patch(ROLES, "far", {"metadata": {"labels": {"a": "b"}}}, "default"))).code == 403
        # With the verb `escalate` he may.
        await api.admin.patch(ROLES, "m", {"rules": [manages("escalate")]}, "default")
        assert await bob.create(ROLES, role("esc", READ_SECRETS), "default")

    virtual(scenario)


def test_nobody_binds_a_role_with_more_than_he_has(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(ROLES, role("m", manages(), READ_PODS), "default")
        await api.admin.create(ROLEBINDINGS, binding("m", "Role", "m"), "default")
        await api.admin.create(ROLES, role("pods", READ_PODS), "default")
        await api.admin.create(ROLES, role("secrets", READ_SECRETS), "default")
        bob = api.server.client(BOB)
        refusal = await refused(bob.create(ROLEBINDINGS, binding("b", "Role", "secrets", ACCOUNT), "default"))
        assert refusal.message.startswith(f'rolebindings.{RBAC} "b" is forbidden: user "bob" (groups=')
        refusal = await refused(bob.create(ROLEBINDINGS, binding("b", "ClusterRole", "cluster-admin"), "default"))
        assert refusal.code == 403
        refusal = await refused(bob.create(ROLEBINDINGS, binding("b", "Role", "none"), "default"))
        assert (refusal.code, refusal.message) == (404, f'roles.{RBAC} "none" not found')
        assert await bob.create(ROLEBINDINGS, binding("b", "Role", "pods", ACCOUNT), "default")
        # With the verb `bind` on this one role he may.
        bind = {"apiGroups": [RBAC], "resources": ["roles"], "resourceNames": ["secrets"], "verbs": ["bind"]}
        await api.admin.patch(ROLES, "m", {"rules": [manages(), bind]}, "default")
        assert await bob.create(ROLEBINDINGS, binding("s", "Role", "secrets", ACCOUNT), "default")
        refusal = await refused(
            bob.create(ROLEBINDINGS, binding("v", "ClusterRole", "cluster-admin", ACCOUNT), "default")
        )
        assert refusal.code == 403

    virtual(scenario)


def test_who_puts_or_applies_what_is_not_there_needs_to_be_allowed_its_creation(virtual) -> None:
    async def scenario(api) -> None:
        rules = [
            {"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["update", "patch", "escalate"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]},
        ]
        await api.admin.create(ROLES, role("m", *rules), "default")
        await api.admin.create(ROLEBINDINGS, binding("m", "Role", "m"), "default")
        bob = api.server.client(BOB)
        refusal = await refused(bob.update(ROLES, role("new", READ_PODS), "default"))
        assert refusal.message == (
            f'roles.{RBAC} "new" is forbidden: User "bob" cannot create resource "roles" in API group "{RBAC}" in the '
            'namespace "default"'
        )
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
        apply = {"content_type": APPLY_PATCH}
        assert (await refused(bob.patch(CONFIGMAPS, "c", body, "default", **apply))).code == 403
        await api.admin.create(ROLES, role("new", READ_PODS), "default")
        assert await bob.update(ROLES, role("new", READ_SECRETS), "default")
        rules.append({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]})
        await api.admin.patch(ROLES, "m", {"rules": rules}, "default")
        assert await bob.patch(CONFIGMAPS, "c", body, "default", **apply)

    virtual(scenario)


def test_only_a_cluster_admin_writes_roles_that_aggregate(virtual) -> None:
    async def scenario(api) -> None:
        await api.admin.create(CLUSTERROLES, role("m", manages()))
        await api.admin.create(CLUSTERROLEBINDINGS, binding("m", "ClusterRole", "m"))
        bob = api.server.client(BOB)
        rule = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        refusal = await refused(bob.create(CLUSTERROLES, role("agg", aggregationRule=rule)))
        assert refusal.message == (
            f'clusterroles.{RBAC} "agg" is forbidden: must have cluster-admin privileges to use the aggregationRule'
        )
        await api.admin.create(CLUSTERROLEBINDINGS, binding("all", "ClusterRole", "cluster-admin"))
        assert await bob.create(CLUSTERROLES, role("agg", aggregationRule=rule))

    virtual(scenario)


def test_the_role_of_a_binding_cannot_be_changed(virtual) -> None:
    async def scenario(api) -> None:
        made = await api.admin.create(ROLEBINDINGS, binding("b", "ClusterRole", "view"), "default")
        refusal = await refused(
            api.admin.update(ROLEBINDINGS, {**made, "roleRef": {**made["roleRef"], "name": "edit"}}, "default")
        )
        assert refusal.code == 422 and "cannot change roleRef" in refusal.message

    virtual(scenario)


def test_the_default_policy_comes_back_with_the_next_start(virtual) -> None:
    async def scenario(api) -> None:
        roles = {each["metadata"]["name"]: each for each in (await api.admin.list(CLUSTERROLES)).items}
        assert {"admin", "cluster-admin", "edit", "view", "system:discovery", "system:basic-user"} <= roles.keys()
        for name, source in (("view", "view"), ("edit", "view"), ("admin", "edit")):
            taken = roles[f"system:aggregate-to-{source}"]["rules"]
            assert all(rule in roles[name]["rules"] for rule in taken)
        before = roles["view"]["metadata"]["resourceVersion"]
        await api.admin.delete(CLUSTERROLEBINDINGS, "system:discovery")
        await api.server.bootstrap()
        assert await api.admin.get(CLUSTERROLEBINDINGS, "system:discovery")
        assert (await api.admin.get(CLUSTERROLES, "view"))["metadata"]["resourceVersion"] == before

    virtual(scenario)


def test_default_roles_and_bindings_that_are_complete_are_not_written_at_the_next_start(virtual) -> None:
    async def scenario(api) -> None:
        async def versions() -> dict:
            kinds = (CLUSTERROLES, CLUSTERROLEBINDINGS, ROLES, ROLEBINDINGS)
            found = [each["metadata"] for kind in kinds for each in (await api.admin.list(kind)).items]
            return {each["uid"]: each["resourceVersion"] for each in found}

        before = await versions()
        await api.server.bootstrap()
        assert await versions() == before

    virtual(scenario)


def test_a_default_role_of_an_older_version_gets_the_new_rules_and_keeps_its_own(virtual) -> None:
    async def scenario(api) -> None:
        found = await api.admin.get(CLUSTERROLES, "kube-network-policies")
        whole = found["rules"]
        await api.admin.update(CLUSTERROLES, {**found, "rules": [READ_SECRETS, *whole[:-1]]})
        await api.server.bootstrap()
        assert (await api.admin.get(CLUSTERROLES, "kube-network-policies"))["rules"][:3] == [READ_SECRETS, *whole[:2]]
        can = await api.admin.get(CLUSTERROLES, "kube-network-policies")
        assert uncovered(can["rules"], whole) == []

    virtual(scenario)


def test_a_default_binding_to_another_role_is_made_anew(virtual) -> None:
    async def scenario(api) -> None:
        found = await api.admin.get(CLUSTERROLEBINDINGS, "system:discovery")
        await api.admin.delete(CLUSTERROLEBINDINGS, "system:discovery")
        await api.admin.create(CLUSTERROLEBINDINGS, binding("system:discovery", "ClusterRole", "cluster-admin"))
        await api.server.bootstrap()
        assert (await api.admin.get(CLUSTERROLEBINDINGS, "system:discovery"))["roleRef"] == found["roleRef"]

    virtual(scenario)
