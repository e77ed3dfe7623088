"""What the page keeps of a cluster: the latest ends, also when thousands of Pods have ended."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CRONJOBS, DEPLOYMENTS, JOBS, NODES, PODS
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.ui.source import NoMore, ObjectHandler, Opened, PageClient
from lastcall.ui.watching import MOST_ENDS, Watching
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


class Client:
    async def close(self) -> None:
        return None


class Cluster:
    """Pods that come and go, each with the records of its end; its objects are on_object by `watch`."""

    name = "made"

    def __init__(self, world: World, count: int) -> None:
        self._world = world
        self._count = count
        self._opened = False
        self.on_object: ObjectHandler | None = None

    async def open(self) -> Opened:
        if self._opened:
            raise NoMore
        self._opened = True
        return Opened({"name": "made"}, "1", cast(PageClient, Client()), self._records(), False, self._watch)

    def _watch(self, on_object: ObjectHandler) -> None:
        self.on_object = on_object

    async def _records(self) -> AsyncIterator[Record]:
        assert self.on_object is not None
        for number in range(self._count):
            uid = f"u{number}"
            pod: Object = {"metadata": {"uid": uid, "name": f"p{number}", "namespace": "default"}, "spec": {}}
            self.on_object(PODS, "ADDED", pod)
            for kind, facts in (
                (kinds.POD_CREATED, {"namespace": "default", "name": f"p{number}"}),
                (kinds.DELETE_ACCEPTED, {"gracePeriodSeconds": 5}),
                (kinds.OBJECT_REMOVED, {}),
                (kinds.POD_GONE_SEEN, {}),
            ):
                at = self._world.clock.monotonic_ns()
                yield Record(f"{uid}-{kind}", at, at, "apiserver", kind, uid, facts=cast(dict[str, Any], facts))
            self.on_object(PODS, "DELETED", pod)
            await self._world.clock.sleep(0.01)
        await self._world.clock.sleep(2)


def test_of_thousands_of_ends_the_latest_are_kept_and_nothing_of_the_others() -> None:
    async def main(world: World) -> Watching:
        watching = Watching(Cluster(world, 3 * MOST_ENDS), world)
        await watching.run()
        return watching

    watching = run_virtual(main)
    ended = watching.ended()
    assert len(ended) == MOST_ENDS and ended[-1] == f"u{3 * MOST_ENDS - 1}"
    assert watching.story(ended[-1])["name"] == f"p{3 * MOST_ENDS - 1}"
    assert watching.version(ended[-1]) > 0 and watching.version("u0") == 0
    state = watching.board.get("cluster")
    assert state is not None and state["state"] == "over"


def test_objects_that_somebody_else_watches_are_shown_until_they_go() -> None:
    async def main(world: World) -> None:
        cluster = Cluster(world, 1)
        watching = Watching(cluster, world)
        await watching.run()
        assert cluster.on_object is not None
        node: Object = {"metadata": {"name": "node-1"}}
        deployment: Object = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 2}}
        batch: Object = {"metadata": {"name": "nightly", "namespace": "default"}, "spec": {}}
        for resource, obj, key in (
            (NODES, node, "node/node-1"),
            (DEPLOYMENTS, deployment, "workload/Deployment/default/web"),
            (JOBS, batch, "workload/Job/default/nightly"),
            (CRONJOBS, batch, "workload/CronJob/default/nightly"),
        ):
            cluster.on_object(resource, "ADDED", obj)
            assert watching.board.get(key) is not None
            cluster.on_object(resource, "DELETED", obj)
            assert watching.board.get(key) is None

    run_virtual(main)


@pytest.mark.loopback
def test_a_command_that_shows_no_page_imports_none() -> None:
    import subprocess
    import sys

    program = (
        "import sys, lastcall.cli.up, lastcall.cli.demo, lastcall.cli.rollout.command, lastcall.cli.trace.command, "
        "lastcall.cli.trace.session, lastcall.cli.run.story, lastcall.experiment.rollout.session, "
        "lastcall.cli.staying.life, lastcall.kube.cluster.staying.front; "
        "print([m for m in sys.modules if m.startswith('lastcall.ui')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_record_that_comes_late_does_not_lead_an_end_back() -> None:
    async def main(world: World) -> None:
        cluster = Cluster(world, 0)
        watching = Watching(cluster, world)
        await watching.run()
        assert cluster.on_object is not None
        meta = {"uid": "u", "name": "p", "deletionTimestamp": "2026-01-01T00:00:30Z"}
        cluster.on_object(PODS, "ADDED", {"metadata": meta, "spec": {}})
        for at, actor, kind in (
            (10, "apiserver", kinds.DELETE_ACCEPTED),
            (30, "apiserver", kinds.HELD_BY_FINALIZERS),
            (20, "kubelet", kinds.VOLUMES_UNMOUNTED),
        ):
            watching._record(Record(kind, at, at, actor, kind, "u"))
        cell = watching.board.get("pod/u")
        assert cell is not None and cell["stage"] == "held"

    run_virtual(main)


ENDING: Object = {
    "metadata": {"uid": "u", "name": "p", "deletionTimestamp": "2026-01-01T00:00:30Z"},
    "spec": {},
}


def test_of_an_end_that_had_begun_before_it_is_said_since_when_it_is_watched() -> None:
    async def main(world: World) -> None:
        cluster = Cluster(world, 0)
        watching = Watching(cluster, world)
        await watching.run()
        assert cluster.on_object is not None
        cluster.on_object(PODS, "ADDED", ENDING)
        for kind in ("", kinds.DELETE_ACCEPTED, kinds.PRE_STOP_STARTED):
            if kind:
                watching._record(Record(kind, 5, 5, "apiserver", kind, "u", evidence="inferred"))
            cell = watching.board.get("pod/u")
            assert cell is not None and cell["stage"] == "unseen"
            assert cell["watched"] == world.clock.wall_ns() / 1e6
        signal = {"signal": "SIGTERM", "why": "StopContainer"}
        watching._record(Record("2", 20, 20, "runtime", kinds.SIGNAL_SENT, "u", "app", facts=signal))
        cell = watching.board.get("pod/u")
        assert cell is not None and cell["stage"] == "term" and "watched" not in cell
        cluster.on_object(PODS, "DELETED", ENDING)
        cluster.on_object(PODS, "ADDED", {"metadata": {"uid": "u", "name": "p"}, "spec": {}})
        cluster.on_object(PODS, "MODIFIED", ENDING)
        cell = watching.board.get("pod/u")
        assert cell is not None and cell["stage"] == "deleted", "the page saw how it began"

    run_virtual(main)


def test_records_that_come_before_their_pod_say_how_far_its_end_is() -> None:
    async def main(world: World) -> None:
        cluster = Cluster(world, 0)
        watching = Watching(cluster, world)
        await watching.run()
        assert cluster.on_object is not None
        for at, kind in ((10, kinds.DELETE_ACCEPTED), (20, kinds.PRE_STOP_STARTED), (30, kinds.PRE_STOP_FINISHED)):
            watching._record(Record(kind, at, at, "kubelet", kind, "u"))
        cluster.on_object(PODS, "ADDED", ENDING)
        cell = watching.board.get("pod/u")
        assert cell is not None and cell["stage"] == "hook"

    run_virtual(main)
