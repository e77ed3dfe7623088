"""Define what several kinds of records have in common: units, and the items of their lists."""

from typing import Annotated, Literal, NotRequired, TypedDict

Seconds = Annotated[float, "seconds"]
WholeSeconds = Annotated[int, "seconds"]
Bytes = Annotated[int, "bytes"]
ResourceVersion = Annotated[str, "of the object as written"]
Observed = Annotated[str, "resourceVersion of the object that was reacted to"]
Scope = Annotated[
    Literal["container", "pod"], "whose connections are counted: all containers of a Pod share one network"
]
Disposition = Literal["handled", "ignored", "blocked", "default"]
Outcome = Literal["succeeded", "failed"]


class Owner(TypedDict):
    kind: str
    name: str
    uid: str


ContainerKind = Literal["container", "sidecar", "init", "ephemeral"]


class ContainerOfPod(TypedDict):
    name: str
    kind: Annotated[str, "container, sidecar, init or ephemeral"]
    preStop: Annotated[str, "the handler, empty without one"]
    restartRules: NotRequired[Annotated[object, "as in the spec"]]
    tcpProbes: NotRequired[Annotated[list[int], "ports to which its tcpSocket probes connect"]]


class Limits(TypedDict):
    """0 means unlimited."""

    cpuShares: int
    cpuLimit: Annotated[float, "CPUs"]
    memoryLimit: Annotated[int, "bytes"]


class EphemeralContainer(TypedDict):
    name: str
    target: Annotated[str, "the container whose processes it sees, or empty"]


class Waiting(TypedDict):
    """What keeps a container from starting."""

    container: str | None
    reason: str
    message: str


class Holder(TypedDict):
    """Who keeps a volume busy."""

    pid: Annotated[int, "0 for a mount, which no process owns"]
    name: str
    how: Annotated[str, "open file, working directory, root directory, program or mount"]
    path: str


class OpenPort(TypedDict):
    """On which a container listens."""

    address: str
    port: int


class Listener(TypedDict):
    address: str
    port: int
    backlog: Annotated[int, "connections that the program has not accepted"]


class PodListener(TypedDict):
    """Who listens in the network of a Pod."""

    address: str
    port: int
    container: Annotated[str, "empty where that is not known"]


class PodResets(TypedDict):
    """TCP counters of a Pod's network namespace, since the crash before in it or since it began."""

    sent: Annotated[int, "resets; a port without a listener answers with one"]
    aborted: Annotated[int, "connections that its own programs aborted, each of which may have sent one"]
    attemptsFailed: Annotated[int, "connection attempts that failed"]
    loopbackPackets: Annotated[int, "on its loopback device; an attempt that the Pod itself refuses has two"]


class Peer(TypedDict):
    """The other side of a TCP connection."""

    address: str
    port: int
    ownPort: Annotated[int, "the port on this side"]
    accepted: Annotated[bool, "false: the kernel had taken it for the program, which had not accepted it"]
    unreadBytes: Bytes


class ProcessLeft(TypedDict):
    pid: int
    containerPid: int
    name: str
    state: Annotated[str, "as in /proc"]
    disposition: Annotated[Disposition, "what it does with that signal"]
    child: Annotated[bool, "of PID 1 itself"]
    afterSignal: NotRequired[Annotated[bool, "it did not run yet at that signal"]]


class ProcessAtStop(TypedDict):
    pid: int
    containerPid: int
    parent: Annotated[int, "the number of its parent inside; 0 for one outside of the container, or not known"]
    name: str
    state: Annotated[str, "as in /proc"]
    disposition: Annotated[Disposition, "what it does with that signal"]


class ThreadsWaiting(TypedDict):
    """Threads of one process that sleep in the same call."""

    call: Annotated[str, "the system call; empty for threads that run, and where it is not known"]
    threads: int
    limited: Annotated[bool | None, "the call ends after some time by itself; null: not known"]
    own: Annotated[bool, "a futex that only threads of the same process can wake"]
    wakesIn: NotRequired[Annotated[Seconds, "until the sleep ends"]]


class ProcessWaiting(TypedDict):
    containerPid: int
    name: str
    waits: list[ThreadsWaiting]
    caught: NotRequired[Annotated[list[str], "signals for which it has a handler then"]]
    afterSignal: NotRequired[Annotated[bool, "it did not run yet at that signal"]]


class NotExecuted(TypedDict):
    """A program that is there, and that the kernel refused to execute."""

    path: str
    error: Annotated[str, "no such file or directory: of its interpreter; exec format error …"]
    format: Annotated[Literal["script", "elf", "text", "unknown"], "text: it has no #! line"]
    interpreter: Annotated[str, "that its #! line names, or the loader of an elf program; empty without one"]
    carriageReturn: Annotated[bool, "the #! line has one right behind the interpreter, as a part of its name"]
    machine: Annotated[str, "the architecture of an elf program; empty if it is that of the node"]


class Hang(TypedDict):
    """Why init ended a role whose event loop did not turn."""

    seconds: Seconds
    cpuSeconds: Annotated[Seconds, "of these on a processor"]
    takesLonger: Annotated[str, "what may take so long here, or empty"]
    stack: Annotated[str, "where it stood"]


class Turn(TypedDict):
    component: str
    key: str


class OwnerOfDecision(TypedDict, total=False):
    """Part of decisions: the owner that it was made for, as observed."""

    ownerKind: str
    owner: str
    ownerUid: str
    ownerGeneration: int
    ownerResourceVersion: str


class Audited(TypedDict, total=False):
    """Part of the facts of requests: what an audit log has of it."""

    auditId: Annotated[str, "of its events in the audit log"]
    sourceIPs: Annotated[list[str], "from where it came; all but the last are what proxies and headers claim"]
    impersonator: Annotated[str, "who sent it, where the user is one that the request acted as"]


class GroundsOfDecision(OwnerOfDecision, Audited, total=False):
    """Part of DeletionDecided: what the decision went by."""

    step: Annotated[str, "rollout, scaling, finished, suspended …"]
    reason: Annotated[str, "why this Pod"]
    rank: Annotated[int, "of this Pod among the candidates, from 1"]
    candidates: int
    revision: str
    ordinal: int
    active: Annotated[int, "Pods that the Job has"]
    wanted: Annotated[int, "Pods that it is to have"]
    condition: Annotated[str, "the Job's, with which it finished"]
    conditionReason: str
    node: str
    namespace: Annotated[str, "the one that ends"]
    taint: str
    toleratedSeconds: Annotated[Seconds | None, "null: forever"]
    terminated: Annotated[int, "Pods that have ended"]
    threshold: Annotated[int, "how many of these may stay"]
    signal: Annotated[str, "the kubelet's eviction signal"]
    hard: Annotated[bool, "a hard threshold"]
    priority: Annotated[int, "this Pod's"]
    gracePeriodSeconds: WholeSeconds
    ownGracePeriodSeconds: Annotated[WholeSeconds | None, "what the Pod asks for"]
    preemptor: str
    preemptorUid: str
    preemptorPriority: int
    victims: int
    budgetsViolated: int
    podDisruptionBudget: Annotated[str, "namespace and name"]
    disruptionsAllowed: int
    currentHealthy: int
    desiredHealthy: int
    user: str
    userAgent: str
    kind: Annotated[str, "of what is deleted, where that is not a Pod"]
    name: str
    uid: str


class StartProblems(TypedDict, total=False):
    """Part of PodStatusWritten."""

    waiting: Annotated[list[Waiting], "what keeps its containers from starting"]
    unschedulable: Annotated[str, "what the scheduler says"]


_Sizes = TypedDict(
    "_Sizes",
    {
        "from": NotRequired[Annotated[int | None, "replicas before, where they changed"]],
        "to": NotRequired[Annotated[int | None, "replicas from now on"]],
    },
)


class SpecChange(_Sizes):
    """Part of OwnerWritten."""

    changed: Annotated[list[str], "names of spec fields; empty for a creation"]


class InSlice(TypedDict):
    """Part of the facts of EndpointSlices."""

    service: str
    slice: str
    resourceVersion: Annotated[str, "of the EndpointSlice as written"]


class EndpointConditions(TypedDict, total=False):
    """Part of EndpointChangeSeen."""

    ready: bool
    serving: bool
    terminating: bool
    removed: bool


class BetweenLooks(TypedDict):
    """Part of what closes after the stop signal."""

    seconds: Annotated[Seconds, "since the stop signal, at the latest"]
    notBefore: Annotated[Seconds, "since the stop signal, at the earliest"]


class WhyItDied(TypedDict, total=False):
    """Part of ProcessDied."""

    hung: Annotated[Hang, "its event loop did not turn, and init ended it"]
    workingOn: Annotated[Turn, "its last turn, when the end was its own fault"]
    restartsIn: Annotated[Seconds, "until it is started again"]
    servesAlone: Annotated[Seconds, "how long the next one answers without controllers"]


class Ids(TypedDict, total=False):
    """Part of ProcessStarted: as whom it runs, in the container."""

    uid: int
    gid: int
