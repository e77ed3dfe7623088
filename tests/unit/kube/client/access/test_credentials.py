"""Tokens and certificates in files that others replace."""

import base64

import pytest

from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.client.access.config import ClientConfig, Impersonation, Overrides
from lastcall.kube.client.access.credentials import AGAIN_SECONDS, Credentials
from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.kube.client.access.pod import pod_config


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_token_that_was_replaced_is_used_after_a_while_and_one_that_is_empty_is_not(tmp_path):
    file, clock = tmp_path / "token", Clock()
    credentials = Credentials(ClientConfig("http://h:1", token="one", token_file=str(file)), None, clock)
    file.write_text("two\n")
    assert (await credentials.proof()).authorization == "Bearer one"
    clock.now += AGAIN_SECONDS
    assert (await credentials.proof()).authorization == "Bearer two"
    for broken in (lambda: file.write_text(""), file.unlink):
        broken()
        clock.now += AGAIN_SECONDS
        assert (await credentials.proof()).authorization == "Bearer two"


async def test_a_refused_token_is_read_again_at_once(tmp_path):
    file = tmp_path / "token"
    credentials = Credentials(ClientConfig("http://h:1", token="one", token_file=str(file)), None, Clock())
    proof = await credentials.proof()
    assert not await credentials.refused(proof)
    file.write_text("two")
    assert await credentials.refused(proof)
    assert await credentials.refused(proof), "another request has found it"
    assert (await credentials.proof()).authorization == "Bearer two"


async def test_a_certificate_is_replaced_when_both_files_fit(tmp_path):
    ca, clock = ClusterCA.create(), Clock()
    pairs = [ca.issue_client(name) for name in ("a", "b")]
    cert, key = tmp_path / "c.crt", tmp_path / "c.key"
    config = ClientConfig(
        "https://h:1",
        ca_pem=ca.certificate_pem,
        cert_pem=pairs[0][0],
        key_pem=pairs[0][1],
        cert_file=str(cert),
        key_file=str(key),
    )
    credentials = Credentials(config, None, clock)
    first = (await credentials.proof()).tls
    cert.write_bytes(pairs[1][0])
    key.write_bytes(pairs[0][1])
    clock.now += AGAIN_SECONDS
    assert (await credentials.proof()).tls is first, "half of it is replaced"
    key.write_bytes(pairs[1][1])
    clock.now += AGAIN_SECONDS
    assert (await credentials.proof()).tls is not first


async def test_a_password():
    credentials = Credentials(ClientConfig("http://h:1", username="ada", password="lo:ve"))
    word, _, text = (await credentials.proof()).authorization.partition(" ")
    assert (word, base64.b64decode(text)) == ("Basic", b"ada:lo:ve")


def test_secrets_are_not_shown():
    text = repr(ClientConfig("http://h:1", token="hush", password="hush", key_pem=b"hush", proxy_url="http://a:hush@b"))
    assert "hush" not in text


def test_a_pod_has_the_configuration_of_its_service_account(tmp_path):
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert pod_config(Overrides(), environ, tmp_path) is None
    (tmp_path / "token").write_text("t\n")
    (tmp_path / "ca.crt").write_text("ca")
    (tmp_path / "namespace").write_text("shop")
    config = pod_config(Overrides(impersonate=Impersonation("jane")), environ, tmp_path)
    assert config is not None
    assert (config.server, config.namespace, config.token) == ("https://[fd00::1]:443", "shop", "t")
    assert (config.token_file, config.ca_pem) == (str(tmp_path / "token"), b"ca")
    assert config.impersonate.user == "jane"
    assert pod_config(Overrides(), {}, tmp_path) is None
    other = pod_config(Overrides(namespace="other"), {**environ, "POD_NAMESPACE": "pod"}, tmp_path)
    assert other is not None and other.namespace == "other"
    with pytest.raises(KubeconfigError, match="there is no kubeconfig in this Pod"):
        pod_config(Overrides("x"), environ, tmp_path)
