"""What a Kubernetes Event says about a Pod's end. Pure.

Events are best effort: one that is missing proves nothing, and one that came is the word of its writer.

Source: pkg/kubelet/events/event.go; kuberuntime_container.go:killContainer; lifecycle texts of 1.27 to 1.36.
"""

# check: pure

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lastcall.kube.api import Object
from lastcall.records import kinds
from lastcall.trace.drafts import Draft, draft
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.definitions.kubelet_start import ContainerStartFailed, ProbeChanged, VolumeFailed

_CONTAINER = re.compile(r"spec\.(?:containers|initContainers|ephemeralContainers)\{(.+)\}")
_PROBES = {"liveness": "liveness", "readiness": "readiness", "startup": "startup"}
_PROBE = re.compile(r"^(Liveness|Readiness|Startup) probe (failed|errored)(?: and resulted in [a-z ]+)?: ?(.*)$", re.S)
_KILLS = {"liveness": "LivenessProbe", "startup": "StartupProbe"}
_VOLUME = re.compile(r'(?:MountVolume\.\w+|SetUp) failed for volume "([^"]+)"')
_DELETED = re.compile(r"^(?:Deleted pod: |[Dd]elete Pod )(\S+)")
_DELETED_JOB = re.compile(r"^Deleted job (\S+)")
_PREEMPTED = re.compile(r"^Preempted by (?:pod )?(\S+) on node ")
_RESCALED = re.compile(r"^New size: (\d+); reason: (.+)$", re.S)
_LONGEST = 500

_BY_WEBHOOK = re.compile(r'(?:admission webhook|failed calling webhook) "([^"]+)"')
OF_OWNERS = ("SuccessfulDelete", "SuccessfulRescale", "FailedDelete")
"""Reasons of Events that owners, and the autoscalers of owners, say about what they do."""

OF_PODS = frozenset(
    {
        "Killing", "FailedPreStopHook", "FailedPostStartHook", "Unhealthy", "FailedMount", "Failed", "FailedKillPod",
        "Evicted", "Preempted", "Preempting", "TaintManagerEviction", "ExceededGracePeriod", "NodeNotReady",
        "FailedScheduling", "FailedCreatePodSandBox",
    }
)  # fmt: skip
"""Reasons of Events about Pods that are of use here. Started, Pulled, BackOff and all others are not kept."""


@dataclass(frozen=True, slots=True)
class PodEvent:
    """The part of an Event that is of use here. `reporter` is the component; `stamp` is by its clock."""

    uid: str
    version: str
    reason: str
    message: str
    of_kind: str
    namespace: str
    name: str
    of_uid: str
    container: str
    reporter: str
    node: str
    stamp: str


def pod_event_of(event: Object) -> PodEvent | None:
    """Convert an Event of `v1`; None for one that is of no use here."""
    about = event.get("involvedObject") or {}
    reason = str(event.get("reason") or "")
    kind = str(about.get("kind") or "")
    if (reason not in OF_PODS) if kind == "Pod" else (reason not in OF_OWNERS):
        return None
    source, series = event.get("source") or {}, event.get("series") or {}
    field = _CONTAINER.fullmatch(str(about.get("fieldPath") or ""))
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return PodEvent(
        uid=str(event["metadata"].get("uid") or ""),
        version=str(event["metadata"].get("resourceVersion") or ""),
        reason=reason,
        message=str(event.get("message") or "")[:_LONGEST],
        of_kind=kind,
        namespace=str(about.get("namespace") or ""),
        name=str(about.get("name") or ""),
        of_uid=str(about.get("uid") or ""),
        container=field.group(1) if field else "",
        reporter=str(source.get("component") or event.get("reportingComponent") or ""),
        node=str(source.get("host") or ""),
        stamp=next((str(each) for each in times if each), ""),
    )


def names_pod(event: PodEvent) -> str:
    """Return the Pod that an owner's Event says was deleted; "" for another Event."""
    match = _DELETED.match(event.message) if event.reason == "SuccessfulDelete" else None
    return match.group(1) if match else ""


def refusing_webhook(event: PodEvent) -> str:
    """Return the webhook for which an owner's Event says that a Pod is not deleted; "" for another Event.

    (`controller_utils.go:DeletePod`)
    """
    match = _BY_WEBHOOK.search(event.message) if event.reason == "FailedDelete" else None
    return match.group(1) if match else ""


def names_job(event: PodEvent) -> str:
    """Return the Job that a CronJob's Event says was deleted; "" for another Event."""
    match = _DELETED_JOB.match(event.message) if event.of_kind == "CronJob" else None
    return match.group(1) if match else ""


def preemptor_of(event: PodEvent) -> str:
    """Return for whom a Pod was preempted, by the scheduler's Event: a Pod's uid, from older schedulers
    `namespace/name`; "" where it names nobody.

    (`preemption/executor.go:PreemptPod`)
    """
    match = _PREEMPTED.match(event.message)
    return match.group(1) if match else ""


def rescaled(event: PodEvent) -> tuple[int, str] | None:
    """Return (new size, reason) that a HorizontalPodAutoscaler's Event has; None for another Event.

    (`horizontal.go:reconcileAutoscaler`)
    """
    match = _RESCALED.match(event.message) if event.reason == "SuccessfulRescale" else None
    return (int(match.group(1)), match.group(2)) if match else None


def kill_reason(message: str) -> str:
    """Return the record's reason for the kubelet's Killing: "" when the Pod ends.

    (`kuberuntime_manager.go:computePodActions`, messages of containersToKill)
    """
    if "liveness probe" in message:
        return "LivenessProbe"
    if "startup probe" in message:
        return "StartupProbe"
    return "FailedPostStartHook" if "PostStart" in message else ""


def failed_probe(event: PodEvent) -> str:
    """Return the reason of a Killing for the probe whose failure an Event reports; "" for another Event."""
    match = _PROBE.match(event.message) if event.reason == "Unhealthy" else None
    return _KILLS.get(match.group(1).lower(), "") if match else ""


def steps_of(event: PodEvent) -> Iterator[Draft]:
    """Yield the records that an Event alone gives. Killing and FailedPreStopHook are left to `stops`."""
    stamp, clock, name = event.stamp, "node" if event.node else "server", event.container
    if event.reason == "Unhealthy" and (match := _PROBE.match(event.message)):
        which = _PROBES[match.group(1).lower()]
        facts: ProbeChanged = {
            "probe": which,  # type: ignore[typeddict-item]  # one of the three, by the expression
            "result": "failure",
            "output": match.group(3),
            "port": None,
            "succeededBefore": None,
        }
        yield draft(
            kinds.PROBE_CHANGED, facts, "kubelet", container=name, evidence="inferred", stamp=stamp, clock="node"
        )
    elif event.reason == "FailedMount" and (volume := _VOLUME.search(event.message)):
        failed: VolumeFailed = {"volume": volume.group(1), "error": event.message}
        yield draft(kinds.VOLUME_FAILED, failed, "kubelet", evidence="inferred", stamp=stamp, clock="node")
    elif event.reason == "Failed" and name:
        start: ContainerStartFailed = {"reason": "Failed", "message": event.message}
        yield Draft(kinds.CONTAINER_START_FAILED, start, "kubelet", name, "", "inferred", stamp, clock)  # type: ignore[arg-type]
