"""What `run` and `demo` do: end real Pods and show how they ended.

What a report needs is imported when the cluster's processes are forked: they start meanwhile, on another processor.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.cli.started import start_cluster, started
from lastcall.errors import Interrupted, LastcallError

if TYPE_CHECKING:
    from lastcall.cli.run.story import Tell
    from lastcall.experiment.run import Cluster, RunOptions
    from lastcall.manifests import Manifest

StartCluster = Callable[["RunOptions"], "Cluster"]

Check = Callable[["Sequence[Manifest]"], None]
"""Says what the manifests alone prove, while the cluster starts."""


def started_cluster(options: "RunOptions") -> "Cluster":
    """Start the real cluster. Raises ClusterStartError and UserError."""
    wanted = options.cluster
    if options.requests is not None and options.requests.source != "published":
        # late: only with --load
        from lastcall.traffic import LoadGenerator

        wanted = replace(wanted, load=LoadGenerator())
    return start_cluster(wanted)


def run_manifests(
    manifests: "Sequence[Manifest]",
    options: "RunOptions",
    start_cluster: StartCluster = started_cluster,
    check: Check = lambda manifests: None,
) -> int:
    """Do the whole run, from process tree to story. Return the exit status. Raises LastcallError."""
    if options.requests is not None:
        # late: only with --load
        from lastcall.cli.run.under_load import target_of_run

        target_of_run(manifests, options.requests)  # before a cluster is started
    if options.versions:
        # late: 4.3 ms of `demo`
        from lastcall.cli.run.side_by_side import run_versions

        check(manifests)
        return run_versions(options, lambda one, tell: _run_one(manifests, one, start_cluster, tell))
    return _run_one(manifests, options, start_cluster, None, check)


def _run_one(
    manifests: "Sequence[Manifest]",
    options: "RunOptions",
    start_cluster: StartCluster,
    tell: "Tell | None",
    check: Check = lambda manifests: None,
) -> int:
    """One version. `tell` takes the story instead of showing it."""
    with ExitStack() as stack:
        try:
            cluster, interrupts = stack.enter_context(started(lambda: start_cluster(options)))
        except LastcallError as error:
            if not isinstance(error, Interrupted):
                check(manifests)
            if tell is None and not isinstance(error, Interrupted):
                # late: only where the start failed
                from lastcall.cli.run.story import tell_failure

                tell_failure(options, error)
            raise
        check(manifests)
        # late: meanwhile the cluster starts on another processor
        from lastcall.cli.run.story import run_in

        return run_in(cluster, manifests, options, interrupts, tell)
