"""What a kubelet does to start a Pod and to keep it running."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from lastcall.records import rules
from lastcall.records.definitions.parts import Limits, Observed, OpenPort, Outcome, ResourceVersion, Seconds
from lastcall.records.hook_text import hook_failure
from lastcall.records.said import tell
from lastcall.records.sentences import DETAIL, STEP, Words, after, fixed, row, sentences

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


def image_substituted(facts: ImageSubstituted) -> Words:
    image, substitute = facts.get("image"), facts.get("substitute")
    text = tell("image $image is not available: using $substitute instead", image=image, substitute=substitute)
    return Words(text, STEP, "bad")


class ContainerResized(TypedDict):
    """A container that runs has other limits from now on (`pods/resize`)."""

    before: Limits
    after: Limits


def _mebibytes(count: float) -> str:
    return f"{count / (1 << 20):g}"


def container_resized(facts: ContainerResized) -> Words:
    limits: Any = facts.get("after") or {}
    cpu, memory = limits.get("cpuLimit") or 0, limits.get("memoryLimit") or 0
    if cpu and memory:
        text = tell("resized in place: at most $cpu CPUs and $memory MiB", cpu=f"{cpu:g}", memory=_mebibytes(memory))
    elif cpu:
        text = tell("resized in place: at most $cpu CPUs", cpu=f"{cpu:g}")
    elif memory:
        text = tell("resized in place: at most $memory MiB", memory=_mebibytes(memory))
    else:
        text = tell("resized in place: no limits")
    return Words(text)


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
    """The runtime has started the container (CRI StartContainer)."""

    containerId: str
    attempt: Annotated[int, "0 for the first run"]


class ContainerStartFailed(TypedDict):
    """The container cannot be started; the kubelet tries again."""

    reason: str
    message: str


def container_start_failed(facts: ContainerStartFailed) -> Words:
    reason, message = facts.get("reason"), facts.get("message")
    return Words(tell("container cannot start: $reason: $message", reason=reason, message=message), STEP, "bad")


class PostStartStarted(TypedDict):
    """The postStart hook begins."""

    handler: str
    detail: NotRequired[Annotated[str, "the command, address or time"]]


def post_start_started(facts: PostStartStarted) -> Words:
    handler, detail = facts.get("handler", "?"), facts.get("detail")
    if detail:
        return Words(tell("postStart $handler starts: $detail", handler=handler, detail=detail))
    return Words(tell("postStart $handler starts", handler=handler))


class PostStartFinished(TypedDict):
    """The postStart hook has ended. If it failed, the kubelet ends the container."""

    handler: str
    outcome: Outcome
    seconds: Seconds
    message: str
    exitCode: NotRequired[int]
    stdout: NotRequired[str]
    stderr: NotRequired[str]


def post_start_finished(facts: PostStartFinished) -> Words:
    handler, outcome = facts.get("handler", "?"), facts.get("outcome", "?")
    if outcome == "succeeded":
        return Words(tell("postStart $handler succeeded", handler=handler))
    if outcome == "failed":
        code, message = facts.get("exitCode"), hook_failure(str(facts.get("message") or ""))
        why = tell(": exit code $code", code=code) if code else f": {message}" if message else ""
        return Words(
            tell("postStart $handler failed$when$why", handler=handler, when=after(facts), why=why), STEP, "bad"
        )
    return Words(tell("postStart $handler $outcome", handler=handler, outcome=outcome))


class ProbeChanged(TypedDict):
    """A probe's result changes."""

    probe: Literal["readiness", "liveness", "startup"]
    result: Literal["success", "failure", "unknown"]
    output: str
    port: Annotated[int | None, "of the container, that the probe connects to; null: it asks none"]
    succeededBefore: NotRequired[
        Annotated[bool | None, "for a failure: a probe of this container had succeeded; null: not known"]
    ]


def probe_changed(facts: ProbeChanged) -> Words:
    probe, result = facts.get("probe"), facts.get("result")
    if result == "success":
        return Words(tell("$probe probe: success", probe=probe), STEP, "good")
    said = f": {facts['output']}" if facts.get("output") else ""
    if result == "failure":
        return Words(tell("$probe probe: failure$said", probe=probe, said=said), STEP, "bad")
    return Words(tell("$probe probe: $result$said", probe=probe, result=result, said=said), STEP, "bad")


class ProbeFailing(TypedDict):
    """A readiness probe that has never succeeded failed failureThreshold times. Written again for another output."""

    probe: Literal["readiness"]
    output: str
    port: Annotated[int, "of the container, that the probe connects to"]
    listeners: Annotated[
        list[OpenPort] | None, "who of the container listened when the connection was refused; null: not known"
    ]


def probe_failing(facts: ProbeFailing) -> Words:
    ports = ", ".join(f"{each.get('address')}:{each.get('port')}" for each in facts.get("listeners") or ())
    seen = tell("; the container listens on $ports", ports=ports) if ports else ""
    text = tell(
        "$probe probe keeps failing: $output$seen", probe=facts.get("probe"), output=facts.get("output"), seen=seen
    )
    return Words(text, STEP, "bad")


class PodRunning(TypedDict):
    """The kubelet has reported the phase Running for the first time."""

    phase: str
    resourceVersion: ResourceVersion


SENTENCES = sentences(
    row(PodAdmitted, fixed("admitted", DETAIL), rules.HANDLE_POD_ADDITIONS),
    row(PodRejected, fixed("rejected: $reason: $message", STEP, "bad"), rules.REJECT_POD),
    row(MirrorPodCreated, fixed("mirror Pod $name made in the API", DETAIL), rules.CREATE_MIRROR_POD),
    row(VolumeFailed, fixed("volume $volume cannot be mounted: $error", STEP, "bad"), rules.WAIT_FOR_ATTACH_AND_MOUNT),
    row(VolumesMounted, fixed("volumes mounted", DETAIL), rules.WAIT_FOR_ATTACH_AND_MOUNT),
    row(SandboxCreated, fixed("sandbox created", DETAIL), rules.SYNC_POD),
    row(ImageSubstituted, image_substituted, rules.START_CONTAINER),
    row(ContainerResized, container_resized, rules.DO_POD_RESIZE_ACTION),
    row(
        AllContainersRestarting, fixed("exit $exitCode restarts all containers of the Pod", STEP, "bad"), rules.SYNC_POD
    ),
    row(ContainerCreated, fixed("container created from $image", DETAIL), rules.START_CONTAINER),
    row(ContainerStarted, fixed("container started", STEP), rules.START_CONTAINER),
    row(ContainerStartFailed, container_start_failed, rules.START_CONTAINER),
    row(PostStartStarted, post_start_started, rules.START_CONTAINER),
    row(PostStartFinished, post_start_finished, rules.START_CONTAINER),
    row(ProbeChanged, probe_changed, rules.DO_PROBE),
    row(ProbeFailing, probe_failing, rules.DO_PROBE),
    row(PodRunning, fixed("phase Running", STEP), rules.SYNC_POD_STATUS),
)
"""The words for each kind."""
