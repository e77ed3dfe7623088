"""The shape of `lastcall/rollout/v1`: tools/make_catalogue.py makes docs/rollout-v1.schema.json of it. Types only.

Times are seconds, to the microsecond.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from lastcall.endings import ProgramChange, Severity
from lastcall.endings.render import Head
from lastcall.traffic import CAUSE_IDS, Kind

CAUSES = list(CAUSE_IDS)
IDS_OF_CAUSES = list(CAUSE_IDS.values())


class Note(TypedDict):
    """What of the manifests did not act."""

    id: str
    what: str
    text: str


class Latency(TypedDict):
    """Of good answers. `p99Least` leaves out what the load generator itself was held up."""

    count: int
    p50: float
    p95: float
    p99: float
    max: float
    p99Least: float


class Latencies(TypedDict):
    """By phase and kind of request."""

    before: dict[str, Latency]
    during: dict[str, Latency]
    after: dict[str, Latency]


class Threshold(TypedDict):
    """A limit and what was found. `unsure`: the load generator was held up for so long that it is not known."""

    name: str
    limit: str
    value: str
    broken: bool
    unsure: bool


class Pooled(TypedDict):
    """All runs of one manifest together."""

    runs: int
    inconclusive: int
    crashed: int
    total: int
    lost: int
    upperBound: float
    latency: Latencies
    thresholds: list[Threshold]
    exitStatus: Annotated[int, {"enum": [0, 3, 4]}]


class PooledRuns(TypedDict):
    """The runs with the manifest as it is, and those with the advice."""

    manifest: Pooled
    withAdvice: NotRequired[Pooled]


class Advice(TypedDict):
    """A change of the manifest; `saves` is the number of requests that it would have saved. `program` is what only the
    program can change: as `change.program` in `lastcall/ending/v1`."""

    id: str
    sentence: str
    saves: int
    patch: dict[str, Any]
    program: ProgramChange | None
    refused: str | None


# Fields whose names are words of Python stand in a base of their own.
_LostRest = TypedDict("_LostRest", {"class": str})


class Lost(_LostRest):
    """A request that was lost. `at` counts from the disruption; `notKnown` is why its cause is not known. `container`
    is the one of several containers that it went to."""

    id: int
    kind: Kind
    at: float
    status: int | None
    sent: float
    echoed: int | None
    unansweredMessage: str | None
    messageSeen: str | None
    behindPublishedPort: str | None
    connectionAge: float
    pod: str | None
    phase: str | None
    cause: Annotated[str, {"enum": CAUSES}]
    causeId: Annotated[str, {"enum": IDS_OF_CAUSES}]
    notKnown: str | None
    between: list[str]
    application: Annotated[str, {"enum": ["never", "begun", "answered", "unknown"]}]
    container: str | None


class Pod(TypedDict):
    """A Pod's life, in seconds from the disruption."""

    name: str
    ip: str
    ready: float | None
    deleted: float | None
    preStop: float | None
    term: float | None
    listenerClosed: float | None
    exited: float | None
    unrouted: float | None
    killed: bool
    neverAccepted: int | None
    unread: int | None


class Counted(TypedDict):
    """Requests."""

    total: int
    lost: int


class RequestsByPod(TypedDict):
    """Requests that a Pod was sent."""

    pod: str
    total: int
    lost: int
    upperBound: float


_MovedRest = TypedDict("_MovedRest", {"class": str})


class Moved(_MovedRest):
    """Requests that were not lost because the client went on elsewhere."""

    kind: Kind
    count: int


class Balance(TypedDict):
    """How the requests of long connections were spread over Pods."""

    kind: Kind
    connections: int
    requests: dict[str, int]


class ApplicationOutput(TypedDict):
    """Requests whose ids the application printed; `whole`: no line of it is missing."""

    requests: int
    whole: bool


class NotWell(TypedDict):
    """A finding about a Pod that crashed or was restarted."""

    pod: str
    id: str
    severity: Severity
    container: str
    text: str
    advice: str | None


class NotReady(TypedDict):
    """Why a Pod, or an owner of Pods, did not become Ready. `change` has a patch of the Pod's spec, or what a person
    has to correct, where that is definite."""

    pod: str
    id: str
    severity: Severity
    container: str
    text: str
    advice: str
    change: dict[str, Any] | None


_ExperimentRest = TypedDict(
    "_ExperimentRest", {"from": Annotated[str, {"enum": ["node", "pod", "published", "balancer", "client"]}]}
)


class Experiment(_ExperimentRest):
    """One run. `stories` are those of the old Pods, each as `pods` of `lastcall/ending/v1`."""

    workload: str
    run: int
    withAdvice: bool
    service: str
    disrupt: Annotated[str, {"enum": ["rollout", "scale-in", "delete", "drain", "evict"]}]
    disrupted: bool
    node: str | None
    nodes: int
    propagation: str
    seconds: float
    verdict: Annotated[str, {"enum": ["nothing lost", "requests lost", "inconclusive"]}]
    sentence: str
    total: int
    lost: int
    upperBound: float
    byKind: dict[str, Counted]
    byCause: dict[str, int]
    byPod: dict[str, int]
    upperBoundByCause: dict[str, float]
    requestsByPod: list[RequestsByPod]
    moved: list[Moved]
    balance: list[Balance]
    balanceAfter: list[Balance]
    control: Counted
    neverAnswered: list[Kind]
    unmeasured: int
    unaccounted: list[int]
    withoutOutcome: list[int]
    answeredUnseen: list[int]
    applicationOutput: ApplicationOutput
    during: Counted
    lateness: dict[str, float]
    latency: Latencies
    notSimulated: list[Note]
    notes: list[Note]
    advice: list[Advice]
    patch: dict[str, Any]
    notWell: list[NotWell]
    lostRequests: list[Lost]
    pods: list[Pod]
    stories: list[dict[str, Any]]


class Rollout(Head):
    """What became of the requests of a rollout."""

    schema: Literal["lastcall/rollout/v1"]
    lastcall: str
    experiments: list[Experiment]
    pooled: NotRequired[PooledRuns]
    findSafe: NotRequired[dict[str, Any]]
    error: NotRequired[str]
    notReady: NotRequired[list[NotReady]]
