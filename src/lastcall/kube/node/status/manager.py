"""The status manager: remembers what each Pod's status should be, writes it, and deletes finished Pods.

Source: status/status_manager.go. The rules are in `decide`; here is the I/O. Where Kubernetes does GET, merge,
PATCH, this manager skips the GET while it holds an object that the API server still has: the PATCH names uid and
resourceVersion, and a Conflict leads back to the GET. So a write is one round trip, and never lands on stale ground.
"""

# check: observes because it sent the status and the final DELETE
# check: many attributes PodStatusManager because it keeps a map for each thing that others say of a Pod

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import copy_object, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.resources import PODS
from lastcall.kube.api.text.numbers import int_of
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.node.interfaces import PodStateProvider
from lastcall.kube.node.pods.spec import is_static_pod
from lastcall.kube.node.static_pods.decide import is_mirror_of
from lastcall.kube.node.status.conditions import find_condition
from lastcall.kube.node.status.decide import (
    can_be_deleted,
    equal_by_kubelet,
    merge_patch,
    merge_pod_status,
    prepare_status,
    terminated_status,
    with_container_ready,
    with_container_started,
)
from lastcall.kube.node.status.features import StatusFeatures
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import now, rfc3339
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks, at_first_wait
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus
    from lastcall.records.definitions.kubelet_end import FinalDeleteSent, StatusSent
    from lastcall.records.definitions.kubelet_start import PodRunning

log = logging.getLogger(__name__)

COMPONENT = "kubelet status manager"
SYNC_PERIOD = 10.0
"""Seconds between full passes (`syncPeriod`)."""
RETRY_PERIOD = 1.0
"""Seconds before a write that could not reach the API server is tried again."""
MAX_CONFLICTS = 5


@dataclass(frozen=True, slots=True)
class _Versioned:
    """What one Pod's status should be. `pod` is the newest object this manager knows, its status may be behind."""

    pod: Pod
    status: APIPodStatus
    version: int
    pod_is_finished: bool = False


class PodStatusManager:
    """Implements `interfaces.StatusManager`.

    `get_pod(uid)` answers the kubelet's current object of a Pod (pod_manager.go:GetPodByUID), `mirror_of(pod)` the
    mirror of a static one, which its status is written to. `resources_reclaimed` is asked only for versions before
    1.27: no container left in the runtime, no volume mounted.
    """

    def __init__(
        self,
        *,
        world: World,
        client: Client,
        recorder: Recorder,
        state: PodStateProvider,
        features: StatusFeatures,
        get_pod: Callable[[str], Pod | None] = lambda uid: None,
        mirror_of: Callable[[Pod], Pod | None] = lambda pod: None,
        resources_reclaimed: Callable[[str], bool] = lambda uid: True,
    ) -> None:
        self._world = world
        self._client = client
        self._recorder = recorder
        self._state = state
        self._features = features
        self._get_pod = get_pod
        self._mirror_of = mirror_of
        self._resources_reclaimed = resources_reclaimed
        self._statuses: dict[str, _Versioned] = {}
        self._api_versions: dict[str, int] = {}
        self._api_pods: dict[str, Pod] = {}
        self._gone: dict[str, None] = {}
        self._dirty: dict[str, None] = {}
        self._writing: dict[str, asyncio.Event] = {}
        """Set while the write of a Pod's status waits for an answer, or for what has to come before it can be sent."""
        self._tasks: Tasks | None = None

    # What the kubelet reports

    def set_pod_status(self, pod: Pod, status: APIPodStatus) -> None:
        """Store a freshly generated status; forced through for a Pod that is being deleted."""
        status = copy_object(status)
        self._observe_generation(pod, status)
        self._update(pod, status, force=pod["metadata"].get("deletionTimestamp") is not None, finished=False)

    def set_pod_sandbox_ready(self, pod: Pod) -> None:
        """Set PodReadyToStartContainers to True: the sandbox exists, before any container runs (1.36).

        Source: kubelet.go:OnPodSandboxReady.
        """
        cached = self.get_pod_status(uid_of(pod))
        if cached is None or not self._features.sandbox_condition_at_once:
            return
        condition = find_condition(cached.get("conditions"), "PodReadyToStartContainers")
        if condition is None or condition.get("status") == "True":
            return
        status = copy_object(cached)
        changed = find_condition(status["conditions"], "PodReadyToStartContainers")
        assert changed is not None
        changed["status"] = "True"
        changed.pop("reason", None)
        changed.pop("message", None)
        self._update(pod, status, force=False, finished=False)

    def terminate_pod(self, pod: Pod) -> None:
        """Set the last status: nothing of the Pod is left on the node, and it may then be deleted."""
        cached = self._statuses.get(uid_of(pod))
        status = terminated_status(pod, cached.status if cached else (pod.get("status") or {}), self._features)
        self._observe_generation(pod, status)
        self._update(pod, status, force=True, finished=True)

    def get_pod_status(self, uid: str) -> APIPodStatus | None:
        cached = self._statuses.get(uid)
        return cached.status if cached else None

    def set_container_readiness(self, pod_uid: str, container_id: str, ready: bool) -> None:
        cached = self._statuses.get(pod_uid)
        if cached is None:
            return
        pod = self._get_pod(pod_uid) or cached.pod
        generation = int(pod["metadata"].get("generation") or 0) if self._features.observed_generation else 0
        status = with_container_ready(pod, cached.status, container_id, ready, generation)
        if status is not None:
            self._update(pod, status, force=False, finished=False)

    def set_container_startup(self, pod_uid: str, container_id: str, started: bool) -> None:
        cached = self._statuses.get(pod_uid)
        status = with_container_started(cached.status, container_id, started) if cached else None
        if cached and status is not None:
            self._update(self._get_pod(pod_uid) or cached.pod, status, force=False, finished=False)

    def remove_orphaned_statuses(self, pod_uids: set[str]) -> None:
        """Forget every Pod that is not in `pod_uids`."""
        for uid in [uid for uid in self._statuses if uid not in pod_uids]:
            self._forget(uid)

    def mirror_changed(self, uid: str) -> None:
        """Note that the static Pod has another mirror, or a newer version of it."""
        self._gone.pop(uid, None)
        if uid in self._statuses:
            self._enqueue(uid)

    # Writing

    async def run(self) -> None:
        """Write statuses until cancelled."""
        async with Tasks() as tasks:
            self._tasks = tasks
            try:
                for uid in list(self._dirty):
                    self._enqueue(uid)
                while True:
                    await self._world.clock.sleep(SYNC_PERIOD)
                    self._resync()
            finally:
                self._tasks = None

    def _update(self, pod: Pod, status: APIPodStatus, *, force: bool, finished: bool) -> None:
        uid = uid_of(pod)
        cached = self._statuses.get(uid)
        old = cached.status if cached else (pod.get("status") or {})
        prepared = prepare_status(pod, status, old, rfc3339(now(self._world.clock)))
        if prepared is None:
            log.error("status update of pod %s/%s aborted: illegal transition", namespace_of(pod), name_of(pod))
            return
        finished = finished or (cached is not None and cached.pod_is_finished)
        if cached is not None and not force and equal_by_kubelet(cached.status, prepared):
            self._statuses[uid] = replace(cached, pod=self._newer(cached.pod, pod))
            return
        newest = self._newer(cached.pod, pod) if cached else pod
        self._statuses[uid] = _Versioned(newest, prepared, cached.version + 1 if cached else 1, finished)
        self._enqueue(uid)

    def _enqueue(self, uid: str) -> None:
        self._dirty[uid] = None
        if self._tasks is not None and uid not in self._writing:
            self._writing[uid] = asyncio.Event()
            self._tasks.spawn(self._write(uid), name=f"status-{uid}")

    def _resync(self) -> None:
        """Everything unsent, deletable, or different from what the API has. Source: syncBatch(all)."""
        for uid in [uid for uid in self._api_versions if uid not in self._statuses]:
            del self._api_versions[uid]
        for uid, entry in list(self._statuses.items()):
            with crash_guard.Turn(COMPONENT, uid):
                self._resync_one(uid, entry)

    def _resync_one(self, uid: str, entry: _Versioned) -> None:
        pod = self._get_pod(uid)
        if pod is not None:
            entry = self._statuses[uid] = replace(entry, pod=self._newer(entry.pod, pod))
        sent = self._api_versions.get(uid, 0)
        api_pod = self._api_pod(uid, entry)
        if api_pod is None:
            return
        if sent < entry.version or self._can_be_deleted(uid, api_pod, entry):
            self._enqueue(uid)
        elif uid not in self._gone:
            api_status: APIPodStatus = api_pod.get("status") or {}
            if merge_patch(api_status, self._merge(api_status, uid, entry)):
                self._enqueue(uid)

    async def handed_over(self, uid: str) -> None:
        """Wait until the write of the Pod's status has nothing left to do but wait itself: for the answer, for a
        connection, for the next attempt. So neither an answer nor a server that is away delays the caller."""
        waits = self._writing.get(uid)
        if waits is not None:
            await waits.wait()

    async def _write(self, uid: str) -> None:
        """Bring one Pod's status to the API, again and again until there is nothing newer."""
        waits = self._writing[uid]
        try:
            while uid in self._dirty:
                del self._dirty[uid]
                waits.clear()
                if crash_guard.on_turn is not None:
                    crash_guard.on_turn(COMPONENT, uid)
                entry = self._statuses.get(uid)
                if entry is None:
                    return
                try:
                    at_first_wait(waits.set)
                    await self._sync_pod(uid, entry)
                except ConnectionLost as error:
                    log.warning("status of pod %s not written, trying again: %s", name_of(entry.pod), error)
                    self._dirty[uid] = None
                    await self._world.clock.sleep(RETRY_PERIOD)
                except StatusError as error:
                    # As in Kubernetes, a refused write waits for the next full pass.
                    log.error("status of pod %s refused: %s", name_of(entry.pod), error.message)
                except Exception as error:
                    crash_guard.caught(COMPONENT, f"{namespace_of(entry.pod)}/{name_of(entry.pod)}", error)
        finally:
            waits.set()
            self._writing.pop(uid, None)

    async def _sync_pod(self, uid: str, entry: _Versioned) -> None:
        """One GET (only when needed), PATCH and perhaps DELETE. Source: status_manager.go:syncPod."""
        pod = self._api_pod(uid, entry)
        if pod is None:
            return  # a static Pod without a mirror; `mirror_changed` reports one
        for attempt in range(MAX_CONFLICTS):
            if pod is None:
                try:
                    pod = cast("Pod", await self._client.get(PODS, name_of(entry.pod), namespace_of(entry.pod)))
                except StatusError as error:
                    if is_not_found(error):
                        self._sent(uid, entry, gone=True)
                        return
                    raise
            if uid_of(pod) != uid and not is_mirror_of(pod, entry.pod):
                # Another Pod took the name; this one's status is no longer needed.
                self._forget(uid)
                return
            try:
                pod = await self._patch(uid, entry, pod)
                break
            except StatusError as error:
                if is_not_found(error):
                    self._sent(uid, entry, gone=True)
                    return
                if not is_conflict(error) or attempt == MAX_CONFLICTS - 1:
                    raise
                pod = None
        assert pod is not None
        self._api_pods[uid] = pod
        self._sent(uid, entry)
        if self._can_be_deleted(uid, pod, entry):
            await self._delete(uid, pod)

    async def _patch(self, uid: str, entry: _Versioned, pod: Pod) -> Pod:
        api_status: APIPodStatus = pod.get("status") or {}
        merged = self._merge(api_status, uid, entry)
        changes = merge_patch(api_status, merged)
        if not changes:
            return pod
        answer = await self._client.patch(
            PODS,
            name_of(pod),
            {"metadata": {"uid": uid_of(pod), "resourceVersion": resource_version_of(pod)}, "status": changes},
            namespace_of(pod),
            subresource="status",
        )
        phase = merged.get("phase", "")
        sent: StatusSent = {"phase": phase, "resourceVersion": resource_version_of(answer)}
        self._recorder.record(kinds.STATUS_SENT, pod_uid=uid, rule=rules.SYNC_POD_STATUS, facts=sent)
        if phase == "Running" and api_status.get("phase") != "Running":
            running: PodRunning = {"phase": phase, "resourceVersion": sent["resourceVersion"]}
            self._recorder.record(kinds.POD_RUNNING, pod_uid=uid, rule=rules.SYNC_POD_STATUS, facts=running)
        return cast("Pod", answer)

    async def _delete(self, uid: str, pod: Pod) -> None:
        facts: FinalDeleteSent = {"uid": uid}
        self._recorder.record(kinds.FINAL_DELETE_SENT, pod_uid=uid, rule=rules.CAN_BE_DELETED, facts=facts)
        try:
            await self._client.delete(PODS, name_of(pod), namespace_of(pod), grace_period_seconds=0, uid=uid)
        except StatusError as error:
            if not is_not_found(error) and not is_conflict(error):
                raise
        self._forget(uid)

    def _merge(self, api_status: APIPodStatus, uid: str, entry: _Versioned) -> APIPodStatus:
        return merge_pod_status(
            api_status,
            entry.status,
            could_have_running_containers=self._state.could_have_running_containers(uid),
            features=self._features,
            now=rfc3339(now(self._world.clock)),
        )

    def _api_pod(self, uid: str, entry: _Versioned) -> Pod | None:
        """The newest object known to be in the API; None for a static Pod without a mirror."""
        if not is_static_pod(entry.pod):
            return self._newer(self._api_pods.get(uid, entry.pod), entry.pod)
        mirror, written = self._mirror_of(entry.pod), self._api_pods.get(uid)
        if mirror is None or written is None or uid_of(written) != uid_of(mirror):
            return mirror
        return self._newer(written, mirror)

    def _can_be_deleted(self, uid: str, api_pod: Pod, entry: _Versioned) -> bool:
        if not entry.pod_is_finished:
            return False
        reclaimed = self._features.final_delete_needs_terminal_phase or self._resources_reclaimed(uid)
        return can_be_deleted(api_pod, entry.status, entry.pod_is_finished, reclaimed, self._features)

    def _sent(self, uid: str, entry: _Versioned, *, gone: bool = False) -> None:
        """`gone`: the API has no such Pod; its status stays here until the kubelet forgets the Pod."""
        if uid in self._statuses:
            self._api_versions[uid] = entry.version
            if gone:
                self._gone[uid] = None

    def _forget(self, uid: str) -> None:
        for cache in (self._statuses, self._api_versions, self._api_pods, self._gone, self._dirty):
            cast(dict[str, object], cache).pop(uid, None)

    def _observe_generation(self, pod: Pod, status: APIPodStatus) -> None:
        if self._features.observed_generation and (generation := pod["metadata"].get("generation")):
            status["observedGeneration"] = generation

    @staticmethod
    def _newer(one: Pod, other: Pod) -> Pod:
        """The object with the greater resourceVersion (comparable decimal numbers since KEP-5504), else `other`."""
        left, right = int_of(resource_version_of(one)), int_of(resource_version_of(other))
        return one if left is not None and right is not None and left > right else other
