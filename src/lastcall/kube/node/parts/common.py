"""What a kubelet is made of, what its parts call, and what nearly every part is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from lastcall.kube.api.features.gates import FeatureGates, feature_gates
from lastcall.kube.client.api import Client
from lastcall.kube.client.events import EventRecorder as APIEventRecorder
from lastcall.kube.cri.api import ImageService, RuntimeService
from lastcall.kube.node.admission.decide import AdmitHandler
from lastcall.kube.node.config import PodUpdates
from lastcall.kube.node.eviction.manager import NodeStats
from lastcall.kube.node.interfaces import Dialer, EventRecorder, ProbeResult, ProbeType, VolumeManager
from lastcall.kube.node.kubelet_config import KubeletConfig
from lastcall.kube.node.runtime.pleg import PodLifecycleEvent
from lastcall.kube.node.runtime_deadlines import RuntimeWithDeadlines
from lastcall.kube.node.static_pods.source import ManifestDirectory
from lastcall.kube.node.versions import Behaviour, behaviour_of, gated
from lastcall.records.record import Recorder
from lastcall.world.dataclass import dataclass
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
    """What the parts call. Nothing of it is called before all parts are made."""

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
class Common:
    """What nearly every part is given. `own_events` is what writes the kubelet's Events, if `given` has nothing for
    that."""

    given: Given
    calls: Callbacks
    tasks: Tasks
    events: EventRecorder
    own_events: APIEventRecorder | None
    runtime: RuntimeWithDeadlines
    gates: FeatureGates
    behaviour: Behaviour


def make_common(given: Given, calls: Callbacks) -> Common:
    """Make the common parts for a kubelet of the version and feature gates of its configuration."""
    config, own_events = given.config, None
    if (events := given.events) is None:
        events = own_events = APIEventRecorder(given.client, given.world, "kubelet", config.node_name)
    gates = feature_gates(config.kubernetes_version, config.feature_gates)
    return Common(
        given=given,
        calls=calls,
        tasks=Tasks(),
        events=events,
        own_events=own_events,
        runtime=RuntimeWithDeadlines(given.runtime, given.world.clock),
        gates=gates,
        behaviour=gated(behaviour_of(config.kubernetes_version), gates),
    )
