"""What a cluster is started with, and the addresses and directories inside it."""

import os
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lastcall.kube.api.features.releases import DEFAULT_VERSION
from lastcall.kube.cluster.layout import CONTROL_PLANE_IP, STATE_DIR, NodeLayout, layouts, roles
from lastcall.kube.cluster.node_capacity import NodeCapacity
from lastcall.kube.cluster.propagation import PropagationPlan
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from socket import socket

    from lastcall.kube.apiserver.audit.log import AuditOptions
    from lastcall.kube.store.etcd.options import EtcdOptions

DURABLE_DIR = f"{STATE_DIR}/durable"
"""What outlives a process of the cluster: the store, the runtime's records. With `state` it is that directory of the
host, else a tmpfs of its own, which no Pod can fill."""

LOCAL_PATH_DIR = f"{DURABLE_DIR}/local-path-provisioner"
"""The directories of claims."""

STORE_BYTES = min(2 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
"""Of the store's file at most: etcd's default quota, and not more than a quarter of the machine's memory."""

STATIC_PODS_DIR = f"{STATE_DIR}/static-pods"
"""The host's directory of manifests, read-only; there only with `ClusterOptions.static_pods`."""

API_INSIDE = ("127.0.0.1", 6443)
API_ENDPOINT = (CONTROL_PLANE_IP, 6443)
"""Where Pods of any node reach the API server, as the endpoint of the Service `kubernetes`."""
KUBERNETES_SERVICE_IP = "10.96.0.1"
KUBERNETES_SERVICE_PORT = 443
CLUSTER_DNS_IP = "10.96.0.10"
"""Every node answers on it (`kube/proxy/dns.py`), for its own Pods."""
SERVICE_CIDR = "10.96.0.0/16"
LOAD_BALANCER_CIDR = "172.18.255.0/24"
"""Addresses of Services of type LoadBalancer. They belong to no interface: the proxy of each node answers for them."""
NODE_CIDR = "172.18.0.0/16"
"""The nodes, the control plane and the load balancers."""
CLUSTER_CIDR = "10.244.0.0/16"
"""The Pods of all nodes."""
KUBELET_PORT = 10250


class LoadRole(Protocol):
    """A load generator, which the user of the cluster brings: a process in the first node's network."""

    def serve(self, sock: "socket", runs: "Callable[[AbstractEventLoop], None]") -> None:
        """Send what is asked for over `sock` until killed. Call `runs` with the loop once it turns."""

    async def client(self, sock: "socket") -> Any:
        """Return what talks to `serve` over the other end."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """`state_size` is the size cap of Pods' tmpfs, as mount(8) takes it (`50%` of memory, `4g`); the store has its own.
    `store` is `memory` for a cluster of one command, `sqlite` (in `DURABLE_DIR`) for one that stays, or `etcd`, which
    `etcd` says how to reach. `service_account_key` signs tokens in place of a key of the cluster's own. `state` is an
    absolute path of the host that is bound on `DURABLE_DIR`, "" for none. `restart_roles`: init starts a node process,
    a shim or, with the sqlite store, a control plane that died again; otherwise such a death is the end of the command.
    `static_pods` is an absolute path of the host with manifests of static Pods, "" for none; they are node-1's.
    `controllers` False leaves them to `lastcall controller-manager`, `scheduler` False that to `lastcall scheduler`.
    `nodes` is how many there are, `numbers` which ones where some of a kept cluster are missing. `load` sends requests,
    None for no such process. `propagation` is how long changes of endpoints take. `max_pods` is the kubelet's maxPods:
    a node has 254 addresses for them. `node_capacity` makes nodes smaller than the machine. `egress`: Pods reach names
    and TCP ports outside, through front. `container_log_max_size` and `container_log_max_files` are the kubelet's
    containerLogMaxSize (a quantity; negative: no rotation) and containerLogMaxFiles. `cni_conf_dir` is an absolute path
    of the host: the Pod network is what its first file configures, on a node for which it has a directory of the node's
    name what that one's does; "" is the built-in routing. `cni_bin_dir` is where the plugins are, "" for the usual
    places. `feature_gates` are settings that `api.feature_gates` has checked. `seccomp_default` is the kubelet's
    seccompDefault. `container_runtime` is the absolute path of the socket of another container runtime, "" for
    lastcall's own. `audit` is where the API server writes down what is asked of it, None for nowhere.
    """

    kubernetes_version: str = DEFAULT_VERSION
    name: str = "lastcall"
    state_size: str = "50%"
    store: Literal["memory", "sqlite", "etcd"] = "memory"
    etcd: "EtcdOptions | None" = None
    service_account_key: bytes = b""
    state: str = ""
    restart_roles: bool = False
    static_pods: str = ""
    controllers: bool = True
    scheduler: bool = True
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    container_log_max_size: str = "10Mi"
    container_log_max_files: int = 5
    nodes: int = 1
    numbers: tuple[int, ...] = ()
    load: LoadRole | None = None
    max_pods: int = 110
    node_capacity: NodeCapacity = field(default_factory=NodeCapacity)
    cni_conf_dir: str = ""
    cni_bin_dir: str = ""
    container_runtime: str = ""
    egress: bool = False
    seccomp_default: bool = True
    audit: "AuditOptions | None" = None
    propagation: PropagationPlan = field(default_factory=PropagationPlan)

    @property
    def layouts(self) -> tuple[NodeLayout, ...]:
        """Return the nodes that the cluster starts with."""
        return layouts(self.nodes, self.numbers)

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the processes that the cluster starts with."""
        return roles(self.layouts, self.load is not None)
