"""What holds at every moment of every Pod's life, asked of the records and of what a watching client saw.

`NodeInvariants(cluster).check()` looks at what is new since the last call and raises AssertionError with the last
records. The model is the API server's (which periods were granted when) and the runtime's (which process lived when);
of the kubelet's own words only the beginning of a kill (Killing) is believed, and that is checked against both.
"""

from dataclasses import dataclass, field
from typing import Any

from virtual_cluster import Seen, VirtualCluster

from lastcall.endings.ending import build_endings
from lastcall.endings.story import PodFacts
from lastcall.kube.api.meta import Object, uid_of
from lastcall.kube.api.resources import PODS
from lastcall.records import kinds
from lastcall.records.record import Record

FLOOR_SECONDS = 2
"""The least that StopContainer is given."""
TOLERANCE = 1e-6
STOPS = ("grace over", "StopContainer", "StopPodSandbox", "RemoveContainer")
TERMINAL = ("Succeeded", "Failed")
HOOK = "hook"
"""First word of the commands of preStop hooks."""


@dataclass
class Instance:
    """One run of one container."""

    id: str
    pod_uid: str
    name: str
    pid: int
    started_at: float
    ended_at: float | None = None
    exit_code: int = 0
    signals: list[str] = field(default_factory=list)
    killings: list[tuple[float, int, float]] = field(default_factory=list)
    """When it was decided to stop it, the budget that was told, and the one that the model grants at least."""
    hooks: dict[str, None] = field(default_factory=dict)
    stop_failed: bool = False
    pod_was_ending: bool = False
    """At its last Killing the whole Pod was ending."""
    told_at_the_end: int | None = None
    """The budget that the kubelet which lives now told last, when the whole Pod was ending."""


@dataclass
class PodLife:
    """What the model knows of one Pod."""

    grants: list[int] = field(default_factory=list)
    """Every period that the API server gave its deletion, in order."""
    overrides: list[int] = field(default_factory=list)
    """What the node granted: eviction, shutdown."""
    removed: bool = False
    spec: Object = field(default_factory=dict)
    terminating: bool = False
    runtime_only: bool = False
    deletion_observed: bool = False
    mounted: bool = False
    final_delete: bool = False
    terminal_phase: str = ""
    was_to_restart: bool = False
    """A container was shown as waiting for its restart: in a Pod that the node ended it counts as failed, and a DELETE
    that comes meanwhile shows how it did end (kuberuntime ShouldContainerBeRestarted looks at deletionTimestamp)."""
    grace_of_kubelet: int | None = None
    dgps: int | None = None
    instances: list[Instance] = field(default_factory=list)
    open_hooks: dict[str, None] = field(default_factory=dict)
    terminated_ids: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)


class NodeInvariants:
    """`kubelet_died()` at every death; `check_end()` once all Pods are deleted and gone."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster
        self._pods: dict[str, PodLife] = {}
        self._by_pid: dict[int, Instance] = {}
        self._by_id: dict[str, Instance] = {}
        self._records = 0
        self._seen = 0
        self._judged = 0
        self._deaths: list[int] = []
        self._handlers = {
            kinds.DELETE_ACCEPTED: self._delete_accepted,
            kinds.GRACE_SHORTENED: self._grace_shortened,
            kinds.OBJECT_REMOVED: self._object_removed,
            kinds.DELETION_DECIDED: self._deletion_decided,
            kinds.TERMINATION_OBSERVED: self._termination_observed,
            kinds.GRACE_DECIDED: self._grace_decided,
            kinds.KILLING: self._killing,
            kinds.PRE_STOP_STARTED: self._pre_stop_started,
            kinds.PRE_STOP_FINISHED: self._pre_stop_finished,
            kinds.STOP_FINISHED: self._stop_finished,
            kinds.PROCESS_STARTED: self._process_started,
            kinds.PROCESS_EXITED: self._process_exited,
            kinds.SIGNAL_SENT: self._signal_sent,
            kinds.EXEC_STARTED: self._exec_started,
            kinds.EXEC_EXITED: self._exec_exited,
            kinds.VOLUMES_MOUNTED: self._volumes_mounted,
            kinds.VOLUMES_UNMOUNTED: self._volumes_unmounted,
            kinds.FINAL_DELETE_SENT: self._final_delete_sent,
        }

    def kubelet_died(self) -> None:
        """Call it at the moment when no task of the kubelet is left."""
        self._deaths.append(len(self._cluster.all_records))

    def check(self) -> None:
        """Raise AssertionError when something that is new breaks a rule."""
        # Versions first: a Pod's spec has to be known before its records are judged.
        history = self._cluster.history[PODS]
        while self._seen < len(history):
            seen, self._seen = history[self._seen], self._seen + 1
            self._learn(seen)
        while self._records < len(self._cluster.all_records):
            while self._deaths and self._deaths[0] <= self._records:
                self._deaths.pop(0)
                self._forget_kubelet()
            record, self._records = self._cluster.all_records[self._records], self._records + 1
            handler = self._handlers.get(record.kind)
            if handler is not None:
                handler(record, self._pods.setdefault(record.pod_uid, PodLife()), record.at_ns / 1e9)
        for seen in history[self._judged :]:
            self._judge(seen)
        self._judged = len(history)

    def check_end(self) -> None:
        """Everything was deleted and had its time: nothing may be left."""
        self.check()
        cluster = self._cluster
        running = [i for pod in self._pods.values() for i in pod.instances if i.ended_at is None]
        self._need(not running, f"still running: {running}")
        self._need(not cluster.volumes.mounted, f"still mounted: {cluster.volumes.mounted}")
        self._need(not cluster.last_of_each_pod(), f"Pods are left: {cluster.last_of_each_pod()}")
        attached = sorted(r.facts["ip"] for r in cluster.records(kinds.NETWORK_ATTACHED))
        detached = sorted(r.facts["ip"] for r in cluster.records(kinds.NETWORK_DETACHED) if not r.facts["error"])
        self._need(attached == detached, f"networks are left: {attached} {detached}")

        self._check_stories()

    def _check_stories(self) -> None:
        """Every end is told: with the exit code that happened, and a SIGKILL with its sender and reason."""
        facts = [PodFacts(uid, "", "") for uid, pod in self._pods.items() if pod.instances]
        for ending in build_endings(self._cluster.all_records, facts, kubernetes_version=self._cluster.version):
            instances = {each.name: each for each in self._pods[ending.pod.uid].instances}
            for told in ending.containers:
                last = instances.get(told.name)
                if last is None:
                    continue
                where = f"in the story of {ending.pod.name}, container {told.name}"
                self._need(told.exit.code == last.exit_code, f"{told.exit.code}, it was {last.exit_code} {where}")
                if "SIGKILL" in last.signals:
                    self._need(
                        told.exit.sigkilled and bool(told.exit.killed_by), f"nobody is said to have killed it {where}"
                    )
                    said = any(finding.container == told.name for finding in ending.findings)
                    self._need(said, f"no finding says why it was killed {where}: {ending.findings}")

    def running(self) -> list[Instance]:
        """Every process of a container that lives, in the order of their starts."""
        return [each for each in self._by_id.values() if each.ended_at is None]

    # -- what the API server says

    def _delete_accepted(self, record: Record, pod: PodLife, at: float) -> None:
        pod.grants.append(record.facts["gracePeriodSeconds"])

    def _grace_shortened(self, record: Record, pod: PodLife, at: float) -> None:
        self._need(record.facts["to"] < record.facts["from"], f"the API server let a grace period grow: {record}")
        pod.grants.append(record.facts["to"])

    def _object_removed(self, record: Record, pod: PodLife, at: float) -> None:
        pod.removed = True
        pod.grants.append(0)

    # -- what the kubelet says

    def _deletion_decided(self, record: Record, pod: PodLife, at: float) -> None:
        if "gracePeriodSeconds" in record.facts:
            pod.overrides.append(record.facts["gracePeriodSeconds"])

    def _forget_kubelet(self) -> None:
        for pod in self._pods.values():
            pod.terminating = pod.runtime_only = pod.deletion_observed = False
            pod.grace_of_kubelet = None
            pod.open_hooks.clear()
            for instance in pod.instances:
                instance.told_at_the_end = None

    def _termination_observed(self, record: Record, pod: PodLife, at: float) -> None:
        pod.terminating = True
        pod.runtime_only = record.facts["cause"] == "runtimeOnly"
        pod.deletion_observed = record.facts["cause"] == "deletionTimestamp"

    def _grace_decided(self, record: Record, pod: PodLife, at: float) -> None:
        period = record.facts["gracePeriodSeconds"]
        before = pod.grace_of_kubelet
        # Kubernetes takes a deletion grace of 0 beside an override for none at all (node-semantics 5.1/zero).
        zero = 0 in pod.grants and bool(pod.overrides)
        self._need(before is None or period <= before or zero, f"the grace period grew from {before} s: {record}")
        pod.grace_of_kubelet = period

    def _killing(self, record: Record, pod: PodLife, at: float) -> None:
        running = self._running(pod, record.container)
        told, granted = record.facts["gracePeriodSeconds"], self._granted(pod, record.facts["message"])
        self._need(
            told >= granted or told >= 1 >= granted,
            f"the kill gets {told} s where {granted} s were granted: {record}",
        )
        most = max([pod.spec.get("terminationGracePeriodSeconds", 30), *pod.grants, *self._probe_periods(pod), 2])
        self._need(told <= most, f"the kill gets {told} s, more than anybody granted ({most} s): {record}")
        if running is not None:
            before = running.told_at_the_end
            zero = 0 in pod.grants and bool(pod.overrides)
            self._need(
                before is None or told <= before or zero, f"a retry gets more than the {before} s before: {record}"
            )
            running.killings.append((at, told, granted))
            running.pod_was_ending = pod.terminating and not pod.runtime_only
            if running.pod_was_ending:
                running.told_at_the_end = told

    def _granted(self, pod: PodLife, message: str) -> int:
        """The least grace period that somebody gave until now that this kill has to know of."""
        if pod.runtime_only:
            return 0
        if pod.deletion_observed and message.startswith("Stopping container"):
            return min([*pod.grants, *pod.overrides])
        # It may be a container's restart, decided before the kubelet heard of a deletion.
        own: int = pod.spec.get("terminationGracePeriodSeconds", 30)
        return min([own, *pod.grants, *self._probe_periods(pod), *pod.overrides])

    def _probe_periods(self, pod: PodLife) -> list[int]:
        every = [*(pod.spec.get("initContainers") or []), *(pod.spec.get("containers") or [])]
        probes = [each.get(probe) or {} for each in every for probe in ("livenessProbe", "startupProbe")]
        return [p["terminationGracePeriodSeconds"] for p in probes if "terminationGracePeriodSeconds" in p]

    def _pre_stop_started(self, record: Record, pod: PodLife, at: float) -> None:
        self._need(record.container not in pod.open_hooks, f"a hook runs beside itself: {record}")
        last = next((i for i in reversed(pod.instances) if i.name == record.container), None)
        self._need(
            last is not None and (last.ended_at is None or last.id not in pod.terminated_ids),
            f"a hook of a container whose end was reported: {record}",
        )
        pod.open_hooks[record.container] = None

    def _pre_stop_finished(self, record: Record, pod: PodLife, at: float) -> None:
        if record.facts["outcome"] != "outlived":
            pod.open_hooks.pop(record.container, None)

    def _stop_finished(self, record: Record, pod: PodLife, at: float) -> None:
        running = self._running(pod, record.container)
        if running is not None and record.facts["error"]:
            running.stop_failed = True

    def _volumes_mounted(self, record: Record, pod: PodLife, at: float) -> None:
        pod.mounted = True

    def _volumes_unmounted(self, record: Record, pod: PodLife, at: float) -> None:
        running = [each.name for each in pod.instances if each.ended_at is None]
        self._need(not running, f"volumes are taken from running containers {running}: {record}")
        pod.mounted = False

    def _final_delete_sent(self, record: Record, pod: PodLife, at: float) -> None:
        running = [each.name for each in pod.instances if each.ended_at is None]
        self._need(not running, f"the last DELETE while {running} run: {record}")
        self._need(not pod.mounted, f"the last DELETE while volumes are mounted: {record}")
        pod.final_delete = True

    # -- what the runtime says

    def _running(self, pod: PodLife, container: str) -> Instance | None:
        return next((i for i in pod.instances if i.name == container and i.ended_at is None), None)

    def _process_started(self, record: Record, pod: PodLife, at: float) -> None:
        self._need(self._running(pod, record.container) is None, f"a second instance of a container: {record}")
        self._need(not pod.final_delete, f"a start after the last DELETE: {record}")
        self._need(not pod.terminal_phase, f"a start in a Pod that is {pod.terminal_phase}: {record}")
        sorts = self._sorts(pod)
        if sorts.get(record.container) == "app":
            init = [i.name for i in pod.instances if i.ended_at is None and sorts.get(i.name) == "init"]
            self._need(not init, f"a container starts beside the init container {init}: {record}")
        facts = record.facts
        instance = Instance(facts["containerId"], record.pod_uid, record.container, facts["pid"], at)
        pod.instances.append(instance)
        self._by_pid[instance.pid] = self._by_id[instance.id] = instance

    def _process_exited(self, record: Record, pod: PodLife, at: float) -> None:
        instance = self._by_id[record.facts["containerId"]]
        self._need(instance.ended_at is None, f"a second end: {record}")
        instance.ended_at, instance.exit_code = at, record.facts["exitCode"]

    def _signal_sent(self, record: Record, pod: PodLife, at: float) -> None:
        instance, signal = self._by_pid[record.facts["pid"]], record.facts["signal"]
        if signal != "SIGKILL":
            self._need(signal not in instance.signals, f"a second {signal}: {record}")
            self._need(bool(instance.killings), f"{signal} without a Killing: {record}")
            self._check_order(record, pod, instance, at)
        else:
            self._check_sigkill(record, pod, instance, at)
        instance.signals.append(signal)

    def _check_sigkill(self, record: Record, pod: PodLife, instance: Instance, at: float) -> None:
        why = record.facts.get("why")
        self._need(why in STOPS, f"a SIGKILL without a reason: {record}")
        if pod.runtime_only:
            return
        if why != "grace over":
            self._need(instance.stop_failed, f"SIGKILL by {why} though no stop had failed: {record}")
            return
        self._need("SIGTERM" in instance.signals, f"SIGKILL without SIGTERM: {record}")
        deadlines = [began + max(granted, FLOOR_SECONDS) for began, _, granted in instance.killings]
        self._need(
            any(at >= deadline - TOLERANCE for deadline in deadlines),
            f"SIGKILL before the deadline, which is {min(deadlines, default=None)}: {record}",
        )

    def _check_order(self, record: Record, pod: PodLife, instance: Instance, at: float) -> None:
        """Sidecars after the apps and those that were declared later, unless their budget is over."""
        sorts = self._sorts(pod)
        if sorts.get(instance.name) != "sidecar" or not instance.pod_was_ending:
            return
        names = list(sorts)
        later = [n for n in names if sorts[n] == "app" or names.index(n) > names.index(instance.name)]
        alive = [i.name for i in pod.instances if i.ended_at is None and i.name in later]
        began, budget, _ = instance.killings[-1]
        self._need(
            not alive or at >= began + budget - TOLERANCE, f"a sidecar is stopped before {alive} have ended: {record}"
        )

    def _sorts(self, pod: PodLife) -> dict[str, str]:
        found = {}
        for each in pod.spec.get("initContainers") or []:
            found[each["name"]] = "sidecar" if each.get("restartPolicy") == "Always" else "init"
        return found | {each["name"]: "app" for each in pod.spec.get("containers") or []}

    def _exec_started(self, record: Record, pod: PodLife, at: float) -> None:
        if record.facts["argv"][0] != HOOK:
            return
        instance = self._running(pod, record.container)
        self._need(instance is not None, f"a hook's process after its container's end: {record}")
        assert instance is not None
        self._need(not instance.hooks, f"a hook's process beside itself: {record}")
        instance.hooks[record.facts["execId"]] = None

    def _exec_exited(self, record: Record, pod: PodLife, at: float) -> None:
        for instance in pod.instances:
            instance.hooks.pop(record.facts["execId"], None)

    # -- what a client saw

    def _learn(self, seen: Seen) -> None:
        self._pods.setdefault(uid_of(seen.object), PodLife()).spec = seen.object["spec"]

    def _judge(self, seen: Seen) -> None:
        pod, where = self._pods[uid_of(seen.object)], f"at {seen.at:.3f} of {seen.name}"
        metadata, status = seen.object["metadata"], seen.object.get("status") or {}
        dgps = metadata.get("deletionGracePeriodSeconds")
        if pod.dgps is not None:
            self._need(dgps is not None and dgps <= pod.dgps, f"grace grew from {pod.dgps} to {dgps} s {where}")
        pod.dgps = dgps
        phase = status.get("phase", "")
        containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
        if pod.terminal_phase and not (pod.was_to_restart and phase == "Succeeded"):
            self._need(phase == pod.terminal_phase, f"{pod.terminal_phase} became {phase} {where}")
        if phase in TERMINAL:
            pod.terminal_phase = phase
        pod.was_to_restart = any("waiting" in (each.get("state") or {}) for each in containers)
        if not containers:
            pod.restarts.clear()  # a Pod that a restarted kubelet rejects loses them (kubelet.go:rejectPod)
        for each in containers:
            self._judge_container(pod, each, where, phase)

    def _judge_container(self, pod: PodLife, status: Object, where: str, phase: str) -> None:
        where = f"{where}, container {status['name']}"
        for state in (status.get("state") or {}, status.get("lastState") or {}):
            if "terminated" in state:
                self._judge_end(pod, state["terminated"], where)
        now: dict[str, Any] = status.get("state") or {}
        id_ = _bare(status.get("containerID", ""))
        if "running" in now:
            self._need(id_ not in pod.terminated_ids, f"{id_[:8]} runs again {where}")
            self._need(phase not in TERMINAL, f"a running container in a Pod that is {phase} {where}")
        restarts = status.get("restartCount", 0)
        self._need(restarts >= pod.restarts.get(status["name"], 0), f"restartCount fell to {restarts} {where}")
        pod.restarts[status["name"]] = restarts

    def _judge_end(self, pod: PodLife, end: Object, where: str) -> None:
        id_, code = _bare(end.get("containerID", "")), end["exitCode"]
        if not id_:
            return
        known = pod.terminated_ids.setdefault(id_, code)
        self._need(known == code, f"the exit code of {id_[:8]} changed from {known} to {code} {where}")
        instance = self._by_id.get(id_)
        if instance is not None:
            self._need(instance.ended_at is not None, f"{id_[:8]} is said to have ended with {code} and runs {where}")
            self._need(instance.exit_code == code, f"exit code {code} is told, it was {instance.exit_code} {where}")

    def _need(self, holds: bool, text: str) -> None:
        if not holds:
            raise AssertionError(f"{text}\n{self._tail()}")

    def _tail(self) -> str:
        before = self._cluster.all_records[max(0, self._records - 40) : self._records]
        return "\n".join(self._cluster.line(each) for each in before)


def _bare(container_id: str) -> str:
    return container_id.rpartition("//")[2]
