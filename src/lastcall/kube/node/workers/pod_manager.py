"""The Pods this node is to run, by UID, and the mirrors of the static ones (kubelet pod/pod_manager.go)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import name_of, namespace_of, uid_of
from lastcall.kube.node.pods.spec import is_mirror_pod, is_static_pod
from lastcall.kube.node.static_pods.decide import is_mirror_of

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod


class PodManager:
    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._mirrors: dict[tuple[str, str], Pod] = {}

    def add_pod(self, pod: Pod) -> None:
        """Add a Pod, or a newer version of a known one."""
        if is_mirror_pod(pod):
            self._mirrors[namespace_of(pod), name_of(pod)] = pod
        else:
            self._pods[uid_of(pod)] = pod

    def remove_pod(self, pod: Pod) -> None:
        key = (namespace_of(pod), name_of(pod))
        if not is_mirror_pod(pod):
            self._pods.pop(uid_of(pod), None)
        elif key in self._mirrors and uid_of(self._mirrors[key]) == uid_of(pod):
            del self._mirrors[key]

    def get_pod(self, uid: str) -> Pod | None:
        return self._pods.get(uid)

    def get_pod_by_name(self, namespace: str, name: str) -> Pod | None:
        """Return the newest Pod of this name: after a force delete the old one may still be ending. Never a mirror."""
        found = [
            pod
            for pod in self._pods.values()
            if pod["metadata"].get("name") == name and pod["metadata"].get("namespace") == namespace
        ]
        return found[-1] if found else None

    def get_pods(self) -> list[Pod]:
        """Return the Pods in the order in which they came, without mirrors."""
        return list(self._pods.values())

    def get_mirror(self, namespace: str, name: str) -> Pod | None:
        """Return the mirror of that name, whatever static Pod it was made of."""
        return self._mirrors.get((namespace, name))

    def get_mirrors(self) -> list[Pod]:
        return list(self._mirrors.values())

    def mirror_of(self, pod: Pod) -> Pod | None:
        """Return the mirror made of this very static Pod."""
        mirror = self.get_mirror(namespace_of(pod), name_of(pod))
        return mirror if mirror is not None and is_mirror_of(mirror, pod) else None

    def static_pod_of(self, mirror: Pod) -> Pod | None:
        """Return the newest static Pod of the mirror's name."""
        pod = self.get_pod_by_name(namespace_of(mirror), name_of(mirror))
        return pod if pod is not None and is_static_pod(pod) else None
