"""A small API server in memory that speaks the Client protocol, with switches to make it fail.

For tests of clients of the API only; what the real API server does is tested on the real one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import AnyObject, Object, copy_object
from lastcall.kube.api.resources import PODS, Resource
from lastcall.kube.api.selectors import parse_label_selector
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH, ConnectionLost, ListResult, WatchEvent
from lastcall.kube.controllers.manager import run_controllers
from lastcall.records.record import Evidence
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


@dataclass
class Watcher:
    resource: Resource
    namespace: str
    label_selector: str
    field_selector: str
    queue: asyncio.Queue[Any] = field(default_factory=asyncio.Queue[Any])


class FakeAPI:
    def __init__(self, world: World) -> None:
        self.world = world
        self.version = 100
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.history: list[tuple[int, str, Resource, Object, Object | None]] = []
        self.watchers: list[Watcher] = []
        self.calls: list[tuple[Any, ...]] = []
        self.failures: list[tuple[str, str, Exception]] = []
        self.latency = 0.0
        self.compacted = 0
        self.bookmark = True

    # Switches

    def fail_next(self, verb: str, plural: str, error: Exception, times: int = 1) -> None:
        self.failures += [(verb, plural, error)] * times

    def break_watches(self, error: Exception | None = None) -> None:
        """End every open watch: with an error, or in good order (None)."""
        for watcher in self.watchers:
            watcher.queue.put_nowait(error or "closed")

    def compact(self) -> None:
        self.compacted = self.version

    def of(self, resource: Resource, namespace: str = "") -> list[Object]:
        return [o for k, o in self.objects.items() if k[0] == resource.plural and namespace in ("", k[1])]

    # Set-up without going through a client

    def put(self, resource: Resource, obj: Object) -> Object:
        obj = copy_object(obj)
        key = self._key(resource, obj)
        old = self.objects.get(key)
        obj.setdefault("kind", resource.kind)
        obj.setdefault("apiVersion", resource.api_version)
        meta = obj["metadata"]
        if old is None:
            meta.setdefault("uid", self.world.new_uid())
            meta.setdefault("creationTimestamp", "2030-01-01T00:00:00Z")
            meta.setdefault("generation", 1)
        else:
            meta.setdefault("uid", old["metadata"]["uid"])
        return self._write("ADDED" if old is None else "MODIFIED", resource, key, obj, old)

    def remove(self, resource: Resource, name: str, namespace: str = "") -> Object:
        key = (resource.plural, namespace, name)
        old = self.objects[key]
        return self._write("DELETED", resource, key, copy_object(old), old)

    # Client

    async def get(self, resource: Resource, name: str, namespace: str = "", *, subresource: str = "") -> Object:
        assert not subresource, "nothing here has one to read"
        await self._called("get", resource, name)
        return self._existing(resource, name, namespace)

    async def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult:
        await self._called("list", resource, "")
        items = [o for o in self.of(resource, namespace) if _matches(o, label_selector, field_selector)]
        return ListResult(items, str(self.version))

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = False,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        await self._called("watch", resource, "")
        start = int(resource_version or self.version)
        if start < self.compacted:
            raise status_failure(410, "Expired", f"too old resource version: {start} ({self.compacted})")
        watcher = Watcher(resource, namespace, label_selector, field_selector)
        for version, kind, written, obj, old in self.history:
            if version > start and written == resource:
                self._tell(watcher, kind, obj, old)
        if bookmarks and self.bookmark:
            mark = {"kind": resource.kind, "metadata": {"resourceVersion": str(self.version)}}
            watcher.queue.put_nowait(WatchEvent("BOOKMARK", mark))
        self.watchers.append(watcher)
        try:
            yield self._events(watcher)
        finally:
            self.watchers.remove(watcher)

    async def create(
        self, resource: Resource, obj: AnyObject, namespace: str = "", *, name: str = "", subresource: str = ""
    ) -> Object:
        await self._called("create", resource, name or obj["metadata"].get("name", ""))
        if subresource == "binding":
            pod = self._existing(PODS, name, namespace)
            if pod["spec"].get("nodeName"):
                raise status_failure(409, "Conflict", f"pod {name} is already assigned")
            bound = copy_object(pod)
            bound["spec"]["nodeName"] = obj["target"]["name"]
            self.put(PODS, bound)
            return {"kind": "Status", "status": "Success"}
        made: Object = dict(copy_object(obj))
        meta = made["metadata"]
        meta.setdefault("namespace", namespace) if namespace else None
        if not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{self.world.random.getrandbits(40):010x}"
        if self._key(resource, made) in self.objects:
            raise status_failure(409, "AlreadyExists", f"{meta['name']} already exists")
        return self.put(resource, made)

    async def update(self, resource: Resource, obj: AnyObject, namespace: str = "", *, subresource: str = "") -> Object:
        await self._called("update", resource, obj["metadata"]["name"])
        old = self._existing(resource, obj["metadata"]["name"], namespace)
        version = obj["metadata"].get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise status_failure(409, "Conflict", "the object has been modified")
        new: Object = dict(copy_object(obj))
        new["metadata"]["uid"] = old["metadata"]["uid"]
        return self.put(resource, new)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        content_type: str = "",
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Object:
        assert not dry_run and not field_manager, "not known here"
        await self._called("patch", resource, name)
        old = self._existing(resource, name, namespace)
        version = patch.get("metadata", {}).get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise status_failure(409, "Conflict", "the object has been modified")
        if content_type == STRATEGIC_MERGE_PATCH:
            patch = _with_conditions_of(old, patch)
        return self.put(resource, _merge(old, patch))

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation_policy: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        await self._called("delete", resource, name)
        old = self._existing(resource, name, namespace)
        if uid is not None and uid != old["metadata"]["uid"]:
            raise status_failure(409, "Conflict", "Precondition failed: UID")
        return old if dry_run else self.remove(resource, name, namespace)

    async def close(self) -> None:
        self.break_watches()

    # Inside

    async def _called(self, verb: str, resource: Resource, name: str) -> None:
        self.calls.append((verb, resource.plural, name))
        for failure in self.failures:
            if failure[:2] == (verb, resource.plural):
                self.failures.remove(failure)
                raise failure[2]
        if self.latency:
            await self.world.clock.sleep(self.latency)

    def _existing(self, resource: Resource, name: str, namespace: str) -> Object:
        try:
            return self.objects[(resource.plural, namespace, name)]
        except KeyError:
            raise status_failure(404, "NotFound", f'{resource.plural} "{name}" not found') from None

    def _key(self, resource: Resource, obj: Object) -> tuple[str, str, str]:
        meta = obj["metadata"]
        return resource.plural, meta.get("namespace", ""), meta["name"]

    def _write(
        self,
        kind: Literal["ADDED", "MODIFIED", "DELETED"],
        resource: Resource,
        key: tuple[str, str, str],
        obj: Object,
        old: Object | None,
    ) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        if kind == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = obj
        self.history.append((self.version, kind, resource, obj, old))
        for watcher in self.watchers:
            if watcher.resource == resource:
                self._tell(watcher, kind, obj, old)
        return obj

    def _tell(self, watcher: Watcher, kind: str, obj: Object, old: Object | None) -> None:
        if watcher.namespace not in ("", obj["metadata"].get("namespace", "")):
            return
        was = old is not None and _matches(old, watcher.label_selector, watcher.field_selector)
        is_ = kind != "DELETED" and _matches(obj, watcher.label_selector, watcher.field_selector)
        if is_:
            watcher.queue.put_nowait(WatchEvent("MODIFIED" if was else "ADDED", obj))
        elif was:
            watcher.queue.put_nowait(WatchEvent("DELETED", obj))

    async def _events(self, watcher: Watcher) -> AsyncIterator[WatchEvent]:
        while True:
            event = await watcher.queue.get()
            if event == "closed":
                return
            if isinstance(event, StatusError):
                yield WatchEvent("ERROR", event.status)
                return
            if isinstance(event, Exception):
                raise event
            yield event


def _matches(obj: Object, label_selector: str, field_selector: str) -> bool:
    if not parse_label_selector(label_selector).matches(obj["metadata"].get("labels") or {}):
        return False
    for term in filter(None, field_selector.split(",")):
        differs = "!=" in term
        path, value = term.split("!=" if differs else "=")
        found: Any = obj
        for part in path.split("."):
            found = (found or {}).get(part)
        if ((found or "") == value) == differs:
            return False
    return True


def _with_conditions_of(old: Object, patch: Object) -> Object:
    """The only list that components patch strategically: conditions, merged by type."""
    conditions = patch.get("status", {}).get("conditions")
    if conditions is None:
        return patch
    new = {each["type"]: each for each in conditions}
    merged = [_merge(each, new.pop(each["type"], {})) for each in old.get("status", {}).get("conditions") or []]
    return {**patch, "status": {**patch["status"], "conditions": [*merged, *new.values()]}}


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result: Object = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge(result.get(key), value)
    return result


class ListRecorder:
    """Keeps records in a list."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.records: list[Object] = []

    def record(
        self,
        kind: str,
        *,
        pod_uid: str = "",
        container: str = "",
        rule: str = "",
        facts: Mapping[str, Any] | None = None,
        cause_id: str = "",
        evidence: Evidence = "observed",
    ) -> str:
        entry = {
            "at": self.world.clock.monotonic_ns() / 1e9,
            "kind": kind,
            "pod_uid": pod_uid,
            "container": container,
            "rule": rule,
            "facts": facts or {},
            "evidence": evidence,
        }
        self.records.append(entry)
        return str(len(self.records))

    def kinds(self) -> list[str]:
        return [entry["kind"] for entry in self.records]


__all__ = ["ConnectionLost", "FakeAPI", "ListRecorder"]


def play(
    test: Callable[[World, FakeAPI, ListRecorder], Awaitable[None]],
    names: Sequence[str],
    there: Iterable[tuple[Resource, Object]] = (),
    settle: float = 0.1,
) -> None:
    """Play a test beside these controllers, which start where some objects are there already. It begins after `settle`
    seconds."""

    async def main(world: World) -> None:
        api, recorder = FakeAPI(world), ListRecorder(world)
        for resource, obj in there:
            api.put(resource, obj)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world,
                client=api,
                recorder_for=lambda _: recorder,
                root_ca_pem=b"ca",
                names=list(names),
            )
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(settle)
            await test(world, api, recorder)
            tasks.cancel()

    run_virtual(main)
