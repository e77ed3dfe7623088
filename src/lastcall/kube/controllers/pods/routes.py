"""Pods' events for the controllers that own Pods: each hears of those that can concern it.

Every such controller begins with the question whose the Pod is; here it is asked once for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import AnyObject
from lastcall.kube.api.pods.spec import pod_key
from lastcall.kube.client.informer import Informer, OnAdd, OnDelete, OnUpdate
from lastcall.kube.controllers.ownership import controller_of
from lastcall.world import crash_guard

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

COMPONENT = "informer pods"


class PodRoutes:
    """Handlers for the Pods whose controller is of one kind, and for all that have no controller or change theirs.

    Who finishes what others began looks at finalizers: a Pod that has some concerns all.
    """

    def __init__(self, pods: Informer[Pod]) -> None:
        self._on_add: dict[str, list[OnAdd[Pod]]] = {}
        self._on_update: dict[str, list[OnUpdate[Pod]]] = {}
        self._on_delete: dict[str, list[OnDelete[Pod]]] = {}
        self._every_add: list[OnAdd[Pod]] = []
        self._every_update: list[OnUpdate[Pod]] = []
        self._every_delete: list[OnDelete[Pod]] = []
        self._pods = pods
        pods.add_handler(self._added, self._updated, self._deleted)

    def add_handler(
        self,
        kind: str,
        on_add: OnAdd[Pod] | None = None,
        on_update: OnUpdate[Pod] | None = None,
        on_delete: OnDelete[Pod] | None = None,
    ) -> None:
        """Add a handler as `Informer.add_handler` does, for Pods that owners of `kind` may have to examine."""
        if on_update is not None:
            self._on_update.setdefault(kind, []).append(on_update)
            self._every_update.append(on_update)
        if on_delete is not None:
            self._on_delete.setdefault(kind, []).append(on_delete)
            self._every_delete.append(on_delete)
        if on_add is not None:
            self._on_add.setdefault(kind, []).append(on_add)
            self._every_add.append(on_add)
            for pod in self._pods.items():
                try:
                    on_add(pod)
                except Exception as error:
                    crash_guard.caught(COMPONENT, pod_key(pod), error)

    def _added(self, pod: Pod) -> None:
        kind = _kind_of(pod, controller_of(pod))
        for on_add in self._every_add if kind is None else self._on_add.get(kind, ()):
            try:
                on_add(pod)
            except Exception as error:
                crash_guard.caught(COMPONENT, pod_key(pod), error)

    def _updated(self, old: Pod, new: Pod) -> None:
        controller = controller_of(new)
        kind = _kind_of(new, controller)
        if kind is not None and controller_of(old) != controller:
            kind = None
        for on_update in self._every_update if kind is None else self._on_update.get(kind, ()):
            try:
                on_update(old, new)
            except Exception as error:
                crash_guard.caught(COMPONENT, pod_key(new), error)

    def _deleted(self, pod: Pod) -> None:
        kind = _kind_of(pod, controller_of(pod))
        for on_delete in self._every_delete if kind is None else self._on_delete.get(kind, ()):
            try:
                on_delete(pod)
            except Exception as error:
                crash_guard.caught(COMPONENT, pod_key(pod), error)


def _kind_of(pod: AnyObject, controller: AnyObject | None) -> str | None:
    """The kind whose controllers alone the Pod concerns; None when it concerns all."""
    if controller is None or pod["metadata"].get("finalizers"):
        return None
    return str(controller["kind"])
