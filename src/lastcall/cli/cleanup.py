"""`lastcall cleanup`: put back what experiments on an existing cluster left after a kill or a lost connection."""

from typing import TYPE_CHECKING

import click

from lastcall.cli.confirmation import confirm, yes_option
from lastcall.cli.context_options import context_options
from lastcall.cli.terminal import note, say
from lastcall.contexts import ContextOptions
from lastcall.errors import UserError
from lastcall.world.interrupts import Interrupts

if TYPE_CHECKING:
    from lastcall.experiment.existing import Leftovers


@click.command()
@context_options()
@yes_option
def cleanup(asked: ContextOptions, yes: str) -> None:
    """Undo what experiments left on the cluster of --context.

    rollout --context writes each change into a ConfigMap of the namespace before it makes it. cleanup reads these
    ConfigMaps, undoes what nobody else has changed since, deletes what the experiment created, and removes the
    ConfigMap. It skips an experiment that still runs on this machine, and reports each ConfigMap that only looks like a
    ledger. You can repeat it.

    It looks in all namespaces, or in that of -n.

    Exit status: 0 nothing is left; 2 bad input, not allowed, or an experiment runs; 1 anything else.
    """
    if not asked.context:
        raise click.UsageError("Missing option '--context': name the context of the cluster to clean up")
    with Interrupts(message="the rest stays in the ledgers: run lastcall cleanup again") as interrupts:
        interrupts.run(_cleanup(asked, yes))


async def _cleanup(asked: ContextOptions, yes: str) -> None:
    # late: 104 ms of `cleanup --help`
    from lastcall.experiment.existing import find_leftovers, put_back, reached
    from lastcall.world.clock import RealClock

    context = asked.context
    async with reached(asked, note) as cluster:
        found = await find_leftovers(cluster.client, asked.namespace, cluster.namespace)
        tell_found(found)
        if found.lines:
            head = f"In context {context} ({cluster.server}) lastcall will"
            confirm(context, [head, *(f"  - {line}" for line in found.lines)], yes)
        await put_back(cluster.client, RealClock(), found, lambda line: say(line))
        if found.running:
            raise UserError("an experiment is still running: its changes were not undone")
        say(f"nothing is left in context {context}")


def tell_found(found: "Leftovers") -> None:
    """Print what cleanup leaves alone."""
    for each in found.left_alone:
        say(f"not checked: {each}", err=True)
    for where, ledger in found.running:
        say(f"namespace {where}: an experiment is running (process {ledger.holder.pid}): skipped", err=True)
