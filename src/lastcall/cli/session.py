"""One run: an embedded cluster is started, the manifests' Pods are ended, their stories built. No output but notes."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lastcall.api.errors import StatusError, is_not_found
from lastcall.api.meta import Object, name_of, namespace_of
from lastcall.api.resources import EVENTS, PODS
from lastcall.cli.apply import apply_manifests
from lastcall.cli.errors import WorldError
from lastcall.cli.follow import FollowedPod, PodFollower
from lastcall.cli.live import TICK_SECONDS, LiveTimeline
from lastcall.cli.manifests import Manifest
from lastcall.cli.why_not_ready import hopeless_reason, why_not_ready
from lastcall.client.api import Client, ConnectionLost
from lastcall.timeline import kinds
from lastcall.timeline.ending import build_endings
from lastcall.timeline.pod_facts import pod_facts
from lastcall.timeline.record import Record, Recorder
from lastcall.timeline.signal_names import signal_name
from lastcall.timeline.story import Ending
from lastcall.world.clock import Clock, RealClock, monotonic
from lastcall.world.tasks import Tasks, unless

KILL_MARGIN_SECONDS = 5.0
"""How much longer than its grace period a force-deleted Pod's containers are followed."""

LAST_WORDS_SECONDS = 0.3
"""How long the others may still tell what they saw after a process of the cluster has died."""


class Cluster(Protocol):
    """What a run needs of `lastcall.cluster.embedded.EmbeddedCluster`."""

    client: Any  # a lastcall.client.api.Client; the concrete class varies

    def start(self) -> None: ...
    async def connect(self) -> None: ...
    async def wait_node_ready(self) -> None: ...
    def on_record(self, callback: Callable[[Record], None]) -> None: ...
    def on_process_died(self, callback: Callable[[str, int, int | None, int | None], None]) -> None: ...
    def recorder(self, actor: str) -> Recorder: ...
    def kubeconfig_path(self) -> str: ...
    async def drain_records(self, seconds: float = 0.05) -> None: ...
    def last_words(self, role: str, lines: int = 20) -> str: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`grace` None is the Pod's own. `after` and `timeout` are seconds, `state_size` is as mount(8) takes it.

    `output` is one of `lastcall.cli.output.FORMATS`; it goes to `output_file`, to stdout when that is None.
    """

    kubernetes_version: str = "1.36"
    output: str = "text"
    explain: bool = False
    grace: int | None = None
    after: float = 1.0
    timeout: float = 60.0
    keep: bool = False
    state_size: str = "50%"
    output_file: Path | None = None


@dataclass(slots=True)
class Session:
    """`run` ends the Pods and answers their stories; after an error `endings()` has what is known so far."""

    cluster: Cluster
    options: RunOptions
    live: LiveTimeline
    clock: Clock = field(default_factory=RealClock)
    records: list[Record] = field(default_factory=list)
    _follower: PodFollower | None = None
    _death: str = ""
    _died: asyncio.Event = field(default_factory=asyncio.Event)
    _deleted: bool = False
    _resource_version: str = ""

    async def run(self, manifests: Sequence[Manifest]) -> list[Ending]:
        """Start to story. Raises UserError, WorldError or ClusterStartError."""
        started = monotonic(self.clock)
        self.cluster.on_record(self._record)
        self.cluster.on_process_died(self._process_died)
        await self.cluster.connect()
        client: Client = self.cluster.client
        self._follower = PodFollower(client, self.cluster.recorder("client"), self.clock)
        failure: Exception | None = None
        async with Tasks() as tasks:
            tasks.spawn(self._tick(), name="live timeline")
            try:
                await self._unless_died(self._run(manifests, client, tasks, started))
            except Exception as error:
                failure = error
            finally:
                tasks.cancel()
                self.live.end()
        if failure is not None:
            await self.cluster.drain_records(LAST_WORDS_SECONDS)
            raise failure
        return self.endings()

    async def keep(self) -> None:
        """Return never; raises WorldError when a process of the cluster dies."""
        await self._unless_died(_forever())

    async def close(self) -> None:
        """Give back the client's connections, whatever state the API server is in."""
        client: Client | None = getattr(self.cluster, "client", None)
        if client is not None:
            with suppress(ConnectionLost, OSError):
                await client.close()

    def endings(self) -> list[Ending]:
        """The stories as far as they are known; none before the first DELETE."""
        if self._follower is None or not self._deleted:
            return []
        pods = [pod_facts(pod.obj) for pod in self._follower.pods.values()]
        return build_endings(self.records, pods, kubernetes_version=self.options.kubernetes_version)

    # -- the way of a run ---------------------------------------------------------------------------------------------

    async def _run(self, manifests: Sequence[Manifest], client: Client, tasks: Tasks, started: float) -> None:
        await self.cluster.wait_node_ready()
        self._note(started, f"Kubernetes {self.options.kubernetes_version} is up, its node is Ready")
        follower = self._follower
        assert follower is not None
        version = (await client.list(PODS)).resource_version
        pods, notes = await apply_manifests(client, self.clock, manifests)
        for note in notes:
            self._note(started, note)
        followed = [follower.follow(pod) for pod in pods]
        tasks.spawn(follower.run(version), name="follow Pods")
        self._note(started, f"created {', '.join(pod.key for pod in followed)}")
        await self._wait_ready(follower, client)
        for pod in followed:
            state = "Ready" if pod.ready else f"ended by itself ({pod.obj['status']['phase']})"
            self._note(started, f"{pod.key} is {state}")
        await self.clock.sleep(self.options.after)
        self.live.begin([pod_facts(pod.obj) for pod in followed])
        await self._delete(followed, client, tasks)
        await self._wait_gone(follower, followed)

    async def _wait_ready(self, follower: PodFollower, client: Client) -> None:
        def is_settled(pod: FollowedPod) -> bool:
            return pod.ready or pod.ended_by_itself or pod.gone

        def is_decided(pods: Sequence[FollowedPod]) -> bool:
            return all(map(is_settled, pods)) or any(hopeless_reason(pod.obj) for pod in pods)

        await follower.wait(is_decided, self.options.timeout)
        late = [pod for pod in follower.pods.values() if not is_settled(pod)]
        rejected = [p for p in follower.pods.values() if p.ended_by_itself and hopeless_reason(p.obj)]
        if not late and not rejected:
            return
        lines = []
        if not any(hopeless_reason(pod.obj) for pod in late):
            lines.append(f"not every Pod became Ready within {self.options.timeout:g} s (--timeout)")
        for pod in [*late, *rejected]:
            lines += why_not_ready(pod.obj, await self._events_of(client, pod))
        raise WorldError("\n".join(lines))

    async def _events_of(self, client: Client, pod: FollowedPod) -> list[Object]:
        with suppress(StatusError, ConnectionLost):
            listed = await client.list(EVENTS, namespace_of(pod.obj), field_selector=f"involvedObject.uid={pod.uid}")
            return listed.items
        return []

    async def _delete(self, pods: Sequence[FollowedPod], client: Client, tasks: Tasks) -> None:
        """DELETE all at the same time; a Pod that went meanwhile is no error."""
        self._deleted = True
        recorder = self.cluster.recorder("client")

        async def delete(pod: FollowedPod) -> str:
            recorder.record(kinds.DELETE_SENT, pod_uid=pod.uid, facts={"gracePeriodSeconds": self.options.grace})
            try:
                await client.delete(
                    PODS,
                    name_of(pod.obj),
                    namespace_of(pod.obj),
                    grace_period_seconds=self.options.grace,
                    uid=pod.uid,
                )
            except StatusError as error:
                if not is_not_found(error) and error.code != 409:
                    return f"{pod.key}: the API server refuses the DELETE: {error.message}"
            except ConnectionLost as error:
                return f"{pod.key}: the DELETE got no answer: {error}"
            return ""

        deletes = [tasks.spawn(delete(pod), name=f"DELETE {pod.key}") for pod in pods]
        refused = [error for error in [await each for each in deletes] if error]
        if refused:
            raise WorldError("\n".join(refused))

    async def _wait_gone(self, follower: PodFollower, pods: Sequence[FollowedPod]) -> None:
        limit = self._longest_grace(pods) * 2 + self.options.timeout
        if not await follower.wait(lambda all_: all(pod.gone for pod in all_), limit):
            await self.cluster.drain_records()
            lines = []
            for pod in (pod for pod in pods if not pod.gone):
                lines.append(f"{pod.key} is still there {limit:g} s after the DELETE")
                finalizers = pod.obj["metadata"].get("finalizers") or []
                if finalizers:
                    lines.append(f"  metadata.finalizers {finalizers} hold it: remove them from the manifest")
            raise WorldError("\n".join(lines))
        await self.cluster.drain_records()
        # A forced deletion does not wait for the node: the containers may outlive the object.
        deadline = monotonic(self.clock) + self._longest_grace(pods) + KILL_MARGIN_SECONDS
        while self._someone_runs() and monotonic(self.clock) < deadline:
            await self.cluster.drain_records()

    def _longest_grace(self, pods: Sequence[FollowedPod]) -> float:
        own = [float((pod.obj.get("spec") or {}).get("terminationGracePeriodSeconds") or 0) for pod in pods]
        return max([*own, 2.0]) if self.options.grace is None else max(float(self.options.grace), 2.0)

    def _someone_runs(self) -> bool:
        return any(c.started and c.exited_at is None for ending in self.endings() for c in ending.containers)

    # -- what happens meanwhile ---------------------------------------------------------------------------------------

    def _record(self, record: Record) -> None:
        self.records.append(record)
        self.live.record(record)

    def _process_died(self, role: str, pid: int, exit_code: int | None, number: int | None) -> None:
        if role == "orphan" or self._death:
            return
        how = f"was killed by {signal_name(number)}" if number else f"exited with {exit_code}"
        words = self.cluster.last_words(role, 1) if exit_code else ""
        self._death = f"the cluster's {role} (pid {pid} inside the cluster) {how}{f': {words}' if words else ''}"
        self._died.set()

    async def _tick(self) -> None:
        while True:
            await self.clock.sleep(TICK_SECONDS)
            self.live.tick(self.clock.monotonic_ns())

    def _note(self, started: float, text: str) -> None:
        self.live.note(f"{monotonic(self.clock) - started:7.3f}s  {text}")

    async def _unless_died(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work`; WorldError as soon as a process of the cluster has died, or when the API server is lost."""
        try:
            await unless(work, self._died)
        except ConnectionLost as error:
            # The answer breaks off a moment before the death is known.
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS_SECONDS):
                    await self._died.wait()
            if not self._death:
                raise WorldError(f"the API server cannot be reached: {error}") from error
        if self._death:
            raise WorldError(self._death)


async def _forever() -> None:
    await asyncio.Event().wait()
