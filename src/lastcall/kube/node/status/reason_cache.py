"""Why containers could not start, kept for the next status (kubelet reason_cache.go)."""

from collections import OrderedDict

from lastcall.kube.node.interfaces import StartError

MAX_ENTRIES = 1000


class LastStartErrors:
    """The `ReasonCache` that the start path fills; the least recently used entry goes first."""

    def __init__(self) -> None:
        self._errors: OrderedDict[tuple[str, str], StartError] = OrderedDict()

    def get(self, pod_uid: str, container_name: str) -> StartError | None:
        error = self._errors.get((pod_uid, container_name))
        if error is not None:
            self._errors.move_to_end((pod_uid, container_name))
        return error

    def update(self, pod_uid: str, container_name: str, error: StartError | None) -> None:
        """Store what the last attempt gave; None for a start that worked."""
        if error is None:
            self._errors.pop((pod_uid, container_name), None)
            return
        self._errors[pod_uid, container_name] = error
        self._errors.move_to_end((pod_uid, container_name))
        while len(self._errors) > MAX_ENTRIES:
            self._errors.popitem(last=False)

    def forget(self, pod_uid: str) -> None:
        for key in [key for key in self._errors if key[0] == pod_uid]:
            del self._errors[key]
