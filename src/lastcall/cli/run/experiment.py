"""What `run` and `demo` do: end real Pods and show how they ended."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from lastcall.cli import exit_status, output
from lastcall.cli.errors import guarded
from lastcall.cli.interrupts import Interrupts
from lastcall.cli.output import stdout_console, takes_stdout
from lastcall.cli.started import start_cluster, started, stay
from lastcall.cli.summary import summarize
from lastcall.endings import Ending
from lastcall.endings.render import LiveTimeline
from lastcall.errors import Interrupted, LastcallError, causes_of
from lastcall.experiment.run import Cluster, RunOptions, Session
from lastcall.manifests import Manifest

if TYPE_CHECKING:
    from rich.console import Console

    from lastcall.ui.command_page import PageLink

StartCluster = Callable[[RunOptions], Cluster]

Tell = Callable[[Sequence[Ending], int, LastcallError | None], None]
"""Takes the stories, the exit status that they ask for, and the error that cut them short."""


def started_cluster(options: RunOptions) -> Cluster:
    """The real one. Raises ClusterStartError and UserError."""
    return start_cluster(options.cluster)


def run_manifests(
    manifests: Sequence[Manifest], options: RunOptions, start_cluster: StartCluster = started_cluster
) -> int:
    """The whole run, from process tree to story; the exit status. Raises LastcallError."""
    if options.versions:
        # late: 4.3 ms of `demo`
        from lastcall.cli.run.side_by_side import run_versions

        return run_versions(options, lambda one, tell: _run_one(manifests, one, start_cluster, tell))
    return _run_one(manifests, options, start_cluster, None)


def _run_one(manifests: Sequence[Manifest], options: RunOptions, start_cluster: StartCluster, tell: Tell | None) -> int:
    """One version. `tell` takes the story instead of showing it."""
    with ExitStack() as stack:
        try:
            cluster, interrupts = stack.enter_context(started(lambda: start_cluster(options)))
        except LastcallError as error:
            if tell is None and not isinstance(error, Interrupted):
                tell_failure(options, error)
            raise
        page = _page(cluster, options)
        if page is not None:
            stack.callback(page.close)
        return interrupts.run(_run(cluster, manifests, options, interrupts, tell, page))


def _page(cluster: Cluster, options: RunOptions) -> "PageLink | None":
    """The live page of the cluster, where it is asked for."""
    if options.page is None:
        return None
    # late: only with --ui
    from lastcall.ui.command_page import PageLink

    page = PageLink(options.page, "lastcall run", lambda text: None)
    cluster.on_record(page.record)
    page.cluster("lastcall run", options.kubernetes_version, cluster.kubeconfig_path())
    return page


async def _run(
    cluster: Cluster,
    manifests: Sequence[Manifest],
    options: RunOptions,
    interrupts: Interrupts,
    tell: Tell | None,
    page: "PageLink | None",
) -> int:
    out, progress = consoles(options)
    timeline = progress if tell is not None or takes_stdout(options.output, options.output_file) else out
    session = Session(cluster, options, LiveTimeline(timeline, progress, options.explain))
    try:
        showing = tell or partial(show, out, options, manifests=manifests)
        with ExitStack() as stack:
            if page is not None:
                page.say = session.live.note
                session.before_end = partial(page.somebody_looks, session.clock, "the Pods end")
                stack.enter_context(page.turning())
            return await _tell(session, manifests, options, showing, interrupts)
    finally:
        await session.close()


async def _tell(
    session: Session, manifests: Sequence[Manifest], options: RunOptions, tell: Tell, interrupts: Interrupts
) -> int:
    """Run, show the stories (what is known of them when something went wrong), stay if asked to."""
    try:
        endings = await session.run(manifests)
    except LastcallError as error:
        tell(session.endings(), exit_status.of_error(error), error)
        if options.keep_on_failure and not session.death.text:
            guarded(partial(_raise, error))
            await _keep(session, interrupts)
            return exit_status.of_error(error)
        raise
    status = exit_status.exit_status(endings) if not session.left_alone else exit_status.NOT_GRACEFUL
    tell(endings, status, None)
    if options.keep or (options.keep_on_failure and status != exit_status.OK):
        await _keep(session, interrupts)
    return status


def _raise(error: LastcallError) -> int:
    raise error


async def _keep(session: Session, interrupts: Interrupts) -> None:
    """Stay until the first signal, which is the way to end it: no error."""
    path = session.cluster.kubeconfig_path()
    if session.left_alone:
        session.live.note("Nothing was deleted, because a Pod is unhealthy (--keep-on-failure)")
    session.live.note(f"The cluster stays up until Ctrl-C: kubectl --kubeconfig {path} get pods -A")
    await stay(session.keep(), interrupts)


def consoles(options: RunOptions) -> tuple["Console", "Console"]:
    """One for the story (stdout), one for progress (stderr)."""
    # late: 37 ms of `demo`
    from lastcall.cli.console import CommandConsole

    return stdout_console(), CommandConsole(stderr=True)


def show(
    out: "Console",
    options: RunOptions,
    endings: Sequence[Ending],
    status: int,
    error: LastcallError | None = None,
    manifests: Sequence[Manifest] = (),
    context: str = "",
) -> None:
    """The stories as they were asked for; where an error left none, only reports for CI."""
    if error and not endings:
        tell_failure(options, error)
        return
    # late: 1.0 ms of `demo`
    from lastcall.experiment import of_manifests

    output.tell(
        out,
        endings,
        options.output,
        options.output_file,
        kubernetes_version=options.kubernetes_version,
        status=status,
        explain=options.explain,
        error=str(error or ""),
        not_ready=causes_of(error),
        seen_live=not takes_stdout(options.output, options.output_file),
        notes=tuple(of_manifests(manifests)),
        context=context,
    )
    summarize(options.summary, endings, options.kubernetes_version, str(error or ""))


def tell_failure(options: RunOptions, error: LastcallError) -> None:
    """What CI is told of a run that ended without a story: a test report of an earlier run would hide that."""
    output.tell_failure(
        options.output,
        options.output_file,
        str(error),
        kubernetes_version=options.kubernetes_version,
        status=exit_status.of_error(error),
        not_ready=causes_of(error),
    )
    summarize(options.summary, [], options.kubernetes_version, str(error))
