"""Run `lastcall rollout --context` and `--from-cluster`: read the existing cluster, and begin."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastcall.cli.confirmation import confirm
from lastcall.cli.options import Sources, is_set
from lastcall.cli.requests import entered
from lastcall.cli.rollout.progress import Progress
from lastcall.cli.rollout.rounds import run_rollout
from lastcall.cli.terminal import note, say
from lastcall.contexts import ContextOptions
from lastcall.errors import LastcallError
from lastcall.experiment.existing import (
    ExistingWorkspace,
    Plan,
    Taking,
    check_yes,
    parsed_workload,
    reached,
    split_workload,
)
from lastcall.experiment.rollout import RolloutOptions, RolloutSession
from lastcall.kube.api import name_of
from lastcall.kube.cluster import ClusterOptions
from lastcall.manifests import Manifest
from lastcall.world.interrupts import Interrupts

if TYPE_CHECKING:
    from lastcall.cli.rollout.page import RolloutPage
    from lastcall.experiment import Note
    from lastcall.experiment.rollout import Result
    from lastcall.trace.node_agent import AgentOptions


def on_a_cluster(
    sources: Sources,
    there: ContextOptions,
    url: str,
    url_ca: Path | None,
    image: str,
    copy_to: str,
    yes: str,
    agents: "AgentOptions | None",
    options: RolloutOptions,
) -> int:
    """Return the exit status of an experiment on an existing cluster. Raises UserError, WorldError."""
    named = dict.fromkeys((*sources.manifests, *([options.workload] if options.workload else ())))
    if len(named) != 1:
        raise click.UsageError("with --context give the name of one workload there, such as deployment/web")
    (asked,) = named
    split_workload(asked)
    check_yes(there.context, yes)
    options = replace(options, cluster=ClusterOptions())  # the values of variables are for clusters of our own
    options, place_on = entered(options, url, url_ca, image)
    place = partial(place_on, asked=asked, copy_to=copy_to, agents=agents)
    return run_rollout((), options, partial(_experiment, _in_namespace(there, sources), place, yes))


def _experiment(
    there: ContextOptions,
    place_on: "Callable[..., ExistingWorkspace]",
    yes: str,
    manifests: Sequence[Manifest],
    options: RolloutOptions,
    *,
    page: "RolloutPage | None" = None,
) -> "Result":
    progress, context = Progress(), there.context
    say = progress.say if page is None else page.said_by(progress.say)

    def allowed(plan: Plan) -> None:
        if page is not None and not yes:
            page.wait_for_terminal(context)
        confirm(context, plan.lines, yes)

    async def work() -> "Result":
        with ExitStack() as stack:
            async with reached(there, note) as cluster:
                place = place_on(cluster=cluster, confirm=allowed)
                session = RolloutSession(place, options, say=say, show=progress.show)
                if page is not None:
                    page.start_on_existing(asdict(there), place, session, progress.say, stack)
                result = replace(await session.run(), endings=place.following.stories(place.following.pods))
                if page is not None:
                    page.found(result)
                return result

    message = f"undoing the changes; lastcall doctor --context {context} shows what is left"
    why = ""
    with Interrupts(message=message) as interrupts:
        try:
            return interrupts.run(work())
        except LastcallError as error:
            why = str(error)
            raise
        finally:
            if page is not None:
                page.over(why)
            progress.end()


def _in_namespace(there: ContextOptions, sources: Sources) -> ContextOptions:
    """With `-n`, where it was given: the context has one of its own."""
    return replace(there, namespace=sources.namespace if is_set("namespace") else "")


def from_a_cluster(sources: Sources, workload: str, there: ContextOptions) -> "tuple[list[Manifest], tuple[Note, ...]]":
    """Return the manifests of a workload of a cluster, and what differs here. Raises UserError, WorldError."""
    parsed_workload(workload)
    there = _in_namespace(there, sources)

    async def take() -> "tuple[list[Manifest], tuple[Note, ...]]":
        async with reached(there, note) as cluster:
            found = await Taking(cluster.client, cluster.where, cluster.namespace).run(workload)
            names = ", ".join(f"{each.resource.kind} {name_of(each.obj)}" for each in found.manifests)
            say(f"copied from {cluster.where}, namespace {cluster.namespace}: {names}", err=True)
            return found.manifests, found.notes

    with Interrupts() as interrupts:
        return interrupts.run(take())
