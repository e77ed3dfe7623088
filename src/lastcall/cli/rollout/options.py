"""Declare the options of `lastcall rollout`, in the order of its help: which workload and where, what happens to it,
the requests, the verdict, the output."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lastcall.cli.confirmation import yes_option
from lastcall.cli.context_options import context_options
from lastcall.cli.node_agent_options import node_agent_options
from lastcall.cli.options import (
    Seconds,
    Whole,
    duration_option,
    kubernetes_version_option,
    manifest_options,
    output_file_option,
    output_option,
)
from lastcall.cli.page_options import page_options
from lastcall.cli.requests import requests_options
from lastcall.cli.rollout.values import parsed_max_lost, parsed_max_p99
from lastcall.cli.run.options import node_options, propagation_option
from lastcall.cli.summary import summary_option
from lastcall.experiment.rollout import DISRUPTIONS

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
    requests_options("200"),
    propagation_option,
    duration_option(
        "--control",
        2,
        "How long to send requests before the disruption. If some are lost then, the verdict is inconclusive.",
        Seconds(0, 3600),
    ),
    duration_option("--settle", 2, "How long to send requests after the disruption.", Seconds(0, 3600)),
    duration_option(
        "--timeout",
        120,
        "How long to wait for the Pods to become Ready, and for the disruption to end.",
        Seconds(0, 3600),
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
