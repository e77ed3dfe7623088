"""What a node does for itself: it admits Pods, evicts them when resources run out, and ends them before it stops."""

from __future__ import annotations

from collections.abc import Sequence

from lastcall.kube.node.admission.decide import (
    AdmitHandler,
    enforces_app_armor,
    fits_node,
    has_free_ports,
    matches_node,
    matches_os,
)
from lastcall.kube.node.admission.manager import PodAdmission
from lastcall.kube.node.eviction.manager import EvictionManager
from lastcall.kube.node.parts.common import Common
from lastcall.kube.node.parts.garbage import Garbage
from lastcall.kube.node.parts.work import PodWork
from lastcall.kube.node.shutdown.manager import NodeShutdown
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class NodeProtection:
    """Eviction and shutdown admit no Pods while they are at work."""

    admission: PodAdmission
    eviction: EvictionManager
    shutdown: NodeShutdown


def make_protection(common: Common, work: PodWork, garbage: Garbage) -> NodeProtection:
    """Make admission, and what ends Pods for the node's own sake."""
    given, config, calls = common.given, common.given.config, common.calls
    shutdown = NodeShutdown(
        world=given.world,
        tasks=common.tasks,
        workers=work.workers,
        events=common.events,
        recorder=given.recorder,
        node_name=config.node_name,
        active_pods=calls.active_pods,
        behaviour=common.behaviour,
    )
    eviction = EvictionManager(
        world=given.world,
        workers=work.workers,
        events=common.events,
        recorder=given.recorder,
        node_name=config.node_name,
        config=config.eviction,
        stats=given.stats,
        active_pods=calls.active_pods,
        behaviour=common.behaviour,
        reclaim=(garbage.containers.delete_all_unused_containers, garbage.images.delete_unused_images),
    )
    admission = PodAdmission(
        tasks=common.tasks,
        workers=work.workers,
        events=common.events,
        recorder=given.recorder,
        node_name=config.node_name,
        allocatable=config.allocatable,
        handlers=(eviction.admit, shutdown.admit, *_admit_handlers(common)),
        made_room=calls.made_room,
    )
    return NodeProtection(admission, eviction, shutdown)


def _admit_handlers(common: Common) -> Sequence[AdmitHandler]:
    given = common.given
    if given.admit_handlers is not None:
        return given.admit_handlers
    app_armor = enforces_app_armor(given.config.host_has_app_armor)
    fits = fits_node(given.config.allocatable)
    return (matches_os, matches_node(common.calls.own_node), fits, has_free_ports, app_armor)
