"""Create the mirror Pods: every static Pod is represented by an object in the API (kubelet.go:tryReconcileMirrorPods).

Nothing waits for it: a static Pod runs without an API server. Deleting a mirror stops nothing; it is made anew.
"""

# check: observes because it created the mirror Pod

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_already_exists, is_conflict, is_not_found
from lastcall.kube.api.meta import is_terminating, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.resources import NODES, PODS
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.node.static_pods.decide import is_mirror_of, mirror_pod
from lastcall.kube.node.workers.pod_manager import PodManager
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod
    from lastcall.records.definitions.kubelet_start import MirrorPodCreated

log = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 0.5
MAX_RETRY_SECONDS = 10.0


class MirrorAction(StrEnum):
    KEEP = "keep"
    CREATE = "create"
    REPLACE = "replace"


def mirror_action(pod: Pod, mirror: Pod | None) -> MirrorAction:
    """Decide what `pod` needs to have its mirror. One that is being deleted, or of another Pod, is replaced."""
    if mirror is None:
        return MirrorAction.CREATE
    if is_terminating(mirror) or not is_mirror_of(mirror, pod):
        return MirrorAction.REPLACE
    return MirrorAction.KEEP


class MirrorPods:
    def __init__(
        self, *, world: World, tasks: Tasks, client: Client, recorder: Recorder, pods: PodManager, node_name: str
    ) -> None:
        self._world = world
        self._tasks = tasks
        self._client = client
        self._recorder = recorder
        self._pods = pods
        self._node_name = node_name
        self._busy: dict[str, None] = {}
        self._deleting: dict[str, None] = {}

    def reconcile(self, pod: Pod) -> None:
        """Give a static Pod its mirror; never blocks. What fails is tried again until the Pod is gone."""
        uid = uid_of(pod)
        if uid in self._busy or mirror_action(pod, self._mirror_of(pod)) is MirrorAction.KEEP:
            return
        self._busy[uid] = None
        self._tasks.spawn(self._reconcile(uid), name=f"mirror of {name_of(pod)}")

    def delete_orphan(self, mirror: Pod) -> None:
        """Delete a mirror whose static Pod has ended; never blocks."""
        if uid_of(mirror) not in self._deleting:
            self._deleting[uid_of(mirror)] = None
            self._tasks.spawn(self._delete_orphan(mirror), name=f"delete mirror {name_of(mirror)}")

    async def _reconcile(self, uid: str) -> None:
        delay = FIRST_RETRY_SECONDS
        try:
            while (pod := self._pods.get_pod(uid)) is not None:
                try:
                    await self._make(pod)
                    return
                except (StatusError, ConnectionLost) as error:
                    log.warning("mirror of static Pod %s: %s", name_of(pod), error)
                except Exception as error:
                    crash_guard.caught("kubelet mirror pods", uid, error)
                await self._world.clock.sleep(delay)
                delay = min(delay * 2, MAX_RETRY_SECONDS)
        finally:
            self._busy.pop(uid, None)

    async def _make(self, pod: Pod) -> None:
        mirror = self._mirror_of(pod)
        action = mirror_action(pod, mirror)
        if action is MirrorAction.KEEP:
            return
        if mirror is not None:
            await self._delete(mirror)
        node = cast("Node", await self._client.get(NODES, self._node_name))
        if is_terminating(node):
            return
        try:
            made = await self._client.create(PODS, mirror_pod(pod, node), namespace_of(pod))
        except StatusError as error:
            if not is_already_exists(error):
                raise
            return  # it is on its way to this node, or another client made it
        facts: MirrorPodCreated = {
            "mirrorUid": uid_of(made),
            "namespace": namespace_of(pod),
            "name": name_of(pod),
            "resourceVersion": resource_version_of(made),
        }
        rule = rules.CREATE_MIRROR_POD
        self._recorder.record(kinds.MIRROR_POD_CREATED, pod_uid=uid_of(pod), rule=rule, facts=facts)

    async def _delete_orphan(self, mirror: Pod) -> None:
        try:
            await self._delete(mirror)
        except (StatusError, ConnectionLost) as error:
            log.warning("mirror %s: %s", name_of(mirror), error)  # housekeeping asks again
        except Exception as error:
            crash_guard.caught("kubelet mirror pods", name_of(mirror), error)
        finally:
            self._deleting.pop(uid_of(mirror), None)

    async def _delete(self, mirror: Pod) -> None:
        """Source: pod/mirror_client.go:DeleteMirrorPod: at once, and only this very object."""
        try:
            await self._client.delete(
                PODS, name_of(mirror), namespace_of(mirror), grace_period_seconds=0, uid=uid_of(mirror)
            )
        except StatusError as error:
            if not is_not_found(error) and not is_conflict(error):
                raise

    def _mirror_of(self, pod: Pod) -> Pod | None:
        return self._pods.get_mirror(namespace_of(pod), name_of(pod))
