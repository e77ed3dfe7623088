"""`lastcall run --load` on a cluster of its own: what sends the requests, and what becomes of the run by them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from lastcall.cli.summary import append_summary, is_wanted
from lastcall.experiment.rollout import (
    EmbeddedWorkspace,
    Result,
    RolloutOptions,
    RolloutSession,
    Target,
    exit_status,
    find_target,
    pool,
    summary_of,
    with_pods,
)
from lastcall.experiment.run import RunSession
from lastcall.manifests import Manifest
from lastcall.traffic import Thresholds

if TYPE_CHECKING:
    from lastcall.kube.cluster import Running


def target_of_run(manifests: Sequence[Manifest], options: RolloutOptions) -> Target:
    """Return the workload, or the Pod, that requests are sent to, and its Service. Raises UserError."""
    return find_target(with_pods(manifests), options)


def send_requests(session: RunSession, cluster: object, options: RolloutOptions) -> None:
    """Let the run send requests. Raises UserError."""
    manifests, target = with_pods(session.manifests), target_of_run(session.manifests, options)
    place = EmbeddedWorkspace(cast("Running", cluster), manifests, target, records=session.place.records)
    session.requests = RolloutSession(place, options, say=session.note, show=session.live.waiting, of_run=True)


def status_of_requests(found: Result) -> int:
    """Return the exit status that lost requests ask for."""
    return exit_status(pool([found]), Thresholds())


def summarize_requests(file: str, found: Result) -> None:
    """Append the results of the requests to the summary, if one is wanted."""
    if is_wanted(file):
        append_summary(file, summary_of([found]))
