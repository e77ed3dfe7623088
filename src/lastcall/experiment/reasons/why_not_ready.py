"""Why a Pod is not Ready, in words, from its conditions, container states and Events. Pure."""

# check: pure

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from lastcall.endings import (
    CRASHES,
    NOT_STARTED,
    SURE_SECONDS,
    ProgramChange,
    crashed,
    fix_of,
    fixes_for,
    fixes_of_start,
    programs_for,
    unschedulable_message,
    wait_of,
    waiting_helps,
    waits_of,
)
from lastcall.experiment.reasons.webhooks import Webhooks, fixes_of_webhook
from lastcall.kube.api import Object, name_of, namespace_of, uid_of
from lastcall.world.dataclass import dataclass

_DISK_FULL = "No space left on device"


def has_failed(pod: Object) -> bool:
    """Return whether a container of it has ended with a failure, or was started again."""
    status = pod.get("status") or {}
    return any(
        each.get("restartCount") or ((each.get("state") or {}).get("terminated") or {}).get("exitCode")
        for field in ("initContainerStatuses", "containerStatuses")
        for each in status.get(field) or ()
    )


def hook_fails_again_and_again(events: Iterable[Object]) -> bool:
    """Return whether a postStart hook of a Pod with these Events failed as often as a crash looping container."""
    failures = (each.get("count") or 1 for each in events if each.get("reason") == "FailedPostStartHook")
    return sum(failures) >= CRASHES


@dataclass(slots=True)
class Unschedulable:
    """Which Pods no node will ever take. `look` about every second, with the Pods that are waited for, all Pods of the
    cluster, and whether something else may still end one (`more_to_come`)."""

    _since: dict[str, float] = field(default_factory=dict)

    def look(
        self, pods: Iterable[Object], everywhere: Iterable[Object], now: float, *, more_to_come: bool
    ) -> list[Object]:
        refused = {uid_of(pod): pod for pod in pods if unschedulable_message(pod)}
        self._since = {uid: self._since.get(uid, now) for uid in refused}
        late = [refused[uid] for uid, since in self._since.items() if now - since >= SURE_SECONDS]
        if not late:
            return []
        going = more_to_come or any(map(may_go, everywhere))
        return [pod for pod in late if not waiting_helps(unschedulable_message(pod), pods_may_go=going)]


@dataclass(slots=True)
class Refused:
    """Whether the API server refuses Pods of an owner, has for a while, and nothing goes on that may change it. `look`
    about every second, with the owners and all their Pods."""

    _since: dict[str, float] = field(default_factory=dict)

    def look(self, owners: Iterable[Object], pods: Iterable[Object], now: float) -> bool:
        """Return True if waiting changes nothing."""
        refused = {uid_of(owner) for owner in owners if replica_failure(owner)}
        self._since = {uid: self._since.get(uid, now) for uid in refused}
        return any(now - since >= SURE_SECONDS for since in self._since.values()) and not any(map(may_go, pods))


def may_go(pod: Object) -> bool:
    """Return whether a Pod may leave its node by itself, or become Ready, upon which its owner may end another."""
    if "deletionTimestamp" in pod["metadata"] or pod["spec"].get("restartPolicy") in ("Never", "OnFailure"):
        return True
    return bool(pod["spec"].get("nodeName")) and not is_ready(pod)


def replica_failure(owner: Object) -> str:
    """Return why a Deployment or ReplicaSet cannot create its Pods; "" when it can."""
    for condition in (owner.get("status") or {}).get("conditions") or []:
        if (condition.get("type"), condition.get("status")) == ("ReplicaFailure", "True"):
            return str(condition.get("message") or condition.get("reason") or "it failed")
    return ""


def why_not_ready(pod: Object, events: Sequence[Object] = (), runtime: str = "") -> list[str]:
    """Return lines for a person: what each condition, container and Warning Event says, and the known fixes.

    `runtime` is the containerRuntimeVersion of its node, "" for lastcall's own.
    """
    status = pod.get("status") or {}
    phase = status.get("phase") or "Pending"
    reason = f" ({status['reason']}: {status.get('message', '')})" if status.get("reason") else ""
    lines = [f"{namespace_of(pod)}/{name_of(pod)} is not Ready: phase {phase}{reason}"]
    seen: set[str] = set()
    fixes: dict[str, None] = {}
    for condition in status.get("conditions") or []:
        why = ": ".join(
            part for part in (condition.get("reason"), without_preemption_note(condition.get("message"))) if part
        )
        if condition.get("status") != "False":
            continue
        fixes.update(dict.fromkeys(fixes_for(str(condition.get("reason")), str(condition.get("message")))))
        # ContainersReady mostly repeats what Ready says.
        if why and why not in seen:
            seen.add(why)
            lines.append(f"  condition {condition.get('type')} is False: {why}")
    messages: dict[str, list[str]] = {}
    waiting = list(waits_of(pod))
    never_started = {name for name, reason, _ in waiting if reason in NOT_STARTED}
    for name, reason, message in waiting:
        before = messages.setdefault(name, [])
        if not any(each and each in message for each in before):
            lines.append(f"  container {name}: {reason}{f': {message}' if message else ''}")
        before.append(message)
        if reason in NOT_STARTED:
            fixes.update(dict.fromkeys(fixes_of_start(message, pod, name)))
        elif name not in never_started:  # it does not crash: it has never run
            fixes.update(dict.fromkeys(fixes_for(reason, message, runtime)))
    warnings = _newest_warnings(events)
    lines += [f"  Event {_event(event)}" for event in warnings if not _repeats(event, lines)]
    warnings = _last_of_each_probe(warnings)
    # A container that has crashed answers no readiness probe: that is not what to correct.
    has_crashed = any(crashed(pod))
    causes = [each for each in warnings if not (has_crashed and str(each.get("message")).startswith("Readiness probe"))]
    fixes.update(dict.fromkeys(_fixes_of(causes, runtime)))
    if any(_DISK_FULL in line for line in lines):
        fixes.setdefault(fix_of("stateFull"))
    lines += [f"  fix: {each}" for each in fixes]
    return lines


def programs_of(pod: Object, events: Sequence[Object] = ()) -> Mapping[str, ProgramChange]:
    """Return by cause what a person has to correct, where a container's state or an Event leaves no doubt of it."""
    said = [(reason, message) for _, reason, message in waits_of(pod)]
    warnings = _last_of_each_probe(_newest_warnings(events))
    said += [(str(each.get("reason")), str(each.get("message"))) for each in warnings]
    return {id_: program for each in said for id_, program in programs_for(*each)}


def why_no_pods(
    what: str,
    owner: Object,
    ready: int,
    wanted: int | None,
    events: Sequence[Object],
    webhooks: Webhooks = Webhooks(),  # noqa: B008 (it keeps nothing)
) -> list[str]:
    """Return lines about an owner that does not have its Pods.

    They say how many it has, its conditions, what Events say of it, and which of `webhooks` refuses them.
    """
    lines = [f"{what}: {_how_far(owner, ready, wanted)}"]
    for condition in (owner.get("status") or {}).get("conditions") or []:
        wrong = condition.get("status") == ("True" if condition.get("type") == "ReplicaFailure" else "False")
        why = ": ".join(part for part in (condition.get("reason"), condition.get("message")) if part)
        if wrong and why:
            lines.append(f"  condition {condition.get('type')} is {condition.get('status')}: {why}")
    warnings = _newest_warnings(events)
    lines += [f"  Event {_event(event)}" for event in warnings]
    fixes = _fixes_of(warnings)
    for event in warnings:
        fixes += fixes_of_webhook(str(event.get("message")), owner, webhooks)
    if "minReadySeconds" in lines[0]:
        fixes.append(fix_of("notAvailableYet", seconds=owner["spec"]["minReadySeconds"]))
    return [*without_repeats(lines), *(f"  fix: {each}" for each in dict.fromkeys(fixes))]


def without_names(pod: Object, why: Iterable[str]) -> tuple[str, ...]:
    """Return what is said of a Pod without its name, uid and any number: of Pods that are alike one is reported."""
    names = re.compile("|".join(map(re.escape, filter(None, (name_of(pod), uid_of(pod))))) or "$^")
    return tuple(re.sub(r"\d+", "#", names.sub("", line)) for line in why)


_POD_NAME = re.compile(r'pods "[^"]*" (.*)', re.DOTALL)


def without_repeats(lines: Iterable[str], known: Iterable[str] = ()) -> list[str]:
    """Drop the lines that say of another Pod, or by another condition or Event, what one before them says."""

    def gist(line: str) -> str:
        found = _POD_NAME.search(line)
        return re.sub(r" \(\d+ times\)$", "", found[1]) if found else line

    seen = {gist(line) for line in known}
    fresh: dict[str, str] = {}
    for line in lines:
        if gist(line) not in seen:
            fresh.setdefault(gist(line), line)
    return list(fresh.values())


def _how_far(owner: Object, ready: int, wanted: int | None) -> str:
    """Of an owner's Pods, with the reason where Ready is not enough."""
    if wanted is None:
        return "has not been looked at by its controller"
    text, status, spec = f"{ready} of its {wanted} Pods are Ready", owner.get("status") or {}, owner.get("spec") or {}
    if ready < wanted:
        return text
    # A DaemonSet reports it by a name of its own; what is 0 is left out.
    updated = status.get("updatedReplicas", status.get("updatedNumberScheduled", 0))
    if ("strategy" in spec or "updateStrategy" in spec) and updated < wanted:
        return f"{text}, {updated} of them made from the new template"
    seconds = spec.get("minReadySeconds")
    return f"{text}, but not yet for {seconds} s (spec.minReadySeconds)" if seconds else text


def in_short(pod: Object, events: Sequence[Object] = (), node: Object | None = None) -> str:
    """Return one line: the Pod's name, how far it is, and the newest thing that is known to be wrong.

    `node` is that of a Pod that is being deleted, where it was asked for.
    """
    deleted = pod["metadata"].get("deletionTimestamp")
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    if deleted:
        return why_still_there(pod, node=node)[0].strip()
    conditions = (pod.get("status") or {}).get("conditions") or []
    wrong = [f"{reason}: {message}" if message else reason for _, reason, message in waits_of(pod)]
    wrong += [_event(event) for event in reversed(_newest_warnings(events))]
    wrong += [
        f"{each['reason']}: {each.get('message') or each.get('type')}"
        for each in reversed(conditions)
        if each.get("status") == "False" and each.get("reason")
    ]
    # The Event of its probe says better why a running container is not ready.
    better = [each for each in wrong if not each.startswith("Running: ")]
    return f"{name_of(pod)} is {phase} and not Ready" + (f" ({(better or wrong)[0]})" if wrong else "")


def is_ready(pod: Object) -> bool:
    """Return True if the condition Ready is True."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)


def why_still_there(
    obj: Object, kind: str = "Pod", now: datetime | None = None, node: Object | None = None
) -> list[str]:
    """Return lines about an object that is being deleted: what it waits for, and what ends that safely."""
    if wait := wait_of(obj, kind, now=now, node=node):
        return wait.lines
    return [f"{kind} {'/'.join(filter(None, (namespace_of(obj), name_of(obj))))} is ending"]


def _newest_warnings(events: Sequence[Object], limit: int = 4) -> list[Object]:
    """The last Warning Events, each reason and message once."""
    warnings = [event for event in events if event.get("type") == "Warning"]
    warnings.sort(key=_time_of)
    distinct = {(event.get("reason"), event.get("message")): event for event in warnings}
    return list(distinct.values())[-limit:]


_PROBE = re.compile(r"(?:Startup|Liveness|Readiness) probe ")


def _last_of_each_probe(warnings: Sequence[Object]) -> list[Object]:
    """Return the Events, sorted by time, without what a probe said before it said something else."""
    last: dict[tuple[str, str], str] = {}
    for event in warnings:
        if key := _probe_of(event):
            last[key] = max(last.get(key, ""), _time_of(event))
    return [each for each in warnings if not (key := _probe_of(each)) or _time_of(each) == last[key]]


def _probe_of(event: Object) -> tuple[str, str] | None:
    """Return the container and the probe that an Event is about; None for any other Event."""
    match = _PROBE.match(str(event.get("message") or "")) if event.get("reason") == "Unhealthy" else None
    return (str((event.get("involvedObject") or {}).get("fieldPath") or ""), match[0]) if match else None


def _time_of(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _fixes_of(events: Sequence[Object], runtime: str = "") -> list[str]:
    said = [(str(event.get("reason")), str(event.get("message"))) for event in events]
    return [each for reason, message in said for each in fixes_for(reason, message, runtime)]


_OF_AN_ERROR = "Error: "


def _repeats(event: Object, lines: Iterable[str]) -> bool:
    """Whether an Event says in the same words what a container's state says."""
    text = str(event.get("message") or "")
    error = text.removeprefix(_OF_AN_ERROR)
    return error != text and " " in error and any(error in line for line in lines)


def _event(event: Object) -> str:
    count = event.get("count") or 1
    times = f" ({count} times)" if count > 1 else ""
    return f"{event.get('reason')}: {without_preemption_note(event.get('message'))}{times}"


_NOISE = re.compile(r" (?:no new claims to deallocate, )?preemption:.*", re.DOTALL)
"""Since 1.37 without the claims."""


def without_preemption_note(message: Any) -> str:
    """Return a message without what the scheduler adds about preemption, which repeats it."""
    return _NOISE.sub("", str(message or ""))
