"""The Pods this node is to run, by UID (kubelet pod/pod_manager.go)."""

from lastcall.api.meta import Object, uid_of


class PodManager:
    def __init__(self) -> None:
        self._pods: dict[str, Object] = {}

    def add_pod(self, pod: Object) -> None:
        """Also takes a newer version of a known Pod."""
        self._pods[uid_of(pod)] = pod

    def remove_pod(self, pod: Object) -> None:
        self._pods.pop(uid_of(pod), None)

    def get_pod(self, uid: str) -> Object | None:
        return self._pods.get(uid)

    def get_pod_by_name(self, namespace: str, name: str) -> Object | None:
        """The newest Pod of this name: after a force delete the old one may still be ending."""
        found = [
            pod
            for pod in self._pods.values()
            if pod["metadata"].get("name") == name and pod["metadata"].get("namespace") == namespace
        ]
        return found[-1] if found else None

    def get_pods(self) -> list[Object]:
        """In the order in which they came."""
        return list(self._pods.values())
