"""Which Pods name a claim: an index that is kept only while there are claims."""

from collections.abc import Callable

from lastcall.kube.api.claims import claims_used_by
from lastcall.kube.api.meta import Object, namespace_of, uid_of
from lastcall.kube.client.informer import Informer

Key = tuple[str, str]
"""(namespace, name) of a claim."""
Listener = Callable[[Key, Object, bool], None]
"""A claim, a Pod of it that came, changed or went, and whether it is still there."""


class ClaimUsers:
    """Follows `pods`, a shared cache."""

    def __init__(self, pods: Informer, listener: Listener = lambda key, pod, there: None) -> None:
        self._by_claim: dict[Key, dict[str, Object]] = {}
        self._listener = listener
        pods.add_handler(self._seen, lambda _, pod: self._seen(pod), self._gone)

    def of(self, key: Key) -> list[Object]:
        """Return the Pods that name the claim, in the order in which they came."""
        return list(self._by_claim.get(key, {}).values())

    def _seen(self, pod: Object) -> None:
        for use in claims_used_by(pod):
            key = (namespace_of(pod), use.claim)
            self._by_claim.setdefault(key, {})[uid_of(pod)] = pod
            self._listener(key, pod, True)

    def _gone(self, pod: Object) -> None:
        for use in claims_used_by(pod):
            key = (namespace_of(pod), use.claim)
            users = self._by_claim.get(key, {})
            users.pop(uid_of(pod), None)
            if not users:
                self._by_claim.pop(key, None)
            self._listener(key, pod, False)
