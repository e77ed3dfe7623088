"""Makes a node known to its cluster: client certificate, Node object, and what the cluster says of Pods and names.

In a process of its own, before the node's: those are forks of a process that has no thread and no event loop yet. A
node that was there before continues with its certificate; the token is for the first time only (kubelet
certificate/bootstrap/bootstrap.go:LoadClientCert).
"""

import asyncio
import os
import signal
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import orjson
import yaml
from cryptography import x509

from lastcall.api.errors import StatusError, is_already_exists, is_not_found
from lastcall.api.meta import Object
from lastcall.api.pods.spec import get_condition
from lastcall.api.resources import CERTIFICATESIGNINGREQUESTS, CONFIGMAPS, NODES, SERVICES
from lastcall.api.text.bootstrap_tokens import parse
from lastcall.apiserver.auth.pki import hash_of
from lastcall.client.access.config import ClientConfig
from lastcall.client.access.errors import KubeconfigError
from lastcall.client.access.reviews import denied
from lastcall.client.access.rights import Right
from lastcall.client.api import ConnectionLost
from lastcall.client.http import HTTPClient
from lastcall.client.kubeconfig import client_for
from lastcall.cluster.joined.asked import Asked
from lastcall.cluster.joined.certificates import NotIssued, request_certificate
from lastcall.cluster.joined.discovery import DiscoveryError, discover
from lastcall.cluster.joined.facts import Joined
from lastcall.cluster.joined.files import KUBE_PROXY, KUBELET_CLIENT, KUBELET_SERVER, FileCredentials, PairFile
from lastcall.cluster.joined.link import kubelet_socket
from lastcall.cluster.joined.requests import (
    CLIENT_SIGNER,
    KUBELET_CLIENT_SIGNER,
    KUBELET_SERVING_SIGNER,
    Wanted,
    is_approved,
    is_good,
    kubelet_client,
)
from lastcall.cluster.layout import layouts
from lastcall.cluster.machines.settings import CONFIG_MAP, NAMESPACE, PodNetwork, SettingsError, from_config_map
from lastcall.world import linux
from lastcall.world.clock import now
from lastcall.world.files import replace_file
from lastcall.world.remove_tree import remove_tree
from lastcall.world.world import World

AGENT = "kubelet"
CIDR_SECONDS = 30.0
"""For the controller that gives a new Node its podCIDR."""
_LOOK_SECONDS = 0.25
KEPT = "cluster.json"
_GROUP = "certificates.k8s.io"
_APPROVING = (
    *(
        Right(user="", verb=verb, resource="certificatesigningrequests", group=_GROUP)
        for verb in ("get", "list", "watch")
    ),
    Right(user="", verb="update", resource="certificatesigningrequests/approval", group=_GROUP),
    *(
        Right(user="", verb="approve", resource="signers", group=_GROUP, name=signer)
        for signer in (CLIENT_SIGNER, KUBELET_CLIENT_SIGNER, KUBELET_SERVING_SIGNER)
    ),
)
_APPROVED_BY = "lastcall node join approved it for the administrator who started it"
_WAYS = (
    "fix: --kubeconfig FILE, --bootstrap-kubeconfig FILE, or SERVER --token TOKEN --discovery-token-ca-cert-hash HASH"
)

Say = Callable[[str], None]


class EnrollError(Exception):
    """The text says what failed, and the fix."""


async def enroll(world: World, asked: Asked, pki: str, say: Say) -> tuple[Joined, bool]:
    """What the node has to know, and whether the kubeconfig's user may approve its certificates. Raises EnrollError."""
    try:
        async with asyncio.timeout(asked.timeout):
            return await _enroll(world, asked, pki, say)
    except TimeoutError:
        raise EnrollError(f"the node was not known to the cluster within {asked.timeout:g} s (--timeout)") from None
    except (DiscoveryError, NotIssued, KubeconfigError, ConnectionLost) as error:
        raise EnrollError(str(error)) from error
    except StatusError as error:
        fix = "; fix: a token or kubeconfig that is good now" if error.code == 401 else ""
        raise EnrollError(f"the API server refuses: {error.message}{fix}") from error


async def _enroll(world: World, asked: Asked, pki: str, say: Say) -> tuple[Joined, bool]:
    config = await _config(asked, pki)
    forget_another_cluster(config, pki)
    administrator = asked.administrator and await _may_approve(config)
    if asked.administrator and not administrator:
        say(
            "the user of the kubeconfig may not approve certificates: the node's requests wait for "
            "kubectl certificate approve"
        )
    wanted = kubelet_client(asked.node_name)
    file = PairFile(pki, wanted.file)
    pair = file.read()
    own = _client(config, FileCredentials(file, config.ca_pem))
    try:
        is_first = pair is None or not is_good(pair.certificate, wanted, now(world.clock)) or not await _is_known(own)
        if is_first:
            if asked.config is None and not asked.server:
                raise EnrollError(f"node {asked.node_name} has no client certificate that is good now; {_WAYS}")
            await _first_certificate(world, config, file, wanted, say, approves=administrator)
        keep_cluster(config, pki, say)
        joined = Joined(
            server=config.server,
            ca_certificate=config.ca_pem,
            tls_server_name=config.tls_server_name,
            node_name=asked.node_name,
            node_ip=asked.node_ip or _address_towards(config.server),
            kubelet_port=asked.kubelet_port,
            pod_cidr="",
            labels=dict(asked.labels),
            taints=tuple({"key": key, "value": value, "effect": effect} for key, value, effect in asked.taints),
        )
        _check_port(joined)
        if is_first and (address := await _other_machine(own, joined)):
            file.forget()
            raise EnrollError(
                f"node {joined.node_name} is Ready on another machine ({address}); fix: --node-name with another name"
            )
        pod_cidr = asked.pod_cidr or await _pod_cidr(world, own, joined, say)
        servers, domain = await _dns(own)
        joined = replace(
            joined,
            pod_cidr=pod_cidr,
            cluster_dns=asked.cluster_dns or servers,
            cluster_domain=asked.cluster_domain or domain,
            pod_network=await _pod_network(own, say),
        )
        return joined, administrator
    finally:
        await own.close()


async def _config(asked: Asked, pki: str) -> ClientConfig:
    if asked.config is not None:
        return asked.config
    if not asked.server:
        if (kept := _kept_config(pki)) is None:
            raise EnrollError(f"this node has joined no cluster before; {_WAYS}")
        return kept
    token = parse(asked.token)
    assert token is not None  # the command line has checked it
    return await discover(asked.server, token, asked.hashes)


def forget_another_cluster(config: ClientConfig, pki: str) -> None:
    """Certificates that another cluster issued prove nothing to this one, and look as good: same names, same life."""
    kept = _kept_config(pki)
    if kept is not None and not _is_same_cluster(kept, config):
        for name in (KUBELET_CLIENT, KUBELET_SERVER, KUBE_PROXY):
            PairFile(pki, name).forget()


def _is_same_cluster(one: ClientConfig, other: ClientConfig) -> bool:
    """Whether they have an authority in common, under whatever address."""
    try:
        first, second = ({hash_of(each) for each in x509.load_pem_x509_certificates(c.ca_pem)} for c in (one, other))
    except ValueError:  # the machine's own authorities
        return one.server == other.server
    return not first.isdisjoint(second)


def _kept_config(pki: str) -> ClientConfig | None:
    """Of the cluster that the node joined before; None when it has joined none."""
    try:
        kept = orjson.loads((Path(pki) / KEPT).read_bytes())
        return ClientConfig(
            str(kept["server"]), ca_pem=str(kept["ca"]).encode(), tls_server_name=str(kept["tlsServerName"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_cluster(config: ClientConfig, pki: str, say: Say) -> None:
    """The cluster has taken the node: what an earlier one's containers left is forgotten, as by `kubeadm reset`.

    A static Pod has the same uid in every cluster; it would be told as restarted, and Pods of the earlier cluster as
    running. Raises OSError. Killed in between, it is done again by the next start.
    """
    earlier = _kept_config(pki)
    if earlier is not None and not _is_same_cluster(earlier, config):
        records = Path(pki).parent / layouts(1)[0].runtime_records
        if records.exists():
            say(f"the node was one of {earlier.server}: what it knew of that cluster's containers is forgotten")
            remove_tree(str(records))
    kept = {"server": config.server, "ca": config.ca_pem.decode(), "tlsServerName": config.tls_server_name}
    replace_file(f"{pki}/{KEPT}", orjson.dumps(kept), temporary=f"{pki}/.{KEPT}.new")


async def _may_approve(config: ClientConfig) -> bool:
    client = _client(config, None)
    try:
        return not await denied(client.request, _APPROVING)
    finally:
        await client.close()


def _client(config: ClientConfig, credentials: FileCredentials | None) -> HTTPClient:
    return client_for(config, credentials=credentials, user_agent=f"{AGENT} (lastcall)")


async def _is_known(own: HTTPClient) -> bool:
    """Whether the API server still takes the kept certificate. Raises ConnectionLost."""
    try:
        await own.list(NODES, field_selector="metadata.name=nobody")
    except StatusError as error:
        return error.code != 401
    return True


async def _first_certificate(
    world: World, config: ClientConfig, file: PairFile, wanted: Wanted, say: Say, *, approves: bool
) -> None:
    client = _client(config, None)

    async def asked(name: str) -> None:
        if approves:
            await approve(client, name)

    def waits(name: str) -> None:
        say(f"certificate request {name} waits for an approval: kubectl certificate approve {name}")

    try:
        await request_certificate(world, client, file, wanted, waits=waits, asked=asked)
    finally:
        await client.close()


async def approve(client: HTTPClient, name: str) -> None:
    """As `kubectl certificate approve`; what is decided stays. Raises StatusError, ConnectionLost."""
    csr = await client.get(CERTIFICATESIGNINGREQUESTS, name)
    if is_approved(csr):
        return
    condition = {"type": "Approved", "status": "True", "reason": "LastcallNodeJoin", "message": _APPROVED_BY}
    body = {**csr, "status": {**(csr.get("status") or {}), "conditions": [condition]}}
    try:
        await client.update(CERTIFICATESIGNINGREQUESTS, body, subresource="approval")
    except StatusError as error:
        if error.code != 409:  # somebody else was faster
            raise


async def _other_machine(own: HTTPClient, joined: Joined) -> str:
    """The address of the machine that is Ready under that name already, "" for none (kubeadm app/cmd/join.go)."""
    try:
        return address_elsewhere(await own.get(NODES, joined.node_name), joined.node_ip)
    except StatusError as error:
        if not is_not_found(error):
            raise
        return ""


def address_elsewhere(node: Object, own_address: str) -> str:
    """The InternalIP of a Node that is Ready on another machine, else ""."""
    status = node.get("status") or {}
    ready = get_condition(status, "Ready") or {}
    addresses = [each["address"] for each in status.get("addresses") or () if each.get("type") == "InternalIP"]
    if ready.get("status") != "True" or own_address in addresses:
        return ""
    return str(addresses[0]) if addresses else ""


async def _pod_cidr(world: World, own: HTTPClient, joined: Joined, say: Say) -> str:
    """The Node's; it is registered for that. Raises EnrollError when nobody gives it one."""
    try:
        node = await own.create(NODES, unready_node(joined))
    except StatusError as error:
        if not is_already_exists(error):
            raise
        node = await own.get(NODES, joined.node_name)
    waited = 0.0
    while not (found := str((node.get("spec") or {}).get("podCIDR") or "")):
        if waited == 1.0:
            say(f"waits for the podCIDR of node {joined.node_name}")
        if waited >= CIDR_SECONDS:
            raise EnrollError(
                f"nobody gave node {joined.node_name} a podCIDR within {CIDR_SECONDS:g} s: the cluster's "
                "kube-controller-manager has no --allocate-node-cidrs; fix: --pod-cidr with a range of its own"
            )
        await world.clock.sleep(_LOOK_SECONDS)
        waited += _LOOK_SECONDS
        node = await own.get(NODES, joined.node_name)
    return found


def unready_node(joined: Joined) -> Object:
    """The Node before its kubelet runs: it takes no Pods yet."""
    labels = {"kubernetes.io/hostname": joined.node_name, "kubernetes.io/os": "linux", **joined.labels}
    taints = [dict(each) for each in joined.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": joined.node_name, "labels": labels},
        "spec": {"taints": taints} if taints else {},
    }


async def _dns(own: HTTPClient) -> tuple[tuple[str, ...], str]:
    """(servers, domain) as the cluster's kubelets have them: kubeadm's ConfigMap, else the Service kube-dns."""
    with suppress(StatusError, yaml.YAMLError, ValueError, AttributeError):
        found = await own.get(CONFIGMAPS, "kubelet-config", "kube-system")
        said = yaml.safe_load((found.get("data") or {}).get("kubelet") or "") or {}
        if servers := tuple(str(each) for each in said.get("clusterDNS") or ()):
            return servers, str(said.get("clusterDomain") or "cluster.local")
    with suppress(StatusError):
        service = await own.get(SERVICES, "kube-dns", "kube-system")
        address = str((service.get("spec") or {}).get("clusterIP") or "")
        if address not in ("", "None"):
            return (address,), "cluster.local"
    return (), "cluster.local"


async def _pod_network(own: HTTPClient, say: Say) -> PodNetwork | None:
    """Of several machines, as `lastcall up --pod-network` tells it. None when others see to that."""
    try:
        return from_config_map(await own.get(CONFIGMAPS, CONFIG_MAP, NAMESPACE))
    except StatusError:
        return None  # not there, or not for a node to read: no cluster of lastcall's
    except SettingsError as error:
        say(f"Pods of other machines are not routed: ConfigMap {NAMESPACE}/{CONFIG_MAP}: {error}")
        return None


def _check_port(joined: Joined) -> None:
    """Before there is a Node that nobody runs. Raises EnrollError."""
    try:
        kubelet_socket(joined).close()
    except OSError as error:
        raise EnrollError(error.strerror or str(error)) from None


def _address_towards(server: str) -> str:
    """This machine's address on the way to the API server. Raises EnrollError."""
    parts = urlsplit(server)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect((parts.hostname or "", parts.port or 443))  # sends nothing
            return str(sock.getsockname()[0])
        except OSError as error:
            raise EnrollError(f"there is no way to {server}: {error.strerror}; fix: --node-ip") from None


# -- in a process of its own ------------------------------------------------------------------------------------------


class Enrolling:
    """`enroll` in a fork of this process, which must have no thread yet. `messages` until `joined`, or EnrollError."""

    def __init__(self, asked: Asked, pki: str) -> None:
        """Raises OSError."""
        self._read, write = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._read)
            os.close(write)
            raise
        if self._pid == 0:
            _run(asked, pki, write, parent)
        os.close(write)
        self.joined: Joined | None = None
        self.administrator = False

    def messages(self) -> Iterator[str]:
        """What the user is to know meanwhile; afterwards `joined` is there. Raises EnrollError."""
        error = ""
        with os.fdopen(self._read, "rb") as lines:
            for line in lines:
                told = orjson.loads(line)
                if "note" in told:
                    yield str(told["note"])
                elif "error" in told:
                    error = str(told["error"])
                else:
                    self.joined, self.administrator = _decoded(told["joined"]), bool(told["administrator"])
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        if self.joined is None:
            raise EnrollError(error or "the process that makes the node known ended too early")

    def kill(self) -> None:
        """It is not waited for any longer."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)


def _run(asked: Asked, pki: str, write: int, parent: int) -> NoReturn:
    try:
        linux.set_parent_death_signal(signal.SIGKILL)  # it holds the lock of the state directory, too
        if os.getppid() != parent:
            os._exit(0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # front's business, which kills this process then
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

        def tell(message: dict[str, Any]) -> None:
            os.write(write, orjson.dumps(message) + b"\n")

        try:
            joined, administrator = asyncio.run(enroll(World(), asked, pki, lambda text: tell({"note": text})))
            tell({"joined": _encoded(joined), "administrator": administrator})
        except EnrollError as error:
            tell({"error": str(error)})
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _encoded(joined: Joined) -> dict[str, Any]:
    return {**asdict(joined), "ca_certificate": joined.ca_certificate.decode()}


def _decoded(told: dict[str, Any]) -> Joined:
    made = {**told, "ca_certificate": told["ca_certificate"].encode()}
    network = told["pod_network"] and PodNetwork(**told["pod_network"])
    lists = {name: tuple(made[name]) for name in ("cluster_dns", "taints")}
    return Joined(**{**made, **lists, "pod_network": network})
