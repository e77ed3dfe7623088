"""Everything the roles inherit: made by front before the clone, so that nothing has to be sent or written to disk."""

import os
import secrets
import socket
from dataclasses import dataclass, field

from lastcall.apiserver.pki import ClusterCA
from lastcall.cluster.egress import egress_pair
from lastcall.cluster.options import API_INSIDE, KUBERNETES_SERVICE_IP, NODE_IP, NODE_NAME, ClusterOptions
from lastcall.cri.sandbox.cgroups.place import Place, make_place
from lastcall.timeline.ring import Ring
from lastcall.world.world import World

ROLES = ("init", "control-plane", "node-1", "shim-1", "front")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """PEM, in memory only."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Credentials:
    """The cluster's certificate authority and what it issued. The admin token is the only secret front keeps."""

    ca_certificate: bytes
    service_account_key: bytes
    api_server: KeyPair
    api_server_client: KeyPair
    kubelet_server: KeyPair
    kubelet_client: KeyPair
    admin_token: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What front made. `rings` and `logs` are per role; `wake_fd` is an eventfd that every ring writer signals.

    `boot_id` is this cluster's, as a machine has one for every boot. `inside_sockets` are the API's listening sockets
    in the cluster's network namespace, opened by init. `cgroups` is where the containers' groups go.
    `egress_front` and `egress_node` are the two ends of the way out (`cluster/egress.py`).
    """

    options: ClusterOptions
    credentials: Credentials
    api_socket: socket.socket
    api_port: int
    rings: dict[str, Ring]
    logs: dict[str, int]
    wake_fd: int
    egress_front: socket.socket
    egress_node: socket.socket
    boot_id: str = ""
    inside_sockets: list[socket.socket] = field(default_factory=list)
    cgroups: Place = field(default_factory=lambda: Place("none", {}, "none were asked for"))


def issue_credentials() -> Credentials:
    """A fresh authority and its certificates (EC P-256; a few milliseconds)."""
    ca = ClusterCA.create()

    def server(*names: str) -> KeyPair:
        return KeyPair(*ca.issue_server(list(names)))

    def client(name: str, *groups: str) -> KeyPair:
        return KeyPair(*ca.issue_client(name, list(groups)))

    return Credentials(
        ca_certificate=ca.certificate_pem,
        service_account_key=ca.new_key_pem(),
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
        ),
        api_server_client=client("kube-apiserver-kubelet-client", "system:masters"),
        kubelet_server=server(NODE_NAME, NODE_IP),
        kubelet_client=client(f"system:node:{NODE_NAME}", "system:nodes"),
        admin_token=secrets.token_urlsafe(32),
    )


def make_plan(options: ClusterOptions) -> Plan:
    """Open the listening socket (127.0.0.1, a free port), make the rings and the credentials. Raises OSError."""
    api_socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    api_socket.bind(("127.0.0.1", 0))
    api_socket.listen(1024)
    wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    egress_front, egress_node = egress_pair()
    return Plan(
        options=options,
        credentials=issue_credentials(),
        api_socket=api_socket,
        api_port=api_socket.getsockname()[1],
        rings={role: Ring.create(f"lastcall-{role}", wake_fd) for role in ROLES},
        logs={role: os.memfd_create(f"lastcall-log-{role}", os.MFD_CLOEXEC) for role in ROLES if role != "front"},
        wake_fd=wake_fd,
        boot_id=World().new_uid(),
        cgroups=make_place(options.name),
        egress_front=egress_front,
        egress_node=egress_node,
    )
