"""Which Pods have a user namespace of their own, and with which ids (kubelet pkg/kubelet/userns/userns_manager.go).

Kubernetes gives one to Pods that ask for it (`hostUsers: false`). As root, where a container's root would be the
machine's, this node also gives one to every Pod that shows no difference: `why_not_by_default` is the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import uid_of
from lastcall.kube.cri.api import IDMapping, PodSandboxState, PodSandboxStatus, RuntimeServiceError, UserNamespace
from lastcall.kube.node.interfaces import EventRecorder
from lastcall.kube.node.pods.spec import all_containers_of
from lastcall.kube.node.pods.user_ids import IDS_PER_POD, UserIDs

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod


def why_not_by_default(pod: Pod) -> str:
    """Return what would not work, or differ, with own ids in a Pod that does not say `hostUsers`; "" for nothing.

    Volumes that are claims depend on where they are: `VolumeManager.owners_can_be_mapped`.
    """
    spec = pod["spec"]
    for name in ("hostUsers", "hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            return name
    for volume in spec.get("volumes") or ():
        if volume.get("hostPath") is not None:
            return "hostPath"
    for container in all_containers_of(pod):
        if (container.get("securityContext") or {}).get("privileged"):
            return "privileged"
    return next((f"id {number}" for number in _ids_of(pod) if number >= IDS_PER_POD), "")


def _ids_of(pod: Pod) -> Iterator[int]:
    """Every user and group id that the Pod names."""
    of_pod = pod["spec"].get("securityContext") or {}
    contexts = (of_pod, *(container.get("securityContext") or {} for container in all_containers_of(pod)))
    ids = [each for context in contexts for each in (context.get("runAsUser"), context.get("runAsGroup"))]
    yield from (each for each in (*ids, of_pod.get("fsGroup")) if isinstance(each, int))
    yield from of_pod.get("supplementalGroups") or ()


class UserNamespaces:
    """Decides once for a Pod's life; its range is its own until `release`, or `keep` without its UID.

    `why_not` says why the runtime cannot have any, "" when it can; `owners_can_be_mapped` is asked of Pods that do not
    ask for one themselves.
    """

    def __init__(
        self,
        ids: UserIDs,
        events: EventRecorder,
        why_not: Callable[[], str],
        owners_can_be_mapped: Callable[[Pod], bool],
    ) -> None:
        self._ids = ids
        self._events = events
        self._why_not = why_not
        self._owners_can_be_mapped = owners_can_be_mapped
        self._decided: dict[str, UserNamespace] = {}
        self._taken: dict[int, str] = {}
        self._next = 0

    def adopt(self, sandboxes: Iterable[PodSandboxStatus]) -> None:
        """Adopt what an earlier node process decided; a Pod's newest sandbox comes first.

        A range that is another Pod's by now, or another cluster's, was that of a sandbox that has ended.
        """
        newest_first = list(sandboxes)
        for sandbox in sorted(newest_first, key=lambda each: each.state != PodSandboxState.SANDBOX_READY):
            options, uid = sandbox.namespace_options.userns_options, sandbox.metadata.uid
            numbers = [(mapping.host_id - self._ids.first) // IDS_PER_POD for mapping in options.uids]
            usable = all(0 <= number < self._ids.pods and number not in self._taken for number in numbers)
            if uid not in self._decided and usable:
                self._decided[uid] = options
                self._taken.update(dict.fromkeys(numbers, uid))

    def options(self, pod: Pod) -> UserNamespace:
        """Return the options for the Pod's sandbox. Raises RuntimeServiceError if the Pod asks for the impossible."""
        uid = uid_of(pod)
        decided = self._decided.get(uid)
        if decided is None:
            decided = self._decided[uid] = self._decide(pod)
        return decided

    def _decide(self, pod: Pod) -> UserNamespace:
        if pod["spec"].get("hostUsers") is False:
            if why := self._why_not():
                raise RuntimeServiceError(f"can't set `spec.hostUsers: false`, runtime does not support it: {why}")
            if not self._ids.pods:
                raise RuntimeServiceError(f"can't set `spec.hostUsers: false`: {self._ids.why}")
            found = self._allocate(uid_of(pod))
            if found is None:
                raise RuntimeServiceError("could not find an empty slot to allocate a user namespace")
            return found
        if not self._ids.by_default or self._why_not() or why_not_by_default(pod):
            return UserNamespace()
        if not self._owners_can_be_mapped(pod):
            return UserNamespace()
        found = self._allocate(uid_of(pod))
        if found is None:
            message = "All user ids for Pods of this node are in use: the Pod shares those of the cluster"
            self._events.event(pod, "Warning", "UserNamespaceNotAvailable", message)
            return UserNamespace()
        return found

    def _allocate(self, uid: str) -> UserNamespace | None:
        """The next free range: one that was just given back is used last."""
        for step in range(self._ids.pods):
            number = (self._next + step) % self._ids.pods
            if number not in self._taken:
                self._taken[number] = uid
                self._next = number + 1
                mapping = (IDMapping(self._ids.first + number * IDS_PER_POD, 0, IDS_PER_POD),)
                return UserNamespace("POD", mapping, mapping)
        return None

    def release(self, uid: str) -> None:
        """Release the ids of a Pod that has ended. Idempotent."""
        self._decided.pop(uid, None)
        for number in [number for number, owner in self._taken.items() if owner == uid]:
            del self._taken[number]

    def keep(self, uids: set[str]) -> None:
        """Keep the ids of these Pods; release all others."""
        for uid in [uid for uid in self._decided if uid not in uids]:
            self.release(uid)
