"""What a kubelet does to start a Pod and to keep it running."""

from typing import Annotated, Literal, NotRequired, TypedDict

from lastcall.records.fields.parts import Limits, Observed, Outcome, ResourceVersion, Seconds

ACTOR = "kubelet"


class PodAdmitted(TypedDict):
    """The node takes the Pod."""

    observedResourceVersion: Observed


class PodRejected(TypedDict):
    """The node cannot take the Pod: it is Failed at once."""

    reason: str
    message: str


class MirrorPodCreated(TypedDict):
    """A static Pod has got its mirror, its object in the API."""

    mirrorUid: str
    namespace: str
    name: str
    resourceVersion: ResourceVersion


class VolumeFailed(TypedDict):
    """A volume cannot be mounted. Written once for each error."""

    volume: str
    error: str


class VolumesMounted(TypedDict):
    """All volumes are mounted: containers may start."""

    volumes: list[str]


class SandboxCreated(TypedDict):
    """The Pod has its sandbox, and with it its network."""

    sandboxId: str
    ips: list[str]
    seconds: Seconds


class ImageSubstituted(TypedDict):
    """An image is not available; another one is used in its place."""

    image: str
    substitute: str


class ContainerResized(TypedDict):
    """A container that runs has other limits from now on (`pods/resize`)."""

    before: Limits
    after: Limits


class AllContainersRestarting(TypedDict):
    """A container's exit asks for a restart of all (restartPolicyRules)."""

    exitCode: Annotated[int, "of the container that asks for it"]
    containers: Annotated[list[str], "killed and removed, in order"]


class ContainerCreated(TypedDict):
    """CRI CreateContainer has succeeded."""

    containerId: str
    image: str
    attempt: Annotated[int, "0 for the first run"]


class ContainerStarted(TypedDict):
    """CRI StartContainer has succeeded."""

    containerId: str
    attempt: Annotated[int, "0 for the first run"]


class ContainerStartFailed(TypedDict):
    """The container cannot be started; the kubelet tries again."""

    reason: str
    message: str


class PostStartStarted(TypedDict):
    """The postStart hook begins."""

    handler: str


class PostStartFinished(TypedDict):
    """The postStart hook is over. A failed one ends the container."""

    handler: str
    outcome: Outcome
    seconds: Seconds
    message: str


class ProbeChanged(TypedDict):
    """A probe's result changes."""

    probe: Literal["readiness", "liveness", "startup"]
    result: Literal["success", "failure", "unknown"]
    output: str
    port: Annotated[int | None, "of the container, that the probe connects to; null: it asks none"]
    succeededBefore: NotRequired[
        Annotated[bool | None, "for a failure: a probe of this container had succeeded; null: not known"]
    ]


class PodRunning(TypedDict):
    """The kubelet has reported the phase Running for the first time."""

    phase: str
    resourceVersion: ResourceVersion
