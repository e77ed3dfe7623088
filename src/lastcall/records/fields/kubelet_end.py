"""What a kubelet does to end a Pod."""

from typing import Annotated, Literal, NotRequired, TypedDict

from lastcall.records.fields.parts import Holder, Observed, ResourceVersion, Seconds, WholeSeconds

ACTOR = "kubelet"


class TerminationObserved(TypedDict):
    """The Pod's worker turns to terminating. There is no way back."""

    cause: Annotated[str, "deletionTimestamp, apiTerminalPhase, kill, removed, completed or runtimeOnly"]
    gracePeriodSeconds: WholeSeconds | None
    observedResourceVersion: Observed


class GraceDecided(TypedDict):
    """The grace period that the kubelet works with (calculateEffectiveGracePeriod)."""

    gracePeriodSeconds: WholeSeconds | None
    shortened: bool
    why: str


class Killing(TypedDict):
    """The kubelet begins to stop a container."""

    message: Annotated[str, "the event's"]
    gracePeriodSeconds: Annotated[WholeSeconds, "for hook and stop signal together"]
    reason: NotRequired[
        Annotated[
            str, "LivenessProbe, StartupProbe, FailedPostStartHook, Unknown or RestartAllContainers; none: the Pod ends"
        ]
    ]


class PreStopSkipped(TypedDict):
    """The preStop hook does not run."""

    why: Annotated[str, "one sentence"]


class PreStopStarted(TypedDict):
    """The preStop hook begins."""

    handler: Annotated[str, "exec, httpGet, sleep or tcpSocket"]
    detail: Annotated[str, "the command, address or time"]
    budgetSeconds: WholeSeconds


class PreStopFinished(TypedDict):
    """The preStop hook is over, or has outlived its budget: then it goes on, and its end is told `late`."""

    handler: Annotated[str, "exec, httpGet, sleep or tcpSocket"]
    outcome: NotRequired[Literal["succeeded", "failed", "outlived"]]
    seconds: NotRequired[Seconds]
    message: NotRequired[Annotated[str, "why it failed"]]
    exitCode: NotRequired[int]
    stdout: NotRequired[str]
    stderr: NotRequired[str]
    late: NotRequired[Annotated[bool, "it ended after its budget"]]


class StopRequested(TypedDict):
    """The kubelet calls CRI StopContainer."""

    timeoutSeconds: Annotated[WholeSeconds, "from the stop signal to SIGKILL"]
    floor: Annotated[bool, "raised to 2 s"]
    deductedSeconds: Annotated[WholeSeconds, "taken off for the hook"]
    waitedForTurnSeconds: NotRequired[Annotated[WholeSeconds, "a sidecar's wait for the containers before it"]]
    why: NotRequired[Annotated[str, "one sentence, where the timeout is not what one expects"]]


class StopFinished(TypedDict):
    """CRI StopContainer has answered."""

    seconds: Seconds
    error: Annotated[str, "empty when it succeeded"]


class SandboxStopped(TypedDict):
    """CRI StopPodSandbox has answered: the Pod's network is gone."""

    sandboxId: str
    seconds: Seconds
    error: Annotated[str, "empty when it succeeded"]


class VolumeBusy(TypedDict):
    """A volume cannot be unmounted, because it is in use."""

    volume: str
    error: str | None
    holders: list[Holder]
    more: Annotated[int, "holders that are not listed"]


class VolumesUnmounted(TypedDict):
    """All volumes are unmounted."""

    volumes: list[str]
    seconds: Seconds


class StatusSent(TypedDict):
    """The kubelet has sent a status."""

    phase: str
    resourceVersion: ResourceVersion


class FinalDeleteSent(TypedDict):
    """The kubelet sends the final DELETE, with grace period 0."""

    uid: str


class WorkerFinished(TypedDict):
    """Nothing of the Pod is left on the node."""
