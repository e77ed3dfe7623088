"""`lastcall run --context`: reads the manifests, asks, and shows the stories."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lastcall.cli.certain_errors import tell_certain_errors
from lastcall.cli.confirmation import confirm
from lastcall.cli.exit_status import exit_status, of_error
from lastcall.cli.interrupts import Interrupts
from lastcall.cli.options import Sources, is_set
from lastcall.cli.output import takes_stdout
from lastcall.cli.run.experiment import consoles, show, tell_failure
from lastcall.cli.terminal import note
from lastcall.contexts import ContextOptions, choose
from lastcall.endings import Ending
from lastcall.endings.render import LiveTimeline
from lastcall.errors import LastcallError
from lastcall.experiment.existing import ExistingRun, check_namespace, check_yes, reached
from lastcall.experiment.run import RunOptions


def run_there(sources: Sources, asked: ContextOptions, yes: str, delete: bool, options: RunOptions) -> int:
    """The exit status of a run on the cluster of `asked.context`. Raises LastcallError."""
    check_yes(asked.context, yes)
    chosen = choose(replace(asked, namespace=sources.namespace if is_set("namespace") else ""))
    check_namespace(chosen.namespace)
    manifests = replace(sources, namespace=chosen.namespace).load()
    tell_certain_errors(manifests)
    out, progress = consoles(options)
    live = LiveTimeline(
        progress if takes_stdout(options.output, options.output_file) else out, progress, options.explain
    )
    told = False

    async def work() -> int:
        async with reached(chosen.asked, note) as cluster:
            version = ".".join(cluster.version.removeprefix("v").split(".")[:2]) or options.kubernetes_version
            showing = partial(show, out, options.with_cluster(kubernetes_version=version), context=asked.context)

            def tell(endings: Sequence[Ending], error: LastcallError | None) -> None:
                nonlocal told
                told = True
                showing(endings, exit_status(endings) if error is None else of_error(error), error)

            def ask(lines: Sequence[str]) -> None:
                confirm(asked.context, lines, yes)

            run = ExistingRun(cluster, manifests, options, delete, version, live, lambda plan: ask(plan.lines), tell)
            return exit_status(await run.run())

    message = f"removing what was created; lastcall doctor --context {asked.context} shows what is left"
    with Interrupts(message=message) as interrupts:
        try:
            return interrupts.run(work())
        except LastcallError as error:
            if not told:
                tell_failure(options, error)
            raise
