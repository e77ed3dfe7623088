"""What removes what is not needed any more: ended containers, images, old logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.node.garbage.images import ImageGCManager
from lastcall.kube.node.garbage.manager import ContainerGC
from lastcall.kube.node.logs.rotation import ContainerLogManager
from lastcall.kube.node.parts.common import Common
from lastcall.kube.node.parts.containers import Containers
from lastcall.kube.node.parts.work import PodWork
from lastcall.kube.node.pods.runtime_pod import pod_of_container
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node


@dataclass(frozen=True, slots=True)
class Garbage:
    """`logs` rotates the logs of containers."""

    containers: ContainerGC
    images: ImageGCManager
    logs: ContainerLogManager


def make_garbage(common: Common, work: PodWork, containers: Containers) -> Garbage:
    """Make the collectors, none of which runs yet."""
    given, config, workers, killer = common.given, common.given.config, work.workers, containers.killer
    node: Node = {
        "kind": "Node",
        "apiVersion": "",
        "metadata": {"name": config.node_name, "uid": config.node_name},
    }
    return Garbage(
        containers=ContainerGC(
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
            log_links=containers.log_links,
            policy=config.container_gc,
        ),
        images=ImageGCManager(
            world=given.world,
            runtime=common.runtime,
            images=given.images,
            events=common.events,
            node=node,
            stats=given.stats,
            policy=config.image_gc,
            names_in_use=common.calls.names_of_images,
            attempted=common.behaviour.image_gc_says_attempted,
        ),
        logs=ContainerLogManager(
            world=given.world,
            runtime=common.runtime,
            policy=config.container_logs,
            log_root=config.pod_log_root,
        ),
    )
