"""Bootstrap tokens: which are good, whom they make of their bearer, and the signatures of cluster-info."""

import base64
from datetime import UTC, datetime, timedelta

import jwt
import pytest

from lastcall.api.text.bootstrap_tokens import (
    Token,
    detached_signature,
    groups_of,
    is_expired,
    parse,
    secret_of,
    signed_data,
    signing_token,
)
from lastcall.apiserver.auth.authentication import UserInfo
from lastcall.apiserver.auth.bootstrap_tokens import BootstrapTokenVerifier
from lastcall.cluster.staying.joining import JOINERS, new_token
from lastcall.world.clock import RealClock, now, rfc3339

TOKEN = Token("abc123", "0123456789abcdef")
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
LATER = "2026-01-02T00:00:00Z"


def kept(**changed):
    """The Secret of the token, with other values in its data; None takes one away."""
    secret = secret_of(TOKEN, LATER, JOINERS)
    for key, value in changed.items():
        key = key.replace("_", "-")
        if value is None:
            del secret["data"][key]
        else:
            secret["data"][key] = base64.b64encode(value.encode()).decode()
    return secret


@pytest.mark.parametrize("text", ["abc123", "abc123.0123", "ABC123.0123456789abcdef", "abc123.0123456789abcdef ", ""])
def test_what_is_not_six_and_sixteen_characters_is_not_a_token(text: str) -> None:
    assert parse(text) is None
    assert parse(str(TOKEN)) == TOKEN


def test_a_good_token_is_of_the_groups_that_its_secret_names() -> None:
    assert groups_of(TOKEN, kept(), MOMENT) == ["system:bootstrappers", JOINERS]
    assert groups_of(TOKEN, kept(auth_extra_groups=None), MOMENT) == ["system:bootstrappers"]


@pytest.mark.parametrize(
    "changed",
    [
        {"token_secret": "fedcba9876543210"},
        {"token_id": "other1"},
        {"expiration": "2026-01-01T00:00:00Z"},
        {"expiration": "tomorrow"},
        {"usage_bootstrap_authentication": None},
        {"usage_bootstrap_authentication": "True"},
        {"auth_extra_groups": "system:masters"},
        {"auth_extra_groups": f"{JOINERS},system:nodes"},
    ],
)
def test_a_token_whose_secret_does_not_say_all_of_it_is_refused(changed) -> None:
    assert groups_of(TOKEN, kept(**changed), MOMENT) is None


def test_a_secret_that_is_being_deleted_or_of_another_type_makes_nothing_good() -> None:
    secret = kept()
    assert groups_of(TOKEN, {**secret, "type": "Opaque"}, MOMENT) is None
    deleted = {**secret, "metadata": {**secret["metadata"], "deletionTimestamp": LATER}}
    assert groups_of(TOKEN, deleted, MOMENT) is None


def test_without_a_time_a_token_is_good_for_ever() -> None:
    assert not is_expired(kept(expiration=None), MOMENT + timedelta(days=10_000))
    assert is_expired(kept(), MOMENT + timedelta(days=1))


def test_cluster_info_is_signed_by_each_token_and_by_no_other() -> None:
    data = {"kubeconfig": "text", "jws-kubeconfig-gone00": "a..b", "other": "kept"}
    signed = signed_data(data, [TOKEN])
    assert set(signed) == {"kubeconfig", "other", "jws-kubeconfig-abc123"}
    assert signed_data(signed, [TOKEN]) == signed
    assert signed_data({"other": "kept"}, [TOKEN]) == {"other": "kept"}


@pytest.mark.filterwarnings("ignore:The HMAC key")
def test_a_signature_is_a_jws_whose_payload_is_elsewhere() -> None:
    header, payload, signature = detached_signature("text", TOKEN).split(".")
    assert payload == ""
    whole = f"{header}.{base64.urlsafe_b64encode(b'text').rstrip(b'=').decode()}.{signature}"
    found = jwt.api_jws.decode_complete(whole, TOKEN.secret.encode(), algorithms=["HS256"])
    assert found["payload"] == b"text"
    assert found["header"] == {"alg": "HS256", "kid": "abc123"}


def test_only_a_secret_of_the_right_name_signs() -> None:
    assert signing_token(kept(), MOMENT) == TOKEN
    assert signing_token(kept(usage_bootstrap_signing=None), MOMENT) is None
    renamed = kept()
    renamed["metadata"]["name"] = "bootstrap-token-other1"
    assert signing_token(renamed, MOMENT) is None
    assert signing_token(kept(), MOMENT + timedelta(days=2)) is None


def test_every_new_token_is_another() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert parse(str(new_token()))


async def test_what_is_not_a_good_bootstrap_token_is_judged_by_the_next() -> None:
    clock = RealClock()
    secret = secret_of(TOKEN, rfc3339(now(clock) + timedelta(hours=1)), JOINERS)

    async def find(resource, namespace, name):
        return secret if (namespace, name) == ("kube-system", "bootstrap-token-abc123") else None

    async def other(token):
        return UserInfo("somebody") if token == "aaaaaa.bbbbbbbbbbbbbbbb" else None

    verifier = BootstrapTokenVerifier(clock, find, other)
    assert await verifier.verify(str(TOKEN)) == UserInfo("system:bootstrap:abc123", ("system:bootstrappers", JOINERS))
    assert await verifier.verify("abc123.0000000000000000") is None
    assert await verifier.verify("aaaaaa.bbbbbbbbbbbbbbbb") == UserInfo("somebody")
    assert await verifier.verify("a.jwt.token") is None
