"""What a kubelet does to end a Pod."""

from typing import Annotated, Literal, NotRequired, TypedDict

from lastcall.records import rules
from lastcall.records.definitions.parts import Holder, Observed, ResourceVersion, Seconds, WholeSeconds
from lastcall.records.hook_text import hook_failure
from lastcall.records.recalled import recalled
from lastcall.records.said import joined, tell
from lastcall.records.sentences import DETAIL, STEP, Words, after, fixed, row, sentences, took
from lastcall.records.text import seconds

ACTOR = "kubelet"


class TerminationObserved(TypedDict):
    """The Pod's worker turns to terminating. There is no way back."""

    cause: Annotated[str, "deletionTimestamp, apiTerminalPhase, kill, removed, completed or runtimeOnly"]
    gracePeriodSeconds: WholeSeconds | None
    observedResourceVersion: Observed


def termination_observed(facts: TerminationObserved) -> Words:
    cause = str(facts.get("cause"))
    if cause != "deletionTimestamp":
        return Words(tell("begins to terminate the Pod: $cause", cause=cause))
    version = facts.get("observedResourceVersion")
    if not version:
        return Words(tell("sees deletionTimestamp"))
    return Words(tell("sees deletionTimestamp (resourceVersion $version)", version=version))


class GraceDecided(TypedDict):
    """The grace period that the kubelet works with (calculateEffectiveGracePeriod)."""

    gracePeriodSeconds: WholeSeconds | None
    shortened: bool
    why: str


def grace_decided(facts: GraceDecided) -> Words:
    level = STEP if facts.get("shortened") else DETAIL
    grace, why = facts.get("gracePeriodSeconds"), recalled(facts.get("why"))
    return Words(tell("grace period $grace s: $why", grace=grace, why=why), level)


class Killing(TypedDict):
    """The kubelet begins to stop a container."""

    message: Annotated[str, "the event's"]
    gracePeriodSeconds: Annotated[WholeSeconds, "for hook and stop signal together"]
    reason: NotRequired[
        Annotated[
            str, "LivenessProbe, StartupProbe, FailedPostStartHook, Unknown or RestartAllContainers; none: the Pod ends"
        ]
    ]


def killing(facts: Killing) -> Words:
    return Words(tell("Killing: $message", message=recalled(facts.get("message"))))


class PreStopSkipped(TypedDict):
    """The preStop hook does not run."""

    why: Annotated[str, "one sentence"]


class PreStopStarted(TypedDict):
    """The preStop hook begins."""

    handler: Annotated[str, "exec, httpGet, sleep or tcpSocket"]
    detail: Annotated[str, "the command, address or time"]
    budgetSeconds: WholeSeconds


def pre_stop_started(facts: PreStopStarted) -> Words:
    budget = facts.get("budgetSeconds")
    most = tell(" (at most $budget s)", budget=budget) if budget is not None else ""
    handler, detail = facts.get("handler"), facts.get("detail")
    return Words(tell("preStop $handler starts: $detail$most", handler=handler, detail=detail, most=most))


class PreStopFinished(TypedDict):
    """The preStop hook is over, or has outlived its budget: then it goes on, and its end is recorded with `late`."""

    handler: Annotated[str, "exec, httpGet, sleep or tcpSocket"]
    outcome: NotRequired[Literal["succeeded", "failed", "outlived"]]
    seconds: NotRequired[Seconds]
    message: NotRequired[Annotated[str, "why it failed"]]
    exitCode: NotRequired[int]
    stdout: NotRequired[str]
    stderr: NotRequired[str]
    late: NotRequired[Annotated[bool, "it ended after its budget"]]


def pre_stop_finished(facts: PreStopFinished) -> Words:
    outcome, handler, when = facts.get("outcome"), facts.get("handler"), after(facts)
    if outcome == "succeeded":
        return Words(tell("preStop $handler succeeded$when", handler=handler, when=when), STEP, "good")
    if outcome == "outlived":
        text = tell("preStop $handler still runs$when: no longer waited for", handler=handler, when=when)
        return Words(text, STEP, "bad")
    code = facts.get("exitCode")
    message = hook_failure(str(facts.get("message") or ""))
    why = tell(": exit code $code", code=code) if code else f": {message}" if message else ""
    return Words(tell("preStop $handler failed$when$why", handler=handler, when=when, why=why), STEP, "bad")


class ListenerClosedInHook(TypedDict):
    """A listener of the container has closed while its preStop hook ran, between two looks."""

    address: str
    port: int
    seconds: Annotated[Seconds, "since the hook began, at the latest"]
    notBefore: Annotated[Seconds, "since the hook began, at the earliest"]


def listener_closed_in_hook(facts: ListenerClosedInHook) -> Words:
    early, late = seconds(facts.get("notBefore")), seconds(facts.get("seconds"))
    port = facts.get("port")
    text = tell(
        "closed its port $port, $early to $late after its preStop hook began", port=port, early=early, late=late
    )
    return Words(text, STEP, "bad")


class StopRequested(TypedDict):
    """The kubelet calls CRI StopContainer."""

    timeoutSeconds: Annotated[WholeSeconds, "from the stop signal to SIGKILL"]
    floor: Annotated[bool, "raised to 2 s"]
    deductedSeconds: Annotated[WholeSeconds, "taken off for the hook"]
    waitedForTurnSeconds: NotRequired[Annotated[WholeSeconds, "a sidecar's wait for the containers before it"]]
    why: NotRequired[Annotated[str, "one sentence, where the timeout is not what one expects"]]


def stop_requested(facts: StopRequested) -> Words:
    deducted, timeout = facts.get("deductedSeconds"), facts.get("timeoutSeconds")
    if facts.get("floor"):
        return Words(tell("StopContainer, timeout $timeout s (raised to the least that is given)", timeout=timeout))
    if not deducted:
        return Words(tell("StopContainer, timeout $timeout s", timeout=timeout))
    spent = f"{deducted:g}"
    return Words(
        tell("StopContainer, timeout $timeout s ($spent s of the grace period are spent)", timeout=timeout, spent=spent)
    )


class StopFinished(TypedDict):
    """CRI StopContainer has answered."""

    seconds: Seconds
    error: Annotated[str, "empty when it succeeded"]


def stop_finished(facts: StopFinished) -> Words:
    if facts.get("error"):
        return Words(tell("StopContainer failed: $error", error=facts["error"]), STEP, "bad")
    return Words(tell("StopContainer answered$when", when=after(facts)), DETAIL)


class SandboxStopped(TypedDict):
    """CRI StopPodSandbox has answered: the Pod's network is gone."""

    sandboxId: str
    seconds: Seconds
    error: Annotated[str, "empty when it succeeded"]


def sandbox_stopped(facts: SandboxStopped) -> Words:
    if facts.get("error"):
        return Words(tell("StopPodSandbox failed: $error", error=facts["error"]), STEP, "bad")
    return Words(tell("StopPodSandbox done$time", time=took(facts)))


class VolumeBusy(TypedDict):
    """A volume cannot be unmounted, because it is in use."""

    volume: str
    error: str | None
    holders: list[Holder]
    more: Annotated[int, "holders that are not listed"]


def volume_busy(facts: VolumeBusy) -> Words:
    holders = [
        f"{each.get('name')} (pid {each.get('pid')})" if each.get("pid") else str(each.get("path"))
        for each in facts.get("holders") or ()
    ]
    who = joined(holders, ", ") if holders else tell("nobody that can be seen")
    return Words(tell("volume $volume is busy, held by $who", volume=facts.get("volume"), who=who), STEP, "bad")


class VolumesUnmounted(TypedDict):
    """All volumes are unmounted."""

    volumes: list[str]
    seconds: Seconds


def volumes_unmounted(facts: VolumesUnmounted) -> Words:
    volumes = ", ".join(map(str, facts.get("volumes") or ()))
    if volumes:
        return Words(tell("volumes unmounted: $volumes$time", volumes=volumes, time=took(facts)))
    return Words(tell("volumes unmounted$time", time=took(facts)))


class StatusSent(TypedDict):
    """The kubelet has sent a status."""

    phase: str
    resourceVersion: ResourceVersion


class FinalDeleteSent(TypedDict):
    """The kubelet sends the final DELETE, with grace period 0."""

    uid: str


class WorkerFinished(TypedDict):
    """Nothing of the Pod is left on the node."""


SENTENCES = sentences(
    row(
        TerminationObserved, termination_observed, rules.UPDATE_POD, rules.COMPLETE_SYNC, rules.REMOVE_TERMINATED_WORKER
    ),
    row(GraceDecided, grace_decided, rules.CALCULATE_EFFECTIVE_GRACE_PERIOD),
    row(Killing, killing, rules.KILL_CONTAINER),
    row(PreStopSkipped, fixed("preStop not run: $why", STEP, "bad", recall=("why",)), rules.KILL_CONTAINER),
    row(PreStopStarted, pre_stop_started, rules.EXECUTE_PRE_STOP_HOOK),
    row(PreStopFinished, pre_stop_finished, rules.EXECUTE_PRE_STOP_HOOK, rules.RUN_HANDLER),
    row(ListenerClosedInHook, listener_closed_in_hook, rules.EXECUTE_PRE_STOP_HOOK),
    row(StopRequested, stop_requested, rules.KILL_CONTAINER),
    row(StopFinished, stop_finished, rules.KILL_CONTAINER),
    row(SandboxStopped, sandbox_stopped, rules.KILL_POD_WITH_SYNC_RESULT),
    row(VolumeBusy, volume_busy, rules.WAIT_FOR_UNMOUNT),
    row(VolumesUnmounted, volumes_unmounted, rules.WAIT_FOR_UNMOUNT),
    row(StatusSent, fixed("sent the status: phase $phase", DETAIL), rules.SYNC_POD_STATUS),
    row(FinalDeleteSent, fixed("final DELETE: grace 0, this uid only"), rules.CAN_BE_DELETED),
    row(
        WorkerFinished,
        fixed("the Pod's worker is done", DETAIL),
        rules.COMPLETE_TERMINATED,
        rules.COMPLETE_TERMINATING_RUNTIME_POD,
    ),
)
"""The words for each kind."""
