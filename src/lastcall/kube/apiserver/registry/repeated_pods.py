"""Pods of one template: what was made of the first is known for the others.

What the server makes of a new Pod's body (defaults, admission, validation, managedFields) follows from the body and
from the few objects that admission looks at. A controller sends the same body for each of its hundred Pods, so the
others differ in name, uid, times and the name of the token's volume only; they share the rest with the first.
"""

# check: asks for kinds because it is about Pods

from typing import Any, NamedTuple

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import generate_name
from lastcall.kube.api.resources import PODS, Resource
from lastcall.kube.apiserver.admission.chain import TOKEN_VOLUME
from lastcall.kube.apiserver.admission.reader import Reader, Reads
from lastcall.kube.apiserver.auth.authentication import node_of
from lastcall.kube.apiserver.fieldmanager.requests import manager_of
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.store.value import Value
from lastcall.world.clock import rfc3339_now
from lastcall.world.world import World

KNOWN = 256
"""Bodies that are remembered."""

Key = tuple[str, str, str, bytes]
"""namespace, manager, field validation, body."""


class _First(NamedTuple):
    """A Pod as it was first stored. `looks` is what admission read; `volume` is its token's, "" for none."""

    pod: Object
    value: Value
    reads: Reads
    volume: str


class RepeatedPods:
    """The Pods that bodies without a name became."""

    def __init__(self, world: World, reader: Reader) -> None:
        self._world = world
        self._reader = reader
        self._known: dict[Key, _First] = {}

    def key(self, context: RequestContext, resource: Resource, obj: Object, namespace: str) -> Key | None:
        """Return the key of a body; None for what does not repeat, and for what has to be checked each time."""
        meta = obj.get("metadata")
        if resource is not PODS or context.dry_run or not isinstance(meta, dict) or node_of(context.user) is not None:
            return None
        if meta.get("name") or not meta.get("generateName") or "managedFields" in meta:
            return None
        return namespace, manager_of(context), context.field_validation, orjson.dumps(obj)

    async def another(self, key: Key) -> tuple[Object, Value] | None:
        """Return the next Pod of this body, ready to be stored, and what the first one became, which is as large.

        None when it is the first, or things have changed.
        """
        first = self._known.get(key)
        if first is None or not await first.reads.unchanged():
            return None
        pod, random, moment = first.pod, self._world.random, rfc3339_now(self._world.clock)
        # In the order in which the first got them.
        name = generate_name(pod["metadata"]["generateName"], random)
        uid = self._world.new_uid()
        entries = [{**entry, "time": moment} for entry in pod["metadata"].get("managedFields") or ()]
        meta = {**pod["metadata"], "name": name, "uid": uid, "creationTimestamp": moment}
        if entries:
            meta["managedFields"] = entries
        spec = dict(pod["spec"])
        if first.volume:
            _rename_volume(spec, first.volume, generate_name(TOKEN_VOLUME, random))
        return {**pod, "metadata": meta, "spec": spec, "status": dict(pod["status"])}, first.value

    def reads(self) -> Reads:
        """Return the reads for the context of a create; `remember` gets them afterwards."""
        return Reads(self._reader)

    def remember(self, key: Key, answer: Answer, reads: Reads) -> None:
        """Remember what was stored for this body, `answer`, after admission had done `reads`."""
        pod = answer.object
        if not reads.settled or "conditions" in pod["status"] or TOKEN_VOLUME.encode() in key[3]:
            return  # a condition has a time, and the user's own volume of such a name is not a token's to be renamed
        names = [each["name"] for each in pod["spec"].get("volumes") or ()]
        volume = next((name for name in names if name.startswith(TOKEN_VOLUME)), "")
        while len(self._known) >= KNOWN:
            del self._known[next(iter(self._known))]
        self._known[key] = _First(pod, answer.value, reads, volume)


def _rename_volume(spec: Object, old: str, new: str) -> None:
    """Give the volume another name, there and where it is mounted. What changes is made anew."""
    spec["volumes"] = _renamed(spec["volumes"], old, new)
    for group in ("initContainers", "containers"):
        if spec.get(group):
            spec[group] = [
                {**each, "volumeMounts": _renamed(each["volumeMounts"], old, new)} if each.get("volumeMounts") else each
                for each in spec[group]
            ]


def _renamed(items: list[Any], old: str, new: str) -> list[Any]:
    return [{**each, "name": new} if each["name"] == old else each for each in items]
