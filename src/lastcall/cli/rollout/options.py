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
        help="Copy the workload and what its Pods need from the cluster of --context: deployment/web.",
    ),
    context_options(namespace=False, without=("request-timeout",)),
    click.option(
        "--copy-to",
        metavar="NAMESPACE",
        default="",
        help="Disrupt a copy of the workload in this namespace.",
    ),
    yes_option,
    node_agent_options,
    click.option(
        "--disrupt",
        type=click.Choice(DISRUPTIONS),
        default="rollout",
        show_default=True,
        help="Update all Pods, remove half of the replicas, delete or evict one Pod, or drain a node.",
    ),
    requests_options("200"),
    propagation_option,
    duration_option(
        "--control",
        2,
        "How long to send requests before the disruption.",
        Seconds(0, 3600),
    ),
    duration_option("--settle", 2, "How long to send requests after the disruption.", Seconds(0, 3600)),
    duration_option(
        "--timeout",
        120,
        "Limit for Pods to become Ready, and for the disruption.",
        Seconds(0, 3600),
    ),
    click.option(
        "--runs",
        metavar="N",
        type=Whole(1, 1000, "runs"),
        default=1,
        show_default=True,
        help="Repeat on N new clusters, and report all runs together.",
    ),
    click.option(
        "--max-lost",
        metavar="N|SHARE",
        callback=parsed_max_lost,
        help="Lost requests that are accepted, over all runs: 3, or 0.1%.  [default: 0]",
    ),
    click.option(
        "--max-p99",
        metavar="TIME",
        callback=parsed_max_p99,
        help="Limit for the 99th percentile of good answers: 200ms, or fresh=200ms,slow=3s.",
    ),
    click.option(
        "--keep-on-failure",
        is_flag=True,
        help="Keep the cluster until Ctrl-C if requests were lost or Pods fail.",
    ),
    click.option("--apply-advice", is_flag=True, help="Run again with the advice applied."),
    click.option(
        "--find-safe",
        is_flag=True,
        help="Find the largest endpoint lag that loses no request; with --propagation, also the smallest preStop sleep "
        "and grace period.",
    ),
    click.option(
        "--confirm",
        metavar="N",
        type=Whole(1, 100, "runs"),
        default=5,
        show_default=True,
        help="Runs that confirm each limit of --find-safe; twice as many if they disagree.",
    ),
    page_options,
    output_option(
        ("text", "json", "html", "junit", "github"),
        "Output format; github: annotations.  [default: that of --output-file, or text]",
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
