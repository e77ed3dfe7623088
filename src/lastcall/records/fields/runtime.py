"""What the runtime (the shim and what drives it) sees of processes and networks."""

from typing import Annotated, Literal, NotRequired, TypedDict

from lastcall.records.fields.parts import Bytes, Disposition, Ids, Seconds

ACTOR = "runtime"


class ProcessStarted(Ids):
    """A container's PID 1 runs."""

    containerId: str
    pid: int
    exe: Annotated[str | None, "the program's file"]
    argv: list[str]
    seccomp: NotRequired[Annotated[str, "the filter's name"]]


class PrivilegeCallAnswered(TypedDict):
    """A call was answered with success without being done, because the cluster has one user id; the first of each
    call."""

    containerId: str
    call: Annotated[str, "chown, setuid …"]
    id: Annotated[int | None, "who it asked to be"]


class ProcessSignalState(TypedDict):
    """How PID 1 meets the stop signal, read from /proc right before it."""

    pid: int
    containerPid: Annotated[int, "in its PID namespace: only 1 is deaf to default"]
    name: NotRequired[str]
    exe: Annotated[str | None, "the program's file"]
    signal: str
    disposition: Disposition
    taken: NotRequired[Annotated[str, "how a handled one is: handler, sigwait or signalfd; else empty"]]
    caught: list[str]
    ignored: list[str]
    blocked: list[str]


class OutOfMemory(TypedDict):
    """Without a control group: concluded from the machine's counter and a SIGKILL that nobody here sent."""

    containerId: str
    pid: int
    machineKills: int


class SignalSent(TypedDict):
    """A signal is on its way."""

    signal: str
    pid: NotRequired[int]
    why: Annotated[str, "StopContainer, grace over, StopPodSandbox, exec timeout, caller gone, the shim died …"]
    oomKills: NotRequired[
        Annotated[int | None, "for SIGKILL: out-of-memory kills in the container so far; null: nobody counts"]
    ]
    stopSignalPending: NotRequired[
        Annotated[bool | None, "for SIGKILL: the stop signal had not been taken by then; null: not known"]
    ]


class ProcessExited(TypedDict):
    """A container's PID 1 has ended."""

    containerId: str
    pid: NotRequired[int]
    exitCode: int
    signal: Annotated[str | None, "that ended it"]
    oomKilled: bool | None
    oomKills: NotRequired[Annotated[int | None, "since the start; null: nobody counts"]]
    memoryLimit: NotRequired[Annotated[Bytes | None, "null without one"]]
    peakRss: NotRequired[Annotated[Bytes, "of PID 1 or a child that it waited for; known where memory ran out"]]
    endedTogether: NotRequired[Annotated[bool | None, "the kernel ended all of it at once; null: it does not say"]]
    unexplained: NotRequired[Annotated[bool, "whether anything had told it to stop is not known"]]
    finishedAt: NotRequired[
        Annotated[str, "of the Pod's status, by the node's clock: the end was concluded from it, without a pid"]
    ]


class ExecStarted(TypedDict):
    """An exec (of a hook, a probe or a user) runs."""

    execId: str
    pid: int
    argv: list[str]


class ExecExited(TypedDict):
    """An exec has ended."""

    execId: str
    pid: int
    exitCode: int
    signal: Annotated[str | None, "that ended it"]
    killedBecause: Annotated[str, "empty when it ended by itself"]


class Output(TypedDict):
    """A container has printed a line."""

    stream: Literal["stdout", "stderr"]
    text: str
    attempt: Annotated[int, "0 for the first run"]
    dropped: NotRequired[Annotated[int, "lines before this one that were too many to tell"]]


class NetworkAttached(TypedDict):
    """The Pod has its network (CNI ADD)."""

    ip: str
    seconds: Seconds


class NetworkPoliciesApplied(TypedDict):
    """The kernel drops new connections of the Pod that these NetworkPolicies do not allow. Written at each change."""

    ingress: Annotated[list[str], "names of those about what it receives; empty: it receives everything"]
    egress: Annotated[list[str], "names of those about what it sends; empty: it sends everything"]


class NetworkDetached(TypedDict):
    """The Pod's network is taken down (CNI DEL), or cannot be."""

    ip: str
    seconds: Seconds
    error: Annotated[str, "empty when it succeeded"]
