"""What a controller wrote and its cache does not show yet."""

from typing import Generic

from lastcall.kube.api.meta import AnyObject, T, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.client.informer import Informer, Key


class Written(Generic[T]):
    """A cache with the controller's own last writes on top. (`pv_controller_base.go:storeObjectUpdate`)"""

    def __init__(self, informer: Informer[T]) -> None:
        self._informer = informer
        self._newer: dict[Key, T] = {}

    def remember(self, obj: T) -> T:
        """Remember what the API server has answered to a write, and return it."""
        self._newer[namespace_of(obj), name_of(obj)] = obj
        return obj

    def forget(self, obj: AnyObject) -> None:
        """Forget what was written: it was deleted, or another client wrote it, and the cache knows better."""
        self._newer.pop((namespace_of(obj), name_of(obj)), None)

    def get(self, namespace: str, name: str) -> T | None:
        """Return the newest version that is known; None once the cache has lost it."""
        cached = self._informer.get(namespace, name)
        mine = self._newer.get((namespace, name))
        if mine is None:
            return cached
        if cached is None or uid_of(cached) != uid_of(mine) or not _is_newer(mine, cached):
            del self._newer[namespace, name]
            return cached
        return mine

    def items(self) -> list[T]:
        """Return all objects, each in its newest version."""
        found = (self.get(namespace_of(each), name_of(each)) for each in self._informer.items())
        return [each for each in found if each is not None]


def _is_newer(one: AnyObject, other: AnyObject) -> bool:
    try:
        return int(resource_version_of(one)) > int(resource_version_of(other))
    except ValueError:
        return False
