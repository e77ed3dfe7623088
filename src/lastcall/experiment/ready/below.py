"""Whose Pods an object's are: along ownerReferences of every kind, also those of operators."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from lastcall.errors import LastcallError
from lastcall.experiment.ready.objects import Objects
from lastcall.experiment.ready.readiness import is_custom
from lastcall.kube.api import NAMESPACES, PODS, Object, StatusError, namespace_of, uid_of
from lastcall.manifests.applying import Named
from lastcall.world.dataclass import dataclass

__tracebackhide__ = True  # pytest shows the caller's line

Found = Sequence[tuple[Named, Object]]


async def pods_below(objects: Objects, owners: Found) -> list[Object]:
    """Return the Pods of workloads, of what is between them too; of a Pod itself. One owner of several is enough."""
    return await _below(objects, owners, any)


async def pods_that_go(objects: Objects, deleted: Found) -> list[Object]:
    """Return the Pods that end when these objects are deleted: those of which no owner is left, and those of a
    Namespace. (garbagecollector.go:attemptToDeleteItem)"""
    return await _below(objects, deleted, all)


async def _below(objects: Objects, owners: Found, rule: Callable[[Iterable[bool]], bool]) -> list[Object]:
    """Raises StatusError, ConnectionLost."""
    found = {uid_of(obj): obj for named, obj in owners if named.resource == PODS}
    whole = [named.name for named, _ in owners if named.resource == NAMESPACES]
    inside = [named.namespace for named, _ in owners if named.resource != PODS and _may_own_pods(named)]
    chains = _Chains(objects, rule, {uid_of(obj): True for _, obj in owners})
    for namespace in dict.fromkeys((*whole, *inside)):
        for pod in (await objects.client.list(PODS, namespace)).items:
            if namespace_of(pod) in whole or await chains.leads_there(pod):
                found.setdefault(uid_of(pod), pod)
    return list(found.values())


def _may_own_pods(named: Named) -> bool:
    """Return False for the cluster's own things, such as a Node: nobody's Pods end with them."""
    return named.resource.namespaced or is_custom(named.resource)


@dataclass(slots=True)
class _Chains:
    objects: Objects
    rule: Callable[[Iterable[bool]], bool]
    known: dict[str, bool]
    """By uid: whether it is one of the owners, or below one."""

    async def leads_there(self, obj: Object) -> bool:
        references = obj["metadata"].get("ownerReferences") or ()
        return bool(references) and self.rule([await self._is_one(each, namespace_of(obj)) for each in references])

    async def _is_one(self, reference: Object, namespace: str) -> bool:
        uid = reference["uid"]
        if uid not in self.known:
            self.known[uid] = False  # for a circle
            owner = await self._get(reference, namespace)
            self.known[uid] = owner is not None and uid_of(owner) == uid and await self.leads_there(owner)
        return self.known[uid]

    async def _get(self, reference: Object, namespace: str) -> Object | None:
        """Return an owner, None for one that is gone, or of which nothing can be known."""
        kind = {"apiVersion": reference.get("apiVersion"), "kind": reference.get("kind")}
        with suppress(LastcallError):
            named = await self.objects.find({**kind, "metadata": {"name": reference.get("name")}}, namespace)
            try:
                return await self.objects.get(named)
            except StatusError as error:
                if error.code != 403:
                    raise
        return None
