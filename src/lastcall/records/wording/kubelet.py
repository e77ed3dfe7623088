"""Lines of what a kubelet does. Pure."""

# check: pure

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lastcall.records.hook_text import hook_failure
from lastcall.records.said import joined, tell
from lastcall.records.wording.parts import DETAIL, STEP, Words, after, took
from lastcall.records.wording.recorded import recalled

if TYPE_CHECKING:
    from lastcall.records.fields import kubelet_end, kubelet_start


# -- the start -----------------------------------------------------------------------------------------------------


def probe_changed(facts: kubelet_start.ProbeChanged) -> Words:
    probe, result = facts.get("probe"), facts.get("result")
    if result == "success":
        return Words(tell("$probe probe: success", probe=probe), STEP, "good")
    said = f": {facts['output']}" if facts.get("output") else ""
    if result == "failure":
        return Words(tell("$probe probe: failure$said", probe=probe, said=said), STEP, "bad")
    return Words(tell("$probe probe: $result$said", probe=probe, result=result, said=said), STEP, "bad")


def post_start_finished(facts: kubelet_start.PostStartFinished) -> Words:
    handler, outcome = facts.get("handler", "?"), facts.get("outcome", "?")
    if outcome == "succeeded":
        return Words(tell("postStart $handler succeeded", handler=handler))
    if outcome == "failed":
        return Words(tell("postStart $handler failed", handler=handler))
    return Words(tell("postStart $handler $outcome", handler=handler, outcome=outcome))


def container_start_failed(facts: kubelet_start.ContainerStartFailed) -> Words:
    reason, message = facts.get("reason"), facts.get("message")
    return Words(tell("container cannot start: $reason: $message", reason=reason, message=message), STEP, "bad")


def image_substituted(facts: kubelet_start.ImageSubstituted) -> Words:
    image, substitute = facts.get("image"), facts.get("substitute")
    text = tell("image $image is not available: using $substitute instead", image=image, substitute=substitute)
    return Words(text, STEP, "bad")


def container_resized(facts: kubelet_start.ContainerResized) -> Words:
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


def _mebibytes(count: float) -> str:
    return f"{count / (1 << 20):g}"


# -- the end -------------------------------------------------------------------------------------------------------


def termination_observed(facts: kubelet_end.TerminationObserved) -> Words:
    cause = str(facts.get("cause"))
    if cause != "deletionTimestamp":
        return Words(tell("begins to terminate the Pod: $cause", cause=cause))
    version = facts.get("observedResourceVersion")
    if not version:
        return Words(tell("sees deletionTimestamp"))
    return Words(tell("sees deletionTimestamp (resourceVersion $version)", version=version))


def grace_decided(facts: kubelet_end.GraceDecided) -> Words:
    level = STEP if facts.get("shortened") else DETAIL
    grace, why = facts.get("gracePeriodSeconds"), recalled(facts.get("why"))
    return Words(tell("grace period $grace s: $why", grace=grace, why=why), level)


def killing(facts: kubelet_end.Killing) -> Words:
    return Words(tell("Killing: $message", message=recalled(facts.get("message"))))


def pre_stop_started(facts: kubelet_end.PreStopStarted) -> Words:
    budget = facts.get("budgetSeconds")
    most = tell(" (at most $budget s)", budget=budget) if budget is not None else ""
    handler, detail = facts.get("handler"), facts.get("detail")
    return Words(tell("preStop $handler starts: $detail$most", handler=handler, detail=detail, most=most))


def pre_stop_finished(facts: kubelet_end.PreStopFinished) -> Words:
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


def stop_requested(facts: kubelet_end.StopRequested) -> Words:
    deducted, timeout = facts.get("deductedSeconds"), facts.get("timeoutSeconds")
    if facts.get("floor"):
        return Words(tell("StopContainer, timeout $timeout s (raised to the least that is given)", timeout=timeout))
    if not deducted:
        return Words(tell("StopContainer, timeout $timeout s", timeout=timeout))
    spent = f"{deducted:g}"
    return Words(
        tell("StopContainer, timeout $timeout s ($spent s of the grace period are spent)", timeout=timeout, spent=spent)
    )


def stop_finished(facts: kubelet_end.StopFinished) -> Words:
    if facts.get("error"):
        return Words(tell("StopContainer failed: $error", error=facts["error"]), STEP, "bad")
    return Words(tell("StopContainer answered$when", when=after(facts)), DETAIL)


def sandbox_stopped(facts: kubelet_end.SandboxStopped) -> Words:
    if facts.get("error"):
        return Words(tell("StopPodSandbox failed: $error", error=facts["error"]), STEP, "bad")
    return Words(tell("StopPodSandbox done$time", time=took(facts)))


def volumes_unmounted(facts: kubelet_end.VolumesUnmounted) -> Words:
    volumes = ", ".join(map(str, facts.get("volumes") or ()))
    if volumes:
        return Words(tell("volumes unmounted: $volumes$time", volumes=volumes, time=took(facts)))
    return Words(tell("volumes unmounted$time", time=took(facts)))


def volume_busy(facts: kubelet_end.VolumeBusy) -> Words:
    holders = [
        f"{each.get('name')} (pid {each.get('pid')})" if each.get("pid") else str(each.get("path"))
        for each in facts.get("holders") or ()
    ]
    who = joined(holders, ", ") if holders else tell("nobody that can be seen")
    return Words(tell("volume $volume is busy, held by $who", volume=facts.get("volume"), who=who), STEP, "bad")
