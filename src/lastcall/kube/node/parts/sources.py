"""Where a kubelet gets its Pods from, and those that it has: the API, the manifest directory, mirrors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.resources import NODES
from lastcall.kube.client.informer import Informer
from lastcall.kube.node.config import PodConfig
from lastcall.kube.node.parts.common import Common
from lastcall.kube.node.static_pods.source import FileConfig
from lastcall.kube.node.workers.mirrors import MirrorPods
from lastcall.kube.node.workers.pod_manager import PodManager
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node


@dataclass(frozen=True, slots=True)
class PodSources:
    """`file_config` None: no directory of manifests is watched."""

    pods: PodManager
    mirrors: MirrorPods
    own_node: Informer[Node]
    pod_config: PodConfig
    file_config: FileConfig | None


def make_sources(common: Common) -> PodSources:
    """Make the sources of a kubelet, which do not run yet."""
    given, config, pods = common.given, common.given.config, PodManager()
    return PodSources(
        pods=pods,
        mirrors=MirrorPods(
            world=given.world,
            tasks=common.tasks,
            client=given.client,
            recorder=given.recorder,
            pods=pods,
            node_name=config.node_name,
        ),
        own_node=Informer(given.client, NODES, field_selector=f"metadata.name={config.node_name}", world=given.world),
        pod_config=PodConfig(given.client, config.node_name, common.calls.handle_updates, world=given.world),
        file_config=_file_config(common),
    )


def _file_config(common: Common) -> FileConfig | None:
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
