"""The Pods of each controlling owner, sorted and counted with every change, so that a sync need not look through them.

An owner of 100 Pods is looked at about once for each Pod that comes or goes; what those looks ask is kept here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.meta import labels_of, name_of, namespace_of
from lastcall.kube.api.pods.spec import is_pod_ready, is_pod_terminal
from lastcall.kube.client.informer import Informer, Key
from lastcall.kube.controllers.ownership import owner_value
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

Labels = tuple[tuple[str, str], ...]
Group = Literal["active", "terminating", "ended"]


_What = tuple[Group, bool, Labels]
"""What syncs read of a Pod: the group, whether it is Ready, its labels."""


@dataclass(slots=True, eq=False)
class _State:
    """One object for all Pods of an owner that are alike, `count` of them."""

    owner: OwnedPods
    what: _What
    count: int = 0


@dataclass(slots=True, eq=False)
class OwnedPods:
    """`active` Pods neither ended nor ending, `terminating` ones are ending and have not ended; the last that came to
    be so is the last of each. By their keys, for most updates change no more than the object. Read only."""

    value: str = ""
    active: dict[Key, None] = field(default_factory=dict)
    terminating: dict[Key, None] = field(default_factory=dict)
    _states: dict[_What, _State] = field(default_factory=dict)

    @property
    def ready(self) -> int:
        """Count the active Pods that are Ready."""
        return sum(state.count for state in self._active() if state.what[1])

    @property
    def labels(self) -> list[dict[str, str]]:
        """Return the different labels that active Pods have."""
        return [dict(labels) for labels in dict.fromkeys(state.what[2] for state in self._active())]

    def labeled(self, wanted: Mapping[str, str]) -> int:
        """Count the active Pods that have all of `wanted`."""
        return sum(state.count for state in self._active() if wanted.items() <= dict(state.what[2]).items())

    def _active(self) -> Iterable[_State]:
        return (state for state in self._states.values() if state.what[0] == "active")

    def _put(self, key: Key, what: _What) -> _State:
        keys = self._keys(what[0])
        if keys is not None:
            keys[key] = None
        state = self._states.get(what)
        if state is None:
            state = self._states[what] = _State(self, what)
        state.count += 1
        return state

    def _take(self, key: Key, state: _State) -> None:
        keys = self._keys(state.what[0])
        if keys is not None:
            del keys[key]
        state.count -= 1
        if not state.count:
            del self._states[state.what]

    def _keys(self, group: Group) -> dict[Key, None] | None:
        if group == "active":
            return self.active
        return self.terminating if group == "terminating" else None


NONE = OwnedPods()


class PodsByOwner:
    """Follows the cache `pods`; owners are found as in its index `controller`."""

    def __init__(self, pods: Informer[Pod]) -> None:
        self._owners: dict[str, OwnedPods] = {}
        self._states: dict[Key, _State] = {}
        self._pods = pods
        pods.add_handler(self._changed, self._updated, self._gone)

    def of(self, value: str) -> OwnedPods:
        return self._owners.get(value, NONE)

    def active(self, owner: OwnedPods) -> list[Pod]:
        """Return the active Pods of `owner` as the cache has them."""
        return [pod for key in owner.active if (pod := self._pods.get(*key)) is not None]

    def _updated(self, old: Pod, new: Pod) -> None:
        meta, was = new["metadata"], old["metadata"]
        if meta.get("labels") == was.get("labels") and meta.get("ownerReferences") == was.get("ownerReferences"):
            alike = new.get("status") is old.get("status") or is_pod_ready(old) == is_pod_ready(new)
            if alike and _group(old) == _group(new):
                return
        self._changed(new)

    def _changed(self, pod: Pod) -> None:
        key = namespace_of(pod), name_of(pod)
        value, what = owner_value(pod), _what(pod)
        known = self._states.get(key)
        if known is not None:
            known.owner._take(key, known)
        owner = self._owners.get(value)
        if owner is None:
            owner = self._owners[value] = OwnedPods(value)
        self._states[key] = owner._put(key, what)
        if known is not None and known.owner is not owner:
            self._forget_empty(known.owner)

    def _gone(self, pod: Pod) -> None:
        key = namespace_of(pod), name_of(pod)
        known = self._states.pop(key, None)
        if known is None:
            return  # of what could not be counted
        known.owner._take(key, known)
        self._forget_empty(known.owner)

    def _forget_empty(self, owner: OwnedPods) -> None:
        if not owner._states:
            del self._owners[owner.value]


def _what(pod: Pod) -> _What:
    return _group(pod), is_pod_ready(pod), tuple(labels_of(pod).items())


def _group(pod: Pod) -> Group:
    if is_pod_terminal(pod):
        return "ended"
    return "active" if pod["metadata"].get("deletionTimestamp") is None else "terminating"
