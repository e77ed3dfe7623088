"""Ends terminating namespaces: Pods first, then everything else, then the namespace itself.

Kubernetes waits 5 s before it begins and looks again when its estimate says so. Here a pass begins at once and another
follows when the last object of a namespace is gone; the estimates remain for what no watch reports (`conditions`).

Sources: pkg/controller/namespace/namespace_controller.go,
pkg/controller/namespace/deletion/namespaced_resources_deleter.go (OrderedNamespaceDeletion).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import Object, copy_object, is_terminating, name_of, namespace_of
from lastcall.kube.api.resources import APISERVICES, BINDINGS, CONVERTED, EVENTS, NAMESPACES, PODS, SERVED, Resource
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.discovery import Discovered
from lastcall.kube.client.workqueue import RateLimit
from lastcall.kube.controllers.informers import NAMESPACE, Informers
from lastcall.kube.controllers.kinds.aggregated import undiscovered
from lastcall.kube.controllers.kinds.declared import DeclaredKinds
from lastcall.kube.controllers.kinds.discovered import content_of
from lastcall.kube.controllers.namespace.conditions import (
    FINALIZER_ESTIMATE_SECONDS,
    Findings,
    graceful_estimate,
    problems,
    requeue_seconds,
    still_there,
    updated_conditions,
)
from lastcall.kube.controllers.pods.control import delete_pod
from lastcall.kube.controllers.worker import Retry, Worker
from lastcall.records import rules
from lastcall.records.record import Recorder
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import gather
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

COMPONENT = "namespace-controller"
BATCH = 20
"""How many objects are deleted at once."""

CONTENT = tuple(each for each in SERVED if each.namespaced and each not in (BINDINGS, PODS, *CONVERTED))
WATCHED = tuple(each for each in (PODS, *CONTENT) if each != EVENTS)
"""Whose objects may hold a namespace: Events go when they are deleted."""


class NamespaceController:
    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world, self._client, self._recorder = world, client, recorder
        self._namespaces = informers.get(NAMESPACES)
        # Of a server that is not ours nobody knows here whether it serves them.
        watched = WATCHED if informers.discover is None else (PODS,)
        self._contents = [informers.get(resource) for resource in watched]
        self._pods = self._contents[0]
        self._discover = informers.discover
        limit = RateLimit(max_delay=60.0, per_second=0)
        self._worker = Worker(world, COMPONENT, self._sync, workers=10, rate_limit=limit, client=client)
        self._declared = DeclaredKinds(informers) if self._discover is None else None
        self._services = informers.get(APISERVICES) if self._discover is None else None
        self._namespaces.add_handler(self._changed, lambda _, namespace: self._changed(namespace))
        for informer in self._contents:
            informer.add_handler(None, None, self._removed)
        if self._services is not None:
            self._services.add_handler(None, lambda _, service: self._api_changed(service), self._api_changed)

    async def run(self) -> None:
        """Work until cancelled; starts when the caches are filled."""
        known = [self._namespaces, self._pods]
        if self._declared is not None and self._services is not None:
            known += [self._declared.informer, self._services]
        await self._worker.run(known)

    def _changed(self, namespace: Object) -> None:
        if is_terminating(namespace):
            self._worker.queue.add(name_of(namespace))

    def _removed(self, obj: Object) -> None:
        """The last object of a kind that a terminating namespace waits for is gone."""
        name = namespace_of(obj)
        namespace = self._namespaces.get("", name)
        if namespace is None or not is_terminating(namespace) or self._pods.has_any(NAMESPACE, name):
            return
        if obj["kind"] == "Pod" or not any(each.has_any(NAMESPACE, name) for each in self._contents):
            self._worker.queue.add(name)

    def _api_changed(self, service: Object) -> None:
        """An API of another server may be discovered now, or is gone: what waits for it is looked at again."""
        if service["spec"].get("service"):
            for namespace in self._namespaces.items():
                self._changed(namespace)

    # -- one namespace -----------------------------------------------------------------------------------------------

    async def _sync(self, name: str) -> None:
        """(`Delete`)"""
        cached = self._namespaces.get("", name)
        if cached is None or not is_terminating(cached):
            return
        try:
            namespace = await self._client.get(NAMESPACES, name)
        except StatusError as error:
            if is_not_found(error):
                return
            raise
        if not is_terminating(namespace) or not (namespace.get("spec") or {}).get("finalizers"):
            return
        findings = Findings()
        await self._delete_all_content(namespace, findings)
        namespace = await self._say(namespace, findings)
        if findings.errors or findings.undiscovered:
            raise Retry("; ".join(filter(None, (findings.undiscovered, *findings.errors))))
        if findings.estimate:
            self._worker.queue.add_after(name, requeue_seconds(findings.estimate))
            return
        await self._finalize(namespace)

    async def _delete_all_content(self, namespace: Object, findings: Findings) -> None:
        """(`deleteAllContent`)"""
        kinds = await self._kinds(findings)
        if await self._delete_kind(PODS, namespace, findings) or findings.errors:
            return
        remaining: dict[Resource, int] = {}
        for resource in kinds:
            remaining[resource] = await self._delete_kind(resource, namespace, findings)
        findings.remaining = remaining

    async def _kinds(self, findings: Findings) -> list[Resource]:
        """All kinds but Pods that the namespace may have objects of. What cannot be found out makes it wait."""
        if self._declared is not None and self._services is not None:
            if failed := undiscovered(self._services.items()):
                findings.undiscovered = _undiscovered(Discovered(failed=failed))
            return [*CONTENT, *(each for each in self._declared.resources() if each.namespaced)]
        assert self._discover is not None
        try:
            found = await self._discover()
        except (StatusError, ConnectionLost) as error:
            findings.undiscovered = str(error)
            return []
        if found.failed:
            findings.undiscovered = _undiscovered(found)
        return [each for each in content_of(found) if each not in (PODS, *CONVERTED)]

    async def _delete_kind(self, resource: Resource, namespace: Object, findings: Findings) -> int:
        """Ask for the deletion of one kind's objects; how many there still are.

        What is left is explained by a grace period or by finalizers, or else is an error.
        (`deleteAllContentForGroupVersionResource`)
        """
        name = name_of(namespace)
        try:
            left = await self._delete_collection(resource, namespace)
        except StatusError as error:
            findings.errors.append(error.message)
            return 0
        if not left:
            return 0
        age = now(self._world.clock) - parse_rfc3339(namespace["metadata"]["deletionTimestamp"])
        estimate = graceful_estimate(cast("list[Pod]", left), age.total_seconds()) if resource == PODS else 0
        held = Counter(finalizer for obj in left for finalizer in obj["metadata"].get("finalizers") or ())
        for finalizer, count in held.items():
            findings.finalizers[finalizer] = findings.finalizers.get(finalizer, 0) + count
        if not estimate and held:
            estimate = FINALIZER_ESTIMATE_SECONDS
        if not estimate:
            findings.errors.append(still_there(name, resource))
        findings.estimate = max(findings.estimate, estimate)
        return len(left)

    async def _delete_collection(self, resource: Resource, namespace: Object) -> list[Object]:
        """Return what is left after every object was deleted."""
        name = name_of(namespace)
        objects = (await self._client.list(resource, name)).items
        if not objects:
            return []
        going = [obj for obj in objects if not is_terminating(obj)]
        for start in range(0, len(going), BATCH):
            answers = await gather(self._delete(resource, obj) for obj in going[start : start + BATCH])
            error = next((each for each in answers if isinstance(each, Exception)), None)
            if error is not None:
                raise error
        return (await self._client.list(resource, name)).items if going else objects

    async def _delete(self, resource: Resource, obj: Object) -> None:
        options = {"uid": obj["metadata"]["uid"], "propagation_policy": "Background"}
        try:
            if resource == PODS:
                why = f"its namespace {namespace_of(obj)} is deleted"
                await delete_pod(
                    self._client, self._recorder, obj, None, rule=rules.DELETE_ALL_CONTENT, why=why,
                    facts={"namespace": namespace_of(obj)}, options=options,
                )  # fmt: skip
            else:
                await self._client.delete(resource, name_of(obj), namespace_of(obj), **options)
        except StatusError as error:
            # Another object has the name by now: the next list shows it.
            if not (is_not_found(error) or is_conflict(error)):
                raise

    # -- writes to the namespace -------------------------------------------------------------------------------------

    async def _say(self, namespace: Object, findings: Findings) -> Object:
        """Bring the conditions up to date; the namespace as it is stored then."""
        wrong, moment = problems(findings), rfc3339(now(self._world.clock))

        def change(stored: Object) -> Object:
            status = stored.get("status") or {}
            conditions = updated_conditions(status.get("conditions") or [], wrong, moment)
            return {**stored, "status": {**status, "phase": "Terminating", "conditions": conditions}}

        return await self._write(namespace, change, "status")

    async def _finalize(self, namespace: Object) -> None:
        """Take Kubernetes's own finalizer off; the API server then removes the object, if nobody else holds it."""

        def change(stored: Object) -> Object:
            spec = stored.get("spec") or {}
            finalizers = [each for each in spec.get("finalizers") or () if each != "kubernetes"]
            return {**stored, "spec": {**spec, "finalizers": finalizers}}

        await self._write(namespace, change, "finalize")

    async def _write(self, namespace: Object, change: Callable[[Object], Object], subresource: str) -> Object:
        """Nothing is written when nothing changes. Conflicts are tried again. (`retryOnConflictError`)"""
        while True:
            new = change(namespace)
            if new == namespace:
                return namespace
            try:
                return await self._client.update(NAMESPACES, copy_object(new), subresource=subresource)
            except StatusError as error:
                if is_not_found(error):
                    return namespace
                if not is_conflict(error):
                    raise
            latest = await self._client.get(NAMESPACES, name_of(namespace))
            if latest["metadata"]["uid"] != namespace["metadata"]["uid"]:
                return namespace
            namespace = latest


def _undiscovered(found: Discovered) -> str:
    """(`ProcessDiscoverResourcesErr`)"""
    return f"Discovery failed for some groups, {len(found.failed)} failing: {found.error}"
