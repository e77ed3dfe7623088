"""Run `lastcall doctor --context`: list what experiments have left on an existing cluster."""

from lastcall.cli.options import json_text
from lastcall.cli.terminal import note, say, show
from lastcall.contexts import ContextOptions
from lastcall.endings.render import about_cluster, envelope
from lastcall.experiment.existing import Leftovers, find_leftovers, reached
from lastcall.world.interrupts import Interrupts

SCHEMA = "lastcall/leftovers/v1"


def look_for_leftovers(asked: ContextOptions, output: str) -> int:
    """Report what experiments left behind. Return the exit status: 1 where something is left.

    Raises UserError, WorldError.
    """
    with Interrupts(message="nothing was changed") as interrupts:
        context, version, found = interrupts.run(_look(asked))
    if output == "json":
        document = {
            **envelope(SCHEMA, about_cluster(version, context=context)),
            "context": context,
            "leftovers": found.lines,
            "running": [f"namespace {where}: process {ledger.holder.pid}" for where, ledger in found.running],
            "notLookedAt": found.left_alone,
        }
        show(json_text(document))
        return 1 if found.lines or found.unreadable else 0
    for where, ledger in found.running:
        say(f"namespace {where}: an experiment is still running, in process {ledger.holder.pid} of this machine")
    for line in found.lines:
        say(line)
    for each in found.left_alone:
        say(f"not checked: {each}")
    if found.lines or found.unreadable:
        say(f"fix: lastcall cleanup --context {context}")
        return 1
    say("No experiment has left anything behind.")
    return 0


async def _look(asked: ContextOptions) -> tuple[str, str, Leftovers]:
    async with reached(asked, note) as cluster:
        return cluster.context, cluster.minor_version, await find_leftovers(cluster.client, "", cluster.namespace)
