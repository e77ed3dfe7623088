"""Certificates made in a process of its own."""

import os
import ssl

import pytest

from lastcall.kube.apiserver.auth.tls import client_context, server_context
from lastcall.kube.cluster.layout import layouts
from lastcall.kube.cluster.staying import credentials
from lastcall.kube.cluster.staying.credentials import Credentials, Identity, Issuing

pytestmark = pytest.mark.loopback


def test_the_other_process_s_certificates_are_those_of_the_given_identity() -> None:
    identity = Identity.new()
    made = Issuing(identity, layouts(2)).result()
    assert isinstance(made, Credentials)
    assert made.ca_certificate == identity.ca_certificate
    assert made.service_account_key == identity.service_account_key
    assert made.admin_token == identity.admin_token
    assert list(made.kubelet_server) == list(made.kubelet_client) == ["node-1", "node-2"]
    for pair in (made.api_server, *made.kubelet_server.values()):
        assert isinstance(server_context(pair.certificate, pair.key), ssl.SSLContext)
    for pair in (made.api_server_client, *made.kubelet_client.values()):
        assert isinstance(client_context(made.ca_certificate, pair.certificate, pair.key), ssl.SSLContext)


def test_without_an_identity_there_is_a_new_one_each_time() -> None:
    first, second = Issuing(None, layouts(1)), Issuing(None, layouts(1))
    assert first.result().admin_token != second.result().admin_token


def test_an_identity_that_cannot_be_used_is_an_error_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"."):
        Issuing(Identity(b"no certificate", b"no key", b"", ""), layouts(1)).result()


def test_a_process_that_dies_is_an_error_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "issue_credentials", lambda *_: os._exit(1))
    issuing = Issuing(None, layouts(1))
    with pytest.raises(OSError, match="ended too early"):
        issuing.result()
    with pytest.raises(ChildProcessError):
        os.waitpid(issuing._pid, os.WNOHANG)
