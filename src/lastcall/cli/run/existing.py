"""`lastcall run --context`: reads the manifests, asks, and shows the stories."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lastcall.cli.certain_errors import tell_certain_errors
from lastcall.cli.confirmation import confirm
from lastcall.cli.options import Sources, is_set
from lastcall.cli.requests import entered
from lastcall.cli.run.story import show, shown, status_of, tell_failure
from lastcall.cli.terminal import note
from lastcall.contexts import ContextOptions, choose
from lastcall.endings import Ending
from lastcall.errors import LastcallError
from lastcall.experiment.existing import ExistingRun, Plan, check_namespace, check_yes, reached
from lastcall.experiment.rollout import RolloutSession, find_target, kubectl_name, with_pods
from lastcall.experiment.run import RunOptions, RunSession
from lastcall.kube.cluster import ClusterOptions
from lastcall.world.interrupts import Interrupts

if TYPE_CHECKING:
    from lastcall.trace.node_agent import AgentOptions


def run_on_existing(
    sources: Sources,
    asked: ContextOptions,
    yes: str,
    delete: bool,
    agents: "AgentOptions | None",
    entrance: tuple[str, Path | None, str],
    options: RunOptions,
) -> int:
    """Run on the cluster of `asked.context`. Return the exit status.

    `entrance` is where requests enter: a URL, its CA, and the image of the Pod that sends them. Raises LastcallError.
    """
    check_yes(asked.context, yes)
    chosen = choose(replace(asked, namespace=sources.namespace if is_set("namespace") else ""))
    check_namespace(chosen.namespace)
    manifests = sources._replace(namespace=chosen.namespace).load()
    tell_certain_errors(manifests)
    requests = place_on = None
    if options.requests is not None:
        disrupt = "delete" if delete else "evict"
        requests, place_on = entered(replace(options.requests, cluster=ClusterOptions(), disrupt=disrupt), *entrance)
        workload = kubectl_name(find_target(with_pods(manifests), requests).workload)
    out, live = shown(options)
    reported = False

    async def work() -> int:
        async with reached(chosen.asked, note) as cluster:
            version = ".".join(cluster.version.removeprefix("v").split(".")[:2]) or options.kubernetes_version
            made = options.with_cluster(kubernetes_version=version)

            def tell(endings: Sequence[Ending], error: LastcallError | None) -> None:
                nonlocal reported
                reported = True
                found, status = session.found, status_of(endings, error, session.found)
                show(out, made, endings, status, error, context=asked.context, requests=found)

            def ask(plan: Plan) -> None:
                confirm(asked.context, plan.lines, yes)

            place = ExistingRun(cluster=cluster, confirm=ask, agents=agents, delete=delete)
            session = RunSession(place, manifests, made, live, tell)
            if requests is not None and place_on is not None:
                place.requests = place_on(cluster=cluster, confirm=ask, asked=workload, copy_to="")
                session.requests = RolloutSession(
                    place.requests, requests, say=session.note, show=live.waiting, of_run=True
                )
            return status_of(await session.run(), None, session.found)

    message = f"removing what was created; lastcall doctor --context {asked.context} shows what is left"
    with Interrupts(message=message) as interrupts:
        try:
            return interrupts.run(work())
        except LastcallError as error:
            if not reported:
                tell_failure(options, error)
            raise
