"""One experiment on a cluster that is started for it and removed afterwards."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from lastcall.cli.rollout.keep import kept_on_failure
from lastcall.cli.rollout.progress import Progress
from lastcall.cli.run.option_values import check_cni, check_node_capacity, check_propagation_nodes, check_runtime
from lastcall.cli.started import start_cluster, started
from lastcall.errors import LastcallError
from lastcall.experiment.rollout import RolloutOptions
from lastcall.manifests import Manifest
from lastcall.traffic import LoadGenerator

if TYPE_CHECKING:
    from lastcall.cli.rollout.page import RolloutPage
    from lastcall.experiment.rollout import Result, Target
    from lastcall.kube.cluster import Running
    from lastcall.world.interrupts import Interrupts


def experiment(
    manifests: Sequence[Manifest], options: RolloutOptions, *, page: "RolloutPage | None" = None
) -> "Result":
    """Run the experiment on a cluster of lastcall. Raises UserError, WorldError, Interrupted."""
    # late: 104 ms of `rollout --help`
    from lastcall.experiment.rollout import find_target

    target = find_target(manifests, options)
    nodes, wanted = options.nodes, options.cluster
    _check(options)
    wanted = replace(wanted, nodes=nodes, load=None if options.source == "published" else LoadGenerator())
    with started(lambda: start_cluster(wanted)) as (cluster, interrupts):
        return _in_cluster(cluster, interrupts, manifests, options, target, page)


def _in_cluster(
    cluster: "Running",
    interrupts: "Interrupts",
    manifests: Sequence[Manifest],
    options: RolloutOptions,
    target: "Target",
    page: "RolloutPage | None",
) -> "Result":
    """Run the experiment in a cluster whose processes start. Raises as `experiment`."""
    # late: meanwhile the cluster starts on another processor
    from lastcall.experiment.reasons import ends_of_all, group_alike
    from lastcall.experiment.rollout import EmbeddedWorkspace, RolloutSession, stories, with_worker_ends

    progress, why = Progress(), ""
    place = EmbeddedWorkspace(cluster, manifests, target)
    session = RolloutSession(place, options, say=progress.say, show=progress.show)

    async def work() -> "Result":
        result = await session.run()
        found = ends_of_all(place.records, options.kubernetes_version)
        for names, each in group_alike(found):
            for line in (f"not well: {names}", *each.lines):
                progress.say(line)
        pause, version = result.judgement.pause, options.kubernetes_version
        ends = stories(place.records, result.lives, version, pause, result.account.lost)
        result = replace(
            result,
            not_well=found,
            endings=ends,
            judgement=with_worker_ends(result.judgement, result.outcomes, result.lives, place.records),
        )
        if page is not None:
            page.found(result)
        return result

    async def run() -> "Result":
        working = work()
        if options.keep_on_failure:
            working = kept_on_failure(working, place, cluster.kubeconfig_path, session.say, interrupts)
        with ExitStack() as stack:
            if page is not None:
                page.turning(stack)
            return await working

    try:
        if page is not None:
            page.start(place, session)
            session.say = page.said_by(progress.say)
        return interrupts.run(run())
    except LastcallError as error:
        why = str(error)
        raise
    finally:
        progress.end()
        if page is not None:
            page.over(why)


def _check(options: RolloutOptions) -> None:
    """Raises click.UsageError for what does not go together, WorldError for a runtime that cannot be used."""
    nodes, wanted = options.nodes, options.cluster
    check_propagation_nodes(wanted.propagation, nodes)
    check_node_capacity(wanted.node_capacity, nodes)
    check_cni(wanted.cni_conf_dir, wanted.cni_bin_dir, nodes)
    if wanted.container_runtime and options.source == "pod":
        raise click.UsageError(
            "--container-runtime-endpoint and --from pod do not work together: requests cannot be sent from a Pod of "
            "another runtime; leave --from out"
        )
    check_runtime(wanted.container_runtime, nodes, cni=wanted.cni_conf_dir)
