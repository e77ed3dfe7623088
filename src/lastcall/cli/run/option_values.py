"""What `run`, `demo`, `rollout` and `up` are asked for: their options as data, checked against one another.

A command imports this when it has read its manifests: the first line does not wait for it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastcall.cli.output import checked_output
from lastcall.cli.page_options import asked_page
from lastcall.cli.requests import asked_requests
from lastcall.errors import UserError, WorldError
from lastcall.experiment.run import RunOptions
from lastcall.kube.api import FeatureGateError, feature_gates
from lastcall.kube.cluster import ClusterOptions, layouts

if TYPE_CHECKING:
    from lastcall.experiment.rollout import RolloutOptions
    from lastcall.kube.cluster import NodeCapacity, PropagationPlan


def asked_cluster(options: dict[str, Any], **more: Any) -> ClusterOptions:
    """Return what the cluster is started with; its keywords are taken out of `options`. One that is None was not given,
    and keeps its default."""
    given = {each.name: options.pop(each.name) for each in fields(ClusterOptions) if each.name in options}
    return ClusterOptions(**{name: value for name, value in given.items() if value is not None}, **more)


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
