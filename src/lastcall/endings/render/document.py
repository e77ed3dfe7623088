"""The shape of `lastcall/ending/v1`: tools/make_catalogue.py makes docs/ending-v1.schema.json of it. Types only.

Times are seconds after the moment that the story counts from, to the microsecond; null where nobody saw it.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from lastcall.endings.story import Outcome, PreStopOutcome, Severity
from lastcall.records.definitions.parts import ContainerKind
from lastcall.records.record import Evidence

Wall = Annotated[str | None, {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"}]
"""RFC 3339 in UTC with microseconds."""


class FirstReaction(TypedDict):
    """What the application did first after its stop signal."""

    what: Literal["output", "listenerClosed", "connectionsClosed", "exit"]
    seconds: float


class ProcessLeft(TypedDict):
    """A process of a container that was still there. `disposition`: what it does with the stop signal."""

    pid: int
    containerPid: int
    name: str
    disposition: str


class ProcessesLeft(TypedDict):
    """Processes beside PID 1, when SIGKILL came or PID 1 ended; `more` are not listed."""

    when: Annotated[str, {"enum": ["SIGKILL", "exit"]}]
    evidence: Evidence
    processes: list[ProcessLeft]
    more: int
    zombies: int


class Listener(TypedDict):
    """A socket that listens; `backlog` is the length of its queue."""

    address: str
    port: int
    backlog: int


class ListenerClosed(TypedDict):
    """A socket that listens no more: closed after `notBefore`, seen at `at`."""

    address: str
    port: int
    at: float
    notBefore: float


class AtExit(TypedDict):
    """Sockets just before the exit, `secondsBefore` it."""

    listeners: list[Listener]
    connections: int
    unread: int
    unreadBytes: int
    backlog: int
    resets: int
    closedUnread: int
    secondsBefore: float


class Sockets(TypedDict):
    """Listeners and connections at the stop signal, and what became of them."""

    listeners: list[Listener]
    connections: int
    scope: Annotated[str, {"enum": ["container", "pod"]}]
    listenersClosed: list[ListenerClosed]
    connectionsClosedAt: float | None
    atExit: AtExit | None


class PreStop(TypedDict):
    """A preStop hook."""

    handler: Annotated[str | None, {"enum": ["exec", "httpGet", "sleep", "tcpSocket", None]}]
    seconds: float | None
    outcome: PreStopOutcome
    exitCode: int | None
    detail: str | None
    output: str | None


class FailedProbe(TypedDict):
    """The probe that ended a run."""

    output: str
    succeededBefore: bool | None


class Container(TypedDict):
    """One run of a container, and its end."""

    name: str
    kind: ContainerKind
    started: bool
    exitCode: int | None
    reason: str | None
    signal: str | None
    preStop: PreStop | None
    stopSeconds: float | None
    killedBy: str | None
    stopSignal: str
    stopSignalAt: float | None
    killAt: float | None
    exitedAt: float | None
    disposition: Annotated[str | None, {"enum": ["handled", "ignored", "blocked", "default", None]}]
    executable: str | None
    oomKills: int | None
    firstReaction: FirstReaction | None
    processesLeft: ProcessesLeft | None
    sockets: Sockets | None
    startedAt: float | None
    endedBy: Literal["itself", "restartRule", "livenessProbe", "startupProbe", "postStartHook", "node"] | None
    failedProbe: FailedProbe | None
    lastLines: list[str]


class DecidedBy(TypedDict):
    """Who decided that the Pod has to end. `chain` are ids of records, the decision first."""

    actor: str
    reason: str
    why: str
    user: str | None
    client: str | None
    ownerKind: str | None
    owner: str | None
    chain: list[str]


class Record(TypedDict):
    """What one component did or saw. `facts` depend on the kind; `causeId` is another record's id."""

    id: str
    at: float
    wall: Wall
    actor: str
    kind: str
    rule: str | None
    container: str | None
    facts: dict[str, Any]
    causeId: str | None
    evidence: Evidence


class Budget(TypedDict):
    """Where the grace period went, in seconds."""

    container: str
    grace: float
    preStop: float
    waiting: float
    drain: float
    unused: float
    overrun: float


class Endpoint(TypedDict):
    """A change of the Pod's endpoint."""

    at: float
    service: str
    slice: str
    address: str
    ready: bool | None
    serving: bool | None
    terminating: bool | None
    removed: bool


class Signal(TypedDict):
    """A signal that was sent."""

    at: float
    container: str | None
    signal: str
    pid: int | None
    why: str


class Output(TypedDict):
    """A line that a container printed."""

    at: float
    container: str
    stream: Annotated[str, {"enum": ["stdout", "stderr"]}]
    text: str


class Finding(TypedDict):
    """One sentence worth reading; `advice` is what to change."""

    id: str
    severity: Severity
    container: str | None
    text: str
    advice: str | None


class Pod(TypedDict):
    """The story of one Pod."""

    namespace: str
    name: str
    uid: str
    node: str | None
    phase: Annotated[str | None, {"enum": ["Pending", "Running", "Succeeded", "Failed", "Unknown", None]}]
    graceSeconds: int | None
    deletedAt: Wall
    outcome: Outcome
    ongoing: bool
    decidedBy: DecidedBy | None
    records: list[Record]
    containers: list[Container]
    earlierEnds: list[Container]
    budget: Budget | None
    endpoints: list[Endpoint]
    signals: list[Signal]
    output: list[Output]
    gone: float | None
    overhead: float | None
    findings: list[Finding]
    notKnown: list[str]


class NotSimulated(TypedDict):
    """What of the manifests did not act."""

    id: str
    what: str
    text: str


class Ending(TypedDict):
    """How Pods ended."""

    schema: Literal["lastcall/ending/v1"]
    lastcallVersion: str
    kubernetesVersion: Annotated[str, {"enum": ["1.23", "1.27", "1.36"]}]
    exitStatus: Annotated[int, {"enum": [0, 1, 3]}]
    error: str | None
    notSimulated: NotRequired[list[NotSimulated]]
    pods: list[Pod]
