"""The options of `lastcall rollout`, in the order of its help: which workload and where, what happens to it, the
requests, the verdict, what is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lastcall.cli.confirmation import yes_option
from lastcall.cli.context_options import context_options
from lastcall.cli.node_agent_options import node_agent_options
from lastcall.cli.options import (
    Seconds,
    Whole,
    kubernetes_version_option,
    manifest_options,
    output_file_option,
    output_option,
)
from lastcall.cli.page_options import page_options
from lastcall.cli.rollout.values import checked_path, complete_workload, parsed_load, parsed_max_lost, parsed_max_p99
from lastcall.cli.run.options import node_options, propagation_option
from lastcall.cli.summary import summary_option
from lastcall.experiment.rollout import DISRUPTIONS, SOURCES

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: list[Callable[[Any], Any]] = [
    manifest_options("MANIFEST", required=False),
    click.option(
        "--from-cluster",
        "taken",
        metavar="KIND/NAME",
        default="",
        help="Copy the workload, with all that its Pods need, from the cluster of --context instead of reading "
        "manifests: deployment/web.",
    ),
    context_options(namespace=False, without=("request-timeout",)),
    click.option(
        "--url",
        metavar="URL",
        default="",
        help="With --context: where to send requests: https://shop.example.com.  [default: the Service's external "
        "address]",
    ),
    click.option(
        "--url-ca",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        default=None,
        help="CA certificates (PEM) to trust for an https --url.  [default: this machine's CAs]",
    ),
    click.option(
        "--image",
        metavar="IMAGE",
        default="",
        help="With --context: image of the Pod that sends requests.  [default: the one that lastcall image "
        "build-agent makes]",
    ),
    click.option(
        "--copy-to",
        metavar="NAMESPACE",
        default="",
        help="With --context: disrupt a copy of the workload in this namespace, not the workload itself.",
    ),
    yes_option,
    node_agent_options,
    click.option(
        "--disrupt",
        type=click.Choice(DISRUPTIONS),
        default="rollout",
        show_default=True,
        help="What happens under load: rollout updates all Pods, scale-in removes half of the replicas, delete deletes "
        "one Pod, drain drains the node, evict evicts one Pod.",
    ),
    click.option(
        "--load",
        "rates",
        metavar="RATE",
        default="200",
        show_default=True,
        callback=parsed_load,
        help="Requests per second, or by kind: fresh=150,keep-alive=50,slow=5,tcp=10,stream=2,websocket=2,http2=50. "
        "See "
        "above for the kinds, and for what counts as lost.",
    ),
    click.option("--path", default="/", show_default=True, callback=checked_path, help="Path to request."),
    click.option(
        "--slow-path", default="/slow", show_default=True, callback=checked_path, help="Path of slow requests."
    ),
    click.option("--stream-path", default="/stream", show_default=True, callback=checked_path, help="Path of streams."),
    click.option(
        "--websocket-path", default="/ws", show_default=True, callback=checked_path, help="Path of WebSockets."
    ),
    click.option(
        "--stream-length",
        "length",
        metavar="TIME",
        default="5s",
        show_default=True,
        type=Seconds(0.1, 3600),
        help="How long a stream or a WebSocket is held before the client leaves.",
    ),
    click.option(
        "--http2-connections",
        metavar="N",
        type=Whole(1, 1000, "connections"),
        default=4,
        show_default=True,
        help="Number of connections that all HTTP/2 requests share.",
    ),
    click.option(
        "--workload",
        metavar="KIND/NAME",
        default="",
        shell_complete=complete_workload,
        help="The workload to disrupt, if the manifests have several: deployment/web. With --context also "
        "KIND.GROUP/NAME of a kind with a controller of its own.  [default: the one behind the Service]",
    ),
    click.option("--service", default="", help="The Service to send to, if the manifests have several."),
    click.option(
        "--port",
        default="",
        help="Port of the Service, by name or number, if it has several.  [default: the one named http]",
    ),
    propagation_option,
    click.option(
        "--from",
        "source",
        type=click.Choice(SOURCES),
        default="node",
        show_default=True,
        help="Where requests come from. node, pod: to the Service's address. published: from the host, through a port "
        "like "
        "that of `up --publish`. balancer: from an external load balancer, which sends to the ready Pods and learns "
        "of changes late (--propagation balancer=5s). client: with --context, from this machine.",
    ),
    click.option(
        "--control",
        metavar="TIME",
        default="2s",
        show_default=True,
        type=Seconds(0, 3600),
        help="How long to send requests before the disruption. If some are lost then, the verdict is inconclusive.",
    ),
    click.option(
        "--settle",
        metavar="TIME",
        default="2s",
        show_default=True,
        type=Seconds(0, 3600),
        help="How long to send requests after the disruption.",
    ),
    click.option(
        "--request-timeout",
        metavar="TIME",
        default="10s",
        show_default=True,
        type=Seconds(0, 3600),
        help="How long one request may take before it counts as lost.",
    ),
    click.option(
        "--timeout",
        metavar="TIME",
        default="120s",
        show_default=True,
        type=Seconds(0, 3600),
        help="How long to wait for the Pods to become Ready, and for the disruption to end.",
    ),
    click.option(
        "--runs",
        metavar="N",
        type=Whole(1, 1000, "runs"),
        default=1,
        show_default=True,
        help="Run the experiment N times, each on a new cluster, and report all runs together.",
    ),
    click.option(
        "--max-lost",
        metavar="N|SHARE",
        callback=parsed_max_lost,
        help="Exit with 3 only if more requests than this are lost, over all runs: 3, or 0.1%.  [default: 0]",
    ),
    click.option(
        "--max-p99",
        metavar="TIME",
        callback=parsed_max_p99,
        help="Exit with 3 if the 99th percentile of good answers during the disruption is above this: 200ms, or by "
        "kind: "
        "fresh=200ms,slow=3s.",
    ),
    click.option(
        "--keep-on-failure",
        is_flag=True,
        help="Keep the cluster running until Ctrl-C if requests were lost, a container crashed or Pods do not become "
        "Ready, and print how to reach it.",
    ),
    click.option(
        "--apply-advice", is_flag=True, help="Run again with the advice applied, and report what is still lost."
    ),
    click.option(
        "--find-safe",
        is_flag=True,
        help="Find the largest endpoint lag that loses no request (with --from balancer, the balancer's lag), and, for "
        "a "
        "given --propagation, the smallest preStop sleep and grace period. Each is predicted for every kind of load, "
        "then "
        "confirmed on the kernel with all of them.",
    ),
    click.option(
        "--confirm",
        metavar="N",
        type=Whole(1, 100, "runs"),
        default=5,
        show_default=True,
        help="Number of runs on the kernel that confirm each limit of --find-safe; up to twice as many if they "
        "disagree.",
    ),
    page_options,
    output_option(
        ("text", "json", "html", "junit", "github"),
        "Output format: text; json (lastcall/rollout/v1); html, a page with the requests over the Pods' ends; junit; "
        "github, annotations for GitHub Actions.  [default: the format of --output-file, or text]",
    ),
    output_file_option(),
    summary_option,
    node_options,
    kubernetes_version_option,
]


def rollout_options(command: F) -> F:
    """Add them; `--context` and its like come as `asked`, the manifests as `sources`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
