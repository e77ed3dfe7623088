"""Puts the parts of a kubelet together. What happens to them is handled in `kubelet.py`, whose callbacks they get.

The modules of `parts/` make them, in the order of their needs. One knot is tied late: the workers are bound to their
syncer, which needs the statuses, which ask the workers.
"""

from __future__ import annotations

from lastcall.kube.node.housekeeping import Housekeeping
from lastcall.kube.node.parts.common import Callbacks, Common, Given, make_common
from lastcall.kube.node.parts.containers import Containers, make_containers
from lastcall.kube.node.parts.garbage import Garbage, make_garbage
from lastcall.kube.node.parts.protection import NodeProtection, make_protection
from lastcall.kube.node.parts.sources import PodSources, make_sources
from lastcall.kube.node.parts.status import PodReports, make_reports
from lastcall.kube.node.parts.work import PodWork, make_work
from lastcall.kube.node.workers.syncer import KubeletPodSyncer
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a kubelet."""

    common: Common
    sources: PodSources
    work: PodWork
    reports: PodReports
    containers: Containers
    garbage: Garbage
    protection: NodeProtection
    housekeeping: Housekeeping


def assemble(given: Given, calls: Callbacks) -> Parts:
    """Return all parts, none of which runs yet."""
    common = make_common(given, calls)
    sources = make_sources(common)
    work = make_work(common)
    reports = make_reports(common, sources, work)
    containers = make_containers(common, work, reports)
    garbage = make_garbage(common, work, containers)
    protection = make_protection(common, work, garbage)
    work.workers.bind(_syncer(common, sources, work, reports, containers))
    housekeeping = Housekeeping(
        world=given.world,
        runtime=common.runtime,
        sources=sources,
        work=work,
        reports=reports,
        volumes=given.volumes,
        gc=garbage.containers,
        backoff=containers.backoff,
        forget=calls.forget_except,
        is_held=protection.admission.is_held,
    )
    return Parts(common, sources, work, reports, containers, garbage, protection, housekeeping)


def _syncer(
    common: Common, sources: PodSources, work: PodWork, reports: PodReports, containers: Containers
) -> KubeletPodSyncer:
    behaviour = common.behaviour
    return KubeletPodSyncer(
        statuses=reports.statuses,
        generator=reports.generator,
        probes=reports.probes,
        volumes=common.given.volumes,
        pleg=work.pleg,
        runtime_manager=containers.manager,
        pod_killer=containers.pod_killer,
        container_killer=containers.killer,
        events=common.events,
        resizes=reports.resizes,
        reclaim=None if behaviour.final_delete_needs_terminal_phase else common.calls.reclaim,
        reconcile_mirror=sources.mirrors.reconcile,
        network_error=lambda: containers.state.network_error,
        release_users=containers.users.release,
    )
