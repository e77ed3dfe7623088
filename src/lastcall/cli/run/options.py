"""The options that `run` and `demo` share.

What is not given is not parsed: `cli/run/option_values.py` has what the options make of a cluster.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lastcall.cli.options import (
    DEFAULT_KUBERNETES_VERSION,
    KUBERNETES_VERSIONS,
    Seconds,
    Whole,
    duration_option,
    state_size_option,
    timeout_option,
)
from lastcall.cli.output import output_options
from lastcall.cli.page_options import page_options
from lastcall.cli.summary import summary_option
from lastcall.kube.api import parse_quantity

if TYPE_CHECKING:
    from lastcall.kube.cluster import NodeCapacity, PropagationPlan

F = TypeVar("F", bound=Callable[..., Any])


def checked_versions(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """Check one version or several with commas, each once (a click callback)."""
    versions = tuple(dict.fromkeys(version.strip() for version in value.split(",")))
    for version in versions:
        if version not in KUBERNETES_VERSIONS:
            raise click.BadParameter(f"{version!r} is not one of {', '.join(map(repr, KUBERNETES_VERSIONS))}.")
    return versions


def checked_log_size(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check a quantity of bytes that is not 0 (a click callback)."""
    try:
        size = parse_quantity(value).whole
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a size: write 10Mi, 500Ki, or -1 for no rotation") from None
    if size == 0:
        raise click.BadParameter("0 would rotate always: write 10Mi, 500Ki, or -1 for no rotation")
    return value


def parsed_propagation(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> "PropagationPlan | None":
    """Parse a `lastcall.kube.cluster.propagation.PropagationPlan`, None for none (a click callback)."""
    if not value:
        return None
    # late: only with the option
    from lastcall.kube.cluster import parse_propagation

    try:
        return parse_propagation(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def parsed_node_capacity(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> "NodeCapacity | None":
    """Parse the capacities of nodes, None for none (a click callback)."""
    if not value:
        return None
    # late: only with the option
    from lastcall.kube.cluster import parse_node_capacity

    try:
        return parse_node_capacity(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def checked_published_ports(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> Any:
    """Parse `lastcall.kube.cluster.published.port.PublishedPort`s, no port twice (a click callback)."""
    if not value:
        return ()
    # late: only with the option
    from lastcall.kube.cluster import parse_published_port, shown_address

    try:
        ports = tuple(map(parse_published_port, value))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    places = [shown_address(port.address, port.port) for port in ports if port.port]
    for place in places:
        if places.count(place) > 1:
            raise click.BadParameter(f"{place} is published twice: give each its own port, or 0 for any free one")
    return ports


PROPAGATION_HELP = (
    "Delay of endpoint changes: 1s; by hop: watch=1s,kernel=200ms; of one node: node-2:watch=3s; as of a kube-proxy, "
    "ingress-controller or cloud-load-balancer. Repeatable."
)


propagation_option = click.option(
    "--propagation", metavar="DELAY", multiple=True, callback=parsed_propagation, help=PROPAGATION_HELP
)


def checked_directory(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the real path of a directory that can be read, "" for none (a click callback)."""
    if not value:
        return ""
    path = os.path.realpath(value)
    if not os.path.isdir(path):
        raise click.BadParameter(f"{value!r} is not a directory: give one that exists")
    if not os.access(path, os.R_OK | os.X_OK):
        raise click.BadParameter(f"{value!r} you have no permission to read it: use a directory that you may list")
    return path


def parsed_feature_gates(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, bool]:
    """Parse settings of feature gates that exist in some version (a click callback)."""
    if not value:
        return {}
    # late: only with the option
    from lastcall.kube.api import FeatureGateError, parse_feature_gates

    try:
        return parse_feature_gates(value)
    except FeatureGateError as error:
        raise click.BadParameter(str(error)) from None


def feature_gates_option(command: F) -> F:
    return click.option(
        "--feature-gates",
        metavar="NAME=true,…",
        multiple=True,
        callback=parsed_feature_gates,
        help="Turn feature gates of Kubernetes on or off. TCPSocketLifecycleHook makes tcpSocket hooks connect.",
    )(command)


MOST_PODS = 253
"""Of a node: the number of addresses in its part of the cluster's Pod network."""


def checked_runtime(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the path of a container runtime's socket, "" for none (a click callback)."""
    if not value:
        return ""
    # late: only with a container runtime outside
    from lastcall.kube.cluster import socket_of

    try:
        return socket_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_NODE_OPTIONS = [
    click.option(
        "--container-runtime-endpoint",
        "container_runtime",
        metavar="unix:///PATH",
        default="",
        callback=checked_runtime,
        help="Run Pods in this container runtime (CRI v1: containerd …), with its images and its network. "
        "Default: lastcall's own.",
    ),
    click.option(
        "--max-pods",
        type=Whole(1, MOST_PODS, "Pods"),
        metavar="N",
        default=110,
        show_default=True,
        help="Maximum number of Pods on a node (the kubelet's maxPods).",
    ),
    click.option(
        "--node-capacity",
        metavar="[NODE:]RESOURCE=QUANTITY,…",
        multiple=True,
        callback=parsed_node_capacity,
        help="Size of the nodes: cpu=2,memory=4Gi,ephemeral-storage=20Gi; for one node node-1:memory=512Mi. "
        "Repeatable. lastcall doctor reports whether cpu and memory are enforced. Default: the machine's.",
    ),
    click.option(
        "--seccomp-default/--no-seccomp-default",
        default=True,
        show_default=True,
        help="Give containers without a seccomp profile RuntimeDefault (the kubelet's seccompDefault).",
    ),
    click.option(
        "--cni-conf-dir",
        metavar="DIR",
        default="",
        callback=checked_directory,
        help="Use CNI plugins for the Pod network. The first *.conflist, *.conf or *.json in DIR configures them; a "
        "directory DIR/node-1 takes precedence for node-1. Default: built-in routing.",
    ),
    click.option(
        "--cni-bin-dir",
        metavar="DIR",
        default="",
        callback=checked_directory,
        help="Directory of the CNI plugins. Default: /opt/cni/bin, /usr/lib/cni.",
    ),
]


def node_options(command: F) -> F:
    """Add what the nodes of a cluster are started with; its keywords are those of `ClusterOptions`."""
    for option in reversed(_NODE_OPTIONS):
        command = option(command)
    return command


_OPTIONS = [
    feature_gates_option,
    node_options,
    click.option(
        "--kubernetes-version",
        metavar="|".join(KUBERNETES_VERSIONS) + "[,…]",
        callback=checked_versions,
        default=DEFAULT_KUBERNETES_VERSION,
        show_default=True,
        help="Kubernetes version to emulate. With several (1.36,1.37) the Pods run under one version after "
        "the other, and the report shows them side by side with what differs.",
    ),
    click.option(
        "--grace",
        type=Seconds(0, 2**31 - 1, whole=True),
        metavar="TIME",
        help="gracePeriodSeconds of the DELETE; 0 forces it. Pods of an owner get it as their "
        "terminationGracePeriodSeconds, which applies when their owner is deleted. Default: each Pod's own.",
    ),
    duration_option("--after", 1, "How long to wait between Ready and the DELETE.", Seconds(0)),
    timeout_option(
        60.0, "How long to wait for Pods to become Ready; and how long, beyond twice the grace period, for them to end."
    ),
    state_size_option,
    click.option("--keep", is_flag=True, help="Keep the cluster running until Ctrl-C, and print how to reach it."),
    click.option(
        "--keep-on-failure",
        is_flag=True,
        help="Like --keep, but only if something failed. Unhealthy Pods are then not deleted.",
    ),
    page_options,
]


def run_options(command: F) -> F:
    """Add the options to a command; it gets them as keyword arguments of `make_options`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return output_options(summary_option(command))
