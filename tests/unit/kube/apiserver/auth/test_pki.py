"""The cluster's authority, in memory."""

import os
import socket
import ssl
import threading

import pytest

from lastcall.kube.apiserver.auth.authentication import certificate_user
from lastcall.kube.apiserver.auth.pki import ClusterCA, new_key_pem
from lastcall.kube.apiserver.auth.tls import client_context, server_context


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> dict | None:
    """The client certificate the server saw; raises what the client's side of the handshake raises."""
    left, right = socket.socketpair()
    seen: list[dict | None] = []

    def serve() -> None:
        try:
            with server.wrap_socket(left, server_side=True) as tls:
                seen.append(tls.getpeercert())
                tls.recv(1)
        except OSError:
            left.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(right, server_hostname=name) as tls:
            tls.send(b"x")
    finally:
        right.close()
        thread.join(60)
    return seen[0]


def test_a_server_is_trusted_by_name_and_address_and_sees_who_the_client_is() -> None:
    ca = ClusterCA.create()
    server = server_context(*ca.issue_server(["localhost", "127.0.0.1"]), client_ca=ca.certificate_pem)
    client = client_context(ca.certificate_pem, *ca.issue_client("system:node:n1", ["system:nodes", "other"]))
    for name in ("localhost", "127.0.0.1"):
        peer = handshake(server, client, name)
        assert peer is not None
        user = certificate_user(peer)
        assert user is not None
        assert user.name == "system:node:n1"
        assert sorted(user.groups) == ["other", "system:authenticated", "system:nodes"]


def test_a_client_without_certificate_is_welcome() -> None:
    ca = ClusterCA.create()
    server = server_context(*ca.issue_server(["localhost"]), client_ca=ca.certificate_pem)
    assert not handshake(server, client_context(ca.certificate_pem), "localhost")


@pytest.mark.parametrize("wrong", ["name", "authority"])
def test_a_client_refuses_a_server_it_should_not_trust(wrong: str) -> None:
    ca = ClusterCA.create()
    server = server_context(*ca.issue_server(["localhost"]))
    trusted = ca if wrong == "name" else ClusterCA.create()
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, client_context(trusted.certificate_pem), "example.com" if wrong == "name" else "localhost")


def test_an_authority_can_be_loaded_again_and_goes_on_signing() -> None:
    ca = ClusterCA.create()
    again = ClusterCA.load(ca.certificate_pem, ca.key_pem)
    server = server_context(*again.issue_server(["localhost"]))
    handshake(server, client_context(ca.certificate_pem), "localhost")


def test_no_file_and_no_open_descriptor_is_left() -> None:
    ca = ClusterCA.create()
    before = os.listdir("/proc/self/fd")
    server_context(*ca.issue_server(["localhost"]), client_ca=ca.certificate_pem)
    assert os.listdir("/proc/self/fd") == before


def test_every_key_is_new() -> None:
    assert new_key_pem() != new_key_pem()
