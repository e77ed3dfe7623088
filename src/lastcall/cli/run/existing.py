"""`lastcall run --context`: reads the manifests, asks, and shows the stories."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.cli.certain_errors import tell_certain_errors
from lastcall.cli.confirmation import confirm
from lastcall.cli.exit_status import exit_status
from lastcall.cli.interrupts import Interrupts
from lastcall.cli.options import Sources, is_set
from lastcall.cli.run.experiment import show, shown, status_of, tell_failure
from lastcall.cli.terminal import note
from lastcall.contexts import ContextOptions, choose
from lastcall.endings import Ending
from lastcall.errors import LastcallError
from lastcall.experiment.existing import ExistingRun, Plan, check_namespace, check_yes, reached
from lastcall.experiment.run import RunOptions, RunSession

if TYPE_CHECKING:
    from lastcall.trace.node_agent import AgentOptions


def run_there(
    sources: Sources, asked: ContextOptions, yes: str, delete: bool, agents: "AgentOptions | None", options: RunOptions
) -> int:
    """The exit status of a run on the cluster of `asked.context`. Raises LastcallError."""
    check_yes(asked.context, yes)
    chosen = choose(replace(asked, namespace=sources.namespace if is_set("namespace") else ""))
    check_namespace(chosen.namespace)
    manifests = replace(sources, namespace=chosen.namespace).load()
    tell_certain_errors(manifests)
    out, live = shown(options)
    told = False

    async def work() -> int:
        async with reached(chosen.asked, note) as cluster:
            version = ".".join(cluster.version.removeprefix("v").split(".")[:2]) or options.kubernetes_version
            made = options.with_cluster(kubernetes_version=version)

            def tell(endings: Sequence[Ending], error: LastcallError | None) -> None:
                nonlocal told
                told = True
                show(out, made, endings, status_of(endings, error), error, context=asked.context)

            def ask(plan: Plan) -> None:
                confirm(asked.context, plan.lines, yes)

            place = ExistingRun(cluster=cluster, confirm=ask, agents=agents, delete=delete)
            return exit_status(await RunSession(place, manifests, made, live, tell).run())

    message = f"removing what was created; lastcall doctor --context {asked.context} shows what is left"
    with Interrupts(message=message) as interrupts:
        try:
            return interrupts.run(work())
        except LastcallError as error:
            if not told:
                tell_failure(options, error)
            raise
