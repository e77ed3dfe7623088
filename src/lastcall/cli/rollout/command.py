"""`lastcall rollout`: does an update of this manifest lose requests, which ones, and what would have saved them?"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastcall.cli.node_agent_options import NODE_AGENT
from lastcall.cli.options import Sources
from lastcall.cli.output import checked_output
from lastcall.cli.page_options import asked_page
from lastcall.cli.places import (
    CLUSTER,
    CONTEXT,
    FOR_OWN,
    FOR_THERE,
    OWN,
    REQUESTS,
    TAKEN,
    THERE,
    URL,
    Allowed,
    Excluded,
    check_places,
)
from lastcall.cli.requests import asked_requests
from lastcall.cli.rollout.options import rollout_options
from lastcall.cli.sectioned_help import SectionedCommand
from lastcall.contexts import ContextOptions

if TYPE_CHECKING:
    from lastcall.experiment.rollout import RolloutOptions
    from lastcall.trace.node_agent import AgentOptions

FIND_SAFE_WRITES = "--find-safe supports --output text and json, on stdout only"
FOR_POD = "--copy-to: only Pods of that namespace reach the copy: leave out --url and --from client"

PLACES = (
    *REQUESTS,
    Allowed(("yes", "copy_to", *NODE_AGENT), (THERE,), FOR_THERE),
    Allowed(CONTEXT, (TAKEN, THERE), "$option needs --context or --from-cluster"),
    Allowed(
        ("manifests", "filenames", "kustomizations"),
        (OWN, THERE),
        "--from-cluster replaces MANIFEST, -f and -k: leave those out",
    ),
    Allowed(
        ("kustomizations",), (OWN, TAKEN), "with --context give the name of one workload there, such as deployment/web"
    ),
    Allowed(
        ("apply_advice", "find_safe", "keep_on_failure"),
        (OWN, TAKEN),
        "$option works on clusters that lastcall starts, not on the cluster of --context\n"
        "fix: --from-cluster $workload instead of $workload copies the workload to such a cluster",
    ),
    Allowed(("runs",), (OWN, TAKEN), "--runs does not work with --context: each run needs its own confirmation"),
    Allowed(CLUSTER, (OWN, TAKEN), FOR_OWN, given=True),
)
"""Where each option is allowed; one that is not in it is allowed everywhere."""

EXCLUDED = (
    Excluded("find_safe", ("output_file", "summary"), FIND_SAFE_WRITES),
    Excluded("find_safe", ("output",), FIND_SAFE_WRITES, values=("html", "junit", "github")),
    Excluded(
        "find_safe",
        ("runs", "max_lost", "max_p99"),
        "--find-safe does not work with --runs, --max-lost and --max-p99: set the number of its runs with --confirm",
    ),
    Excluded(
        "keep_on_failure",
        ("find_safe", "runs", "apply_advice"),
        "--keep-on-failure keeps one cluster running: it does not work with --find-safe, --runs and --apply-advice",
    ),
    URL,
    Excluded("copy_to", ("url",), FOR_POD),
    Excluded("copy_to", ("source",), FOR_POD, values=("client",)),
)
"""Options that exclude each other."""


@click.command(cls=SectionedCommand)
@rollout_options
def rollout(
    sources: Sources,
    taken: str,
    asked: ContextOptions,
    url: str,
    url_ca: Path | None,
    image: str,
    copy_to: str,
    yes: str,
    agents: "AgentOptions | None",
    **options: Any,
) -> None:
    """Disrupt the workload of MANIFEST… under load, and account for every request.

    The manifests have a workload (Deployment, StatefulSet, DaemonSet, ReplicaSet) and a Service that selects its Pods.
    lastcall creates everything in them in a cluster of its own. --from-cluster copies the workload from another
    cluster, which it only reads.

    With --context and the name of a workload (deployment/web) it works on that cluster: it prints its plan, starts when
    you type the context's name (or give --yes=NAME), and undoes its changes. If it was killed, run lastcall cleanup.

    \b
    Kinds of load:
      fresh, keep-alive  HTTP/1.1: a connection for each request, or reused ones
      slow               like fresh, to --slow-path (/slow), which takes long
      stream, websocket  held 5 s, every fifth to the end; a WebSocket echoes
      http2, tcp         HTTP/2 without TLS (h2c); a line and its echo

    Exit status: 0 nothing lost (or no more than --max-lost); 3 requests lost, --max-p99 exceeded, or a container
    crashed; 4 inconclusive; 2 bad input; 1 anything else. With --apply-advice the second run decides. With --find-safe:
    3 if no lag is safe.
    """
    place = TAKEN if taken else THERE if asked.context else OWN
    workload = sources.manifests[0] if len(sources.manifests) == 1 else "deployment/web"
    _check_output(options)
    check_places(place, PLACES, EXCLUDED, workload=workload)
    if place == THERE:
        # late: 104 ms of `rollout --help`
        from lastcall.cli.rollout.existing import on_a_cluster

        raise SystemExit(on_a_cluster(sources, asked, url, url_ca, image, copy_to, yes, agents, _made(options)))
    if place == TAKEN:
        # late: 104 ms of `rollout --help`
        from lastcall.cli.rollout.existing import from_a_cluster

        made = _made(options)
        loaded, differences = from_a_cluster(sources, taken, asked)
        made = replace(made, workload=taken, differences=differences)
    else:
        sources.check("MANIFEST")
        loaded = sources.load()
        made = _made(options)
    # late: the first line is what was read
    from lastcall.cli.certain_errors import tell_certain_errors
    from lastcall.cli.rollout.rounds import run_rollout

    tell_certain_errors(loaded)
    raise SystemExit(run_rollout(loaded, made))


def _made(options: dict[str, Any]) -> "RolloutOptions":
    """The options as given on the command line; `options` are used up."""
    # late: the first line is what was read
    from lastcall.cli.run.option_values import asked_cluster
    from lastcall.experiment.rollout import RolloutOptions

    requests = asked_requests(options)
    return RolloutOptions(cluster=asked_cluster(options), page=asked_page(options), **requests, **options)


def _check_output(options: dict[str, Any]) -> None:
    """Whether the report can be written as it is asked for. Raises UsageError."""
    file = options["output_file"]
    if options["output"] is None and file is not None and file.suffix and not _is_report_file(file.name.lower()):
        raise click.UsageError(
            f"--output-file {str(file)!r}: the formats of rollout are .html, .json, .xml (JUnit) and .txt"
        )
    options["output"] = checked_output(options["output"], options["output_file"])


def _is_report_file(name: str) -> bool:
    return name.endswith((".html", ".htm", ".json", ".xml", ".txt", ".text", ".log")) and not name.endswith(
        ".trace.json"
    )
