"""Run the experiment of `run` and `demo` in a cluster that starts, and show the stories.

`cli/run/experiment.py` imports this once the cluster's processes are forked: it takes as long as their start.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from lastcall.cli import exit_status, output
from lastcall.cli.errors import guarded
from lastcall.cli.output import stdout_console, takes_stdout
from lastcall.cli.started import stay
from lastcall.cli.summary import summarize
from lastcall.endings import Ending
from lastcall.endings.render import LiveTimeline
from lastcall.errors import LastcallError, causes_of
from lastcall.experiment.run import Cluster, EmbeddedRun, RunOptions, RunSession
from lastcall.manifests import Manifest
from lastcall.world.interrupts import Interrupts

if TYPE_CHECKING:
    from rich.console import Console

    from lastcall.experiment.rollout import Result
    from lastcall.ui.command_page import PageLink

Tell = Callable[[Sequence[Ending], int, LastcallError | None], None]
"""Takes the stories, the exit status that they ask for, and the error that cut them short."""


def run_in(
    cluster: Cluster, manifests: Sequence[Manifest], options: RunOptions, interrupts: Interrupts, tell: Tell | None
) -> int:
    """Return the exit status of the run in a cluster whose processes start. Raises LastcallError."""
    with ExitStack() as stack:
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
    out, live = shown(options, quiet=tell is not None)
    place = EmbeddedRun(cluster)
    session = RunSession(place, manifests, options, live)
    if options.requests is not None:
        # late: only with --load
        from lastcall.cli.run.under_load import send_requests

        send_requests(session, cluster, options.requests)
    status = exit_status.OK

    def report(endings: Sequence[Ending], error: LastcallError | None) -> None:
        nonlocal status
        status = exit_status.NOT_GRACEFUL if session.left_alone else status_of(endings, error, session.found)
        if tell is not None:
            tell(endings, status, error)
        else:
            show(out, options, endings, status, error, manifests=manifests, requests=session.found)

    session.tell = report
    with ExitStack() as stack:
        if page is not None:
            page.say = live.note
            session.before_end = partial(page.somebody_looks, session.clock, "the Pods end")
            stack.enter_context(page.turning())
        try:
            await session.run()
        except LastcallError as error:
            if not options.keep_on_failure or place.death:
                raise
            guarded(partial(_raise, error))
        if options.keep or (options.keep_on_failure and status != exit_status.OK):
            await _keep(session, place, interrupts)
        return status


def status_of(endings: Sequence[Ending], error: LastcallError | None, requests: "Result | None" = None) -> int:
    """Return the exit status of a run with what became of its requests, or of the error that cut it short."""
    if error is not None:
        return exit_status.of_error(error)
    if requests is None or exit_status.exit_status(endings):
        return exit_status.exit_status(endings)
    # late: only with --load
    from lastcall.cli.run.under_load import status_of_requests

    return status_of_requests(requests)


def _raise(error: LastcallError) -> int:
    raise error


async def _keep(session: RunSession, place: EmbeddedRun, interrupts: Interrupts) -> None:
    """Stay until the first signal, which is the way to end it: no error."""
    if session.left_alone:
        session.live.note("Nothing was deleted, because a Pod is unhealthy (--keep-on-failure)")
    await stay(place, place.cluster.kubeconfig_path(), session.live.note, interrupts)


def shown(options: RunOptions, *, quiet: bool = False) -> tuple["Console", LiveTimeline]:
    """Return the console of the story (stdout) and the timeline.

    The timeline is beside the story. Its progress goes to stderr if `quiet`, or if a document goes to stdout.
    """
    # late: 37 ms of `demo`
    from lastcall.cli.console import CommandConsole

    out, progress = stdout_console(), CommandConsole(stderr=True)
    on_stderr = quiet or takes_stdout(options.output, options.output_file)
    return out, LiveTimeline(progress if on_stderr else out, progress, options.explain)


def show(
    out: "Console",
    options: RunOptions,
    endings: Sequence[Ending],
    status: int,
    error: LastcallError | None = None,
    manifests: Sequence[Manifest] = (),
    context: str = "",
    requests: "Result | None" = None,
) -> None:
    """Print the stories as they were asked for; where an error left none, only reports for CI."""
    if error and not endings:
        tell_failure(options, error)
        return
    # late: 1.0 ms of `demo`
    from lastcall.experiment import of_dropped, of_manifests

    # Which gates an existing cluster has is not known.
    dropped = () if context else of_dropped(manifests, options.gates)
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
        notes=(*dropped, *of_manifests(manifests)),
        context=context,
        requests=requests,
    )
    summarize(options.summary, endings, options.kubernetes_version, str(error or ""))
    if requests is not None:
        # late: only with --load
        from lastcall.cli.run.under_load import summarize_requests

        summarize_requests(options.summary, requests)


def tell_failure(options: RunOptions, error: LastcallError) -> None:
    """Write for CI that a run ended without a story: a test report of an earlier run would hide that."""
    output.tell_failure(
        options.output,
        options.output_file,
        str(error),
        kubernetes_version=options.kubernetes_version,
        status=exit_status.of_error(error),
        not_ready=causes_of(error),
    )
    summarize(options.summary, [], options.kubernetes_version, str(error))
