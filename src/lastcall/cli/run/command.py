"""`lastcall run`: ends real Pods and shows how they ended."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastcall.cli.confirmation import yes_option
from lastcall.cli.context_options import context_options
from lastcall.cli.node_agent_options import NODE_AGENT, node_agent_options
from lastcall.cli.options import Sources, manifest_options
from lastcall.cli.places import CLUSTER, CONTEXT, FOR_OWN, OWN, REQUESTS, THERE, URL, Allowed, check_places
from lastcall.cli.requests import requests_options
from lastcall.cli.run.options import propagation_option, run_options
from lastcall.cli.sectioned_help import SectionedCommand
from lastcall.contexts import ContextOptions

if TYPE_CHECKING:
    from lastcall.manifests import Manifest
    from lastcall.trace.node_agent import AgentOptions

PLACES = (
    *REQUESTS,
    Allowed(("yes", "delete", *NODE_AGENT, *CONTEXT), (THERE,), "$option needs --context"),
    Allowed(
        ("ui", "opens", "ui_port", "ui_read_only"),
        (OWN,),
        "--ui shows clusters that lastcall starts: for the cluster of --context, use lastcall trace --ui",
    ),
    Allowed(("keep", "keep_on_failure", *CLUSTER), (OWN,), FOR_OWN, given=True),
)
"""Where each option is allowed; one that is not in it is allowed everywhere."""
LOADED, UNLOADED = "loaded", "unloaded"
OF_LOAD = (
    Allowed(
        ("path", "slow_path", "stream_path", "websocket_path", "length", "http2_connections", "workload", "service",
         "port", "propagation", "source", "url", "url_ca", "image", "request_timeout"),
        (LOADED,),
        "$option applies to requests: add --load, such as --load 50",
        given=True,
    ),
)  # fmt: skip
"""Where each option is allowed by whether requests are sent."""


@click.command(cls=SectionedCommand)
@manifest_options("MANIFEST")
@context_options(namespace=False, without=("request-timeout",))
@yes_option
@click.option("--delete", is_flag=True, help="With --context: delete the Pods instead of evicting them.")
@node_agent_options
@requests_options(None)
@propagation_option
@run_options
def run(
    sources: Sources,
    asked: ContextOptions,
    yes: str,
    delete: bool,
    agents: "AgentOptions | None",
    url: str,
    url_ca: Path | None,
    image: str,
    **options: Any,
) -> None:
    """Delete the Pods of MANIFEST… and report how each of them ended.

    MANIFEST is a file, a directory, a chart, or - for stdin, with Pods or owners of Pods (Deployment, StatefulSet …).
    lastcall deletes an owner as `kubectl delete` does, and follows every Pod that it has at that moment. It starts a
    cluster for this and removes it afterwards; only the images that it pulled stay on disk.

    With --context it creates the objects on that cluster, ends their Pods there by eviction, and removes everything
    again. It first prints what it will do, and starts when you type the context's name (or give --yes=NAME).

    With --load it sends requests to the Service of the Pods meanwhile, as lastcall rollout does, and reports which ones
    were lost and why. Requests on connections that are opened when no Pod is ready any more do not count: in an
    application that goes on, other Pods get them.

    Exit status: 0 all Pods ended gracefully; 3 a container was SIGKILLed, a preStop hook failed, a container crashed or
    was restarted by a probe, or requests were lost; 4 requests were lost, or not answered, before
    anything ended; 2 bad input; 1 anything else.
    """
    check_places(THERE if asked.context else OWN, PLACES, (URL,))
    check_places(LOADED if options["rates"] else UNLOADED, OF_LOAD)
    if asked.context:
        # late: 100 ms of `run --help`
        from lastcall.cli.run.existing import run_on_existing
        from lastcall.cli.run.option_values import make_options

        raise SystemExit(
            run_on_existing(sources, asked, yes, delete, agents, (url, url_ca, image), make_options(**options))
        )
    manifests = sources.load()
    # late: the first line is what was read
    from lastcall.cli.run.experiment import run_manifests
    from lastcall.cli.run.option_values import make_options

    raise SystemExit(run_manifests(manifests, make_options(**options), check=_tell_certain_errors))


def _tell_certain_errors(manifests: "Sequence[Manifest]") -> None:
    # late: meanwhile the cluster starts on another processor
    from lastcall.cli.certain_errors import tell_certain_errors

    tell_certain_errors(manifests)
