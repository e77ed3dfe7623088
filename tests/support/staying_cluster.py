"""A cluster that stays, in a process of its own, and a test inside front: it kills processes and looks at what is left.

`@staying` on `async def test_…(cluster: StayingCluster)` makes it a test that runs as every user it can. When the
scenario is over the cluster is stopped, and nothing of it may be left on the machine.
"""

import asyncio
import contextlib
import functools
import importlib.util
import inspect
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from waiting import until

sys.path.insert(0, str(Path(__file__).parent))

from ordinary_user import USERS, command_prefix, skip_without_newuidmap
from tree import MachineState, assert_clean, children, clock_ticks, cmdline

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CONFIGMAPS, EVENTS, NODES, PODS, SERVICEACCOUNTS
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.cluster.embedded import Running, start
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.staying.state import StateDirectory
from lastcall.records.record import Record

Scenario = Callable[["StayingCluster"], Awaitable[None]]


class StayingCluster:
    """What a test gets. `versions` are the Pods a client saw, by name, in order; `records` everything recorded."""

    def __init__(self, embedded: Running) -> None:
        self.embedded = embedded
        self.client = embedded.client
        self.init = embedded.host_pids()["init"]
        self.records: list[Record] = []
        self.versions: dict[str, list[dict[str, Any]]] = {}
        self.restarted: list[str] = []
        embedded.on_record(self.records.append)
        embedded.on_process_restarted(lambda role, pid: self.restarted.append(role))

    # -- what a user does

    async def create(self, *pods: dict[str, Any]) -> None:
        for pod in pods:
            await self.again(functools.partial(self.client.create, PODS, pod, "default"))

    async def create_once(self, pod: dict[str, Any]) -> None:
        """As `create`, where an answer may be lost: it is there already then."""
        try:
            await self.create(pod)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise

    async def delete(self, name: str = "p", **options: Any) -> None:
        """DELETE, asked again while nobody answers; gone is deleted."""
        with contextlib.suppress(StatusError):
            await self.again(lambda: self.client.delete(PODS, name, "default", **options))

    async def again(self, ask: Callable[[], Awaitable[Any]], limit: float = 60.0) -> Any:
        deadline = time.monotonic() + limit
        while True:
            try:
                return await ask()
            except ConnectionLost:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)  # pause of a retry

    async def follow(self) -> None:
        """Note every version of every Pod, and go on where the watch broke off."""
        version = ""
        while True:
            with contextlib.suppress(ConnectionLost):
                async with self.client.watch(PODS, resource_version=version) as events:
                    async for event in events:
                        assert event.type != "ERROR", event.object
                        version = event.object["metadata"]["resourceVersion"]
                        seen = self.versions.setdefault(event.object["metadata"]["name"], [])
                        seen.append({**event.object, "watchType": event.type})
            await asyncio.sleep(0.02)  # pause of a retry

    # -- what is killed

    def pid(self, role: str) -> int:
        """The host's pid of a role that lives. Raises KeyError."""
        return self.embedded.host_pids()[role]

    async def kill(self, role: str, number: int = signal.SIGKILL) -> None:
        await self.until(lambda: role in self.embedded.host_pids(), f"{role} is there")
        os.kill(self.pid(role), number)

    async def kill_and_wait(self, role: str) -> None:
        before = self.restarted.count(role)
        await self.kill(role)
        await self.until(lambda: self.restarted.count(role) > before, f"{role} is started again")

    # -- what is waited for

    async def until(self, condition: Callable[[], Any], what: str = "", limit: float = 60.0) -> Any:
        return await until(condition, what, limit, pause=0.002)

    async def ready(self, name: str = "p") -> None:
        await self.until(lambda: self.is_ready(name), f"{name} is Ready")

    async def gone(self, name: str = "p", limit: float = 60.0) -> None:
        """And what led to it has been read from the rings: the watch may be ahead of them."""
        await self.until(lambda: self.last(name).get("watchType") == "DELETED", f"{name} is gone", limit)
        await self.embedded.drain_records()

    # -- what was seen

    def last(self, name: str = "p") -> dict[str, Any]:
        return (self.versions.get(name) or [{}])[-1]

    def is_ready(self, name: str = "p", version: dict[str, Any] | None = None) -> bool:
        status = (version or self.last(name)).get("status") or {}
        return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or [])

    def container(self, name: str = "p", index: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.last(name)["status"]["containerStatuses"][index]
        return found

    def find(self, kind: str, container: str = "") -> list[Record]:
        return [r for r in self.records if r.kind == kind and container in ("", r.container)]

    def argvs(self, kind: str, word: str) -> list[Record]:
        return [r for r in self.find(kind) if any(word in text for text in r.facts["argv"])]

    async def events(self, reason: str = "") -> list[str]:
        found = (await self.client.list(EVENTS, "default")).items
        return [f"{e['reason']}: {e['message']} x{e.get('count', 1)}" for e in found if reason in ("", e["reason"])]

    def overlapping_execs_of_each_pod(self, word: str) -> bool:
        uids = dict.fromkeys(record.pod_uid for record in self.argvs("ExecStarted", word))
        return any(self.overlapping_execs(word, uid) for uid in uids)

    def overlapping_execs(self, word: str, uid: str = "") -> bool:
        """Whether two execs with `word` in a command line lived at one time."""
        mine = {r.facts["execId"]: r.at_ns for r in self.argvs("ExecStarted", word) if uid in ("", r.pod_uid)}
        ends = {r.facts["execId"]: r.at_ns for r in self.find("ExecExited") if r.facts["execId"] in mine}
        assert mine.keys() == ends.keys(), "every one has ended, and that is on record"
        spans = sorted((start, ends[identity]) for identity, start in mine.items())
        return any(second[0] < first[1] for first, second in itertools.pairwise(spans))

    # -- what is left of Pods that are gone

    def left(self) -> list[str]:
        shim = self.pid("shim-1")
        root = Path(f"/proc/{self.init}/root/lastcall")
        links = Path(f"/proc/{self.init}/net/dev").read_text().split()
        lines = Path(f"/proc/{self.init}/mountinfo").read_text().splitlines()
        mounts = [line for line in lines if line.split(" ")[4].startswith("/lastcall/")]  # not what the machine mounts
        return [
            *(f"process {cmdline(pid)}" for pid in children(shim)),
            *(f"cgroup {path}" for path in self._cgroups()),
            *(f"link {word}" for word in links if word.startswith("veth")),
            *(f"mount {line}" for line in mounts if "/lastcall/pods/" in line or "/shm" in line.split(" ")[4]),
            *(f"file {path}" for path in (root / "containers").glob("*") if path.name not in ("ready", "records")),
            *(f"record {path}" for path in (root / "containers/records").glob("*")),
            *(f"journal {path}" for path in (root / "shim-1/processes").glob("*")),
            *(f"sandbox {path}" for path in (root / "shim-1/sandboxes").glob("*")),
            *(f"volumes {path}" for path in (root / "pods/pods").glob("*")),
            *(f"volumes on disk {path}" for path in (root / "empty-dirs").glob("*")),
            # Links for log collectors may dangle until the next collection, which comes every minute.
            *(f"log {path}" for path in (root / "log/pods").glob("*")),
        ]

    def _cgroups(self) -> list[str]:
        """The groups of Pods in every tree that this cluster has a place in."""
        place = self.embedded._plan.cgroups
        # os.walk and not glob: they go while this looks.
        pods = [walked for tree in place.directories.values() for walked in os.walk(f"{tree}/kubepods")]
        containers = [walked for tree in place.others.values() for walked in list(os.walk(tree))[:1]]
        found = [f"{above}/{name}" for above, names, _ in pods for name in names if name.startswith("pod")]
        return found + [f"{above}/{name}" for above, names, _ in containers for name in names]

    async def nothing_left(self) -> None:
        deadline = time.monotonic() + 60
        while left := self.left():
            assert time.monotonic() < deadline, left
            await asyncio.sleep(0.05)  # pause of a poll


def staying(
    scenario: Scenario | None = None,
    *,
    then: Scenario | None = None,
    hanging: bool = False,
    timeout: float = 240,
    users: Sequence[str] = USERS,
) -> Any:
    """See the module's docstring. `then` is a scenario of the cluster's next start on the same state directory.

    `hanging`: loops can be made to hang (`hanging/sitecustomize.py`).
    """
    if scenario is None:
        return functools.partial(staying, then=then, hanging=hanging, timeout=timeout, users=users)

    def test(user: str, **named: Any) -> None:
        skip_without_newuidmap(user)
        names = [scenario.__name__, *([then.__name__] if then else [])]
        run(user, str(sys.modules[scenario.__module__].__file__), names, named, timeout, HANGING if hanging else {})

    marked: Any = functools.update_wrapper(test, scenario)
    del marked.__wrapped__
    own = list(inspect.signature(scenario).parameters.values())[1:]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    marked.__signature__ = inspect.Signature([inspect.Parameter("user", kind), *own])
    marked.scenario = scenario
    return pytest.mark.real_kernel(pytest.mark.parametrize("user", users)(marked))


HANGING = {"PYTHONPATH": f"{Path(__file__).parent}/hanging:{os.environ.get('PYTHONPATH', '')}"}
"""Environment of commands whose loops can be made to hang."""


def run(
    user: str,
    path: str,
    names: list[str],
    named: dict[str, Any],
    timeout: float,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run scenarios, each in a process of its own, and see that nothing is left. Raises AssertionError."""
    home = Path(tempfile.mkdtemp(prefix="lastcall-test-"))
    home.chmod(0o755)
    (home / "home").mkdir(mode=0o777)
    (home / "home").chmod(0o777)
    state = tempfile.mkdtemp(prefix="lastcall-test-state-")
    os.chmod(state, 0o777)
    before = MachineState.take(home)
    places = [f"HOME={home}/home", f"XDG_DATA_HOME={state}/data"]  # images that were pulled stay
    places += [f"{name}={value}" for name, value in (environment or {}).items()]
    command = [*command_prefix(user), "env", *places, "PYTHONDONTWRITEBYTECODE=1", sys.executable]
    kept = f"{state}/kept" if len(names) > 1 else ""
    try:
        for name in names:
            result = subprocess.run(
                [*command, __file__, path, name, json.dumps(named), kept],
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                cwd="/",
            )
            assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
            said = result.stdout.splitlines()
            assert_clean(before, home, json.loads(said[0]), started_before=int(said[-1]))
    finally:
        shutil.rmtree(state, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)


# -- the other side ----------------------------------------------------------------------------------------------------


def main(path: str, name: str, named: str, kept: str) -> int:
    if kept:
        state = StateDirectory.open(kept)
        identity, port = state.credentials()
        options = ClusterOptions(store="sqlite", restart_roles=True, state=state.durable)
        embedded = start(options, identity, port)
        state.keep_credentials(identity, embedded.api_port)
    else:
        embedded = start(ClusterOptions(store="sqlite", restart_roles=True))
    try:
        init = embedded.host_pids()["init"]
        namespaces = {ns: os.readlink(f"/proc/{init}/ns/{ns}") for ns in ("pid", "net", "mnt", "user")}
        print(json.dumps(namespaces), flush=True)
        spec = importlib.util.spec_from_file_location("scenario", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules["scenario"] = module
        spec.loader.exec_module(module)
        function = getattr(module, name)
        asyncio.run(_run(embedded, getattr(function, "scenario", function), json.loads(named)))
    finally:
        last = clock_ticks()
        embedded.stop()
    print(last)
    return 0


async def _run(embedded: Running, scenario: Any, named: dict[str, Any]) -> None:
    await embedded.connect()
    await embedded.wait_node_ready()
    cluster = StayingCluster(embedded)
    for resource, name in ((SERVICEACCOUNTS, "default"), (CONFIGMAPS, "kube-root-ca.crt")):
        while True:
            with contextlib.suppress(StatusError):
                await cluster.client.get(resource, name, "default")
                break
            await asyncio.sleep(0.01)  # pause of a poll
    following = asyncio.create_task(cluster.follow())
    started = time.monotonic()
    try:
        await scenario(cluster, **named)
        node = (await cluster.again(lambda: cluster.client.list(NODES))).items[0]
        assert any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
    except BaseException:
        print(f"after {time.monotonic() - started:.3f} s; records:")
        await embedded.drain_records()
        for record in cluster.records:
            print(f"  {record.wall_ns / 1e9 % 1000:8.3f}", record.actor, record.kind, record.container, record.facts)
        for pod, versions in cluster.versions.items():
            print(pod, json.dumps(versions[-1].get("status"), indent=1), len(versions))
        for role in ("init", "control-plane", "node-1", "shim-1"):
            print(f"-- {role}:", embedded.last_words(role))
        print("left:", *cluster.left(), sep="\n  ")
        raise
    finally:
        following.cancel()
        await cluster.client.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
