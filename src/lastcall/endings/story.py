"""The shape of a Pod's story: what `build_endings` answers and the renderers show. Data only.

Times are seconds since the API server accepted the DELETE, negative before it, None where nobody saw it. Durations are
seconds.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from lastcall.endings.node_facts import (
    ChildEnd,
    FirstReaction,
    ListenerClosed,
    PodListener,
    ProcessAtStop,
    ProcessesLeft,
    Sockets,
    WaitsAtKill,
)
from lastcall.records.definitions.parts import ContainerKind
from lastcall.records.json_shape import HIDDEN, key, rfc3339
from lastcall.records.record import Facts, Record
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.endpointslice_controller import EndpointChanged, EndpointRemoved
    from lastcall.records.record import Kind

Outcome = Literal["graceful", "killed", "crashed", "restarted", "hookFailed", "unknown"]
"""
crashed: a container ended by itself with a failure before anything was to end, or after a stop signal that had no
effect. restarted: a probe failed, and the node ended a container for it. Both report the time before the DELETE, and
what came after it is no worse than hookFailed, or was such a crash.
graceful: every container ended by itself or on its stop signal. killed: one was ended by SIGKILL. hookFailed: nothing
was killed, but a preStop hook failed or outlived its time. unknown: how a container ended was not seen.
"""

PreStopOutcome = Literal["succeeded", "failed", "outlived", "interrupted", "skipped", "unknown"]
"""outlived: the hook still ran when its time was over. interrupted: its container ended, and its
command with it. unknown: it started, and its end was not seen."""

Severity = Literal["info", "warning", "problem"]

EndedBy = Literal["", "itself", "restartRule", "livenessProbe", "startupProbe", "postStartHook", "node"]
"""Who ended one run of a container. itself: it had not been asked to stop. restartRule: the same, with an exit code for
which its restartPolicyRules restart it, or all containers: it asked for that. node: the Pod's end, or what the node
decided for another reason than a probe or a hook. "": it had not ended."""


@dataclass(frozen=True, slots=True)
class DeclaredPort:
    """A port of a container's spec."""

    number: int
    name: str = ""
    protocol: str = ""
    host_port: int | None = None


@dataclass(frozen=True, slots=True)
class DeclaredProbe:
    """A probe of a container's spec that asks one of its ports. `field` is readinessProbe …, `handler` httpGet …."""

    field: str
    handler: str
    port: int | str


@dataclass(frozen=True, slots=True)
class MountedFiles:
    """A volume of files at a path of a container. `kind` is ConfigMap or Secret, `source` its name; `items` are the
    (key, path) that the volume picks, none for all. `sub_path` is "" where the whole volume is mounted."""

    path: str
    volume: str
    kind: str
    source: str
    sub_path: str = ""
    items: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """What the API object says of a container. Exit code, reason and signal are of its Terminated state, None without
    one."""

    name: str
    kind: ContainerKind = "container"
    image: str = ""
    pre_stop: str = ""
    """The handler's name: exec, httpGet, sleep, tcpSocket; "" without a hook."""
    exit_code: int | None = None
    reason: str | None = None
    signal: int | None = None
    ports: tuple[int, ...] = ()
    restart_rules: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """In and NotIn with the exit codes for which its restartPolicyRules restart it, or all containers."""
    declared_ports: tuple[DeclaredPort, ...] = ()
    probes: tuple[DeclaredProbe, ...] = ()
    """Those that ask a port."""
    tcp_probes: tuple[int, ...] = ()
    """Ports of its Pod to which its tcpSocket probes connect."""
    asks_node: tuple[tuple[str, str, str], ...] = ()
    """(field, handler, host) of probes and hooks whose host is a loopback address: that of the node."""
    files: tuple[MountedFiles, ...] = ()
    memory_by_range: bool = False
    """A LimitRange gave it its memory limit."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the API object says of a Pod, as the client last saw it."""

    uid: str
    namespace: str
    name: str
    node: str = field(default="", metadata=key(null=True))
    phase: str = field(
        default="",
        metadata=key(null=True, schema={"enum": ["Pending", "Running", "Succeeded", "Failed", "Unknown", None]}),
    )
    containers: tuple[ContainerFacts, ...] = field(default=(), metadata=HIDDEN)
    subdomain: str = field(default="", metadata=HIDDEN)
    """The Service below which DNS names it."""
    holds_connections: bool = field(default=False, metadata=HIDDEN)
    """Its clients went on with requests on connections to it until it was killed: no time is enough."""
    holds_streams: bool = field(default=False, metadata=HIDDEN)
    """All requests that ended with its SIGKILL were streams and WebSockets."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A record with its time in this story and its cause, None where none is known."""

    record: Record = field(metadata=key(flat=True))
    at: float
    cause_id: str | None = None

    def facts_as(self, kind: "Kind[Facts]") -> "Facts":
        """Return the facts, as `Record.facts_as` does."""
        return self.record.facts_as(kind)


@dataclass(frozen=True, slots=True)
class PreStop:
    """One container's preStop hook. `detail` is a sentence about a failure or a skipped hook, "" otherwise."""

    handler: str = field(
        metadata=key(null=True, schema={"enum": ["exec", "httpGet", "sleep", "tcpSocket", None]}),
    )
    outcome: PreStopOutcome
    seconds: float = field(metadata=key(schema={"type": ["number", "null"]}))
    exit_code: int | None = None
    detail: str = field(default="", metadata=key(null=True))
    output: str = field(default="", metadata=key(null=True))
    started_at: float | None = field(default=None, metadata=HIDDEN)
    finished_at: float | None = field(default=None, metadata=HIDDEN)
    closed: tuple[ListenerClosed, ...] = field(default=(), metadata=HIDDEN)
    """The ports that the program closed while it ran."""


@dataclass(frozen=True, slots=True)
class FailedProbe:
    """The probe for which the node ended a container. `succeeded_before`: whether it ever had in this run, None where
    nobody knows; `output` what it got last."""

    output: str
    succeeded_before: bool | None


@dataclass(frozen=True, slots=True)
class Process:
    """PID 1 of a container. `command` is its name when the stop signal came, `exe` its file: busybox is one program
    with many names. `disposition` is what it does with the stop signal: handled, ignored, blocked or default; `caught`
    the signals it has handlers for."""

    pid: int | None = field(default=None, metadata=HIDDEN)
    exe: str = field(default="", metadata=key("executable", null=True))
    command: str = field(default="", metadata=HIDDEN)
    argv: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    disposition: str = field(
        default="", metadata=key(null=True, schema={"enum": ["handled", "ignored", "blocked", "default", None]})
    )
    caught: tuple[str, ...] = field(default=(), metadata=HIDDEN)
    container_pid: int = field(default=1, metadata=HIDDEN)
    """Its number in its PID namespace: not 1 where that is shared (shareProcessNamespace, hostPID)."""
    started_as: int | None = field(default=None, metadata=HIDDEN)
    """The user id as which it was started, as is every exec; None where it was not seen."""
    user: int | None = field(default=None, metadata=HIDDEN)
    """Its real user id at the stop signal; None where it was not seen."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The stop of a container by the runtime, first asked for at `requested_at`. `signal` is the stop signal, sent at
    `signal_at`, once however often the stop is tried; `kill_at` is when SIGKILL was sent. `floor`: `timeout` is the
    least that every container gets. `deducted` are the seconds that the preStop hook took of it."""

    requested_at: float | None = field(default=None, metadata=HIDDEN)
    seconds: float | None = field(default=None, metadata=key("stopSeconds"))
    timeout: float | None = field(default=None, metadata=HIDDEN)
    floor: bool = field(default=False, metadata=HIDDEN)
    why: str = field(default="", metadata=HIDDEN)
    deducted: float | None = field(default=None, metadata=HIDDEN)
    signal: str = field(default="SIGTERM", metadata=key("stopSignal"))
    signal_at: float | None = field(default=None, metadata=key("stopSignalAt"))
    kill_at: float | None = None


PAUSE_ENDED = "pause ended"
"""`Exit.killed_by` of a container whose Pod's pause process ended."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a run. `signal` is the signal that ended the process, None for an exit. `killed_by` says on whose
    account it came, None when the process ended by itself."""

    at: float | None = field(default=None, metadata=key("exitedAt"))
    code: int | None = field(default=None, metadata=key("exitCode"))
    reason: str | None = None
    signal: str | None = None
    killed_by: str | None = None
    ended_by: EndedBy = field(default="", metadata=key(null=True))
    starts_again: bool = field(default=True, metadata=HIDDEN)
    """False where the kubelet ended it and did not say that it will be restarted."""
    from_status: bool = field(default=False, metadata=HIDDEN)
    """Its end is known from the Pod's status alone: what is not recorded of its stop may have happened."""
    elsewhere: bool = field(default=False, metadata=HIDDEN)
    """It ran, by its Pod's status, on a node that records nothing: when it started and how it ended is unknown."""

    @property
    def sigkilled(self) -> bool:
        return self.signal == "SIGKILL"

    @property
    def killed_by_grace(self) -> bool:
        """Return whether SIGKILL ended it because its grace period was over, or was 0."""
        return self.sigkilled and self.killed_by in ("grace over", "StopContainer")

    @property
    def failed_by_itself(self) -> bool:
        """Return True for a crash: it was not asked to stop, nobody killed it, and it was not a success."""
        return self.ended_by == "itself" and bool(self.code) and self.killed_by is None

    @property
    def before_delete(self) -> bool:
        return self.at is not None and self.at < 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a run beside its stop and its exit. `oom_kills` counts processes that the kernel killed in it
    for lack of memory, None where nobody counts."""

    probe: FailedProbe | None = field(default=None, metadata=key("failedProbe"))
    last_lines: tuple[str, ...] = ()
    """What it printed last, of a run that did not end with its Pod."""
    oom_kills: int | None = None
    memory_limit: int | None = field(default=None, metadata=HIDDEN)
    limit_reached: bool | None = field(default=None, metadata=HIDDEN)
    """False: it was killed below its own limit, because its Pod or its node had no more memory. None: not known."""
    peak_rss: int | None = field(default=None, metadata=HIDDEN)
    """The most memory that PID 1, or a child that it waited for, had mapped; known where memory ran out."""
    files_in_memory: int | None = field(default=None, metadata=HIDDEN)
    """Bytes of files that counted as its memory after its end; known where memory ran out."""
    ended_together: bool = field(default=False, metadata=HIDDEN)
    """The kernel ended all of its processes at once, because memory ran out."""
    processes_at_stop: tuple[ProcessAtStop, ...] = ()
    """The processes beside PID 1 that ran when the stop signal was sent, as far as they were listed."""
    processes_left: ProcessesLeft | None = None
    waits: WaitsAtKill | None = field(default=None, metadata=HIDDEN)
    """What it waited for when SIGKILL came; None for one that was not killed, and where nobody looked."""
    children_ended: tuple[ChildEnd, ...] = field(default=(), metadata=HIDDEN)
    sockets: Sockets | None = None
    pod_listeners: tuple[PodListener, ...] | None = field(default=None, metadata=HIDDEN)
    """Who listened in its Pod right after it had crashed; None where nobody looked."""
    refused_in_pod: bool | None = field(default=None, metadata=HIDDEN)
    """Before it crashed, its Pod itself refused the connections that failed. None: unclear, or nobody looked."""
    first_reaction: FirstReaction | None = None


@dataclass(frozen=True, slots=True)
class ContainerEnding:
    """How one container ended, in one of its runs."""

    name: str
    kind: ContainerKind
    started: bool
    started_at: float | None = None
    restarts: int = field(default=0, metadata=HIDDEN)
    process: Process = field(default=Process(), metadata=key(flat=True))
    stop: Stop = field(default=Stop(), metadata=key(flat=True))
    exit: Exit = field(default=Exit(), metadata=key(flat=True))
    hook: PreStop | None = field(default=None, metadata=key("preStop"))
    seen: Seen = field(default=Seen(), metadata=key(flat=True))

    @property
    def drain_seconds(self) -> float:
        """Return the seconds from the stop signal to the exit; 0 when one of them is missing."""
        if self.stop.signal_at is None or self.exit.at is None:
            return 0.0
        return max(0.0, self.exit.at - self.stop.signal_at)

    @property
    def run_seconds(self) -> float | None:
        """Return the seconds from its start to its end."""
        if self.started_at is None or self.exit.at is None:
            return None
        return max(0.0, self.exit.at - self.started_at)

    @property
    def had_seconds(self) -> float | None:
        """Return the seconds from its start until its stop began, or it ended by itself."""
        ends = [at for at in (self.stop.requested_at, self.exit.at) if at is not None]
        return max(0.0, min(ends) - self.started_at) if ends and self.started_at is not None else None


OVERRUN_SECONDS = 0.5
"""SIGKILL goes out when the grace period is over, and a moment passes until the process has ended. What is longer is
reported as over the grace period, such as the 2 s of a container whose preStop hook took all of it
(`kuberuntime_container.go:minimumGracePeriodInSeconds`).
"""


@dataclass(frozen=True, slots=True)
class Budget:
    """How the grace period was used by the container that ended last.

    preStop + waiting + drain + unused = grace, or preStop + waiting + drain - overrun = grace. `waiting` is a
    sidecar's wait for the containers before it.
    """

    container: str
    grace: float
    pre_stop: float
    waiting: float
    drain: float
    unused: float
    overrun: float


def endpoint_of(facts: "EndpointChanged | EndpointRemoved") -> tuple[str, str, str]:
    """Return (Service, EndpointSlice, address)."""
    return str(facts.get("service", "")), str(facts.get("slice", "")), str(facts.get("address", ""))


@dataclass(frozen=True, slots=True)
class EndpointTransition:
    """One change of the Pod's endpoint in an EndpointSlice. The conditions are None once it is gone."""

    at: float
    service: str
    slice: str
    address: str
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None

    @property
    def removed(self) -> bool:
        return self.ready is None


@dataclass(frozen=True, slots=True)
class SentSignal:
    """A signal that lastcall sent to a process of the Pod."""

    at: float
    container: str = field(metadata=key(null=True))
    signal: str
    pid: int | None
    why: str


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line that a container printed."""

    at: float
    container: str
    stream: str = field(metadata=key(schema={"enum": ["stdout", "stderr"]}))
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took a while, for the picture of what ran side by side. `end` is None when nobody saw it."""

    label: str
    kind: Literal["preStop", "waiting", "drain", "endpoint", "node", "object"]
    start: float
    end: float | None


ProgramChange = Literal[
    "stopIgnoringSignal", "unblockSignal", "passSignalOn", "signalChildAlone", "useExec", "endOnStopSignal",
    "finishRequests", "closeIdleConnections", "endStreams", "fixServer", "exitZero", "fixCrash", "fixCommand",
    "fixHook", "fixPostStart", "fixProbe", "listenEverywhere", "raiseOwnTimeout", "reapChildren", "stopKilling",
    "useLessMemory",
]  # fmt: skip
"""What only the program, its image or its script can change."""


@dataclass(frozen=True, slots=True)
class Change:
    """A proposed change: `patch`, a strategic merge patch of the Pod's spec, or what the program has to do. One with
    both leaves the choice: which of them helps was not seen."""

    patch: dict[str, Any] | None = None
    program: ProgramChange | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence worth reading. `id` is stable; `container` is "" when it is about the Pod.

    `advice` is the smallest change of the manifest that would help, "" where there is none. `evidence` are the ids of
    the records that it rests on.
    """

    id: str
    severity: Severity
    text: str
    container: str = field(default="", metadata=key(null=True))
    advice: str = field(default="", metadata=key(null=True))
    evidence: tuple[str, ...] = ()
    change: Change | None = field(default=None, hash=False)
    """The advice as data, where it is definite."""


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """Who decided that the Pod has to end, and why.

    `source_ips` is from where its request came, if an audit log has that; all but the last are claims of proxies.

    `actor` is `user`, or the component that decided (`replicaset-controller`, `kubelet` …); `reason` a code. `why` goes
    on from "it ended because". `user` and `client` began the chain, "" when nobody saw them. `chain` are ids
    of records, the decision first.
    """

    actor: str
    reason: str
    why: str
    user: str = field(default="", metadata=key(null=True))
    client: str = field(default="", metadata=key(null=True))
    owner_kind: str = field(default="", metadata=key(null=True))
    owner: str = field(default="", metadata=key(null=True))
    chain: tuple[str, ...] = ()
    source_ips: tuple[str, ...] = field(default=(), metadata=key("sourceIPs"))


PAUSE_SECONDS = 5
"""How long a preStop hook is to wait, where nobody has measured how late others learn of a deletion."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The story of one Pod's end.

    `zero_kind` is the kind of the record that all times count from: DeleteAccepted, or the next best when that was not
    seen. `deleted_at_ns` is its wall time, None when the Pod was never deleted. `gone` is when a client saw DELETED.
    `overhead` = gone - hook - time from the stop signal to the last container's exit; None when one of them is unknown.
    """

    pod: PodFacts = field(metadata=key(flat=True))
    zero_ns: int = field(metadata=HIDDEN)
    zero_kind: str = field(metadata=HIDDEN)
    deleted_at_ns: int | None = field(metadata=key("deletedAt", write=rfc3339))
    grace_seconds: int | None
    outcome: Outcome
    entries: tuple[Entry, ...] = field(default=(), metadata=key("records"))
    containers: tuple[ContainerEnding, ...] = ()
    earlier: tuple[ContainerEnding, ...] = field(default=(), metadata=key("earlierEnds"))
    """The runs of containers that were started again, in order of their ends."""
    budget: Budget | None = None
    endpoints: tuple[EndpointTransition, ...] = ()
    signals: tuple[SentSignal, ...] = ()
    output: tuple[OutputLine, ...] = ()
    spans: tuple[Span, ...] = field(default=(), metadata=HIDDEN)
    gone: float | None = None
    overhead: float | None = None
    until: float = field(default=0.0, metadata=HIDDEN)
    """Return the last moment of the story: that of the last record, or now."""
    findings: tuple[Finding, ...] = ()
    not_known: tuple[str, ...] = ()
    decided_by: DecidedBy | None = None
    addresses: Mapping[str, str] = field(default_factory=dict, hash=False, metadata=HIDDEN)
    """Address → Pod (`namespace/name`), of those that its connections led to and that are known."""
    pause_seconds: int = field(default=PAUSE_SECONDS, metadata=HIDDEN)
    """What advice to wait in a preStop hook says: what was measured, where it was."""
