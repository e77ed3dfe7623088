"""Docker's config, the Secrets that hold one, and which credentials an image gets."""

import base64
import json
from typing import Any

import pytest

from lastcall.kube.cri.api import AuthConfig
from lastcall.kube.cri.docker_config import (
    DockerConfigError,
    credentials_for,
    parse_docker_config,
    parse_dockercfg,
    parse_pull_secret,
)
from lastcall.kube.cri.sandbox.images.registry_auth import parse_challenges, read_token


def encoded(value: Any) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    ("keys", "image", "users"),
    [
        (["r.example"], "r.example/app", ["r.example"]),
        (["https://r.example/v1/"], "r.example/app", ["https://r.example/v1/"]),
        (["http://r.example/v2"], "r.example/app", ["http://r.example/v2"]),
        (["r.example"], "other.example/app", []),
        (["r.example"], "r.example:5000/app", []),
        (["r.example:5000"], "r.example:5000/app", ["r.example:5000"]),
        (["*.example"], "r.example/app", ["*.example"]),
        (["*.example"], "a.r.example/app", []),
        (["r.example", "r.example/team"], "r.example/team/app", ["r.example/team", "r.example"]),
        (["r.example/team"], "r.example/other/app", []),
        (["https://index.docker.io/v1/"], "docker.io/library/app", ["https://index.docker.io/v1/"]),
        (["docker.io"], "docker.io/library/app", ["docker.io"]),
        (["R.Example"], "r.example/app", ["R.Example"]),
    ],
)
def test_the_credentials_of_an_image(keys: list[str], image: str, users: list[str]) -> None:
    data = json.dumps({"auths": {key: {"username": key} for key in keys}}).encode()
    assert [auth.username for auth in credentials_for(image, [parse_docker_config(data)])] == users


def test_every_form_of_an_entry_is_read() -> None:
    entries = {
        "a": {"auth": base64.b64encode(b"u:p:q").decode()},
        "b": {"username": "u", "password": "p"},
        "c": {"identitytoken": "t", "auth": ""},
        "d": {"registrytoken": "t"},
        "e": {},
    }
    assert dict(parse_docker_config(json.dumps({"auths": entries}).encode()).auths) == {
        "a": AuthConfig("u", "p:q"),
        "b": AuthConfig("u", "p"),
        "c": AuthConfig(identity_token="t"),
        "d": AuthConfig(registry_token="t"),
    }
    assert parse_dockercfg(json.dumps(entries).encode()).auths["b"] == AuthConfig("u", "p")


def test_both_kinds_of_pull_secrets_are_read_and_others_have_nothing() -> None:
    auths = {"r.example": {"username": "u", "password": "p"}}
    new = {"data": {".dockerconfigjson": encoded({"auths": auths})}}
    old = {"data": {".dockercfg": encoded(auths)}}
    for secret in (new, old):
        assert parse_pull_secret(secret).auths == {"r.example": AuthConfig("u", "p")}
    for secret in ({}, {"data": None}, {"data": {"password": "eA=="}}):
        assert parse_pull_secret(secret).auths == {}


@pytest.mark.parametrize("data", ["%%", "eA==", encoded([]), encoded({"auths": {"r": 1}}), 7])
def test_a_broken_pull_secret_is_told(data: Any) -> None:
    with pytest.raises(DockerConfigError):
        parse_pull_secret({"data": {".dockerconfigjson": data}})


def test_a_secret_is_never_in_a_text() -> None:
    auth = AuthConfig("u", "topsecret", "topsecret", "topsecret")
    assert "topsecret" not in repr(auth)
    with pytest.raises(DockerConfigError) as caught:
        parse_docker_config(json.dumps({"auths": {"r": {"auth": "topsecret!"}}}).encode())
    assert "topsecret" not in str(caught.value)


def test_a_helper_is_chosen_by_registry() -> None:
    data = {"credHelpers": {"r.example": "one", "docker.io": "hub"}, "credsStore": "store"}
    found = parse_docker_config(json.dumps(data).encode())
    assert found.helper_for("r.example") == ("one", "r.example")
    assert found.helper_for("docker.io") == ("hub", "docker.io")
    assert found.helper_for("other.example") == ("store", "other.example")
    assert parse_docker_config(b"{}").helper_for("r.example") == ("", "")
    store = parse_docker_config(b'{"credsStore": "store"}')
    assert store.helper_for("docker.io") == ("store", "https://index.docker.io/v1/")


@pytest.mark.parametrize(
    ("header", "schemes"),
    [
        ('Bearer realm="https://a/t",service="s",scope="repository:a:pull,push"', [("bearer", 3)]),
        ('Basic realm="a, b", Bearer realm="c"', [("basic", 1), ("bearer", 1)]),
        ("Negotiate", [("negotiate", 0)]),
        ("Negotiate, Basic realm=x", [("negotiate", 0), ("basic", 1)]),
        ('Bearer realm="a\\"b"', [("bearer", 1)]),
        ("", []),
        ('="', []),
        ("Bearer " + 'a="' * 10000, [("bearer", 0)]),
    ],
)
def test_what_a_registry_asks_for(header: str, schemes: list[tuple[str, int]]) -> None:
    found = parse_challenges([header])
    assert [(each.scheme, len(each.parameters)) for each in found][: len(schemes)] == schemes


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"token": 1}', b'{"token": "a\\r\\nX: y"}', b"[" * 100_000])
def test_an_answer_without_a_usable_token_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="the token server's answer"):
        read_token(body)


def test_the_older_name_of_a_token_is_known() -> None:
    assert read_token(b'{"access_token": "t"}') == "t"
