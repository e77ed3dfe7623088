"""The kubelet: puts the parts of the node together and hands them what happens (kubelet.go:syncLoopIteration).

Nothing here waits: every handler tells a worker and returns. The parts that take time are tasks of their own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from lastcall.api.features.gates import TCP_SOCKET_LIFECYCLE_HOOK, feature_gates
from lastcall.api.meta import Object, is_terminating, resource_version_of, uid_of
from lastcall.api.pods.spec import pod_key
from lastcall.api.resources import NODES
from lastcall.client.api import Client
from lastcall.client.events import EventRecorder as APIEventRecorder
from lastcall.client.events import tell_of_fault
from lastcall.client.informer import Informer
from lastcall.cri.api import ImageService, RuntimeService, RuntimeServiceError
from lastcall.node.admission.decide import (
    AdmitHandler,
    Rejection,
    enforces_app_armor,
    fits_node,
    matches_node,
    matches_os,
)
from lastcall.node.admission.manager import PodAdmission
from lastcall.node.config import Operation, PodConfig, PodUpdates
from lastcall.node.eviction.manager import EvictionManager, NodeStats
from lastcall.node.garbage.decide import instances_to_prune
from lastcall.node.garbage.images import ImageGCManager
from lastcall.node.garbage.manager import ContainerGC
from lastcall.node.housekeeping import Housekeeping
from lastcall.node.image_manager import PodImageManager
from lastcall.node.interfaces import Dialer, EventRecorder, ProbeResult, ProbeType, VolumeManager
from lastcall.node.kubelet_config import KubeletConfig as KubeletConfig
from lastcall.node.logs.files import LogLinks
from lastcall.node.logs.rotation import ContainerLogManager
from lastcall.node.pods.runtime_pod import is_terminal, pod_of_container
from lastcall.node.pods.spec import (
    all_containers_of,
    is_mirror_pod,
    is_terminal_phase,
)
from lastcall.node.pods.termination_message import TerminationMessages
from lastcall.node.pods.user_namespaces import UserNamespaces
from lastcall.node.prober.manager import PodProbeManager
from lastcall.node.runtime.backoff import Backoff
from lastcall.node.runtime.container_config import (
    generate_pod_sandbox_config,
)
from lastcall.node.runtime.container_configs import ContainerConfigs
from lastcall.node.runtime.manager import RuntimeManager
from lastcall.node.runtime.notices import RuntimeNotices
from lastcall.node.runtime.pleg import PodLifecycleEvent, PodLifecycleEventGenerator, PodLifecycleEventType
from lastcall.node.runtime.start_container import ContainerStarter
from lastcall.node.runtime.state import RuntimeState
from lastcall.node.runtime_deadlines import RuntimeWithDeadlines
from lastcall.node.shutdown.decide import NOT_READY
from lastcall.node.shutdown.manager import NodeShutdown
from lastcall.node.static_pods.source import FileConfig, ManifestDirectory
from lastcall.node.status.generator import PodStatusGenerator
from lastcall.node.status.manager import PodStatusManager
from lastcall.node.status.reason_cache import LastStartErrors
from lastcall.node.stopping.hooks import HandlerRunner
from lastcall.node.stopping.kill_container import ContainerKiller
from lastcall.node.stopping.kill_pod import PodKiller
from lastcall.node.versions import behaviour_of, gated
from lastcall.node.workers.active_deadline import ActiveDeadlineHandler
from lastcall.node.workers.manager import PodWorkers
from lastcall.node.workers.mirrors import MirrorPods
from lastcall.node.workers.pod_manager import PodManager
from lastcall.node.workers.queue import WorkQueue
from lastcall.node.workers.syncer import KubeletPodSyncer
from lastcall.node.workers.transitions import State, UpdatePodOptions, UpdateType
from lastcall.timeline import kinds
from lastcall.timeline.record import Recorder
from lastcall.world import walls
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

RULES = "pkg/kubelet/kubelet.go"
RUNTIME_RETRY_SECONDS = 1.0

log = logging.getLogger(__name__)


class Kubelet:
    """One node. `run` until cancelled; `ready` once it takes Pods.

    It also answers what the kubelet's server asks: `get_pods`, `get_pod_by_name`, `get_pod_status`.
    """

    def __init__(
        self,
        *,
        world: World,
        client: Client,
        runtime: RuntimeService,
        images: ImageService,
        volumes: VolumeManager,
        dialer: Dialer,
        recorder: Recorder,
        config: KubeletConfig,
        events: EventRecorder | None = None,
        admit_handlers: Sequence[AdmitHandler] | None = None,
        static_pods: ManifestDirectory | None = None,
        stats: NodeStats | None = None,
    ) -> None:
        self._world = world
        self._runtime = runtime = RuntimeWithDeadlines(runtime)
        self._volumes = volumes
        self._recorder = recorder
        self._config = config
        self._own_node = Informer(client, NODES, field_selector=f"metadata.name={config.node_name}", world=world)
        if admit_handlers is None:
            app_armor = enforces_app_armor(config.host_has_app_armor)
            admit_handlers = (matches_os, matches_node(self._node), fits_node(config.allocatable), app_armor)
        self._tasks = Tasks()
        self._takes_pods = asyncio.Event()
        self._own_events = APIEventRecorder(client, world, "kubelet", config.node_name) if events is None else None
        self.events: EventRecorder = events if events is not None else self._own_events  # type: ignore[assignment]
        self._gates = gates = feature_gates(config.kubernetes_version, config.feature_gates)
        behaviour = features = gated(behaviour_of(config.kubernetes_version), gates)

        self.pods = PodManager()
        self.pleg = PodLifecycleEventGenerator(world, runtime, self._handle_pleg_events)
        self._work_queue = WorkQueue(world, self._handle_pod_sync)
        self._deadline_queue = WorkQueue(world, self._handle_pod_sync)
        self._container_configs = ContainerConfigs(
            world=world, client=client, config=config, volumes=volumes, pleg=self.pleg, gates=gates
        )
        self._pod_config = PodConfig(client, config.node_name, self._handle_updates, world=world)
        self._file_config: FileConfig | None = None
        if static_pods is not None:
            self._file_config = FileConfig(
                static_pods,
                config.node_name,
                self._handle_file_updates,
                world=world,
                on_duplicate=lambda pod, text: self.events.event(pod, "Warning", "FailedValidation", text),
                gates=gates,
            )
        self.mirrors = MirrorPods(
            world=world,
            tasks=self._tasks,
            client=client,
            recorder=recorder,
            pods=self.pods,
            node_name=config.node_name,
        )
        self.workers = PodWorkers(
            world=world,
            tasks=self._tasks,
            cache=self.pleg,
            events=self.events,
            recorder=recorder,
            behaviour=behaviour,
            requeue=self._work_queue.enqueue,
        )
        self.shutdown = NodeShutdown(
            world=world,
            tasks=self._tasks,
            workers=self.workers,
            events=self.events,
            recorder=recorder,
            node_name=config.node_name,
            active_pods=self._active_pods,
            behaviour=behaviour,
        )
        self.eviction = EvictionManager(
            world=world,
            workers=self.workers,
            events=self.events,
            recorder=recorder,
            node_name=config.node_name,
            config=config.eviction,
            stats=stats,
            active_pods=self._active_pods,
            behaviour=behaviour,
            reclaim=(lambda: self._gc.delete_all_unused_containers(), lambda: self.image_gc.delete_unused_images()),
        )
        self._admission = PodAdmission(
            tasks=self._tasks,
            workers=self.workers,
            events=self.events,
            recorder=recorder,
            node_name=config.node_name,
            allocatable=config.allocatable,
            handlers=(self.eviction.admit, self.shutdown.admit, *admit_handlers),
            made_room=self._made_room,
        )
        gated_by_phase = features.final_delete_needs_terminal_phase
        self.statuses = PodStatusManager(
            world=world,
            client=client,
            recorder=recorder,
            state=self.workers,
            features=features,
            get_pod=self.pods.get_pod,
            mirror_of=self.pods.mirror_of,
            resources_reclaimed=self._resources_reclaimed,
        )
        self.probes = PodProbeManager(
            world=world,
            tasks=self._tasks,
            runtime=runtime,
            dialer=dialer,
            events=self.events,
            recorder=recorder,
            statuses=self.statuses,
            features=features,
        )
        self.probes.on_result(self._handle_probe_result)
        self._deadline = ActiveDeadlineHandler(world=world, events=self.events, get_status=self.statuses.get_pod_status)
        reasons = LastStartErrors()
        self._generator = PodStatusGenerator(
            features=features,
            statuses=self.statuses,
            probes=self.probes,
            reasons=reasons,
            host_ips=(config.node_ip,),
            pod_sync_handlers=(self._deadline,),
            messages=TerminationMessages(volumes.read_termination_message),
            gates=gates,
        )
        hooks = HandlerRunner(
            clock=world.clock,
            runtime=runtime,
            dialer=dialer,
            events=self.events,
            behaviour=behaviour,
            tcp_socket_connects=gates.enabled(TCP_SOCKET_LIFECYCLE_HOOK),
        )
        container_killer = ContainerKiller(
            world=world,
            runtime=runtime,
            hooks=hooks,
            events=self.events,
            recorder=recorder,
            behaviour=behaviour,
            hook_tasks=self._tasks,
        )
        pod_killer = PodKiller(
            world=world,
            runtime=runtime,
            container_killer=container_killer,
            recorder=recorder,
            behaviour=behaviour,
        )
        log_links = LogLinks(config.container_log_links)
        starter = ContainerStarter(
            world=world,
            runtime=runtime,
            images=PodImageManager(
                world=world,
                images=images,
                events=self.events,
                recorder=recorder,
                features=features,
                pull_secrets=self._container_configs.sources.secret,
            ),
            make_config=self._container_configs.make,
            hooks=hooks,
            killer=container_killer,
            events=self.events,
            recorder=recorder,
            behaviour=behaviour,
            log_links=log_links,
            reported_restarts=self._reported_restarts,
        )
        self.container_logs = ContainerLogManager(
            world=world, runtime=runtime, policy=config.container_logs, log_root=config.pod_log_root
        )
        backoff = Backoff()
        self._notices = RuntimeNotices(runtime, self.events)
        self._runtime_state = RuntimeState(world, runtime)
        self._users = UserNamespaces(
            config.user_ids, self.events, lambda: self._runtime_state.no_user_namespaces, volumes.owners_can_be_mapped
        )
        runtime_manager = RuntimeManager(
            world=world,
            runtime=runtime,
            starter=starter,
            pod_killer=pod_killer,
            container_killer=container_killer,
            probes=self.probes,
            reasons=reasons,
            backoff=backoff,
            make_sandbox_config=lambda pod, attempt: generate_pod_sandbox_config(
                pod,
                attempt,
                hostname=volumes.hostname(pod),
                dns_config=volumes.dns_config(pod),
                pod_log_root=config.pod_log_root,
                pod_pids_limit=config.pod_pids_limit,
                users=self._users.options(pod),
            ),
            is_termination_requested=self.workers.is_pod_termination_requested,
            on_pod_sandbox_ready=self.statuses.set_pod_sandbox_ready,
            notices=self._notices,
            events=self.events,
            recorder=recorder,
        )
        node: Object = {
            "kind": "Node",
            "apiVersion": "",
            "metadata": {"name": config.node_name, "uid": config.node_name},
        }
        self._gc = ContainerGC(
            world=world,
            runtime=runtime,
            events=self.events,
            node=node,
            may_remove=lambda uid: (
                self.workers.should_pod_content_be_removed(uid) and self.workers.should_pod_be_finished(uid)
            ),
            has_ended=self.workers.should_pod_runtime_be_removed,
            kill_unknown=lambda container, message: container_killer.kill_container(
                pod_of_container(container), container, message=message, runtime_only=True
            ),
            log_root=config.pod_log_root,
            log_links=log_links,
            policy=config.container_gc,
        )
        self.image_gc = ImageGCManager(
            world=world,
            runtime=runtime,
            images=images,
            events=self.events,
            node=node,
            stats=stats,
            policy=config.image_gc,
            names_in_use=self._names_of_images,
            attempted=behaviour.image_gc_says_attempted,
        )
        self.workers.bind(
            KubeletPodSyncer(
                statuses=self.statuses,
                generator=self._generator,
                probes=self.probes,
                volumes=volumes,
                pleg=self.pleg,
                runtime_manager=runtime_manager,
                pod_killer=pod_killer,
                container_killer=container_killer,
                events=self.events,
                behaviour=behaviour,
                reclaim=None if gated_by_phase else self._reclaim,
                reconcile_mirror=self.mirrors.reconcile,
                network_error=lambda: self._runtime_state.network_error,
                release_users=self._users.release,
            )
        )
        self._housekeeping = Housekeeping(
            world=world,
            runtime=runtime,
            pods=self.pods,
            workers=self.workers,
            pleg=self.pleg,
            probes=self.probes,
            statuses=self.statuses,
            volumes=volumes,
            gc=self._gc,
            backoff=backoff,
            reasons=reasons,
            mirrors=self.mirrors,
            forget=self._forget_except,
            is_held=self._admission.is_held,
        )

    async def run(self) -> None:
        """Run the node until cancelled. Node registration, lease and server are started beside it."""
        async with self._tasks as tasks:

            def keep(part: str, run: Callable[[], Awaitable[None]]) -> None:
                name = f"kubelet {part}"
                tasks.spawn(walls.keep_running(name, run, self._world.clock), name=name)

            if self._own_events is not None:
                keep("events", self._own_events.run)
            keep("PLEG", self.pleg.run)
            await self._first_relist()
            await self._runtime_state.update()
            keep("runtime state", self._runtime_state.run)
            keep("services", self._container_configs.run)
            if self._config.node_labels:
                keep("node", self._own_node.run)
            keep("status manager", self.statuses.run)
            keep("work queue", self._work_queue.run)
            keep("deadlines", self._deadline_queue.run)
            if self._file_config is not None:
                keep("static pods", self._file_config.run)
                await self._file_config.first_set()  # they need no API server
            keep("pod config", self._pod_config.run)
            await self._pod_config.first_set()
            self._takes_pods.set()
            keep("housekeeping", self._housekeeping.run)
            keep("container garbage collection", self._gc.run)
            keep("image garbage collection", self.image_gc.run)
            keep("container logs", self.container_logs.run)
            keep("eviction", self.eviction.run)

    def _forget_except(self, uids: set[str]) -> None:
        self._generator.forget_except(uids)
        self._users.keep(uids)

    async def _first_relist(self) -> None:
        """What runs already must be known before the first Pod is looked at."""
        await self._world.clock.sleep(0)  # lets the PLEG subscribe first: nothing falls between listing and events
        while True:
            try:
                await self.pleg.relist()
                self._users.adopt(await self._runtime.list_pod_sandbox())
                return
            except RuntimeServiceError as error:
                log.warning("the container runtime does not answer yet: %s", error)
                await self._world.clock.sleep(RUNTIME_RETRY_SECONDS)

    async def wait_ready(self) -> None:
        """Return once the node takes Pods."""
        await self._takes_pods.wait()

    @property
    def ready(self) -> bool:
        """The runtime was read and the first set of Pods is known."""
        return self._pod_config.ready

    def not_ready(self) -> str:
        """Why the node is not Ready, "" when it is."""
        if self.shutdown.shutting_down:
            return NOT_READY
        return self._runtime_state.network_error if self.ready else "the sync loop is not running yet"

    # -- what the server asks ---------------------------------------------------------------------------------------

    def get_pods(self) -> list[Object]:
        return self.pods.get_pods()

    def get_pod_by_name(self, namespace: str, name: str) -> Object | None:
        return self.pods.get_pod_by_name(namespace, name)

    def get_pod_status(self, uid: str) -> Object | None:
        return self.statuses.get_pod_status(uid)

    def _handle_file_updates(self, updates: PodUpdates) -> None:
        """The manifest directory changed. What is gone from it ends, and the story says who decided so."""
        for pod in updates.pods[Operation.REMOVE]:
            self._recorder.record(
                kinds.DELETION_DECIDED,
                pod_uid=uid_of(pod),
                rule="pkg/kubelet/config/file.go:listConfig",
                facts={
                    "why": "its manifest was removed from the node's directory, or says something else now",
                    "ownerKind": "Node",
                    "owner": self._config.node_name,
                    "observedResourceVersion": "",
                },
            )
        self._handle_updates(updates)

    # -- the sync loop's handlers -------------------------------------------------------------------------------------

    def _handle_updates(self, updates: PodUpdates) -> None:
        handlers: dict[Operation, Callable[[list[Object]], None]] = {
            Operation.REMOVE: self.handle_pod_removes,
            Operation.ADD: self.handle_pod_additions,
            Operation.UPDATE: self.handle_pod_updates,
            Operation.DELETE: self.handle_pod_updates,
            Operation.RECONCILE: self.handle_pod_reconcile,
        }
        for operation, pods in updates.pods.items():
            if pods:
                handlers[operation](pods)

    def handle_pod_additions(self, pods: list[Object]) -> None:
        """kubelet.go:HandlePodAdditions. A rejected Pod never gets a worker."""
        in_order = sorted(pods, key=lambda pod: pod["metadata"].get("creationTimestamp") or "")
        self._each(in_order, self._handle_pod_addition)

    def _each(self, pods: Iterable[Object], handle: Callable[[Object], None]) -> None:
        """A turn for each: one that fails is tried again by housekeeping, and keeps no other from its own."""
        for pod in pods:
            with walls.Turn("kubelet pod", pod_key(pod)) as turn:
                handle(pod)
            if turn.error is not None:
                tell_of_fault(self.events, pod, turn.error)

    def _handle_pod_addition(self, pod: Object) -> None:
        if is_mirror_pod(pod):
            self._handle_mirror(pod)
            return
        uid = uid_of(pod)
        others = self._active_pods()
        self.pods.add_pod(pod)
        if not self.workers.is_pod_termination_requested(uid) and not is_terminal(pod):
            rejection = self._admission.decide(pod, others)
            if rejection is not None:
                self._reject_pod(pod, rejection)
                return
            if self._admission.is_held(uid):
                return  # until the victims have ended
            self._admitted(pod)
        self._start(pod)

    def _admitted(self, pod: Object) -> None:
        self._recorder.record(
            kinds.POD_ADMITTED,
            pod_uid=uid_of(pod),
            rule=f"{RULES}:HandlePodAdditions",
            facts={"observedResourceVersion": resource_version_of(pod)},
        )
        if not is_terminating(pod):
            self._volumes.prepare(pod)

    def _start(self, pod: Object) -> None:
        self.workers.update_pod(UpdatePodOptions(UpdateType.CREATE, pod))
        self._watch_deadline(pod)

    def handle_pod_updates(self, pods: list[Object]) -> None:
        """kubelet.go:HandlePodUpdates: both UPDATE and DELETE."""
        self._each(pods, self._handle_pod_update)

    def _handle_pod_update(self, pod: Object) -> None:
        if is_mirror_pod(pod):
            self._handle_mirror(pod)
            return
        self.pods.add_pod(pod)
        if self._admission.is_held(uid_of(pod)) and not is_terminating(pod):
            return
        self.workers.update_pod(UpdatePodOptions(UpdateType.UPDATE, pod))
        self._watch_deadline(pod)

    def handle_pod_removes(self, pods: list[Object]) -> None:
        """kubelet.go:HandlePodRemoves: the object is gone, so is its right to run."""
        self._each(pods, self._handle_pod_remove)

    def _handle_pod_remove(self, pod: Object) -> None:
        self.pods.remove_pod(pod)
        if is_mirror_pod(pod):
            self._sync_static_pod_of(pod)
            return
        self._work_queue.forget(uid_of(pod))
        self._deadline_queue.forget(uid_of(pod))
        self.workers.update_pod(UpdatePodOptions(UpdateType.KILL, pod))

    def handle_pod_reconcile(self, pods: list[Object]) -> None:
        """kubelet.go:HandlePodReconcile: the status differs. Never kills; readiness gates need another look."""
        self._each(pods, self._handle_pod_reconcile)

    def _handle_pod_reconcile(self, pod: Object) -> None:
        self.pods.add_pod(pod)
        if not is_mirror_pod(pod) and pod["spec"].get("readinessGates"):
            self.workers.update_pod(UpdatePodOptions(UpdateType.SYNC, pod))

    def _handle_mirror(self, mirror: Object) -> None:
        """A mirror is no Pod of its own: its static Pod has another look at it, and its status is written to it."""
        self.pods.add_pod(mirror)
        pod = self._sync_static_pod_of(mirror)
        if pod is not None:
            self.statuses.mirror_changed(uid_of(pod))

    def _sync_static_pod_of(self, mirror: Object) -> Object | None:
        pod = self.pods.static_pod_of(mirror)
        if pod is not None and self.workers.state_of(uid_of(pod)) is not State.UNKNOWN:  # it was not rejected
            self.workers.update_pod(UpdatePodOptions(UpdateType.UPDATE, pod))
        return pod

    def _handle_pod_sync(self, uid: str) -> None:
        """Something about the Pod may have changed, or its time has come (kubelet.go:HandlePodSyncs)."""
        pod = self.pods.get_pod(uid)
        if pod is not None:
            self.workers.update_pod(UpdatePodOptions(UpdateType.SYNC, pod))
            self._watch_deadline(pod)

    def _handle_pleg_events(self, events: list[PodLifecycleEvent]) -> None:
        for uid in dict.fromkeys(event.uid for event in events):
            own = [event for event in events if event.uid == uid]
            pod, status = self.pods.get_pod(uid), self.pleg.get(uid)
            if pod is not None and status is not None:
                with walls.Turn("kubelet notices", uid):
                    self._notices.look(pod, status)
            if any(event.type in _EVENTS_THAT_SYNC for event in own):
                self._handle_pod_sync(uid)
            for event in own:
                if event.type is PodLifecycleEventType.CONTAINER_DIED:
                    self._prune_dead_instances(uid, event.id)

    def _handle_probe_result(self, kind: ProbeType, uid: str, container_id: str, result: ProbeResult) -> None:
        if kind == "readiness":
            self.statuses.set_container_readiness(uid, container_id, result == "success")
        elif kind == "startup":
            self.statuses.set_container_startup(uid, container_id, result == "success")
        elif result != "failure":
            return
        self._handle_pod_sync(uid)

    # -- admission ----------------------------------------------------------------------------------------------------

    def _active_pods(self) -> list[Object]:
        """Pods that hold resources (kubelet_pods.go:filterOutInactivePods)."""
        return [
            pod
            for pod in self.pods.get_pods()
            if not is_terminal(pod)
            and not is_terminal_phase((self.statuses.get_pod_status(uid_of(pod)) or {}).get("phase"))
            and not self.workers.is_pod_known_terminated(uid_of(pod))
        ]

    def _names_of_images(self) -> list[str]:
        """Of Pods that run or are about to: their images are needed, be there a container of them yet or not."""
        return [container.get("image", "") for pod in self._active_pods() for container in all_containers_of(pod)]

    def _node(self) -> Object:
        """The Node as the API has it; before it is seen, with the labels it registers with (kubelet_getters.go)."""
        config = self._config
        registered: Object = {"metadata": {"name": config.node_name, "labels": config.node_labels}}
        return self._own_node.get("", config.node_name) or registered

    def _made_room(self, uid: str) -> None:
        """The victims of a critical Pod have ended."""
        current = self.pods.get_pod(uid)
        if current is not None and not self.workers.is_pod_termination_requested(uid):
            self._admitted(current)
            self._start(current)

    def _reject_pod(self, pod: Object, rejection: Rejection) -> None:
        """kubelet.go:rejectPod."""
        self.events.event(pod, "Warning", rejection.reason, rejection.message)
        message = f"Pod was rejected: {rejection.message}"
        self._recorder.record(
            kinds.POD_REJECTED,
            pod_uid=uid_of(pod),
            rule=f"{RULES}:rejectPod",
            facts={"reason": rejection.reason, "message": message},
        )
        self.statuses.set_pod_status(pod, {"phase": "Failed", "reason": rejection.reason, "message": message})

    # -- what the parts need from one another

    def _reported_restarts(self, pod_uid: str, name: str) -> int:
        """How often the status says that a container was restarted."""
        status = self.statuses.get_pod_status(pod_uid) or {}
        for field_name in ("initContainerStatuses", "containerStatuses"):
            for container in status.get(field_name) or []:
                if container["name"] == name:
                    return int(container.get("restartCount") or 0)
        return 0

    def _watch_deadline(self, pod: Object) -> None:
        left = self._deadline.seconds_left(pod)
        if left is not None and left > 0:
            self._deadline_queue.enqueue(uid_of(pod), left)

    def _prune_dead_instances(self, uid: str, container_id: str) -> None:
        """Keep one ended instance of a container beside the one that just ended."""
        status = self.pleg.get(uid)
        died = next((c for c in status.container_statuses if c.id == container_id), None) if status else None
        if status is None or died is None:
            return
        old = instances_to_prune(status, died, remove_all=False)
        if old:
            prune = self._gc.remove_containers(old)
            self._tasks.spawn(walls.guarded("kubelet container garbage collection", uid, prune), name=f"prune {uid}")

    async def _reclaim(self, uid: str) -> None:
        status = self.pleg.get(uid)
        if status is not None:
            await self._gc.remove_containers(status.container_statuses)
            await self.pleg.refresh(uid, status.name, status.namespace)

    def _resources_reclaimed(self, uid: str) -> bool:
        status = self.pleg.get(uid)
        return self.workers.should_pod_runtime_be_removed(uid) and (status is None or not status.container_statuses)


_EVENTS_THAT_SYNC = (PodLifecycleEventType.CONTAINER_STARTED, PodLifecycleEventType.CONTAINER_DIED)
"""CONTAINER_REMOVED and CONTAINER_CHANGED bring nothing a sync could act on."""
