"""`lastcall run`: ends real Pods and shows how they ended."""

from typing import TYPE_CHECKING, Any

import click

from lastcall.cli.confirmation import yes_option
from lastcall.cli.context_options import context_options
from lastcall.cli.node_agent_options import NODE_AGENT, node_agent_options
from lastcall.cli.options import Sources, manifest_options
from lastcall.cli.places import CLUSTER, CONTEXT, FOR_OWN, OWN, THERE, Allowed, check_places
from lastcall.cli.run.options import make_options, run_options
from lastcall.contexts import ContextOptions

if TYPE_CHECKING:
    from lastcall.trace.node_agent import AgentOptions

PLACES = (
    Allowed(("yes", "delete", *NODE_AGENT, *CONTEXT), (THERE,), "$option needs --context"),
    Allowed(
        ("ui", "opens", "ui_port", "ui_read_only"),
        (OWN,),
        "--ui shows clusters that lastcall starts: for the cluster of --context, use lastcall trace --ui",
    ),
    Allowed(("keep", "keep_on_failure", *CLUSTER), (OWN,), FOR_OWN, given=True),
)
"""Where each option is allowed; one that is not in it is allowed everywhere."""


@click.command()
@manifest_options("MANIFEST")
@context_options(namespace=False, without=("request-timeout",))
@yes_option
@click.option("--delete", is_flag=True, help="With --context: delete the Pods instead of evicting them.")
@node_agent_options
@run_options
def run(
    sources: Sources, asked: ContextOptions, yes: str, delete: bool, agents: "AgentOptions | None", **options: Any
) -> None:
    """Delete the Pods of MANIFEST… and report how each of them ended.

    MANIFEST is a file, a directory, a chart, or - for stdin, with Pods or owners of Pods (Deployment, StatefulSet …).
    lastcall deletes an owner as `kubectl delete` does, and follows every Pod that it has at that moment. It starts a
    cluster for this and removes it afterwards; only the images that it pulled stay on disk.

    With --context it creates the objects on that cluster, ends their Pods there by eviction, and removes everything
    again. It first prints what it will do, and starts when you type the context's name (or give --yes=NAME).

    Exit status: 0 all Pods ended gracefully; 3 a container was SIGKILLed, a preStop hook failed, or a container
    crashed or was restarted by a probe before the DELETE; 2 bad input; 1 anything else.
    """
    check_places(THERE if asked.context else OWN, PLACES)
    if asked.context:
        # late: 100 ms of `run --help`
        from lastcall.cli.run.existing import run_there

        raise SystemExit(run_there(sources, asked, yes, delete, agents, make_options(**options)))
    # late: 100 ms of `run --help`
    from lastcall.cli.certain_errors import tell_certain_errors
    from lastcall.cli.run.experiment import run_manifests

    loaded, made = sources.load(), make_options(**options)
    tell_certain_errors(loaded)
    raise SystemExit(run_manifests(loaded, made))
