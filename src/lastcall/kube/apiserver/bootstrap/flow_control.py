"""The flow control objects of every cluster, and what a FlowSchema's status says of its priority level.

Nothing waits because of them: requests are not queued (docs/fidelity.md).

Sources: apiserver pkg/apis/flowcontrol/bootstrap, pkg/util/flowcontrol/apf_controller.go (`digestConfigObjects`),
pkg/registry/flowcontrol/rest/storage_flowcontrol.go.
"""

# check: asks for kinds because it is about FlowSchemas and PriorityLevelConfigurations

import logging
from collections.abc import Iterator
from functools import partial

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import FLOWSCHEMAS, PRIORITYLEVELCONFIGURATIONS, Resource
from lastcall.kube.apiserver.postponed import Postponed
from lastcall.kube.client.api import APPLY_PATCH, Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.client.workqueue import WorkQueue
from lastcall.world.clock import rfc3339_now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

START_SECONDS = 1.0
"""After the start, which must not become longer."""
PRODUCER = "api-priority-and-fairness-config-producer-v1"
CONSUMER = "api-priority-and-fairness-config-consumer-v1"
AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"

_log = logging.getLogger("lastcall.kube.apiserver")


def default_objects() -> Iterator[tuple[Resource, Object]]:
    """Yield the objects, priority levels first."""
    # late: not needed before the server serves
    from lastcall.kube.api.validators.cluster.flow_control_objects import LEVELS, SCHEMAS

    for resource, specs in ((PRIORITYLEVELCONFIGURATIONS, LEVELS), (FLOWSCHEMAS, SCHEMAS)):
        for name, spec in specs.items():
            yield resource, {"metadata": {"name": name, "annotations": {AUTO_UPDATE: "true"}}, "spec": dict(spec)}


def dangling(level: str, *, exists: bool) -> Object:
    """Return the condition of a FlowSchema that names this level, without its time."""
    about = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    if exists:
        return {"type": "Dangling", "status": "False", "reason": "Found", "message": f"{about} and it exists"}
    why = f"{about} but there is no such object"
    return {"type": "Dangling", "status": "True", "reason": "NotFound", "message": why}


def is_said(schema: Object, condition: Object) -> bool:
    """Return whether the status says it already."""
    conditions = (schema.get("status") or {}).get("conditions") or ()
    return any(all(each.get(key) == value for key, value in condition.items()) for each in conditions)


def _level_of(schema: Object) -> str:
    return str(((schema.get("spec") or {}).get("priorityLevelConfiguration") or {}).get("name") or "")


class FlowControl:
    """`producer` makes the objects, `consumer` writes their status."""

    def __init__(self, world: World, producer: Client, consumer: Client, postponed: Postponed) -> None:
        self._world, self._producer, self._consumer = world, producer, consumer
        self._postponed = postponed
        self._schemas = Informer(consumer, FLOWSCHEMAS, world=world)
        self._levels = Informer(consumer, PRIORITYLEVELCONFIGURATIONS, world=world)
        self._queue: WorkQueue[str] = WorkQueue(world, name="priority_and_fairness_config_queue")
        self._schemas.add_handler(self._schema, lambda _, schema: self._schema(schema))
        self._levels.add_handler(self._level, None, self._level)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._world.clock.sleep(START_SECONDS)
        async with Tasks() as tasks:
            tasks.spawn(self._levels.run(), name="priority levels")
            tasks.spawn(self._schemas.run(), name="flow schemas")
            await self._levels.synced()
            await self._schemas.synced()
            for resource, obj in default_objects():
                cache = self._levels if resource == PRIORITYLEVELCONFIGURATIONS else self._schemas
                if cache.get("", name_of(obj)) is None:
                    await self._create(resource, obj)
            while True:
                name = await self._queue.get()
                try:
                    await self._sync(name)
                    self._queue.forget(name)
                except StatusError as error:
                    if not (is_conflict(error) or is_not_found(error)):
                        _log.warning("status of FlowSchema %s: %s", name, error)
                    self._queue.add_rate_limited(name)
                finally:
                    self._queue.done(name)

    async def _create(self, resource: Resource, obj: Object) -> None:
        name = f"{resource.kind} {name_of(obj)}"
        try:
            await self._postponed.attempt(name, partial(self._producer.create, resource, obj))
        except StatusError as error:
            _log.warning("%s cannot be created: %s", name, error)

    def _schema(self, schema: Object) -> None:
        self._queue.add(name_of(schema))

    def _level(self, level: Object) -> None:
        for schema in self._schemas.items():
            if _level_of(schema) == name_of(level):
                self._schema(schema)

    async def _sync(self, name: str) -> None:
        schema = self._schemas.get("", name)
        if schema is None:
            return
        level = _level_of(schema)
        condition = dangling(level, exists=self._levels.get("", level) is not None)
        if is_said(schema, condition):
            return
        condition["lastTransitionTime"] = rfc3339_now(self._world.clock)
        applied = {
            "apiVersion": FLOWSCHEMAS.api_version,
            "kind": FLOWSCHEMAS.kind,
            "metadata": {"name": name},
            "status": {"conditions": [condition]},
        }
        # The server becomes the manager of the condition, whichever client wrote it before (apf_controller.go:syncOne).
        await self._consumer.patch(
            FLOWSCHEMAS, name, applied, content_type=APPLY_PATCH, subresource="status", field_manager=CONSUMER
        )
