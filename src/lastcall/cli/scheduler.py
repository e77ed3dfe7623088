"""`lastcall scheduler`: the scheduler as a process of its own, against any API server."""

import click

from lastcall.cli.context_options import context_options, leader_elect_option
from lastcall.cli.leader_election import Component, Fence
from lastcall.cli.terminal import say
from lastcall.contexts import Connected, ContextOptions
from lastcall.world.world import World

LEASE = "kube-scheduler"


@click.command("scheduler")
@context_options(namespace=False)
@leader_elect_option(LEASE)
def scheduler(asked: ContextOptions, leader_elect: bool) -> None:
    """Bind Pods to nodes against an API server until Ctrl-C.

    It takes the Pods whose schedulerName is default-scheduler. If the process is killed, the next one continues where
    it stopped. Exit status: 0 ended as asked, 2 bad input, 1 anything else.
    """
    component = Component("scheduler", LEASE, _lead)
    raise SystemExit(component.run(asked, leader_elect=leader_elect, ended="the scheduler has ended"))


async def _lead(world: World, cluster: Connected, fence: Fence) -> None:
    # late: 375 ms of `scheduler --help`
    from lastcall.kube.api import gates_of_server
    from lastcall.kube.scheduler import run_scheduler
    from lastcall.records.memory import NoRecorder

    say(f"scheduler: binds Pods of {cluster.chosen.server}", err=True)
    minor = gates_of_server(cluster.version).minor
    await run_scheduler(world=world, client=fence(cluster.client), recorder=NoRecorder(), minor=minor)
