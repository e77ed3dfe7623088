"""Who am I, whose token is this, may somebody do that."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import (
    LOCALSUBJECTACCESSREVIEWS,
    SELFSUBJECTACCESSREVIEWS,
    SELFSUBJECTREVIEWS,
    SELFSUBJECTRULESREVIEWS,
    SERVICEACCOUNTS,
    SUBJECTACCESSREVIEWS,
    TOKENREVIEWS,
)
from lastcall.kube.apiserver.auth.authentication import ALL_AUTHENTICATED, UserInfo

BOB = UserInfo("bob", ("devs", ALL_AUTHENTICATED))
DISCOVERY = "system:discovery"
DELETE_PODS = {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "default"}}


async def ask(api, resource, spec, user=None, namespace="") -> dict:
    client = api.server.client(user) if user else api.admin
    return (await client.create(resource, {"spec": spec}, namespace))["status"]


def test_everybody_known_may_ask_who_they_are(virtual) -> None:
    async def scenario(api) -> None:
        answer = await api.server.client(BOB).create(SELFSUBJECTREVIEWS, {})
        assert answer["status"] == {"userInfo": {"username": "bob", "groups": ["devs", ALL_AUTHENTICATED]}}
        assert answer["metadata"]["creationTimestamp"]
        with pytest.raises(StatusError, match="cannot create resource"):
            await api.server.client(UserInfo("system:anonymous", ("system:unauthenticated",))).create(
                SELFSUBJECTREVIEWS, {}
            )

    virtual(scenario)


def test_what_is_allowed_is_what_the_server_would_do(virtual) -> None:
    async def scenario(api) -> None:
        assert await ask(api, SELFSUBJECTACCESSREVIEWS, DELETE_PODS) == {"allowed": True}
        assert await ask(api, SELFSUBJECTACCESSREVIEWS, DELETE_PODS, BOB) == {"allowed": False}
        path = {"nonResourceAttributes": {"path": "/version", "verb": "get"}}
        discovery = f'ClusterRoleBinding "{DISCOVERY}" of ClusterRole "{DISCOVERY}" to Group "{ALL_AUTHENTICATED}"'
        by_role = {"allowed": True, "reason": f"RBAC: allowed by {discovery}"}
        assert await ask(api, SELFSUBJECTACCESSREVIEWS, path, BOB) == by_role
        about = {"user": "alice", "groups": ["system:masters"], **DELETE_PODS}
        assert await ask(api, SUBJECTACCESSREVIEWS, about) == {"allowed": True}
        assert await ask(api, SUBJECTACCESSREVIEWS, {"user": "alice", **DELETE_PODS}) == {"allowed": False}
        local = {"user": "alice", **DELETE_PODS}
        assert await ask(api, LOCALSUBJECTACCESSREVIEWS, local, namespace="default") == {"allowed": False}
        with pytest.raises(StatusError, match="cannot create resource"):
            await ask(api, SUBJECTACCESSREVIEWS, about, BOB)

    virtual(scenario)


@pytest.mark.parametrize(
    ("resource", "spec", "message"),
    [
        (SELFSUBJECTACCESSREVIEWS, {}, 'spec.resourceAttributes: Invalid value: null: exactly one of'),
        (SELFSUBJECTACCESSREVIEWS, {**DELETE_PODS, "nonResourceAttributes": {"path": "/x", "verb": "get"}},
         'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in combination'),
        (SUBJECTACCESSREVIEWS, DELETE_PODS, "spec.user"),
        (LOCALSUBJECTACCESSREVIEWS, {"user": "a", "resourceAttributes": {"namespace": "other"}},
         'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace'),
        (SELFSUBJECTRULESREVIEWS, {}, "no namespace on request"),
        (TOKENREVIEWS, {}, "token is required"),
    ],
)  # fmt: skip
def test_questions_that_make_no_sense_are_refused(virtual, resource, spec, message) -> None:
    async def scenario(api) -> None:
        with pytest.raises(StatusError) as caught:
            await ask(api, resource, spec, namespace="default" if resource.namespaced else "")
        assert message in caught.value.message

    virtual(scenario)


def test_rules_are_those_of_the_user(virtual) -> None:
    async def scenario(api) -> None:
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        own = {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}
        rules = await ask(api, SELFSUBJECTRULESREVIEWS, {"namespace": "default"})
        assert everything in rules["resourceRules"]
        assert rules["incomplete"] is False
        rules = await ask(api, SELFSUBJECTRULESREVIEWS, {"namespace": "default"}, BOB)
        assert everything not in rules["resourceRules"]
        assert own in rules["resourceRules"]

    virtual(scenario)


def test_a_token_review_tells_whose_token_it_is(virtual) -> None:
    async def scenario(api) -> None:
        request = await api.admin.create(SERVICEACCOUNTS, {}, "default", name="default", subresource="token")
        token = request["status"]["token"]
        status = await ask(api, TOKENREVIEWS, {"token": token})
        assert status["authenticated"] is True
        assert status["user"]["username"] == "system:serviceaccount:default:default"
        assert status["audiences"] == request["spec"]["audiences"]
        assert await ask(api, TOKENREVIEWS, {"token": "bad"}) == {"user": {}, "error": "invalid bearer token"}
        unknown = {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
        assert (await ask(api, TOKENREVIEWS, {"token": " "}))["user"] == unknown, "a header without a token"
        other = await ask(api, TOKENREVIEWS, {"token": token, "audiences": ["vault"]})
        assert "authenticated" not in other
        assert "vault" in other["error"]

    virtual(scenario)
