"""The garbage collector: deletes what has no owner left, in the order that propagation policies ask for.

Source: pkg/controller/garbagecollector/garbagecollector.go (attemptToDeleteItem, attemptToOrphanWorker). The graph says
what to look at; whether an owner exists is asked of the API each time, since a cache may be behind.
"""

# check: observes because it records its own decision
# check: many attributes GarbageCollector because it has the graph, two queues and two ways to find kinds

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import Object, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.resources import (
    BINDINGS,
    CONVERTED,
    CUSTOMRESOURCEDEFINITIONS,
    EVENTS,
    PODS,
    SERVED,
    PartialResource,
    Resource,
)
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH, Client
from lastcall.kube.client.events import EventRecorder
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.garbagecollector.graph import (
    FOREGROUND,
    NO_EFFECTS,
    ORPHAN,
    Effects,
    Graph,
    Node,
    Reference,
)
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.kinds import discovered
from lastcall.kube.controllers.kinds.declared import DeclaredKinds
from lastcall.kube.controllers.worker import Retry, Synced, Worker
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.controllers.kinds.discovered import DiscoveredKinds
    from lastcall.records.definitions.controllers import DeletionDecided

COMPONENT = "garbage-collector-controller"
WATCHED = tuple(each for each in SERVED if each not in (BINDINGS, EVENTS, *CONVERTED))
OBSERVED = ("ownerReferences", "deletionTimestamp", "finalizers")
"""What the graph reads of an object's metadata, beside what never changes."""
MAX_PATCHES = 5
WORKERS = 20
"""Of either kind (--concurrent-gc-syncs)."""
MAX_ABSENT = 500
"""How many owners that are not there need not be asked for again (`NewReferenceCache`)."""
REMEMBERED = 10_000
"""How many owners that are gone are remembered by name, for the stories of their dependents."""

LAST_STATUS_SECONDS = 0.01
"""Between the end of the last dependent and the end of its owner. A real collector needs about as long by itself."""

Coordinates = tuple[str, str, str, str, str]
"""An owner as references name it: apiVersion, kind, namespace, name, uid."""


class GarbageCollector:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world = world
        self._client = client
        self._recorder = recorder
        self._events = EventRecorder(client, world, COMPONENT)
        self._graph = Graph({})
        self._delete = Worker(world, f"{COMPONENT} delete", self._attempt_to_delete, workers=WORKERS)
        self._orphan = Worker(world, f"{COMPONENT} orphan", self._attempt_to_orphan, workers=WORKERS)
        self._gone: OrderedDict[str, str] = OrderedDict()
        self._absent: OrderedDict[Coordinates, None] = OrderedDict()
        self._caches = informers
        self._followed: set[Resource] = set()
        self._discovered: DiscoveredKinds | None = None
        self._known: list[Synced] = []
        """What has to be known before anything is deleted."""
        if informers.discover is None:
            for resource in WATCHED:
                self._graph.serve(resource)
                self._known.append(self._follow(resource))
            DeclaredKinds(informers, self._kind_added, self._kind_removed)
        else:
            self._discovered = discovered.DiscoveredKinds(
                informers.discover, self._graph.serve, self._kind_unserved, self._follow
            )
            self._known.append(self._discovered)
            definitions, look_soon = informers.get(CUSTOMRESOURCEDEFINITIONS), self._discovered.look_soon
            definitions.add_handler(None, lambda _, __: look_soon(), lambda _: look_soon())

    def _kind_added(self, resource: Resource, stored: bool) -> None:
        self._graph.serve(resource)
        if stored:
            self._follow(resource)

    def _kind_unserved(self, resource: Resource) -> None:
        """Nothing is said of its objects: objects that depend on one of them wait, as in Kubernetes."""
        self._graph.unserve(resource)
        if isinstance(resource, PartialResource):  # other caches are other controllers', too
            self._caches.drop(resource)
            self._followed.discard(resource)

    def _kind_removed(self, resource: Resource) -> None:
        """Its objects went before it did, whether their last events have been seen or not."""
        self._graph.unserve(resource)
        cache = self._caches.drop(resource)
        self._followed.discard(resource)
        for obj in [] if cache is None else cache.items():
            self._remember(resource, obj, Reference.all_of(obj))
            self._enqueue(self._graph.remove(uid_of(obj)))

    def _follow(self, resource: Resource) -> Informer:
        informer = self._caches.get(resource)
        if resource in self._followed:
            return informer
        self._followed.add(resource)

        def observed(obj: Object) -> None:
            effects = self._graph.observe(resource, obj)
            if effects is NO_EFFECTS:
                return
            self._enqueue(effects)
            for reference in effects.wrong_namespace:
                coordinates = (
                    f"{reference.api_version}/{reference.kind}, namespace: {namespace_of(obj)}, "
                    f"name: {reference.name}, uid: {reference.uid}"
                )
                text = f'ownerRef [{coordinates}] does not exist in namespace "{namespace_of(obj)}"'
                self._events.event(_unversioned(obj), "Warning", "OwnerRefInvalidNamespace", text)

        def removed(obj: Object) -> None:
            node = self._graph.get(uid_of(obj))
            self._remember(resource, obj, Reference.all_of(obj) if node is None else node.owners)
            if node is not None and node.dependents:
                self._note_absent((resource.api_version, resource.kind, namespace_of(obj), name_of(obj), uid_of(obj)))
            self._enqueue(self._graph.remove(uid_of(obj)))

        def updated(old: Object, new: Object) -> None:
            before, after = old["metadata"], new["metadata"]
            for field in OBSERVED:
                if before.get(field) != after.get(field):
                    observed(new)
                    return

        informer.add_handler(observed, updated, removed)
        return informer

    def _enqueue(self, effects: Effects) -> None:
        for uid in effects.delete:
            self._delete.queue.add(uid)
        for uid in effects.orphan:
            self._orphan.queue.add(uid)

    def _remember(self, resource: Resource, obj: Object, owners: tuple[Reference, ...]) -> None:
        """Return why an owner went, as a chain of names, for the story of its dependent."""
        above = next((self._gone[each.uid] for each in owners if each.uid in self._gone), "")
        what = f"{resource.kind} {name_of(obj)}"
        self._gone[uid_of(obj)] = f"{what}, which {above} had owned" if above else what
        if len(self._gone) > REMEMBERED:
            self._gone.popitem(last=False)

    async def run(self) -> None:
        """Work until cancelled. Nothing is deleted before every cache is filled: an owner may be in the last one."""
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            if self._discovered is not None:
                tasks.spawn(self._discovered.run(), name=f"{COMPONENT} discovery")
            tasks.spawn(self._delete.run(self._known), name=f"{COMPONENT} delete")
            tasks.spawn(self._orphan.run(self._known), name=f"{COMPONENT} orphan")

    # -- deleting ----------------------------------------------------------------------------------------------------

    async def _attempt_to_delete(self, uid: str) -> None:
        """(`attemptToDeleteItem`)"""
        node = self._graph.get(uid)
        if node is None or (node.being_deleted and not node.deleting_dependents):
            return
        if node.resource is None:
            raise Retry(f"{node}: no kind {node.kind} in {node.api_version}")
        latest = await self._live(node.resource, node.namespace, node.name)
        if latest is None or uid_of(latest) != uid:
            # Never there, or the watch is behind: what depends on it has to be looked at.
            self._gone.setdefault(uid, str(node))
            self._enqueue(self._graph.remove(uid))
            return
        if not node.observed:
            return  # its own event is on the way
        if node.deleting_dependents:
            await self._let_go_when_alone(node)
            return
        references = Reference.all_of(latest)
        if references:
            await self._act(node, latest, references)

    async def _act(self, node: Node, latest: Object, references: tuple[Reference, ...]) -> None:
        solid: list[Reference] = []
        dangling: list[Reference] = []
        waiting: list[Reference] = []
        for reference in references:
            owner = await self._owner(node, reference)
            if owner is None:
                dangling.append(reference)
            elif _waits_for_dependents(owner):
                waiting.append(reference)
            else:
                solid.append(reference)
        assert node.resource is not None
        if solid:
            if dangling or waiting:
                await self._drop_references(node.resource, latest, [*dangling, *waiting])
            return
        finalizers = latest["metadata"].get("finalizers") or ()
        if waiting and node.dependents:
            if any(each.deleting_dependents for each in node.dependents.values()):
                # A circle of owners that wait for each other: this one stops blocking.
                await self._unblock(node.resource, latest, references)
            policy = "Foreground"
        else:
            policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
        await self._delete_object(node, latest, policy, [*waiting, *dangling])

    async def _owner(self, node: Node, reference: Reference) -> Object | None:
        """The owner as it is now; None when there is none of that uid in the dependent's namespace. (`isDangling`)"""
        resource = self._graph.resource_of(reference)
        if resource is None and reference.uid in self._gone:
            return None  # and its kind with it (absentOwnerCache)
        if resource is None:
            raise Retry(f"{node}: its owner is a {reference.kind} of {reference.api_version}, which is not served")
        if resource.namespaced and not node.namespace:
            raise Retry(f"{node}: an object of the cluster cannot have an owner in a namespace")
        namespace = node.namespace if resource.namespaced else ""
        absent = (reference.api_version, reference.kind, namespace, reference.name, reference.uid)
        if absent in self._absent:
            self._absent.move_to_end(absent)
            return None
        owner = await self._live(resource, namespace, reference.name)
        if owner is not None and uid_of(owner) == reference.uid:
            return owner
        self._note_absent(absent)
        return None

    def _note_absent(self, owner: Coordinates) -> None:
        self._absent[owner] = None
        self._absent.move_to_end(owner)
        if len(self._absent) > MAX_ABSENT:
            self._absent.popitem(last=False)

    async def _live(self, resource: Resource, namespace: str, name: str) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace)
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    async def _delete_object(self, node: Node, latest: Object, policy: str, owners: Iterable[Reference]) -> None:
        assert node.resource is not None
        if node.resource == PODS and not latest["metadata"].get("deletionTimestamp"):
            self._record(node, latest, list(owners))
        try:
            await self._client.delete(
                node.resource,
                node.name,
                node.namespace,
                uid=node.uid,
                resource_version=resource_version_of(latest),
                propagation_policy=policy,
            )
        except StatusError as error:
            if is_not_found(error):
                return
            if is_conflict(error):
                raise Retry(f"{node} has changed") from error
            raise

    def _record(self, node: Node, latest: Object, owners: list[Reference]) -> None:
        texts = [self._gone.get(each.uid, f"{each.kind} {each.name}") for each in owners]
        facts: DeletionDecided = {
            "why": f"its owner is gone: {' and '.join(texts)}",
            "ownerKind": owners[0].kind if owners else "",
            "owner": owners[0].name if owners else "",
            "ownerUid": owners[0].uid if owners else "",
            "observedResourceVersion": resource_version_of(latest),
        }
        self._recorder.record(kinds.DELETION_DECIDED, pod_uid=node.uid, rule=rules.ATTEMPT_TO_DELETE_ITEM, facts=facts)

    # -- foreground --------------------------------------------------------------------------------------------------

    async def _let_go_when_alone(self, node: Node) -> None:
        """An owner in foreground deletion goes when nothing blocks it any more. (`processDeletingDependentsItem`)"""
        blocking = node.blocking_dependents()
        if not blocking:
            await self._remove_finalizer(node, FOREGROUND)
            return
        for each in blocking:
            if not each.deleting_dependents:
                self._delete.queue.add(each.uid)

    async def _drop_references(self, resource: Resource, obj: Object, references: Iterable[Reference]) -> None:
        """Some owner is still there: only the references to those that are not are taken away."""
        patch = {
            "metadata": {
                "uid": uid_of(obj),
                "ownerReferences": [{"$patch": "delete", "uid": each.uid} for each in references],
            }
        }
        await self._strategic(resource, obj, patch)

    async def _unblock(self, resource: Resource, obj: Object, references: Iterable[Reference]) -> None:
        """(`unblockOwnerReferencesStrategicMergePatch`)"""
        changed = [{"uid": each.uid, "blockOwnerDeletion": False} for each in references if each.blocks]
        if changed:
            await self._strategic(resource, obj, {"metadata": {"uid": uid_of(obj), "ownerReferences": changed}})

    async def _strategic(self, resource: Resource, obj: Object, patch: Object) -> None:
        try:
            await self._patch(resource, name_of(obj), namespace_of(obj), patch)
        except StatusError as error:
            if not is_not_found(error):
                raise

    async def _patch(self, resource: Resource, name: str, namespace: str, patch: Object) -> None:
        """A strategic merge patch of ownerReferences; declared kinds, which know none, get the whole list.

        (patch.go:patchToDeleteOwnerReferences, deleteOwnerRefJSONMergePatch)
        """
        if resource in SERVED:
            await self._client.patch(resource, name, patch, namespace, content_type=STRATEGIC_MERGE_PATCH)
            return
        live = await self._client.get(resource, name, namespace)
        gone = {each["uid"] for each in patch["metadata"]["ownerReferences"] if each.get("$patch") == "delete"}
        changed = {each["uid"]: each for each in patch["metadata"]["ownerReferences"] if each["uid"] not in gone}
        references = [
            {**each, **changed.get(each["uid"], {})}
            for each in live["metadata"].get("ownerReferences") or ()
            if each["uid"] not in gone
        ]
        meta = {"uid": patch["metadata"]["uid"], "resourceVersion": resource_version_of(live)}
        whole = {"metadata": {**meta, "ownerReferences": references or None}}
        await self._client.patch(resource, name, whole, namespace)

    # -- orphaning ---------------------------------------------------------------------------------------------------

    async def _attempt_to_orphan(self, uid: str) -> None:
        """Take the owner's references from its dependents, then let it go. (`attemptToOrphanWorker`)"""
        node = self._graph.get(uid)
        if node is None or node.resource is None:
            return
        for dependent in list(node.dependents.values()):
            if dependent.resource is None:
                continue
            patch = {"metadata": {"uid": dependent.uid, "ownerReferences": [{"$patch": "delete", "uid": uid}]}}
            try:
                await self._patch(dependent.resource, dependent.name, dependent.namespace, patch)
            except StatusError as error:
                if not is_not_found(error) and error.code != 422:
                    raise
        await self._remove_finalizer(node, ORPHAN)

    async def _remove_finalizer(self, node: Node, finalizer: str) -> None:
        """The owner's controller gets the time to write a last status, as it has in a real cluster."""
        assert node.resource is not None
        await self._world.clock.sleep(LAST_STATUS_SECONDS)
        for _ in range(MAX_PATCHES):
            obj = await self._live(node.resource, node.namespace, node.name)
            if obj is None or uid_of(obj) != node.uid:
                return
            finalizers = obj["metadata"].get("finalizers") or []
            if finalizer not in finalizers:
                return
            left = [each for each in finalizers if each != finalizer]
            patch = {"metadata": {"resourceVersion": resource_version_of(obj), "finalizers": left}}
            try:
                await self._client.patch(node.resource, node.name, patch, node.namespace)
                return
            except StatusError as error:
                if is_not_found(error):
                    return
                if not is_conflict(error):
                    raise
        raise Retry(f"{node} changes too fast")


def _waits_for_dependents(owner: Object) -> bool:
    meta = owner["metadata"]
    return bool(meta.get("deletionTimestamp")) and FOREGROUND in (meta.get("finalizers") or ())


def _unversioned(obj: Object) -> Object:
    """For an Event: the graph knows identities, not versions."""
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}}
