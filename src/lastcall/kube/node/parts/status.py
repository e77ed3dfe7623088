"""What a kubelet finds out about its Pods and reports: statuses, probes, deadlines, resizes."""

from __future__ import annotations

from lastcall.kube.node.admission.checkpoint import AllocationFiles
from lastcall.kube.node.admission.resizes import Resizes
from lastcall.kube.node.parts.common import Common
from lastcall.kube.node.parts.sources import PodSources
from lastcall.kube.node.parts.work import PodWork
from lastcall.kube.node.pods.termination_message import TerminationMessages
from lastcall.kube.node.prober.manager import PodProbeManager
from lastcall.kube.node.status.generator import PodStatusGenerator
from lastcall.kube.node.status.manager import PodStatusManager
from lastcall.kube.node.status.reason_cache import LastStartErrors
from lastcall.kube.node.workers.active_deadline import ActiveDeadlineHandler
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PodReports:
    """`reasons` has why containers did not start."""

    statuses: PodStatusManager
    generator: PodStatusGenerator
    probes: PodProbeManager
    deadline: ActiveDeadlineHandler
    resizes: Resizes
    reasons: LastStartErrors


def make_reports(common: Common, sources: PodSources, work: PodWork) -> PodReports:
    """Make what reports on the Pods, nothing of which runs yet."""
    given, config, pods = common.given, common.given.config, sources.pods
    statuses = PodStatusManager(
        world=given.world,
        client=given.client,
        recorder=given.recorder,
        state=work.workers,
        features=common.behaviour,
        get_pod=pods.get_pod,
        mirror_of=pods.mirror_of,
        resources_reclaimed=common.calls.resources_reclaimed,
    )
    probes = _probes(common, statuses)
    deadline = ActiveDeadlineHandler(world=given.world, events=common.events, get_status=statuses.get_pod_status)
    reasons = LastStartErrors()
    resizes = Resizes(
        world=given.world,
        events=common.events,
        allocatable=config.allocatable,
        files=AllocationFiles(config.allocations),
        get_pod=pods.get_pod,
        active_pods=common.calls.active_pods,
        sync=common.calls.handle_pod_sync,
    )
    generator = PodStatusGenerator(
        features=common.behaviour,
        statuses=statuses,
        probes=probes,
        reasons=reasons,
        host_ips=(config.node_ip,),
        pod_sync_handlers=(deadline,),
        messages=TerminationMessages(given.volumes.read_termination_message),
        gates=common.gates,
        resize_conditions=resizes.conditions,
        runtime=config.container_runtime,
    )
    return PodReports(statuses, generator, probes, deadline, resizes, reasons)


def _probes(common: Common, statuses: PodStatusManager) -> PodProbeManager:
    given = common.given
    probes = PodProbeManager(
        world=given.world,
        tasks=common.tasks,
        runtime=common.runtime,
        dialer=given.dialer,
        events=common.events,
        recorder=given.recorder,
        statuses=statuses,
        features=common.behaviour,
    )
    probes.on_result(common.calls.handle_probe_result)
    return probes
