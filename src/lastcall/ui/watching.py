"""Follows a cluster for all browsers together: its records and its objects, also after it was started again."""

# check: many attributes Watching because it waits to share what it keeps of a Pod with the story

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from lastcall.endings import Ending, PodFacts, build_endings
from lastcall.kube.api import (
    CRONJOBS,
    DAEMONSETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    AnyObject,
    Object,
    Resource,
    is_terminating,
    name_of,
    namespace_of,
    uid_of,
)
from lastcall.kube.client import Informer, KubeconfigError
from lastcall.kube.cluster import ClusterUsageError, ControlError, DirectoryError, NotRunning
from lastcall.records.keep import MAX_PODS, RecordKeeper
from lastcall.records.record import Record
from lastcall.ui.board import Board, Value
from lastcall.ui.cells import node_cell, pod_cell, stage_of, stage_seen, workload_cell
from lastcall.ui.source import NoMore, Opened, PageClient, Source
from lastcall.ui.story import end_row, is_an_end, story
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

AGAIN_SECONDS = 1.0
"""Between two looks for a cluster that is not there."""
TEND_SECONDS = 0.5
"""After a Pod's end the last records come a little late; then its row of the history is made."""
MOST_ENDS = MAX_PODS
"""Of the history: as many as a `RecordKeeper` has stories."""
WORKLOADS = (DEPLOYMENTS, STATEFULSETS, DAEMONSETS, REPLICASETS, JOBS, CRONJOBS)

_AWAY = (NotRunning, ControlError, DirectoryError, ClusterUsageError, KubeconfigError, OSError)


class Watching:
    """`run` for as long as the page is served."""

    def __init__(self, source: Source, world: World, *, read_only: bool = False) -> None:
        """`read_only`: nothing is changed by the page, whatever the source allows."""
        self.board = Board()
        self.client: PageClient | None = None
        self.read_only = read_only
        self.may_write = False
        self.about: dict[str, Any] = {}
        self._source = source
        self._world = world
        self._identity = ""
        self._keeper = RecordKeeper()
        self._known: set[str] = set()
        self._pods: dict[str, Object] = {}
        self._stages: dict[str, tuple[int, str]] = {}
        """How far the end of a Pod is, and when the record was written that says so: others may come later."""
        self._late: dict[str, float] = {}
        """The Pods whose end had begun when they were first seen, and when that was (ms of the epoch)."""
        self._ended: dict[str, None] = {}
        self._versions: dict[str, int] = {}
        self._rows: dict[str, None] = {}
        """The Pods of the history, the oldest end first."""
        self._stories: dict[str, Ending] = {}
        """Complete stories that another part built."""
        self._ending_of: Callable[[str], Ending | None] | None = None

    @property
    def world(self) -> World:
        return self._world

    async def run(self) -> None:
        """Run until the cluster has ended and none can come after it."""
        self.board.put("cluster", {"name": self._source.name, "state": "connecting"})
        while True:
            try:
                opened = await self._source.open()
            except NoMore:
                self.board.put("cluster", {**self.about, "name": self._source.name, "state": "over", "why": ""})
                return
            except _AWAY as error:
                self.board.put("cluster", {**self.about, "name": self._source.name, "state": "away", "why": str(error)})
            else:
                await crash_guard.guarded("cluster", "", self._follow(opened))
                self.client = None
                self.board.put("cluster", {**self.about, "state": "away", "why": ""})
            await self._world.clock.sleep(AGAIN_SECONDS)

    def _rights(self) -> dict[str, bool]:
        return {"mayWrite": self.may_write, "readOnly": self.read_only}

    async def _follow(self, opened: Opened) -> None:
        if opened.identity != self._identity:
            self._identity = opened.identity
            self._keeper, self._known = RecordKeeper(), set()
            for held in (self._pods, self._stages, self._late, self._ended, self._versions, self._stories, self._rows):
                held.clear()
            self.board.clear()
        self.about, self.client = opened.facts, opened.client
        self.may_write = opened.may_write and not self.read_only
        self._ending_of = opened.ending
        self.board.put("cluster", {**opened.facts, **self._rights(), "state": "running"})
        try:
            async with Tasks() as tasks:
                if opened.watch is not None:
                    opened.watch(self._object)
                else:
                    for informer in self._informers(opened.client):
                        tasks.spawn(
                            crash_guard.keep_running("informer", informer.run, self._world.clock), name="informer"
                        )
                tasks.spawn(self._tend(), name="history")
                async for record in opened.records:
                    self._record(record)
                tasks.cancel()
        except* _AWAY:
            pass  # it is tried again
        finally:
            await opened.client.close()

    # -- objects ------------------------------------------------------------------------------------------------------

    def _informers(self, client: PageClient) -> list[Informer[Object]]:
        pods: Informer[Object] = Informer(client, PODS, world=self._world)
        pods.add_handler(self._pod, lambda old, new: self._pod_changed(old, new), self._pod_gone)
        nodes: Informer[Object] = Informer(client, NODES, world=self._world)
        self._show(nodes, lambda node: f"node/{name_of(node)}", node_cell)
        found = [pods, nodes]
        for resource in WORKLOADS:
            informer: Informer[Object] = Informer(client, resource, world=self._world)
            self._show(informer, partial(_workload_key, resource), partial(_shown_workload, resource.kind))
            found.append(informer)
        return found

    def _show(
        self, informer: Informer[Object], key: Callable[[Object], str], cell: Callable[[Object], Value | None]
    ) -> None:
        def put(obj: Object) -> None:
            value = cell(obj)
            if value is not None:
                self.board.put(key(obj), value)

        informer.add_handler(put, lambda old, new: put(new), lambda obj: self.board.take(key(obj)))

    def _object(self, resource: Resource, type_: str, obj: Object) -> None:
        """Take what another watch saw."""
        gone = type_ == "DELETED"
        if resource is PODS:
            (self._pod_gone if gone else self._pod)(obj)
        elif resource is NODES:
            self._put_or_take(f"node/{name_of(obj)}", None if gone else node_cell(obj))
        elif resource in WORKLOADS:
            value = None if gone else _shown_workload(resource.kind, obj)
            self._put_or_take(_workload_key(resource, obj), value)

    def _put_or_take(self, key: str, value: Value | None) -> None:
        if value is None:
            self.board.take(key)
        else:
            self.board.put(key, value)

    def _pod(self, pod: Object) -> None:
        uid = uid_of(pod)
        if uid not in self._pods and is_terminating(pod):
            self._look_back(uid)
        self._pods[uid] = pod
        self._touch(uid)
        self._put_pod(uid)

    def _put_pod(self, uid: str) -> None:
        self.board.put(f"pod/{uid}", pod_cell(self._pods[uid], self._stages.get(uid, (0, ""))[1], self._late.get(uid)))

    def _look_back(self, uid: str) -> None:
        """Its end began before it was seen: its records may say how far it is."""
        stages = [(each.at_ns, stage_seen(each)) for each in self._keeper.around(uid) if each.pod_uid == uid]
        if known := [each for each in stages if each[1]]:
            self._stages[uid] = max(known)
        else:
            self._late[uid] = self._world.clock.wall_ns() / 1e6

    def _pod_changed(self, old: Object, new: Object) -> None:
        if uid_of(old) != uid_of(new):
            self._pod_gone(old)
        self._pod(new)

    def _pod_gone(self, pod: Object) -> None:
        uid = uid_of(pod)
        self._pods.pop(uid, None)
        self._stages.pop(uid, None)
        self._late.pop(uid, None)
        self._touch(uid)
        self.board.take(f"pod/{uid}")

    def pod(self, uid: str) -> AnyObject | None:
        """Return the object, None once it is gone."""
        return self._pods.get(uid)

    # -- records ------------------------------------------------------------------------------------------------------

    def _record(self, record: Record) -> None:
        if record.id in self._known:
            return  # again from the start, after the connection was lost
        self._known.add(record.id)
        self._keeper.add(record)
        uid = record.pod_uid
        if not uid:
            return
        self._touch(uid)
        stage = stage_seen(record) if uid in self._late else stage_of(record)
        if stage and uid in self._pods and self._stages.get(uid, (0, ""))[0] <= record.at_ns:
            self._stages[uid] = (record.at_ns, stage)
            self._put_pod(uid)
        if is_an_end(record):
            self._ended.pop(uid, None)
            self._ended[uid] = None
        if len(self._known) > 200_000:
            self._known = {each.id for each in self._keeper.records()}

    def _touch(self, uid: str) -> None:
        self._versions[uid] = self._versions.get(uid, 0) + 1
        self.board.on_change()

    def version(self, uid: str) -> int:
        """Return a number that changes with each record and each version of the Pod."""
        return self._versions.get(uid, 0)

    async def _tend(self) -> None:
        while True:
            await self._world.clock.sleep(TEND_SECONDS)
            for uid in list(self._ended):
                self._keep_end(uid)
                await self._world.clock.sleep(0)

    def _keep_end(self, uid: str) -> None:
        del self._ended[uid]
        with suppress(LookupError):
            self._put_end(self.ending(uid))

    def _put_end(self, ending: Ending) -> None:
        """A row of the history. Of too many the oldest goes, with all that is known of its Pod."""
        uid = ending.pod.uid
        self.board.put(f"end/{uid}", end_row(ending))
        self._rows[uid] = None
        while len(self._rows) > MOST_ENDS:
            oldest = next(iter(self._rows))
            del self._rows[oldest]
            self._stories.pop(oldest, None)
            self._versions.pop(oldest, None)
            self.board.take(f"end/{oldest}")

    def keep_story(self, ending: Ending) -> None:
        """Keep a complete story that another part built."""
        self._stories[ending.pod.uid] = ending
        self._put_end(ending)
        self._touch(ending.pod.uid)

    def ended(self) -> list[str]:
        """Return the uids of the Pods that have ended, the latest last; their rows are in the history now."""
        for uid in list(self._ended):
            self._keep_end(uid)
        return list(self._rows)

    def ending(self, uid: str) -> Ending:
        """Return the ending of a Pod. Raises LookupError if there are no records of it."""
        if self._ending_of is not None:
            ending = self._stories.get(uid) or self._ending_of(uid)
            if ending is None:
                raise LookupError(uid)
            return ending
        records = self._keeper.around(uid)
        if not any(record.pod_uid == uid for record in records):
            raise LookupError(uid)
        version = str(self.about.get("kubernetesVersion") or "")
        return build_endings(records, [PodFacts(uid, "", "")], kubernetes_version=version)[0]

    def story(self, uid: str) -> dict[str, Any]:
        """Return what the page shows of a Pod. Raises LookupError."""
        now = self._world.clock.monotonic_ns()
        version = str(self.about.get("kubernetesVersion") or "")
        return story(self.ending(uid), self._pods.get(uid), now, version)


def _workload_key(resource: Resource, obj: Object) -> str:
    return f"workload/{resource.kind}/{namespace_of(obj)}/{name_of(obj)}"


def _shown_workload(kind: str, obj: Object) -> Value | None:
    """Return the cell of a workload; None for the ReplicaSets of Deployments, which the Deployment represents."""
    owners = (obj.get("metadata") or {}).get("ownerReferences") or ()
    return None if kind == "ReplicaSet" and owners else workload_cell(kind, obj)
