"""Puts the parts of a kubelet together. What happens to them is handled in `kubelet.py`, whose callbacks they get.

Each part gets what it needs by name, so the order below is that of their needs. One knot is tied late: the workers are
bound to their syncer, which needs the statuses, which ask the workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lastcall.kube.api.features.gates import TCP_SOCKET_LIFECYCLE_HOOK, FeatureGates, feature_gates
from lastcall.kube.api.resources import NODES
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder as APIEventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.cri.api import ImageService, RuntimeService
from lastcall.kube.node.admission.checkpoint import AllocationFiles
from lastcall.kube.node.admission.decide import (
    AdmitHandler,
    enforces_app_armor,
    fits_node,
    has_free_ports,
    matches_node,
    matches_os,
)
from lastcall.kube.node.admission.manager import PodAdmission
from lastcall.kube.node.admission.resizes import Resizes
from lastcall.kube.node.config import PodConfig, PodUpdates
from lastcall.kube.node.eviction.manager import EvictionManager, NodeStats
from lastcall.kube.node.garbage.images import ImageGCManager
from lastcall.kube.node.garbage.manager import ContainerGC
from lastcall.kube.node.housekeeping import Housekeeping
from lastcall.kube.node.image_manager import PodImageManager
from lastcall.kube.node.interfaces import Dialer, EventRecorder, ProbeResult, ProbeType, VolumeManager
from lastcall.kube.node.kubelet_config import KubeletConfig
from lastcall.kube.node.logs.files import LogLinks
from lastcall.kube.node.logs.rotation import ContainerLogManager
from lastcall.kube.node.pods.runtime_pod import pod_of_container
from lastcall.kube.node.pods.termination_message import TerminationMessages
from lastcall.kube.node.pods.user_namespaces import UserNamespaces
from lastcall.kube.node.prober.manager import PodProbeManager
from lastcall.kube.node.runtime.backoff import Backoff
from lastcall.kube.node.runtime.classes import runtime_handlers
from lastcall.kube.node.runtime.container_config import generate_pod_sandbox_config
from lastcall.kube.node.runtime.container_configs import ContainerConfigs
from lastcall.kube.node.runtime.manager import RuntimeManager
from lastcall.kube.node.runtime.notices import RuntimeNotices
from lastcall.kube.node.runtime.pleg import PodLifecycleEvent, PodLifecycleEventGenerator
from lastcall.kube.node.runtime.start_container import ContainerStarter
from lastcall.kube.node.runtime.state import RuntimeState
from lastcall.kube.node.runtime_deadlines import RuntimeWithDeadlines
from lastcall.kube.node.shutdown.manager import NodeShutdown
from lastcall.kube.node.static_pods.source import FileConfig, ManifestDirectory
from lastcall.kube.node.status.generator import PodStatusGenerator
from lastcall.kube.node.status.manager import PodStatusManager
from lastcall.kube.node.status.reason_cache import LastStartErrors
from lastcall.kube.node.stopping.hooks import HandlerRunner
from lastcall.kube.node.stopping.kill_container import ContainerKiller
from lastcall.kube.node.stopping.kill_pod import PodKiller
from lastcall.kube.node.versions import Behaviour, behaviour_of, gated
from lastcall.kube.node.workers.active_deadline import ActiveDeadlineHandler
from lastcall.kube.node.workers.manager import PodWorkers
from lastcall.kube.node.workers.mirrors import MirrorPods
from lastcall.kube.node.workers.pod_manager import PodManager
from lastcall.kube.node.workers.queue import WorkQueue
from lastcall.kube.node.workers.syncer import KubeletPodSyncer
from lastcall.records.record import Recorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod


@dataclass(frozen=True, slots=True)
class Given:
    """What a kubelet is made of. `events` None: it writes its own to the API. `admit_handlers` None: the kubelet's."""

    world: World
    client: Client
    runtime: RuntimeService
    images: ImageService
    volumes: VolumeManager
    dialer: Dialer
    recorder: Recorder
    config: KubeletConfig
    events: EventRecorder | None = None
    admit_handlers: Sequence[AdmitHandler] | None = None
    static_pods: ManifestDirectory | None = None
    stats: NodeStats | None = None


class Callbacks(Protocol):
    """What the parts call. Nothing of it is called before `assemble` has answered."""

    def handle_updates(self, updates: PodUpdates) -> None: ...
    def handle_file_updates(self, updates: PodUpdates) -> None: ...
    def handle_pleg_events(self, events: list[PodLifecycleEvent]) -> None: ...
    def handle_pod_sync(self, uid: str) -> None: ...
    def handle_probe_result(self, kind: ProbeType, uid: str, container_id: str, result: ProbeResult) -> None: ...
    def active_pods(self) -> list[Pod]: ...
    def names_of_images(self) -> list[str]: ...
    def own_node(self) -> Node: ...
    def made_room(self, uid: str) -> None: ...
    def reported_restarts(self, pod_uid: str, name: str) -> int: ...
    async def reclaim(self, uid: str) -> None: ...
    def resources_reclaimed(self, uid: str) -> bool: ...
    def forget_except(self, uids: set[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a kubelet. `own_events` is what writes its Events, where nobody else was given for that."""

    tasks: Tasks
    events: EventRecorder
    own_events: APIEventRecorder | None
    pods: PodManager
    runtime: RuntimeWithDeadlines
    starter: ContainerStarter
    runtime_state: RuntimeState
    pleg: PodLifecycleEventGenerator
    notices: RuntimeNotices
    own_node: Informer[Node]
    pod_config: PodConfig
    file_config: FileConfig | None
    container_configs: ContainerConfigs
    work_queue: WorkQueue
    deadline_queue: WorkQueue
    deadline: ActiveDeadlineHandler
    workers: PodWorkers
    mirrors: MirrorPods
    admission: PodAdmission
    resizes: Resizes
    shutdown: NodeShutdown
    eviction: EvictionManager
    statuses: PodStatusManager
    generator: PodStatusGenerator
    probes: PodProbeManager
    users: UserNamespaces
    container_logs: ContainerLogManager
    container_gc: ContainerGC
    image_gc: ImageGCManager
    housekeeping: Housekeeping


@dataclass(frozen=True, slots=True)
class _Common:
    """What nearly every part is given."""

    given: Given
    calls: Callbacks
    tasks: Tasks
    events: EventRecorder
    runtime: RuntimeService
    gates: FeatureGates
    behaviour: Behaviour


def assemble(given: Given, calls: Callbacks) -> Parts:
    """All parts, none of which runs yet."""
    world, config, recorder = given.world, given.config, given.recorder
    tasks, runtime = Tasks(), RuntimeWithDeadlines(given.runtime, world.clock)
    own_events = None
    if (events := given.events) is None:
        events = own_events = APIEventRecorder(given.client, world, "kubelet", config.node_name)
    gates = feature_gates(config.kubernetes_version, config.feature_gates)
    behaviour = gated(behaviour_of(config.kubernetes_version), gates)
    common = _Common(given, calls, tasks, events, runtime, gates, behaviour)

    pods = PodManager()
    own_node: Informer[Node] = Informer(
        given.client, NODES, field_selector=f"metadata.name={config.node_name}", world=world
    )
    pleg = PodLifecycleEventGenerator(world, runtime, calls.handle_pleg_events)
    work_queue = WorkQueue(world, calls.handle_pod_sync)
    container_configs = ContainerConfigs(
        world=world, client=given.client, config=config, volumes=given.volumes, pleg=pleg, gates=gates
    )
    mirrors = MirrorPods(
        world=world, tasks=tasks, client=given.client, recorder=recorder, pods=pods, node_name=config.node_name
    )
    workers = PodWorkers(
        world=world,
        tasks=tasks,
        cache=pleg,
        events=events,
        recorder=recorder,
        requeue=work_queue.enqueue,
    )
    shutdown = NodeShutdown(
        world=world,
        tasks=tasks,
        workers=workers,
        events=events,
        recorder=recorder,
        node_name=config.node_name,
        active_pods=calls.active_pods,
        behaviour=behaviour,
    )
    statuses = PodStatusManager(
        world=world,
        client=given.client,
        recorder=recorder,
        state=workers,
        features=behaviour,
        get_pod=pods.get_pod,
        mirror_of=pods.mirror_of,
        resources_reclaimed=calls.resources_reclaimed,
    )
    probes = PodProbeManager(
        world=world,
        tasks=tasks,
        runtime=runtime,
        dialer=given.dialer,
        events=events,
        recorder=recorder,
        statuses=statuses,
        features=behaviour,
    )
    probes.on_result(calls.handle_probe_result)
    deadline = ActiveDeadlineHandler(world=world, events=events, get_status=statuses.get_pod_status)
    reasons, backoff, log_links = LastStartErrors(), Backoff(), LogLinks(config.container_log_links)
    resizes = Resizes(
        world=world,
        events=events,
        allocatable=config.allocatable,
        files=AllocationFiles(config.allocations),
        get_pod=pods.get_pod,
        active_pods=calls.active_pods,
        sync=calls.handle_pod_sync,
    )
    generator = PodStatusGenerator(
        features=behaviour,
        statuses=statuses,
        probes=probes,
        reasons=reasons,
        host_ips=(config.node_ip,),
        pod_sync_handlers=(deadline,),
        messages=TerminationMessages(given.volumes.read_termination_message),
        gates=gates,
        resize_conditions=resizes.conditions,
        runtime=config.container_runtime,
    )
    hooks, container_killer, pod_killer = _stopping(common)
    container_gc, image_gc = _garbage(common, workers, container_killer, log_links)
    eviction = EvictionManager(
        world=world,
        workers=workers,
        events=events,
        recorder=recorder,
        node_name=config.node_name,
        config=config.eviction,
        stats=given.stats,
        active_pods=calls.active_pods,
        behaviour=behaviour,
        reclaim=(container_gc.delete_all_unused_containers, image_gc.delete_unused_images),
    )
    admission = PodAdmission(
        tasks=tasks,
        workers=workers,
        events=events,
        recorder=recorder,
        node_name=config.node_name,
        allocatable=config.allocatable,
        handlers=(eviction.admit, shutdown.admit, *_admit_handlers(given, calls)),
        made_room=calls.made_room,
    )
    notices, runtime_state = RuntimeNotices(runtime, events), RuntimeState(world, runtime)
    users = UserNamespaces(
        config.user_ids, events, lambda: runtime_state.no_user_namespaces, given.volumes.owners_can_be_mapped
    )
    starter = _starter(common, container_configs, hooks, container_killer, log_links)
    runtime_manager = RuntimeManager(
        world=world,
        runtime=runtime,
        starter=starter,
        pod_killer=pod_killer,
        container_killer=container_killer,
        probes=probes,
        reasons=reasons,
        backoff=backoff,
        make_sandbox_config=lambda pod, attempt: generate_pod_sandbox_config(
            pod,
            attempt,
            hostname=given.volumes.hostname(pod),
            dns_config=given.volumes.dns_config(pod),
            pod_log_root=config.pod_log_root,
            pod_pids_limit=config.pod_pids_limit,
            users=users.options(pod),
        ),
        runtime_handler_of=runtime_handlers(given.client),
        is_termination_requested=workers.is_pod_termination_requested,
        on_pod_sandbox_ready=statuses.set_pod_sandbox_ready,
        notices=notices,
        events=events,
        recorder=recorder,
    )
    workers.bind(
        KubeletPodSyncer(
            statuses=statuses,
            generator=generator,
            probes=probes,
            volumes=given.volumes,
            pleg=pleg,
            runtime_manager=runtime_manager,
            pod_killer=pod_killer,
            container_killer=container_killer,
            events=events,
            resizes=resizes,
            reclaim=None if behaviour.final_delete_needs_terminal_phase else calls.reclaim,
            reconcile_mirror=mirrors.reconcile,
            network_error=lambda: runtime_state.network_error,
            release_users=users.release,
        )
    )
    return Parts(
        tasks=tasks,
        events=events,
        own_events=own_events,
        pods=pods,
        runtime=runtime,
        starter=starter,
        runtime_state=runtime_state,
        pleg=pleg,
        notices=notices,
        own_node=own_node,
        pod_config=PodConfig(given.client, config.node_name, calls.handle_updates, world=world),
        file_config=_static_pods(common),
        container_configs=container_configs,
        work_queue=work_queue,
        deadline_queue=WorkQueue(world, calls.handle_pod_sync),
        deadline=deadline,
        workers=workers,
        mirrors=mirrors,
        admission=admission,
        resizes=resizes,
        shutdown=shutdown,
        eviction=eviction,
        statuses=statuses,
        generator=generator,
        probes=probes,
        users=users,
        container_logs=ContainerLogManager(
            world=world, runtime=runtime, policy=config.container_logs, log_root=config.pod_log_root
        ),
        container_gc=container_gc,
        image_gc=image_gc,
        housekeeping=Housekeeping(
            world=world,
            runtime=runtime,
            pods=pods,
            workers=workers,
            pleg=pleg,
            probes=probes,
            statuses=statuses,
            volumes=given.volumes,
            gc=container_gc,
            backoff=backoff,
            reasons=reasons,
            mirrors=mirrors,
            forget=calls.forget_except,
            is_held=admission.is_held,
        ),
    )


def _admit_handlers(given: Given, calls: Callbacks) -> Sequence[AdmitHandler]:
    if given.admit_handlers is not None:
        return given.admit_handlers
    app_armor = enforces_app_armor(given.config.host_has_app_armor)
    fits = fits_node(given.config.allocatable)
    return (matches_os, matches_node(calls.own_node), fits, has_free_ports, app_armor)


def _static_pods(common: _Common) -> FileConfig | None:
    given, events = common.given, common.events
    if given.static_pods is None:
        return None
    return FileConfig(
        given.static_pods,
        given.config.node_name,
        common.calls.handle_file_updates,
        world=given.world,
        on_duplicate=lambda pod, text: events.event(pod, "Warning", "FailedValidation", text),
        gates=common.gates,
    )


def _stopping(common: _Common) -> tuple[HandlerRunner, ContainerKiller, PodKiller]:
    given, runtime, behaviour = common.given, common.runtime, common.behaviour
    hooks = HandlerRunner(
        clock=given.world.clock,
        runtime=runtime,
        dialer=given.dialer,
        events=common.events,
        behaviour=behaviour,
        tcp_socket_connects=common.gates.enabled(TCP_SOCKET_LIFECYCLE_HOOK),
    )
    container_killer = ContainerKiller(
        world=given.world,
        runtime=runtime,
        hooks=hooks,
        events=common.events,
        recorder=given.recorder,
        behaviour=behaviour,
        hook_tasks=common.tasks,
    )
    pod_killer = PodKiller(
        world=given.world,
        runtime=runtime,
        container_killer=container_killer,
        recorder=given.recorder,
        behaviour=behaviour,
    )
    return hooks, container_killer, pod_killer


def _starter(
    common: _Common, configs: ContainerConfigs, hooks: HandlerRunner, killer: ContainerKiller, log_links: LogLinks
) -> ContainerStarter:
    given = common.given
    images = PodImageManager(
        world=given.world,
        images=given.images,
        events=common.events,
        recorder=given.recorder,
        features=common.behaviour,
        pull_secrets=configs.sources.secret,
    )
    return ContainerStarter(
        world=given.world,
        runtime=common.runtime,
        images=images,
        make_config=configs.make,
        hooks=hooks,
        killer=killer,
        events=common.events,
        recorder=given.recorder,
        behaviour=common.behaviour,
        log_links=log_links,
        reported_restarts=common.calls.reported_restarts,
    )


def _garbage(
    common: _Common, workers: PodWorkers, killer: ContainerKiller, log_links: LogLinks
) -> tuple[ContainerGC, ImageGCManager]:
    given, config = common.given, common.given.config
    node: Node = {
        "kind": "Node",
        "apiVersion": "",
        "metadata": {"name": config.node_name, "uid": config.node_name},
    }
    container_gc = ContainerGC(
        world=given.world,
        runtime=common.runtime,
        events=common.events,
        node=node,
        may_remove=lambda uid: workers.should_pod_content_be_removed(uid) and workers.should_pod_be_finished(uid),
        has_ended=workers.should_pod_runtime_be_removed,
        kill_unknown=lambda container, message: killer.kill_container(
            pod_of_container(container), container, message=message, runtime_only=True
        ),
        log_root=config.pod_log_root,
        log_links=log_links,
        policy=config.container_gc,
    )
    image_gc = ImageGCManager(
        world=given.world,
        runtime=common.runtime,
        images=given.images,
        events=common.events,
        node=node,
        stats=given.stats,
        policy=config.image_gc,
        names_in_use=common.calls.names_of_images,
        attempted=common.behaviour.image_gc_says_attempted,
    )
    return container_gc, image_gc
