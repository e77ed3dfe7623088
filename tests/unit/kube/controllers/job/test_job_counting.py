"""Every Pod of a Job is counted once, whatever is killed when.

The controller runs against a real API server in virtual time. It is killed at chosen writes, before or after the write
is done, and started anew with empty caches. A stand-in for the kubelet ends Pods as it is told.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import annotations_of, is_terminating, name_of, uid_of
from lastcall.kube.api.resources import JOBS, PODS, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.auth.pki import new_key_pem
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.job.controller import JobController
from lastcall.kube.controllers.job.indexes import Indexes
from lastcall.kube.store.memory import MemoryStore
from lastcall.records.memory import MemoryRecorder
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual

INDEX = "batch.kubernetes.io/job-completion-index"
USER = UserInfo("system:masters", ("system:masters", "system:authenticated"))
_KEY = []


def key() -> bytes:
    if not _KEY:
        _KEY.append(new_key_pem())
    return _KEY[0]


class Mortal:
    """A client whose n-th write kills its process, before or after it was done. `lag`: watches are seconds behind."""

    def __init__(self, client, deaths, die, world, lag):
        self._client = client
        self._world = world
        self._lag = lag
        self._deaths = deaths
        self._die = die
        self.writes = 0

    def __getattr__(self, name):
        return getattr(self._client, name)

    async def _write(self, verb, *arguments, **options):
        if arguments[0] not in (JOBS, PODS):  # Events are behind the controller's back
            return await getattr(self._client, verb)(*arguments, **options)
        self.writes += 1
        fate = self._deaths.get(self.writes)
        if fate == "before":
            await self._die()
        result = await getattr(self._client, verb)(*arguments, **options)
        if fate == "after":
            await self._die()
        return result

    @asynccontextmanager
    async def watch(self, resource, *arguments, **options):
        async with self._client.watch(resource, *arguments, **options) as events:

            async def late():
                async for event in events:
                    await self._world.clock.sleep(self._lag.get(resource.plural, 0))
                    yield event

            yield late()

    async def create(self, *arguments, **options):
        return await self._write("create", *arguments, **options)

    async def update(self, *arguments, **options):
        return await self._write("update", *arguments, **options)

    async def patch(self, *arguments, **options):
        return await self._write("patch", *arguments, **options)

    async def delete(self, *arguments, **options):
        return await self._write("delete", *arguments, **options)


async def controller(world, client, recorder):
    informers = Informers(world, client)
    made = JobController(world, client, informers, recorder, FeatureGates())
    async with Tasks() as tasks:
        informers.spawn(tasks)
        tasks.spawn(made.run(), name="jobs")


async def with_deaths(world, client, recorder, deaths, lag):
    """Run the controller; each death ends it and starts another."""
    died = asyncio.Event()

    async def die():
        died.set()
        await asyncio.Event().wait()  # nothing more comes of this process

    mortal = Mortal(client, deaths, die, world, lag)
    while True:
        async with Tasks() as tasks:
            tasks.spawn(controller(world, mortal, recorder), name="controller")
            await died.wait()
            died.clear()
            tasks.cancel()


def ended(code: int) -> dict:
    phase = "Failed" if code else "Succeeded"
    return {"status": {"phase": phase}}


class Node:
    """Ends the Pods it sees: `codes` for one Pod after the other, or for one index after the other."""

    def __init__(self, world, client, codes, deleted):
        self.world, self.client = world, client
        self.codes, self.deleted = list(codes), deleted
        self.ends: dict[str, int] = {}
        self.seen: dict[str, dict] = {}
        self.evicted: dict[str, None] = {}

    async def run(self):
        while True:
            await self.world.clock.sleep(0.7)
            for pod in (await self.client.list(PODS, "default")).items:
                uid = uid_of(pod)
                number = list(self.seen).index(uid) if uid in self.seen else len(self.seen)
                self.seen[uid] = pod
                try:
                    if uid not in self.ends and (number in self.deleted and not is_terminating(pod)):
                        self.evicted[uid] = None
                        await self.client.delete(PODS, name_of(pod), "default", grace_period_seconds=30)
                    elif uid not in self.ends:
                        code = self.codes[number] if number < len(self.codes) else 0
                        await self.client.patch(PODS, name_of(pod), ended(code), "default", subresource="status")
                        self.ends[uid] = code
                    elif is_terminating(pod):
                        await self.client.delete(PODS, name_of(pod), "default", grace_period_seconds=0)
                except StatusError:
                    continue


def job(**spec):
    pod = {"containers": [{"name": "app", "image": "app:1"}], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"template": {"spec": pod}, **spec},
    }


def lived(spec, codes, deaths, deleted=(), lag=None):
    """(the finished Job, what the node did)."""

    async def main(world):
        recorder = MemoryRecorder("job-controller", world.clock)
        config = APIServerConfig(kubernetes_version="1.36", service_account_key_pem=key(), root_ca_pem=b"CA")
        server = APIServer(world=world, store=MemoryStore(), recorder=recorder, config=config)
        await server.bootstrap()
        client = server.client(USER)
        await client.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        node = Node(world, client, codes, deleted)
        async with Tasks() as tasks:
            tasks.spawn(with_deaths(world, client, recorder, deaths, lag or {}), name="controller")
            tasks.spawn(node.run(), name="node")
            await client.create(JOBS, job(**spec), "default")
            for _ in range(9000):
                await world.clock.sleep(1)
                found = await client.get(JOBS, "j", "default")
                if any(c["type"] in ("Complete", "Failed") for c in found["status"].get("conditions") or ()):
                    break
            else:
                raise AssertionError(f"never finished: {found['status']}")
            await world.clock.sleep(5)
            left = [pod for pod in (await client.list(PODS, "default")).items if pod["metadata"].get("finalizers")]
            tasks.cancel()
        assert left == []
        return found, node

    return run_virtual(main)


DEATHS = st.dictionaries(st.integers(1, 40), st.sampled_from(["before", "after"]), max_size=8)
CODES = st.lists(st.integers(0, 1), max_size=12)


@settings(max_examples=40, deadline=None)
@given(codes=CODES, deaths=DEATHS, parallelism=st.integers(1, 4), completions=st.integers(1, 5))
def test_numbers_are_those_of_the_pods_that_ended(codes, deaths, parallelism, completions):
    found, node = lived({"parallelism": parallelism, "completions": completions, "backoffLimit": 20}, codes, deaths)
    status = found["status"]
    assert status.get("succeeded", 0) == sum(code == 0 for code in node.ends.values()) == completions
    assert status.get("failed", 0) == sum(code == 1 for code in node.ends.values())
    assert status["uncountedTerminatedPods"] == {}


@settings(max_examples=40, deadline=None)
@given(codes=CODES, deaths=DEATHS, deleted=st.sets(st.integers(0, 6), max_size=3))
def test_a_pod_that_is_deleted_and_then_ends_anyhow_is_counted_once(codes, deaths, deleted):
    found, node = lived({"parallelism": 2, "completions": 3, "backoffLimit": 20}, codes, deaths, deleted)
    status = found["status"]
    assert status.get("succeeded", 0) + status.get("failed", 0) == len(node.seen)
    assert status["succeeded"] == 3


@settings(max_examples=30, deadline=None)
@given(codes=CODES, deaths=DEATHS, limit=st.integers(0, 4))
def test_a_job_that_fails_counts_all_its_pods(codes, deaths, limit):
    found, node = lived({"parallelism": 3, "completions": 5, "backoffLimit": limit}, codes, deaths)
    status = found["status"]
    assert status.get("succeeded", 0) + status.get("failed", 0) == len(node.seen)
    failed = any(each["type"] == "Failed" for each in status["conditions"])
    assert failed == (status.get("failed", 0) > limit)


@settings(max_examples=40, deadline=None)
@given(codes=CODES, deaths=DEATHS, per_index=st.one_of(st.none(), st.integers(0, 2)))
def test_indexes_are_completed_once_and_fail_after_their_own_tries(codes, deaths, per_index):
    spec = {"parallelism": 3, "completions": 4, "completionMode": "Indexed", "backoffLimit": 30}
    if per_index is not None:
        spec["backoffLimitPerIndex"] = per_index
    found, node = lived(spec, codes, deaths)
    status = found["status"]
    tries: dict[int, list[int]] = {}
    for uid, pod in node.seen.items():
        tries.setdefault(int(annotations_of(pod)[INDEX]), []).append(node.ends[uid])
    done = [index for index, codes in tries.items() if 0 in codes]
    assert status.get("completedIndexes", "") == str(Indexes.of(done))
    assert status.get("succeeded", 0) == len(done)
    assert all(codes.count(0) <= 1 for codes in tries.values())
    assert status.get("failed", 0) == sum(code == 1 for code in node.ends.values())
    if per_index is not None:
        failed = [index for index, codes in tries.items() if codes.count(1) > per_index]
        assert status["failedIndexes"] == str(Indexes.of(failed))


LAGS = st.fixed_dictionaries({"jobs": st.sampled_from([0, 0.1, 0.9]), "pods": st.sampled_from([0, 0.1, 0.9])})


@settings(max_examples=40, deadline=None)
@given(codes=CODES, deaths=DEATHS, lag=LAGS, indexed=st.booleans())
def test_caches_that_are_behind_make_no_pod_that_nobody_needs(codes, deaths, lag, indexed):
    spec = {"parallelism": 3, "completions": 4, "backoffLimit": 20}
    if indexed:
        spec["completionMode"] = "Indexed"
    found, node = lived(spec, codes, deaths, lag=lag)
    status = found["status"]
    assert status["succeeded"] == sum(code == 0 for code in node.ends.values()) == 4
    assert status.get("failed", 0) == sum(code == 1 for code in node.ends.values())


@pytest.mark.parametrize("fate", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 21))
def test_killed_at_each_write_of_a_small_job_it_comes_to_the_same_counts(number, fate):
    found, node = lived({"parallelism": 2, "completions": 3, "backoffLimit": 5}, [1, 0, 0, 0], {number: fate})
    status = found["status"]
    assert (status["succeeded"], status["failed"]) == (3, 1)
    assert len(node.seen) == 4
