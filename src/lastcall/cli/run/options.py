"""The options that `run` and `demo` share."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
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
from lastcall.cli.output import checked_output, output_options
from lastcall.cli.page_options import asked_page, page_options
from lastcall.cli.requests import asked_requests
from lastcall.cli.summary import summary_option
from lastcall.errors import UserError, WorldError
from lastcall.experiment.run import RunOptions
from lastcall.kube.api import FeatureGateError, feature_gates, parse_feature_gates, parse_quantity
from lastcall.kube.cluster import ClusterOptions, layouts, parse_node_capacity, parse_propagation

if TYPE_CHECKING:
    from lastcall.experiment.rollout import RolloutOptions
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


def parsed_propagation(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> Any:
    """Parse a `lastcall.kube.cluster.propagation.PropagationPlan` (a click callback)."""
    try:
        return parse_propagation(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def parsed_node_capacity(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> "NodeCapacity":
    """Parse the capacities of nodes (a click callback)."""
    try:
        return parse_node_capacity(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def checked_published_ports(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> Any:
    """Parse `lastcall.kube.cluster.published.port.PublishedPort`s, no port twice (a click callback)."""
    # late: 2.3 ms of `demo --help`
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


def check_propagation_nodes(plan: "PropagationPlan", nodes: int) -> None:
    """Raise UserError for a delay of a node that the cluster will not have."""
    _check_nodes("--propagation", plan.nodes, nodes)


def check_node_capacity(capacity: "NodeCapacity", nodes: int) -> None:
    """Raise UserError for the size of a node that the cluster will not have."""
    _check_nodes("--node-capacity", capacity.nodes, nodes)


def _check_nodes(option: str, given: Iterable[str], nodes: int) -> None:
    names = [each.name for each in layouts(nodes)]
    for name in given:
        if "=" in name:
            others, _, node = name.rpartition(",")
            raise UserError(f"{option} {name}:…: give one node its own option: {option} {others} {option} {node}:…")
        if name not in names:
            there = names[0] if nodes == 1 else f"{names[0]} to {names[-1]}"
            raise UserError(f"{option} {name}:…: no such node: the cluster has {there}")


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
    try:
        return parse_feature_gates(value)
    except FeatureGateError as error:
        raise click.BadParameter(str(error)) from None


def check_feature_gates(kubernetes_version: str, settings: Mapping[str, bool]) -> None:
    """Raise click.UsageError for settings that this version does not have."""
    try:
        feature_gates(kubernetes_version, settings)
    except FeatureGateError as error:
        raise click.UsageError(f"--feature-gates: {error}") from None


def check_cni(conf_dir: str, bin_dir: str, nodes: int) -> None:
    """Check the directories of CNI. Raise click.UsageError if one configures no network or lacks its plugins."""
    if not conf_dir:
        if bin_dir:
            raise click.UsageError("--cni-bin-dir needs --cni-conf-dir, which configures the plugins")
        return
    # late: 86 ms of `demo --help`
    from lastcall.kube.cri.sandbox.cni import DEFAULT_BIN_DIRS, CNIConfigError, check, conf_dir_of

    try:
        for directory in dict.fromkeys(conf_dir_of(conf_dir, each.name) for each in layouts(nodes)):
            check(directory, (bin_dir,) if bin_dir else DEFAULT_BIN_DIRS)
    except CNIConfigError as error:
        raise click.UsageError(f"--cni-conf-dir: {error}") from None


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


def check_runtime(path: str, nodes: int, *, cni: str = "", egress: bool = False) -> None:
    """Raise click.UsageError for options that exclude each other, WorldError for a runtime that cannot be used."""
    if not path:
        return
    option = "--container-runtime-endpoint"
    if nodes > 1:
        raise click.UsageError(
            f"{option}: another runtime means one node, and --nodes is {nodes}: leave one of them out"
        )
    for other, given in (("--cni-conf-dir", cni), ("--egress", egress)):
        if given:
            raise click.UsageError(f"{option} and {other} do not work together: the runtime has its own Pod network")
    # late: only with a container runtime outside
    from lastcall.kube.cluster import why_not

    if why := why_not(path):
        raise WorldError(f"{option} unix://{path}: {why}")


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


def asked_cluster(options: dict[str, Any], **more: Any) -> ClusterOptions:
    """Return what the cluster is started with; its keywords are taken out of `options`."""
    given = {each.name: options.pop(each.name) for each in fields(ClusterOptions) if each.name in options}
    return ClusterOptions(**given, **more)


def make_options(
    kubernetes_version: tuple[str, ...], output: str | None, output_file: Path | None, **options: Any
) -> RunOptions:
    """Return the options as given on the command line. Raises click.UsageError."""
    page, several = asked_page(options), len(kubernetes_version) > 1
    asked = asked_requests(options) if options.get("rates") else {}
    cluster = asked_cluster(options, kubernetes_version=kubernetes_version[0])
    check_propagation_nodes(cluster.propagation, cluster.nodes)
    for version in kubernetes_version:
        check_feature_gates(version, cluster.feature_gates)
    check_node_capacity(cluster.node_capacity, cluster.nodes)
    check_cni(cluster.cni_conf_dir, cluster.cni_bin_dir, 1)
    check_runtime(cluster.container_runtime, 1, cni=cluster.cni_conf_dir)
    if (options["keep"] or options["keep_on_failure"]) and several:
        option = "--keep" if options["keep"] else "--keep-on-failure"
        raise click.UsageError(f"{option} keeps one cluster running: give a single --kubernetes-version")
    if page is not None and several:
        raise click.UsageError("--ui shows one cluster: give a single --kubernetes-version")
    if asked and several:
        raise click.UsageError("--load sends requests in one cluster: give a single --kubernetes-version")
    own = {each.name for each in fields(RunOptions)}
    return RunOptions(
        cluster=cluster,
        versions=kubernetes_version if several else (),
        output=checked_output(output, output_file),
        output_file=output_file,
        page=page,
        requests=_requests(cluster, options, asked) if asked else None,
        **{name: value for name, value in options.items() if name in own},
    )


def _requests(cluster: ClusterOptions, options: dict[str, Any], asked: dict[str, Any]) -> "RolloutOptions":
    """What is sent while the Pods end, from Ready on."""
    # late: only with --load
    from lastcall.experiment.rollout import RolloutOptions

    more = {"timeout": options["timeout"], "control": options["after"], "settle": 0.0}
    return RolloutOptions(cluster=cluster, disrupt="delete", **more, **asked)
