"""The owner graph: which objects depend on which, and what a change of one makes worth another look. Pure.

Source: pkg/controller/garbagecollector/graph_builder.go (processGraphChanges), graph.go. An owner that nobody has seen
yet is a virtual node of the graph until the API says whether it exists.
"""

# check: plain objects because owners and what they own are of any kind
# check: pure

from collections.abc import Iterable
from dataclasses import field
from typing import NamedTuple

from lastcall.kube.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import Resource
from lastcall.world.dataclass import dataclass

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Reference(NamedTuple):
    """One entry of metadata.ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool

    @staticmethod
    def all_of(obj: Object) -> tuple["Reference", ...]:
        return tuple(
            [
                Reference(
                    each.get("apiVersion", ""),
                    each.get("kind", ""),
                    each.get("name", ""),
                    each.get("uid", ""),
                    bool(each.get("blockOwnerDeletion")),
                )
                for each in obj["metadata"].get("ownerReferences") or ()
            ]
        )


@dataclass(slots=True, eq=False)
class Node:
    """An object; a virtual one is not `observed`, and its `resource` is None when its kind is not served.

    `deleting_dependents`: it is being deleted in the foreground and waits for its dependents. `gone` are the uids of
    owners that were there and are no more; `written` is what `owners` were read from.
    """

    uid: str
    resource: Resource | None
    api_version: str
    kind: str
    namespace: str
    name: str
    observed: bool = False
    being_deleted: bool = False
    deleting_dependents: bool = False
    owners: tuple[Reference, ...] = ()
    dependents: dict[str, "Node"] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    written: list[Object] | None = None

    def blocking_dependents(self) -> list["Node"]:
        """Return the dependents that hold a foreground deletion. (`blockingDependents`)"""
        return [
            each
            for each in self.dependents.values()
            if any(owner.uid == self.uid and owner.blocks for owner in each.owners)
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Effects:
    """What is to be looked at again (uids), what wants its dependents orphaned, and references to a wrong namespace."""

    delete: tuple[str, ...] = ()
    orphan: tuple[str, ...] = ()
    wrong_namespace: tuple[Reference, ...] = ()


NO_EFFECTS = Effects()


def _effects(
    delete: dict[str, None], orphan: tuple[str, ...] = (), wrong_namespace: tuple[Reference, ...] = ()
) -> Effects:
    return Effects(tuple(delete), orphan, wrong_namespace) if delete or orphan or wrong_namespace else NO_EFFECTS


class Graph:
    """`observe` and `remove` for every event of a watch; lookups by uid."""

    def __init__(self, resources: dict[tuple[str, str], Resource]) -> None:
        """`resources` are the kinds that can own, by (apiVersion, kind)."""
        self._resources = resources
        self._nodes: dict[str, Node] = {}

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def __len__(self) -> int:
        return len(self._nodes)

    def serve(self, resource: Resource) -> None:
        """Add a kind that can own from now on. What was waiting for it knows it."""
        self._resources[resource.api_version, resource.kind] = resource
        for node in self._nodes.values():
            if node.resource is None and (node.api_version, node.kind) == (resource.api_version, resource.kind):
                node.resource = resource
                if not resource.namespaced:
                    node.namespace = ""

    def unserve(self, resource: Resource) -> None:
        """Remove a kind, whose objects are all gone."""
        self._resources.pop((resource.api_version, resource.kind), None)

    def resource_of(self, reference: Reference) -> Resource | None:
        return self._resources.get((reference.api_version, reference.kind))

    def observe(self, resource: Resource, obj: Object) -> Effects:
        """Observe an object that was added or has changed."""
        uid, written = uid_of(obj), obj["metadata"].get("ownerReferences")
        node = self._nodes.get(uid)
        delete: dict[str, None] = {}
        if node is not None and self._is_known(node, resource, obj):
            node.written = written  # the older list need not be kept
            return _effects(delete, self._transitions(node, obj, delete))
        references = Reference.all_of(obj)
        if node is None:
            node = Node(uid, resource, resource.api_version, resource.kind, namespace_of(obj), name_of(obj), True)
            self._nodes[uid] = node
            node.owners, node.written = references, written
            wrong = self._attach(node, delete)
            return _effects(delete, self._transitions(node, obj, delete), wrong)
        if not node.observed or node.resource != resource or node.namespace != namespace_of(obj):
            # A virtual node turns real; objects that pointed at other coordinates have no such owner.
            node.observed, node.resource = True, resource
            node.api_version, node.kind = resource.api_version, resource.kind
            node.namespace, node.name = namespace_of(obj), name_of(obj)
            delete |= {each.uid: None for each in node.dependents.values() if not _is_same(each, node, self)}
        removed = [each for each in node.owners if each not in references]
        if removed:
            delete |= dict.fromkeys(self._unblocked_owners(removed, references))
        self._detach(node, [each for each in removed if each.uid not in {kept.uid for kept in references}])
        node.owners, node.written = references, written
        node.gone = tuple(each for each in node.gone if any(each == kept.uid for kept in references))
        wrong = self._attach(node, delete)
        return _effects(delete, self._transitions(node, obj, delete), wrong)

    def _is_known(self, node: Node, resource: Resource, obj: Object) -> bool:
        """True when an object that changed is owned as before, and its owners know it."""
        if not node.observed or node.written != obj["metadata"].get("ownerReferences"):
            return False
        if node.resource is not resource or node.namespace != namespace_of(obj):
            return False
        for each in node.owners:
            owner = self._nodes.get(each.uid)
            if each.uid not in node.gone if owner is None else node.uid not in owner.dependents:
                return False
        return True

    def _transitions(self, node: Node, obj: Object, delete: dict[str, None]) -> tuple[str, ...]:
        """Being deleted, in the foreground, or with the wish to orphan. (`processTransitions`)"""
        if not obj["metadata"].get("deletionTimestamp"):
            return ()
        finalizers = obj["metadata"].get("finalizers") or ()
        first = not node.being_deleted
        node.being_deleted = True
        if FOREGROUND in finalizers:
            if not node.deleting_dependents:
                node.deleting_dependents = True
                delete |= dict.fromkeys(node.dependents)
                delete[node.uid] = None
        else:
            node.deleting_dependents = False
        return (node.uid,) if ORPHAN in finalizers and first else ()

    def _attach(self, node: Node, delete: dict[str, None]) -> tuple[Reference, ...]:
        """Make `node` a dependent of its owners, which may have to be invented. (`addDependentToOwners`)"""
        wrong: list[Reference] = []
        for reference in node.owners:
            owner = self._nodes.get(reference.uid)
            if owner is None and reference.uid in node.gone:
                continue  # it was looked at when its owner went
            if owner is None:
                resource = self.resource_of(reference)
                namespace = node.namespace if resource is None or resource.namespaced else ""
                owner = Node(reference.uid, resource, reference.api_version, reference.kind, namespace, reference.name)
                self._nodes[reference.uid] = owner
                delete[owner.uid] = None
            if node.uid not in owner.dependents:
                owner.dependents[node.uid] = node
                if owner.observed and not _fits(reference, owner, node):
                    delete[node.uid] = None
                    if owner.namespace and owner.namespace != node.namespace:
                        wrong.append(reference)
                elif owner.deleting_dependents:
                    delete[node.uid] = None
        return tuple(wrong)

    def _detach(self, node: Node, references: Iterable[Reference]) -> None:
        for reference in references:
            owner = self._nodes.get(reference.uid)
            if owner is not None:
                owner.dependents.pop(node.uid, None)

    def _unblocked_owners(self, removed: list[Reference], now: tuple[Reference, ...]) -> list[str]:
        """Owners in foreground deletion that this object blocked and blocks no more."""
        still = {each.uid for each in now if each.blocks}
        found = []
        for each in removed:
            owner = self._nodes.get(each.uid)
            if each.blocks and each.uid not in still and owner is not None and owner.deleting_dependents:
                found.append(each.uid)
        return found

    def remove(self, uid: str) -> Effects:
        """Remove an object that is gone (or never was). Examine its dependents, and owners that waited for it."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return NO_EFFECTS
        delete = dict.fromkeys(node.dependents)
        if node.observed:
            for each in node.dependents.values():
                each.gone = (*each.gone, uid)
        self._detach(node, node.owners)
        for reference in node.owners:
            owner = self._nodes.get(reference.uid)
            if owner is not None and owner.deleting_dependents:
                delete[owner.uid] = None
            elif owner is not None and not owner.observed and not owner.dependents:
                del self._nodes[owner.uid]  # invented for this one only
        return _effects(delete)


def _fits(reference: Reference, owner: Node, dependent: Node) -> bool:
    """The reference names the owner's own kind, name and namespace. (`ownerReferenceMatchesCoordinates`)"""
    if owner.namespace and owner.namespace != dependent.namespace:
        return False
    return (reference.api_version, reference.kind, reference.name) == (owner.api_version, owner.kind, owner.name)


def _is_same(dependent: Node, owner: Node, graph: Graph) -> bool:
    return any(each.uid == owner.uid and _fits(each, owner, dependent) for each in dependent.owners)
