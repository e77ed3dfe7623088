"""`lastcall up`: a cluster that stays."""

import os
import shlex
import sys
from contextlib import suppress
from typing import Any

import click

from lastcall.cli.errors import guarded, say_on_stderr
from lastcall.cli.interrupts import Interrupts
from lastcall.cli.options import (
    Sources,
    Whole,
    kubernetes_version_option,
    manifest_options,
    state_size_option,
    text_or_json_option,
    timeout_option,
)
from lastcall.cli.run.options import (
    check_cni,
    check_feature_gates,
    check_propagation_nodes,
    checked_directory,
    checked_log_size,
    checked_published_ports,
    feature_gates_option,
    node_options,
    propagation_option,
)
from lastcall.cli.staying.clusters import published_text, show_json
from lastcall.cli.staying.life import TORN_DOWN, Facts, UpOptions, stay
from lastcall.cli.staying.names import name_argument
from lastcall.cluster.directory import DEFAULT_NAME
from lastcall.cluster.layout import MOST_NODES
from lastcall.cluster.staying import detach


@click.command()
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
    "8080:svc/web:80, 127.0.0.1:8080:svc/NAMESPACE/web:http, 8080:pod/NAMESPACE/NAME:80. May be given several times.",
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
@timeout_option(60.0, "How long the node may take to become Ready.")
@click.option(
    "--kubeconfig-merge",
    is_flag=True,
    help="Add the cluster to your kubeconfig ($KUBECONFIG or ~/.kube/config) as context lastcall-NAME until it ends.",
)
@click.option(
    "--die-with-parent",
    is_flag=True,
    help="End the cluster when the process that started this command ends, for whatever reason. For scripts and tests.",
)
@click.option(
    "--die-with",
    type=Whole(1, 2**22, "a process id"),
    metavar="PID",
    default=None,
    hidden=True,
    help="As --die-with-parent, with the process PID.",
)
@manifest_options("MANIFEST", required=False, positional=False)
@click.option("--wait", is_flag=True, help="With -f or -k: the cluster is up when everything in them is ready.")
@feature_gates_option
@text_or_json_option
def up(detached: bool, sources: Sources, **options: Any) -> None:
    """Start the cluster NAME (default: lastcall) and leave it running. Several can run under different names.

    It runs in the foreground until Ctrl-C, or with --detach until `lastcall down`. kubectl uses the kubeconfig whose
    path is printed. With -f or -k it applies manifests, each time --timeout at most. Exit status: 0 the cluster ran
    and ended as asked, 2 bad input, 1 anything else; with --detach 1, too, when the manifests were not applied or, with
    --wait, did not become ready: the cluster runs all the same.
    """
    check_feature_gates(options["kubernetes_version"], options["feature_gates"])
    check_propagation_nodes(options["propagation"], options["nodes"])
    check_cni(options["cni_conf_dir"], options["cni_bin_dir"], options["nodes"])
    options["die_with"] = options["die_with"] or 0
    if detached and options["die_with_parent"]:
        raise click.UsageError("--detach and --die-with-parent exclude each other: a detached cluster has no parent")
    if sources.manifests or sources.kustomizations:
        options["objects"] = tuple(each.obj for each in sources.load())
        options["namespace"] = sources.namespace
    elif options["wait"]:
        raise click.UsageError("--wait is for what -f or -k applies: give one of them")
    asked = UpOptions(**options)
    raise SystemExit(in_background(asked) if detached else in_foreground(asked))


# -- in the foreground ------------------------------------------------------------------------------------------------


class Terminal:
    """Tells on stdout and stderr. A terminal that is gone is not an error, unless what is told `must_be_heard`: a
    parent that ended before its pidfd was opened leaves no other trace."""

    def __init__(self, output: str, way_out: str, *, must_be_heard: bool = False) -> None:
        self._output = output
        self._way_out = way_out
        self._unheard: tuple[type[OSError], ...] = () if must_be_heard else (OSError,)

    def note(self, text: str) -> None:
        with suppress(OSError):
            say_on_stderr(text)

    def ready(self, facts: Facts) -> None:
        if "notApplied" in facts:
            self.note(facts["notApplied"])
        with suppress(*self._unheard):
            if self._output == "json":
                show_json("lastcall/cluster/v1", facts)
            else:
                click.echo(f"{ready_text(facts)}\n{self._way_out}")
            sys.stdout.flush()


def ready_text(facts: Facts) -> str:
    """What the user of a new cluster needs."""
    state = facts["state"] or "in memory, gone with the cluster (--state DIR keeps it)"
    ready = "its node is Ready" if facts["nodeCount"] == 1 else f"its {facts['nodeCount']} nodes are Ready"
    return (
        f"cluster {facts['name']} is up: Kubernetes {facts['kubernetesVersion']}, {ready}\n\n"
        f"  API server  {facts['server']}\n"
        f"  kubeconfig  {facts['kubeconfig']}\n"
        f"  state       {state}\n"
        f"{published_text(facts)}\n"
        f"  export KUBECONFIG={shlex.quote(facts['kubeconfig'])}\n"
    )


def in_foreground(options: UpOptions) -> int:
    """Stay until a signal or `lastcall down`; the exit status. Raises CommandError."""
    teller = Terminal(options.output, "Ctrl-C ends it.", must_be_heard=options.ends_with_another)
    status = stay(options, teller)
    teller.note(f"cluster {options.name} is gone")
    return status


# -- in the background ------------------------------------------------------------------------------------------------


class _Reporter:
    """Tells the process that started this one, once: it is gone afterwards."""

    def __init__(self, report: detach.Report) -> None:
        self.report = report

    def note(self, text: str) -> None:
        self.report.send({"note": text})

    def ready(self, facts: Facts) -> None:
        self.report.send({"ready": facts})


def in_background(options: UpOptions) -> int:
    """Start the cluster in a process of its own; the exit status when its node is Ready, or when it failed."""
    if options.state:
        options = UpOptions(**{**_as_dict(options), "state": os.path.abspath(options.state)})

    def main(report: detach.Report) -> int:
        teller = _Reporter(report)
        return guarded(lambda: stay(options, teller, report), teller.note)

    starting = detach.start(main)
    teller = Terminal(options.output, f"lastcall down {options.name} ends it.".replace(f" {DEFAULT_NAME} ", " "))
    with Interrupts(lambda status: _leave(starting, status), TORN_DOWN) as interrupts:
        interrupts.on_first = starting.terminate
        facts = None
        for message in starting.messages():
            if "note" in message and not interrupts.number:
                teller.note(message["note"])
            if "ready" in message:
                facts = message["ready"]
                break
        if facts is None:
            status = starting.wait()
            if interrupts.number:
                raise interrupts.error()
            return status or 1
        if interrupts.number:
            starting.wait()
            raise interrupts.error()
        teller.ready(facts)
        return 1 if "notApplied" in facts else 0


def _as_dict(options: UpOptions) -> dict[str, Any]:
    return {field: getattr(options, field) for field in UpOptions.__slots__}


def _leave(starting: detach.Background, status: int) -> None:
    """The second Ctrl-C."""
    starting.kill()
    os._exit(status)
