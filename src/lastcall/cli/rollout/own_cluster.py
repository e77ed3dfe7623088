"""One experiment on a cluster that is started for it and removed afterwards."""

# check: long functions experiment because it waits for the one session of all commands

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.cli.errors import start_failure
from lastcall.cli.interrupts import Interrupts
from lastcall.cli.rollout.keep import kept_on_failure
from lastcall.cli.rollout.progress import Progress
from lastcall.cli.run.options import check_cni, check_propagation_nodes, check_runtime
from lastcall.errors import LastcallError
from lastcall.experiment.rollout import RolloutOptions
from lastcall.kube.cluster import ClusterStartError
from lastcall.manifests import Manifest
from lastcall.traffic import LoadGenerator

if TYPE_CHECKING:
    from lastcall.cli.rollout.page import RolloutPage
    from lastcall.experiment.rollout import Result


def experiment(  # noqa: PLR0915 - see the marker
    manifests: Sequence[Manifest], options: RolloutOptions, *, page: "RolloutPage | None" = None
) -> "Result":
    """Raises UserError, WorldError, Interrupted."""
    # late: 104 ms of `rollout --help`
    from lastcall.experiment.reasons import ends_of_all, told_once
    from lastcall.experiment.rollout import RolloutSession, find_target

    target = find_target(manifests, options)
    nodes, wanted = options.nodes, options.cluster
    check_propagation_nodes(wanted.propagation, nodes)
    check_cni(wanted.cni_conf_dir, wanted.cni_bin_dir, nodes)
    check_runtime(wanted.container_runtime, nodes, cni=wanted.cni_conf_dir)
    # late: 41 ms of `rollout --help`
    from lastcall.kube.cluster import start

    wanted = replace(wanted, nodes=nodes, load=None if options.source == "published" else LoadGenerator())
    with Interrupts() as interrupts:
        interrupts.check()
        try:
            cluster = start(wanted)
        except ClusterStartError as error:
            raise start_failure(error) from error
        why = ""
        try:
            interrupts.check()
            progress = Progress()
            session = RolloutSession(cluster, options, target, say=progress.say, show=progress.show)
            if page is not None:
                page.start(cluster, manifests, session)
                session.say = page.said_by(progress.say)

            async def work() -> "Result":
                result = await session.run(manifests)
                found = ends_of_all(session.records, options.kubernetes_version)
                for names, each in told_once(found):
                    for line in (f"not well: {names}", *each.lines):
                        progress.say(line)
                result = replace(result, not_well=found)
                if page is not None:
                    page.found(result)
                return result

            async def run() -> "Result":
                task, loop = asyncio.current_task(), asyncio.get_running_loop()
                assert task is not None

                def cancel() -> None:
                    loop.call_soon_threadsafe(task.cancel)

                interrupts.on_first = cancel
                interrupts.check()
                working = work()
                if options.keep_on_failure:
                    working = kept_on_failure(
                        working, cluster.kubeconfig_path, session.say, session.is_dead, interrupts
                    )
                try:
                    with ExitStack() as stack:
                        if page is not None:
                            page.turning(stack)
                        return await working
                finally:
                    interrupts.on_first = None
                    progress.end()

            return asyncio.run(run())
        except ClusterStartError as error:
            raise start_failure(error) from error
        except asyncio.CancelledError:
            raise interrupts.error() from None
        except LastcallError as error:
            why = str(error)
            raise
        finally:
            if page is not None:
                page.over(why)
            cluster.stop()
