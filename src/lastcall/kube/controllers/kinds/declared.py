"""The kinds that CustomResourceDefinitions declare, for controllers that care for every kind there is.

Source: client-go discovery, as the garbage collector and the namespace controller ask it again and again.
"""

from collections.abc import Callable

from lastcall.kube.api.custom.kinds import is_established, served_resources
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS, Resource
from lastcall.kube.controllers.informers import Informers


class DeclaredKinds:
    """`added(resource, stored)` for each served version when it comes, `removed(resource)` when it goes.

    `stored` is true for one version of each kind: objects are to be seen once.
    """

    def __init__(
        self,
        informers: Informers,
        added: Callable[[Resource, bool], None] = lambda resource, stored: None,
        removed: Callable[[Resource], None] = lambda resource: None,
    ) -> None:
        self._added, self._removed = added, removed
        self._known: dict[str, list[Resource]] = {}
        self.informer = informers.get(CUSTOMRESOURCEDEFINITIONS)
        self.informer.add_handler(self._observed, lambda _, new: self._observed(new), self._gone)

    def resources(self) -> list[Resource]:
        """Return one version of each kind."""
        return [resources[0] for resources in self._known.values() if resources]

    def _observed(self, definition: Object) -> None:
        now = served_resources(definition) if is_established(definition) else []
        before = self._known.get(name_of(definition), [])
        if now == before:
            return
        self._gone(definition)
        self._known[name_of(definition)] = now
        for number, resource in enumerate(now):
            self._added(resource, number == 0)

    def _gone(self, definition: Object) -> None:
        for resource in self._known.pop(name_of(definition), []):
            self._removed(resource)
