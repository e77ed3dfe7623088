"""`lastcall node join`: options, and what is wrong with them."""

import os
import re
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from lastcall.cli.errors import UserError, WorldError
from lastcall.cli.options import (
    Whole,
    die_with_parent_option,
    kubernetes_version_option,
    state_option,
    state_size_option,
    text_or_json_option,
    timeout_option,
)
from lastcall.cli.run.options import (
    check_cni,
    check_feature_gates,
    feature_gates_option,
    own_node_options,
    static_pods_option,
)
from lastcall.cli.staying.clusters import checked_name
from lastcall.cluster.directory import DEFAULT_NAME

if TYPE_CHECKING:
    from lastcall.client.access.config import ClientConfig

FORWARD = "/proc/sys/net/ipv4/ip_forward"
_TAINT = re.compile(r"(?P<key>[^=:]+)(=(?P<value>[^:]*))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)")
_WITHOUT = {
    "kubelet-server.pem": "no logs and exec",
    "kube-proxy.pem": "no Services for its Pods",
}
"""What does not work without a certificate that others approve."""


def checked_server(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """A click callback: a URL, "" for none."""
    if not value:
        return ""
    text = value.removeprefix("https://").rstrip("/")
    try:
        parts = urlsplit(f"https://{text}")
        host, port = parts.hostname, parts.port or 6443
    except ValueError:  # the port is not a number, or too large
        host = None
    if not host or parts.netloc != text or re.search(r"[@\s]", text):
        raise click.BadParameter(f"{value!r} is not an API server's HOST:PORT: write 10.0.0.1:6443")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}"


def checked_node_name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """A click callback: the machine's name by default, as the kubelet has it."""
    # late: few commands check names
    from lastcall.api.names import is_dns1123_subdomain

    name = (value or socket.gethostname()).lower()
    if is_dns1123_subdomain(name):
        raise click.BadParameter(f"{name!r} is not a valid Node name: lower-case letters, digits, '-' and '.'")
    return name


def checked_address(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """A click callback: an IPv4 address, "" for none."""
    try:
        return str(IPv4Address(value)) if value else ""
    except ValueError:
        raise click.BadParameter(f"{value!r} is not an IPv4 address") from None


def checked_addresses(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """A click callback: IPv4 addresses with commas between them."""
    return tuple(checked_address(context, parameter, each.strip()) for each in value.split(",") if each.strip())


def checked_range(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """A click callback: an IPv4 network for Pods, "" for none."""
    try:
        network = IPv4Network(value) if value else None
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not an IPv4 network: {error}") from None
    if network is not None and not 8 <= network.prefixlen <= 28:
        raise click.BadParameter(f"{value!r} has to be between a /8 and a /28")
    return value


def checked_labels(context: click.Context, parameter: click.Parameter, value: str) -> tuple[tuple[str, str], ...]:
    """A click callback: as the kubelet's --node-labels."""
    found = []
    for text in filter(None, value.split(",")):
        key, equals, label = text.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE: write example.com/kind=lastcall")
        found.append((key.strip(), label.strip()))
    return tuple(found)


def checked_taints(
    context: click.Context, parameter: click.Parameter, value: Sequence[str]
) -> tuple[tuple[str, str, str], ...]:
    """A click callback: as the kubelet's --register-with-taints."""
    found = []
    for text in (each for several in value for each in several.split(",") if each):
        match = _TAINT.fullmatch(text.strip())
        if match is None:
            raise click.BadParameter(f"{text!r} is not KEY[=VALUE]:EFFECT: write example.com/kind=lastcall:NoSchedule")
        found.append((match["key"], match["value"] or "", match["effect"]))
    return tuple(found)


def checked_token(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """A click callback. The token itself is in no message."""
    # late: few commands are given one
    from lastcall.api.text.bootstrap_tokens import parse

    if value and parse(value) is None:
        raise click.BadParameter("a bootstrap token is 6 characters, a dot and 16 characters: abcdef.0123456789abcdef")
    return value


def checked_hashes(context: click.Context, parameter: click.Parameter, value: Sequence[str]) -> tuple[str, ...]:
    """A click callback."""
    if not value:
        return ()
    # late: 200 ms of `node join --help`
    from lastcall.cluster.joined.discovery import checked_hashes as checked

    try:
        return checked(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.argument("server", metavar="[SERVER]", required=False, callback=checked_server)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    default=None,
    help="Kubeconfig of an administrator: the node's certificates are asked for, and approved, with it.",
)
@click.option("--context", metavar="NAME", default=None, help="Context of --kubeconfig.  [default: the current one]")
@click.option(
    "--bootstrap-kubeconfig",
    metavar="FILE",
    default="",
    help="Kubeconfig with a bootstrap token, as the kubelet takes it: for the first certificate alone.",
)
@click.option(
    "--token",
    metavar="TOKEN",
    default="",
    callback=checked_token,
    help="Bootstrap token for SERVER, as kubeadm join takes it.",
)
@click.option(
    "--discovery-token-ca-cert-hash",
    "hashes",
    metavar="sha256:HASH",
    multiple=True,
    callback=checked_hashes,
    help="Hash of the public key of the cluster's authority. May be given several times.",
)
@click.option(
    "--discovery-token-unsafe-skip-ca-verification",
    "unpinned",
    is_flag=True,
    help="Trust whoever has a cluster-info that is signed with the token.",
)
@click.option(
    "--node-name",
    metavar="NAME",
    default="",
    callback=checked_node_name,
    help="Name of the Node.  [default: this machine's name]",
)
@click.option(
    "--node-ip",
    metavar="ADDRESS",
    default="",
    callback=checked_address,
    help="This machine's address for the cluster (IPv4).  [default: the one on the way to the API server]",
)
@click.option(
    "--kubelet-port",
    type=Whole(1, 65535),
    metavar="PORT",
    default=10250,
    show_default=True,
    help="Port of the kubelet at that address.",
)
@click.option(
    "--node-labels",
    "labels",
    metavar="KEY=VALUE,…",
    default="",
    callback=checked_labels,
    help="Labels of the Node.",
)
@click.option(
    "--register-with-taints",
    "taints",
    metavar="KEY=VALUE:EFFECT",
    multiple=True,
    callback=checked_taints,
    help="Taints of the Node when it is made. May be given several times.",
)
@click.option(
    "--pod-cidr",
    metavar="NETWORK",
    default="",
    callback=checked_range,
    help="Addresses of the node's Pods.  [default: the podCIDR that the cluster gives the Node]",
)
@click.option(
    "--cluster-dns",
    metavar="ADDRESS,…",
    default="",
    callback=checked_addresses,
    help="DNS servers of Pods.  [default: those of kubeadm's ConfigMap, or of the Service kube-dns]",
)
@click.option(
    "--cluster-domain", metavar="DOMAIN", default="", help="Domain of Services.  [default: the cluster's own]"
)
@static_pods_option("Run the manifests in DIR, one Pod a file, as static Pods.")
@own_node_options
@state_option("Keep certificates and records of containers in DIR.  [default: a directory of the user's own]")
@click.option(
    "--name",
    metavar="NAME",
    default=DEFAULT_NAME,
    show_default=True,
    callback=checked_name,
    help="What lastcall's other commands (story, status, down) know the node as.",
)
@click.option("--detach", "-d", "detached", is_flag=True, help="Return when the node is Ready; lastcall down ends it.")
@click.option(
    "--drain", is_flag=True, help="Before the end, cordon the node and evict its Pods, as kubectl drain does."
)
@die_with_parent_option("node")
@kubernetes_version_option
@state_size_option
@timeout_option(300.0, "How long the cluster may take to take the node, and again the node to become Ready.")
@feature_gates_option
@text_or_json_option
def join(server: str, kubeconfig: str | None, context: str | None, bootstrap_kubeconfig: str, **options: Any) -> None:
    """Make this machine a node of somebody's cluster, until Ctrl-C or, with --detach, until `lastcall down`.

    Its Pods run in lastcall's own runtime, and `lastcall story` tells how each of them ended. Name the cluster by
    --kubeconfig, by --bootstrap-kubeconfig, or as for kubeadm: SERVER --token --discovery-token-ca-cert-hash. A node
    that joined before needs none of them. Root only. Exit status: 0 the node ran and ended as asked, 2 bad input,
    1 anything else.
    """
    check_feature_gates(options["kubernetes_version"], options["feature_gates"])
    check_cni(options["cni_conf_dir"], options["cni_bin_dir"], 1)
    detached = options.pop("detached")
    if detached and options["die_with_parent"]:
        raise click.UsageError("--detach and --die-with-parent exclude each other: a detached node has no parent")
    token, hashes, unpinned = (options.pop(name) for name in ("token", "hashes", "unpinned"))
    ways = [way for way, given in (("--kubeconfig", kubeconfig), ("--bootstrap-kubeconfig", bootstrap_kubeconfig),
                                   ("SERVER", server)) if given]  # fmt: skip
    if len(ways) > 1:
        raise click.UsageError(f"{' and '.join(ways)} exclude each other: one of them names the cluster")
    if server and not token:
        raise click.UsageError(f"{server} needs --token")
    if server and not hashes and not unpinned:
        raise click.UsageError(
            f"{server} needs --discovery-token-ca-cert-hash, as kubeadm token create "
            "--print-join-command prints it, or --discovery-token-unsafe-skip-ca-verification"
        )
    if token and not server:
        raise click.UsageError("--token is for SERVER: write HOST:PORT of the API server")
    if why := why_not():
        raise WorldError(why)
    # late: 300 ms of `node join --help`
    from lastcall.cli.clusters.joining.life import JoinOptions, stay_joined, with_state
    from lastcall.cli.staying.starting import Kind, in_background, in_foreground
    from lastcall.cluster.joined.asked import Asked

    names = ("node_name", "node_ip", "kubelet_port", "labels", "taints", "pod_cidr", "cluster_dns", "cluster_domain")
    asked = Asked(
        config=_config(kubeconfig or bootstrap_kubeconfig, context),
        administrator=bool(kubeconfig),
        server=server,
        token=token,
        hashes=hashes,
        timeout=options["timeout"],
        **{name: options.pop(name) for name in names},
    )
    joining = with_state(JoinOptions(asked, **options))
    kind = Kind(stay_joined, ready_text, "node {} is gone")
    raise SystemExit(in_background(joining, kind) if detached else in_foreground(joining, kind))


def why_not() -> str:
    """Why this machine cannot be a node, with the fix; "" when it can."""
    if os.getuid() != 0:
        return "lastcall node join needs root: it connects Pods to this machine's network; fix: sudo"
    with open(FORWARD) as file:
        if file.read().strip() != "1":
            return "this machine forwards no packets to Pods; fix: sysctl -w net.ipv4.ip_forward=1"
    return ""


def _config(path: str, context: str | None) -> "ClientConfig | None":
    if not path:
        return None
    # late: 300 ms of `node join --help`
    from lastcall.client.access.errors import KubeconfigError
    from lastcall.client.kubeconfig import load_kubeconfig

    try:
        return load_kubeconfig(path, context or "")
    except KubeconfigError as error:
        raise UserError(str(error)) from error


def ready_text(facts: dict[str, Any]) -> str:
    """What the user of a new node needs."""
    name = "" if facts["name"] == DEFAULT_NAME else f" --name {facts['name']}"
    waits = "".join(
        f"  {what} until its certificate is approved: kubectl get csr; kubectl certificate approve NAME\n"
        for file, what in _WITHOUT.items()
        if file in facts["waitsFor"]
    )
    return (
        f"node {facts['node']} has joined {facts['server']}, and is Ready\n\n"
        f"  Pods        {facts['podCIDR']}\n"
        f"  state       {facts['state']}\n"
        f"{waits}\n"
        f"  lastcall story POD{name} tells how a Pod of it ended\n"
    )
