"""The cluster's keys and certificates, and where they are made.

They are made in a process that lives only for that: `cryptography` takes 60 ms and 12 MB, of which front needs nothing
afterwards, and on a second processor it costs the start no time.
"""

# check: prints because a failure of our own code is for the people who debug it
# check: starts processes because it makes the cluster's certificates in a fork that ends with it

import json
import os
import secrets
import signal
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any, NoReturn, Self

from lastcall.kube.apiserver.proxying.aggregation.front_proxy import FRONT_PROXY_CLIENT
from lastcall.kube.cluster.layout import CONTROL_PLANE_IP, NodeLayout
from lastcall.kube.cluster.options import API_INSIDE, KUBERNETES_SERVICE_IP
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KeyPair:
    """PEM, in memory only."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Identity:
    """What has to stay the same for a kubeconfig or a token to go on working: all secrets, PEM but for the token."""

    ca_certificate: bytes
    ca_key: bytes = field(repr=False)
    service_account_key: bytes = field(repr=False)
    admin_token: str = field(repr=False)

    @classmethod
    def new(cls) -> Self:
        """Create a new identity."""
        # late: 49 ms of the start of `rollout`
        from lastcall.kube.apiserver.auth.pki import ClusterCA

        ca = ClusterCA.create()
        return cls(ca.certificate_pem, ca.key_pem, ca.new_key_pem(), secrets.token_urlsafe(32))


@dataclass(frozen=True, slots=True)
class Credentials:
    """The cluster's certificate authority and what it issued, for the kubelets by node.

    Each client of the API has a certificate of its own, and with it the rights that Kubernetes gives to such a
    component (`kube/apiserver/auth/node_rules.py`, `auth/bootstrap_policy.py`). The admin token is the only secret
    front keeps.
    """

    ca_certificate: bytes
    ca_key: bytes = field(repr=False)
    """Signs what CertificateSigningRequests ask for."""
    service_account_key: bytes
    api_server: KeyPair
    api_server_client: KeyPair
    kubelet_server: dict[str, KeyPair]
    kubelet_client: dict[str, KeyPair]
    kube_proxy: KeyPair
    coredns: KeyPair
    network_policies: KeyPair
    front_proxy_ca_certificate: bytes
    """Of an authority of its own: who may say on whose behalf a request comes. Made anew at each start."""
    front_proxy: KeyPair
    admin_token: str


def issue_credentials(identity: Identity, nodes: Sequence[NodeLayout]) -> Credentials:
    """Issue the certificates of the identity's authority (EC P-256; a few milliseconds). Raises ValueError."""
    # late: 49 ms of the start of `rollout`
    from lastcall.kube.apiserver.auth.pki import ClusterCA

    ca = ClusterCA.load(identity.ca_certificate, identity.ca_key)
    front_proxy_ca = ClusterCA.create("front-proxy-ca")

    def server(*names: str) -> KeyPair:
        return KeyPair(*ca.issue_server(list(names)))

    def client(name: str, *groups: str) -> KeyPair:
        return KeyPair(*ca.issue_client(name, list(groups)))

    return Credentials(
        ca_certificate=ca.certificate_pem,
        ca_key=ca.key_pem,
        service_account_key=identity.service_account_key,
        api_server=server(
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "127.0.0.1",
            "::1",
            API_INSIDE[0],
            KUBERNETES_SERVICE_IP,
            CONTROL_PLANE_IP,
        ),
        api_server_client=client("kube-apiserver-kubelet-client", "system:masters"),
        kubelet_server={each.name: server(each.name, each.ip) for each in nodes},
        kubelet_client={each.name: client(f"system:node:{each.name}", "system:nodes") for each in nodes},
        kube_proxy=client("system:kube-proxy"),
        # The ServiceAccount that CoreDNS has in a cluster of kubeadm, and its groups.
        coredns=client(
            "system:serviceaccount:kube-system:coredns", "system:serviceaccounts", "system:serviceaccounts:kube-system"
        ),
        network_policies=client(
            "system:serviceaccount:kube-system:kube-network-policies",
            "system:serviceaccounts",
            "system:serviceaccounts:kube-system",
        ),
        front_proxy_ca_certificate=front_proxy_ca.certificate_pem,
        front_proxy=KeyPair(*front_proxy_ca.issue_client(FRONT_PROXY_CLIENT)),
        admin_token=identity.admin_token,
    )


class Issuing:
    """`issue_credentials` in a process of its own, begun at once; `result` once.

    Must begin before the first thread of this process, because that is a fork of it. `identity` None is a fresh one.
    Raises OSError.
    """

    def __init__(self, identity: Identity | None, nodes: Sequence[NodeLayout]) -> None:
        self._read, write = os.pipe2(os.O_CLOEXEC)
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._read)
            os.close(write)
            raise
        if self._pid == 0:
            _issue(identity, nodes, write)
        os.close(write)

    def result(self) -> Credentials:
        """Wait for the credentials. Raises ValueError for an unusable identity, OSError if the process died."""
        with os.fdopen(self._read, "rb") as file:
            content = file.read()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        if not content:
            raise OSError("the process that issues the cluster's certificates ended too early")
        answer = json.loads(content)
        if "error" in answer:
            raise ValueError(answer["error"])
        return _decoded(answer)


def _issue(identity: Identity | None, nodes: Sequence[NodeLayout], write: int) -> NoReturn:
    code = 70
    try:
        # Ctrl-C is front's business, which then closes the other end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            answer = _encoded(issue_credentials(identity or Identity.new(), nodes))
        except ValueError as error:
            answer = {"error": str(error)}
        with os.fdopen(write, "wb") as file:
            file.write(json.dumps(answer).encode())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _encoded(credentials: Credentials) -> dict[str, Any]:
    def pair(one: KeyPair) -> list[str]:
        return [one.certificate.decode(), one.key.decode()]

    return {
        "ca": credentials.ca_certificate.decode(),
        "caKey": credentials.ca_key.decode(),
        "serviceAccountKey": credentials.service_account_key.decode(),
        "apiServer": pair(credentials.api_server),
        "apiServerClient": pair(credentials.api_server_client),
        "kubeletServer": {name: pair(one) for name, one in credentials.kubelet_server.items()},
        "kubeletClient": {name: pair(one) for name, one in credentials.kubelet_client.items()},
        "kubeProxy": pair(credentials.kube_proxy),
        "coreDNS": pair(credentials.coredns),
        "networkPolicies": pair(credentials.network_policies),
        "frontProxyCA": credentials.front_proxy_ca_certificate.decode(),
        "frontProxy": pair(credentials.front_proxy),
        "adminToken": credentials.admin_token,
    }


def _decoded(answer: dict[str, Any]) -> Credentials:
    def pair(texts: list[str]) -> KeyPair:
        return KeyPair(texts[0].encode(), texts[1].encode())

    return Credentials(
        ca_certificate=answer["ca"].encode(),
        ca_key=answer["caKey"].encode(),
        service_account_key=answer["serviceAccountKey"].encode(),
        api_server=pair(answer["apiServer"]),
        api_server_client=pair(answer["apiServerClient"]),
        kubelet_server={name: pair(texts) for name, texts in answer["kubeletServer"].items()},
        kubelet_client={name: pair(texts) for name, texts in answer["kubeletClient"].items()},
        kube_proxy=pair(answer["kubeProxy"]),
        coredns=pair(answer["coreDNS"]),
        network_policies=pair(answer["networkPolicies"]),
        front_proxy_ca_certificate=answer["frontProxyCA"].encode(),
        front_proxy=pair(answer["frontProxy"]),
        admin_token=answer["adminToken"],
    )
