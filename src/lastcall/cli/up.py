"""`lastcall up`: a cluster that stays."""

import re
from typing import Any

import click

from lastcall.cli.options import (
    Sources,
    Whole,
    etcd_flags,
    is_given,
    kubernetes_version_option,
    manifest_options,
    state_size_option,
    text_or_json_option,
    timeout_option,
)
from lastcall.cli.page_options import page_options
from lastcall.cli.run.options import (
    checked_directory,
    checked_log_size,
    checked_published_ports,
    feature_gates_option,
    node_options,
    propagation_option,
)
from lastcall.cli.sectioned_help import SectionedCommand
from lastcall.cli.staying.audit_options import audit_options
from lastcall.cli.staying.names import name_argument
from lastcall.kube.cluster import MOST_NODES

TIME = re.compile(r"\d+(ms|s|m|h)")
"""What kind's `--wait` takes: here it would become the name of the cluster."""


@click.command(cls=SectionedCommand)
@name_argument
@click.option(
    "--detach",
    "-d",
    "detached",
    is_flag=True,
    help="Return when the node is Ready; stop the cluster with lastcall down.",
)
@click.option(
    "--state",
    metavar="DIR",
    default="",
    help="Keep objects and credentials in DIR for the next start. Default: keep nothing.",
)
@click.option(
    "--static-pods",
    metavar="DIR",
    default="",
    callback=checked_directory,
    help="Run the manifests in DIR, one Pod a file, as static Pods of node-1.",
)
@click.option(
    "--nodes",
    type=Whole(1, MOST_NODES, "nodes"),
    metavar="N",
    default=1,
    show_default=True,
    help="Number of nodes. Each has a network namespace of its own; lastcall node disconnect cuts one off.",
)
@node_options
@propagation_option
@click.option(
    "--publish",
    metavar="PORT:svc/NAME:PORT",
    multiple=True,
    callback=checked_published_ports,
    help="Forward a TCP port of this machine's loopback (0: any free one) to a Service or a Pod: "
    "8080:svc/web:80, 127.0.0.1:8080:svc/NAMESPACE/web:http, 8080:pod/NAMESPACE/NAME:80. Repeatable.",
)
@click.option(
    "--publish-node-ports",
    is_flag=True,
    help="Forward the node ports and load balancer ports (TCP) of all Services from this machine's loopback.",
)
@click.option(
    "--egress",
    is_flag=True,
    help="Let Pods reach names and TCP ports (IPv4) outside the cluster, with this user's rights, but never this "
    "machine's loopback. Not supported: UDP other than DNS, ICMP, and Pods with hostNetwork.",
)
@click.option(
    "--controllers/--no-controllers",
    default=True,
    show_default=True,
    help="Run the controllers beside the API server. Without them, run `lastcall controller-manager`.",
)
@click.option(
    "--scheduler/--no-scheduler",
    default=True,
    show_default=True,
    help="Run the scheduler beside the API server. Without it, run `lastcall scheduler`.",
)
@etcd_flags(required=False)
@click.option(
    "--service-account-signing-key-file",
    "service_account_key",
    metavar="FILE",
    default="",
    help="Private key of ServiceAccount tokens (PEM, EC P-256 or RSA), the same for all API servers of an etcd.  "
    "[default: a new one]",
)
@kubernetes_version_option
@state_size_option
@click.option(
    "--container-log-max-size",
    metavar="SIZE",
    default="10Mi",
    show_default=True,
    callback=checked_log_size,
    help="Maximum size of a container's log before it is rotated (the kubelet's containerLogMaxSize); -1: never.",
)
@click.option(
    "--container-log-max-files",
    type=Whole(2, 1000, "files"),
    metavar="NUMBER",
    default=5,
    show_default=True,
    help="Maximum number of log files for each container, including the current one.",
)
@timeout_option(
    60.0,
    "How long each step may take: the node to become Ready; with -f or -k, applying the manifests; "
    "with --wait, their readiness.",
)
@click.option(
    "--kubeconfig-merge",
    is_flag=True,
    help="Add the cluster to your kubeconfig ($KUBECONFIG or ~/.kube/config) as context lastcall-NAME until it ends.",
)
@click.option(
    "--die-with-parent",
    is_flag=True,
    help="End the cluster when the process that started this command ends, for any reason. For scripts and tests.",
)
@click.option(
    "--die-with",
    type=Whole(1, 2**22, "a process id"),
    metavar="PID",
    default=None,
    hidden=True,
    help="As --die-with-parent, with the process PID.",
)
@audit_options
@manifest_options("MANIFEST", required=False, positional=False)
@click.option("--wait", is_flag=True, help="With -f or -k: wait until everything in them is ready.")
@page_options
@feature_gates_option
@text_or_json_option
def up(detached: bool, sources: Sources, **options: Any) -> None:
    """Start the cluster NAME (default: lastcall) and leave it running. Several can run under different names.

    It runs in the foreground until Ctrl-C, or with --detach until `lastcall down`. kubectl uses the kubeconfig whose
    path is printed. With -f or -k it applies manifests. Exit status: 0 the cluster ran and ended as asked, 2 bad input,
    1 anything else; with --detach also 1 if the manifests were not applied or, with --wait, did not become ready; the
    cluster then keeps running.
    """
    if options["wait"] and TIME.fullmatch(options["name"]):
        raise click.UsageError(f"--wait takes no time: write --wait --timeout {options['name']}")
    if detached and options["die_with_parent"]:
        raise click.UsageError("--detach and --die-with-parent do not work together: a detached cluster has no parent")
    if sources.manifests or sources.kustomizations:
        options["objects"] = tuple(each.obj for each in sources.load())
        options["namespace"] = sources.namespace
    elif options["wait"] and is_given("wait"):
        raise click.UsageError("--wait needs -f or -k: it waits for what they apply")
    # late: 80 ms of `up --help`
    from lastcall.cli.staying.option_values import asked_up
    from lastcall.cli.staying.starting import in_background, in_foreground

    asked = asked_up(options)
    raise SystemExit(in_background(asked) if detached else in_foreground(asked))
