"""Who a request comes from, and what they may do."""

import jwt
import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import BINDINGS, NODES, PODS, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth import tokens
from lastcall.kube.apiserver.auth.authentication import ANONYMOUS, Authenticator, UserInfo, bearer_token
from lastcall.kube.apiserver.auth.impersonation import MODES, Impersonation
from lastcall.kube.apiserver.auth.pki import new_key_pem
from lastcall.kube.apiserver.auth.tokens import ServiceAccountVerifier, TokenIssuer
from lastcall.kube.apiserver.requestinfo import request_info
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

ISSUER = "https://issuer"
ACCOUNT = {"metadata": {"name": "default", "namespace": "ns", "uid": "sa-uid"}}
POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "pod-uid"}, "spec": {"serviceAccountName": "default"}}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def issuer(world: World) -> TokenIssuer:
    return TokenIssuer(world, ISSUER, new_key_pem())


class Objects(dict):
    """(plural, namespace, name) → object."""

    async def get_object(self, resource, namespace, name):
        return self.get((resource.plural, namespace, name))


def objects() -> Objects:
    return Objects({("serviceaccounts", "ns", "default"): ACCOUNT, ("pods", "ns", "p"): POD})


def test_the_claims_are_kubernetes_own(issuer: TokenIssuer) -> None:
    token = issuer.issue(ACCOUNT, audiences=["vault"], seconds=900, bound=("Pod", POD))
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["sub"] == "system:serviceaccount:ns:default"
    assert claims["aud"] == ["vault"]
    assert claims["exp"] - claims["iat"] == 900
    assert claims["kubernetes.io"]["pod"] == {"name": "p", "uid": "pod-uid"}
    assert jwt.get_unverified_header(token)["kid"] == issuer.jwks()["keys"][0]["kid"]


def test_the_token_of_an_access_volume_outlives_a_client_that_never_reloads_it(issuer: TokenIssuer) -> None:
    token = issuer.issue(ACCOUNT, audiences=[ISSUER], seconds=3607, bound=("Pod", POD))
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607


async def test_a_good_token_is_its_service_account(world: World, issuer: TokenIssuer) -> None:
    verifier = ServiceAccountVerifier(issuer, world.clock, objects().get_object)
    user = await verifier.verify(issuer.issue(ACCOUNT, audiences=[ISSUER], seconds=600, bound=("Pod", POD)))
    assert user is not None
    assert user.name == "system:serviceaccount:ns:default"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert user.extra["authentication.kubernetes.io/pod-name"] == ["p"]


@pytest.mark.parametrize("why", ["pod gone", "pod replaced", "account gone", "audience", "expired", "key", "garbage"])
async def test_a_token_that_is_no_longer_or_never_was_good(world: World, issuer: TokenIssuer, why: str) -> None:
    known = objects()
    seconds, audience, signer = 600, ISSUER, issuer
    if why == "pod gone":
        del known["pods", "ns", "p"]
    elif why == "pod replaced":
        known["pods", "ns", "p"] = {**POD, "metadata": {**POD["metadata"], "uid": "other"}}
    elif why == "account gone":
        del known["serviceaccounts", "ns", "default"]
    elif why == "audience":
        audience = "vault"
    elif why == "expired":
        seconds = -1
    elif why == "key":
        signer = TokenIssuer(world, ISSUER, new_key_pem())
    token = signer.issue(ACCOUNT, audiences=[audience], seconds=seconds, bound=("Pod", POD))
    verifier = ServiceAccountVerifier(issuer, world.clock, known.get_object)
    assert await verifier.verify("garbage" if why == "garbage" else token) is None


def test_a_token_that_was_good_before_is_judged_again() -> None:
    async def scenario(world: World) -> None:
        issuer = TokenIssuer(world, ISSUER, new_key_pem())
        known = objects()
        verifier = ServiceAccountVerifier(issuer, world.clock, known.get_object)
        token = issuer.issue(ACCOUNT, audiences=[ISSUER], seconds=600, bound=("Pod", POD))
        assert await verifier.verify(token) is not None
        pod = known.pop(("pods", "ns", "p"))
        assert await verifier.verify(token) is None
        known["pods", "ns", "p"] = pod
        assert await verifier.verify(token) is not None
        await world.clock.sleep(601)
        assert await verifier.verify(token) is None

    run_virtual(scenario)


async def test_only_the_last_good_signatures_are_remembered(
    world: World, issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "VERIFIED_TOKENS", 3)
    for _ in range(5):
        assert issuer.claims(issuer.issue(ACCOUNT, audiences=[ISSUER], seconds=600)) is not None
    assert len(issuer.verified) == 3


def test_a_token_that_an_earlier_process_issued_goes_on_being_good(world: World) -> None:
    key = new_key_pem()
    token = TokenIssuer(world, ISSUER, key).issue(ACCOUNT, audiences=[ISSUER], seconds=600)
    later = TokenIssuer(world, ISSUER, key)
    claims = later.claims(token)
    assert claims is not None
    assert claims == later.claims(token) == jwt.decode(token, options={"verify_signature": False})
    head, content, signature = token.split(".")
    other = signature[:-4] + ("AAAA" if signature[-4:] != "AAAA" else "BBBB")
    assert later.claims(f"{head}.{content}.{other}") is None


def test_a_token_for_somebody_else_is_not_good_here_though_it_was_issued_here(issuer: TokenIssuer) -> None:
    assert issuer.claims(issuer.issue(ACCOUNT, audiences=["vault"], seconds=600)) is None


async def test_an_unsigned_token_is_refused(world: World, issuer: TokenIssuer) -> None:
    claims = jwt.decode(issuer.issue(ACCOUNT, audiences=[ISSUER], seconds=600), options={"verify_signature": False})
    verifier = ServiceAccountVerifier(issuer, world.clock, objects().get_object)
    assert await verifier.verify(jwt.encode(claims, "", algorithm="none")) is None


async def test_a_key_of_another_kind_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match=r"EC P-256|Unable to load|Could not deserialize"):
        await TokenIssuer(
            world, ISSUER, b"-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n"
        ).prepare()


async def nobody(_: str) -> None:
    return None


async def test_static_tokens_certificates_and_nothing() -> None:
    authenticator = Authenticator({"secret": UserInfo("admin", ("system:masters",))}, nobody)
    user = await authenticator.authenticate("Bearer secret", None)
    assert user.groups == ("system:masters", "system:authenticated")
    assert await authenticator.authenticate("", {}) == ANONYMOUS
    assert await authenticator.authenticate("Basic abc", None) == ANONYMOUS
    subject = ((("organizationName", "dev"),), (("commonName", "alice"),))
    assert (await authenticator.authenticate("", {"subject": subject})).name == "alice"
    with pytest.raises(StatusError) as caught:
        await authenticator.authenticate("Bearer wrong", None)
    assert caught.value.code == 401


async def test_who_is_known_without_waiting_is_who_authentication_finds() -> None:
    authenticator = Authenticator({"secret": UserInfo("admin", ("system:masters",))}, nobody)
    alice = {"subject": ((("organizationName", "dev"),), (("commonName", "alice"),))}
    for authorization, certificate in (
        ("Bearer secret", None),
        ("Bearer secret", {}),
        ("", alice),
        ("Bearer x", alice),
    ):
        known = authenticator.known(authorization, certificate)
        assert known is not None
        assert known == await authenticator.authenticate(authorization, certificate)
    nameless = {"subject": ((("organizationName", "dev"),),)}
    for authorization, certificate in (
        ("", None), ("Bearer wrong", None), ("Basic secret", None), ("secret", None), ("Bearer s\udce9cret", None),
        ("Bearer secret", nameless),
    ):  # fmt: skip
        assert authenticator.known(authorization, certificate) is None
    assert (await authenticator.authenticate("Bearer secret", nameless)).name == "admin"


def test_bearer_scheme_is_case_insensitive() -> None:
    assert bearer_token("bearer  abc ") == "abc"
    assert bearer_token("Token abc") == ""


MASTER = UserInfo("root", ("system:masters",))
NODE = UserInfo("system:node:n", ("system:nodes",))
ACCOUNT_USER = MODES[-1].user(Impersonation("system:serviceaccount:ns:default"))
OTHER = UserInfo("alice", ("system:authenticated",))


@pytest.mark.parametrize(
    ("user", "method", "path", "allowed"),
    [
        (MASTER, "DELETE", "/api/v1/namespaces/x/pods/p", True),
        (NODE, "PATCH", "/api/v1/nodes/n/status", True),
        (UserInfo("system:kube-scheduler"), "POST", "/api/v1/namespaces/x/bindings", True),
        (ANONYMOUS, "GET", "/healthz", True),
        (ANONYMOUS, "GET", "/version", True),
        (ANONYMOUS, "GET", "/api", False),
        (ANONYMOUS, "GET", "/api/v1/pods", False),
        (OTHER, "GET", "/api", True),
        (OTHER, "GET", "/apis/apps", True),
        (OTHER, "POST", "/version", False),
        (OTHER, "HEAD", "/version", False),
        (OTHER, "GET", "/api/v1/namespaces/x/pods", False),
        (OTHER, "GET", "/openid/v1/jwks", False),
        (ACCOUNT_USER, "GET", "/openid/v1/jwks", True),
        (ACCOUNT_USER, "GET", "/api/v1/namespaces/ns/secrets", False),
    ],
)
def test_who_may_do_what_in_a_new_cluster(virtual, user: UserInfo, method: str, path: str, allowed: bool) -> None:
    async def scenario(api) -> None:
        decision = await api.server.operations.authorizer.authorize(user, request_info(method, path, {}))
        assert decision.allowed is allowed

    virtual(scenario)


def test_a_token_can_be_asked_for_a_pod_of_the_same_account_only(virtual) -> None:
    async def scenario(api) -> None:
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "m", "image": "busybox:1.36"}]}}
        pod = await api.admin.create(PODS, pod, "default")
        await api.admin.create(NODES, {"metadata": {"name": "n1"}})
        await api.admin.create(BINDINGS, {"metadata": {"name": "p"}, "target": {"name": "n1"}}, "default")
        bound = {"kind": "Pod", "name": "p", "uid": pod["metadata"]["uid"]}
        request = {"spec": {"boundObjectRef": bound, "expirationSeconds": 3607}}
        answer = await api.admin.create(SERVICEACCOUNTS, request, "default", name="default", subresource="token")
        claims = jwt.decode(answer["status"]["token"], options={"verify_signature": False})
        assert claims["kubernetes.io"]["node"]["name"] == "n1"
        await api.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "other"}}, "default")
        for name, change, code in (
            ("other", {}, 400),
            ("default", {"uid": "wrong"}, 409),
            ("default", {"name": "nope"}, 404),
            ("default", {"kind": "Service"}, 400),
        ):
            request = {"spec": {"boundObjectRef": {**bound, **change}}}
            with pytest.raises(StatusError) as caught:
                await api.admin.create(SERVICEACCOUNTS, request, "default", name=name, subresource="token")
            assert caught.value.code == code
        request = {"spec": {"expirationSeconds": 60}}
        with pytest.raises(StatusError) as caught:
            await api.admin.create(SERVICEACCOUNTS, request, "default", name="default", subresource="token")
        assert "may not specify a duration less than 10 minutes" in caught.value.message

    virtual(scenario)
