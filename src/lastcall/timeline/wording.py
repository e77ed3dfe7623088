"""A record in words: one short line each, for the live timeline and the table of steps. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from lastcall.timeline import kinds
from lastcall.timeline.findings.hook_text import hook_failure
from lastcall.timeline.record import Record
from lastcall.timeline.signal_names import signal_name

if TYPE_CHECKING:
    from lastcall.timeline.catalogue.records import (
        apiserver,
        client,
        endpointslice_controller,
        init,
        kube_proxy,
        kubelet_end,
        kubelet_start,
        runtime,
        witness,
    )
    from lastcall.timeline.record import Kind

Facts = Mapping[str, Any]
"""Of any kind."""
Told = TypeVar("Told", bound=Mapping[str, object])
Style = Literal["", "dim", "good", "bad", "signal", "api", "endpoint", "output"]

STEP = 1
"""Shown in every story."""
DETAIL = 2
"""Shown with --explain only."""
NOISE = 3
"""In the JSON only."""


@dataclass(frozen=True, slots=True)
class Words:
    """`level` is STEP, DETAIL or NOISE."""

    text: str
    level: int = STEP
    style: Style = ""


def words_for(record: Record) -> Words:
    """The words for a record. Text from containers and manifests is made safe for a terminal."""
    writer = _WORDS.get(record.kind)
    words = writer(record.facts) if writer else Words(record.kind, DETAIL, "dim")
    return Words(printable(words.text), words.level, words.style)


def printable(text: str, limit: int = 400) -> str:
    """One line without control characters; a longer text is cut and says so."""
    shown = "".join(c if c.isprintable() else _escaped(c) for c in text)
    return shown if len(shown) <= limit else f"{shown[:limit]}… ({len(shown) - limit} more characters)"


def _escaped(character: str) -> str:
    return "    " if character == "\t" else repr(character)[1:-1]


def seconds(value: Any) -> str:
    """`3.0 s`, `12 ms`, `0.4 ms`; "" for nothing."""
    if not isinstance(value, int | float):
        return ""
    if value >= 0.9995:
        return f"{value:.1f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.0095 else f"{value * 1000:.1f} ms"


def _after(facts: Facts) -> str:
    return f" after {seconds(facts.get('seconds'))}" if facts.get("seconds") is not None else ""


def _took(facts: Facts) -> str:
    return f" in {seconds(facts.get('seconds'))}" if facts.get("seconds") is not None else ""


def _yes(value: Any) -> str:
    return "true" if value else "false"


# -- one function for each kind that has something to say ----------------------------------------------------------


def _delete_sent(facts: client.DeleteSent) -> Words:
    grace = facts.get("gracePeriodSeconds")
    return Words(f"DELETE sent{'' if grace is None else f', gracePeriodSeconds={grace}'}", DETAIL, "api")


def _delete_accepted(facts: apiserver.DeleteAccepted) -> Words:
    by = f", by {facts['user']}" if facts.get("user") else ""
    return Words(f"DELETE accepted: deletionTimestamp set, grace {facts.get('gracePeriodSeconds')} s{by}", STEP, "api")


def _node_state(facts: client.NodeStateSeen) -> Words:
    node = facts.get("node")
    if facts.get("gone"):
        return Words(f"sees that node {node} does not exist", STEP, "bad")
    ready = facts.get("ready")
    if ready:
        return Words(f"sees node {node} Ready", DETAIL)
    taints = f" ({', '.join(facts['taints'])})" if facts.get("taints") else ""
    state = "not Ready" if ready is False else "not heard of: Ready is Unknown"
    return Words(f"sees node {node} {state}{taints}", STEP, "bad")


def _grace_shortened(facts: apiserver.GraceShortened) -> Words:
    return Words(f"grace period shortened from {facts.get('from')} s to {facts.get('to')} s", STEP, "api")


def _status_written(facts: apiserver.PodStatusWritten) -> Words:
    phase = facts.get("phase")
    level = STEP if phase in ("Succeeded", "Failed") else DETAIL
    reason = f" ({facts['reason']})" if facts.get("reason") else ""
    return Words(f"status written: phase {phase}{reason}, Ready {_yes(facts.get('ready'))}", level, "api")


def _endpoint_changed(facts: endpointslice_controller.EndpointChanged) -> Words:
    conditions = " ".join(f"{name}={_yes(facts.get(name))}" for name in ("ready", "serving", "terminating"))
    return Words(f"{facts.get('service')} {facts.get('address')}: {conditions}", STEP, "endpoint")


def _endpoint_removed(facts: endpointslice_controller.EndpointRemoved) -> Words:
    return Words(f"{facts.get('service')} {facts.get('address')}: removed from the EndpointSlice", STEP, "endpoint")


def _endpoint_change_seen(facts: kube_proxy.EndpointChangeSeen) -> Words:
    if facts.get("removed"):
        what = "is gone"
    else:
        what = " ".join(f"{name}={_yes(facts.get(name))}" for name in ("ready", "serving", "terminating"))
    return Words(f"{facts.get('node')} sees {facts.get('service')} {facts.get('address')}: {what}", DETAIL, "endpoint")


def _endpoint_rules_written(facts: kube_proxy.EndpointRulesWritten) -> Words:
    where = f"{facts.get('service')} → {facts.get('address')}"
    received, receives = facts.get("received"), facts.get("receives")
    if not facts.get("service") and not receives:
        return Words(f"{facts.get('node')}: no Service sends to {facts.get('address')}", DETAIL)
    if received and not receives:
        return Words(f"{facts.get('node')}: no new connections any more, {where}", STEP, "endpoint")
    if receives and not facts.get("ready"):
        text = f"{facts.get('node')}: new connections still go there, because no other endpoint is ready, {where}"
        return Words(text, STEP, "endpoint")
    if receives and not received:
        return Words(f"{facts.get('node')}: new connections go there, {where}", STEP, "endpoint")
    return Words(f"{facts.get('node')}: rules written, nothing changes for {where}", DETAIL, "endpoint")


def _rules_refused(facts: kube_proxy.RulesRefused) -> Words:
    again = f"; next try in {seconds(facts.get('retryInSeconds'))}"
    return Words(f"service rules refused: {facts.get('error')}{again}", STEP, "bad")


def _termination_observed(facts: kubelet_end.TerminationObserved) -> Words:
    cause = str(facts.get("cause"))
    if cause == "deletionTimestamp":
        version = facts.get("observedResourceVersion")
        return Words(f"sees deletionTimestamp{f' (resourceVersion {version})' if version else ''}")
    return Words(f"begins to terminate the Pod: {cause}")


def _grace_decided(facts: kubelet_end.GraceDecided) -> Words:
    level = STEP if facts.get("shortened") else DETAIL
    return Words(f"grace period {facts.get('gracePeriodSeconds')} s: {facts.get('why')}", level)


def _killing(facts: kubelet_end.Killing) -> Words:
    return Words(f"Killing: {facts.get('message')}")


def _pre_stop_started(facts: kubelet_end.PreStopStarted) -> Words:
    budget = f" (at most {facts['budgetSeconds']} s)" if facts.get("budgetSeconds") is not None else ""
    return Words(f"preStop {facts.get('handler')} starts: {facts.get('detail')}{budget}")


def _pre_stop_finished(facts: kubelet_end.PreStopFinished) -> Words:
    outcome = facts.get("outcome")
    head = f"preStop {facts.get('handler')} "
    if outcome == "succeeded":
        return Words(f"{head}succeeded{_after(facts)}", STEP, "good")
    if outcome == "outlived":
        return Words(f"{head}still runs{_after(facts)}: no longer waited for", STEP, "bad")
    code = facts.get("exitCode")
    message = hook_failure(str(facts.get("message") or ""))
    why = f": exit code {code}" if code else f": {message}" if message else ""
    return Words(f"{head}failed{_after(facts)}{why}", STEP, "bad")


def _stop_requested(facts: kubelet_end.StopRequested) -> Words:
    deducted = facts.get("deductedSeconds")
    text = f"StopContainer, timeout {facts.get('timeoutSeconds')} s"
    if facts.get("floor"):
        text += " (raised to the least that is given)"
    elif deducted:
        text += f" ({deducted:g} s of the grace period are spent)"
    return Words(text)


def _stop_finished(facts: kubelet_end.StopFinished) -> Words:
    if facts.get("error"):
        return Words(f"StopContainer failed: {facts['error']}", STEP, "bad")
    return Words(f"StopContainer answered{_after(facts)}", DETAIL)


def _sandbox_stopped(facts: kubelet_end.SandboxStopped) -> Words:
    if facts.get("error"):
        return Words(f"StopPodSandbox failed: {facts['error']}", STEP, "bad")
    return Words(f"StopPodSandbox done{_took(facts)}")


def _volumes_unmounted(facts: kubelet_end.VolumesUnmounted) -> Words:
    volumes = ", ".join(map(str, facts.get("volumes") or ()))
    return Words(f"volumes unmounted{f': {volumes}' if volumes else ''}{_took(facts)}")


_TAKEN = {"sigwait": "is waited for", "signalfd": "is read from a signalfd"}


def _signal_state(facts: runtime.ProcessSignalState) -> Words:
    what = {
        "handled": _TAKEN.get(str(facts.get("taken")), "is handled"),
        "ignored": "is ignored",
        "blocked": "is blocked",
        "default": "has no handler: PID 1 does not get it",
    }.get(str(facts.get("disposition")), "in an unknown state")
    exe = f" ({facts['exe']})" if facts.get("exe") else ""
    number = facts.get("containerPid", 1)
    if number != 1 and facts.get("disposition") == "default":
        return Words(f"PID {number}{exe}: {signal_name(facts.get('signal'))} has no handler: it ends the process", STEP)
    style: Style = "" if facts.get("disposition") == "handled" else "bad"
    return Words(f"PID {number}{exe}: {signal_name(facts.get('signal'))} {what}", STEP, style)


def _signal_sent(facts: runtime.SignalSent) -> Words:
    name = signal_name(facts.get("signal"))
    if facts.get("why") in ("exec timeout", "caller gone"):
        return Words(f"{name} → exec, pid {facts.get('pid')} ({facts.get('why')})", DETAIL, "signal")
    style: Style = "bad" if name == "SIGKILL" else "signal"
    target = f"pid {facts['pid']}" if facts.get("pid") else "its PID 1"
    return Words(f"{name} → {target} ({facts.get('why')})", STEP, style)


def _process_exited(facts: runtime.ProcessExited) -> Words:
    name, code = signal_name(facts.get("signal")), facts.get("exitCode")
    oom = ", out of memory" if facts.get("oomKilled") else ""
    if name:
        return Words(f"ended by {name}{oom}, exit code {code}", STEP, "bad" if name == "SIGKILL" else "signal")
    return Words(f"exit {code}", STEP, "good" if code == 0 else "bad")


def _output(facts: runtime.Output) -> Words:
    text = str(facts.get("text") or "").rstrip("\n")
    return Words(f"│ {text}", STEP, "output")


def _network_policies_applied(facts: runtime.NetworkPoliciesApplied) -> Words:
    received, sent = ", ".join(facts.get("ingress") or ()), ", ".join(facts.get("egress") or ())
    both = (f"receives only what {received} allow" if received else "", f"sends only what {sent} allow" if sent else "")
    text = "; ".join(filter(None, both)) or "receives and sends everything again"
    return Words(f"NetworkPolicies: {text}", STEP, "endpoint")


def _network_detached(facts: runtime.NetworkDetached) -> Words:
    if facts.get("error"):
        return Words(f"network teardown failed: {facts['error']}", STEP, "bad")
    return Words(f"network {facts.get('ip')} torn down{_took(facts)}")


def _probe_changed(facts: kubelet_start.ProbeChanged) -> Words:
    result = facts.get("result")
    said = f": {facts['output']}" if facts.get("output") and result != "success" else ""
    return Words(f"{facts.get('probe')} probe: {result}{said}", STEP, "good" if result == "success" else "bad")


def _container_start_failed(facts: kubelet_start.ContainerStartFailed) -> Words:
    return Words(f"container cannot start: {facts.get('reason')}: {facts.get('message')}", STEP, "bad")


def _image_substituted(facts: kubelet_start.ImageSubstituted) -> Words:
    return Words(f"image {facts.get('image')} is not available: using {facts.get('substitute')} instead", STEP, "bad")


def _process_died(facts: init.ProcessDied) -> Words:
    name = signal_name(facts.get("signal"))
    how = f"killed by {name}" if name else f"exited with {facts.get('exitCode')}"
    if "hung" in facts:
        how = f"hung and was ended: its event loop did not turn for {facts['hung']['seconds']:.0f} s"
    level = NOISE if facts.get("role") == "orphan" else STEP
    return Words(f"{facts.get('role')} (pid {facts.get('pid')}) {how}", level, "bad")


def _owner_written(facts: apiserver.OwnerWritten) -> Words:
    changed = facts.get("changed")
    what = f"{', '.join(map(str, changed))} written" if changed else "created"
    return Words(f"{facts.get('ofKind')} {facts.get('name')}: {what} by {facts.get('user')}", STEP, "api")


def _owner_deleted(facts: apiserver.OwnerDeleted) -> Words:
    return Words(f"{facts.get('ofKind')} {facts.get('name')} deleted by {facts.get('user')}", STEP, "api")


def _ports(facts: Facts) -> str:
    return ", ".join(f"{each.get('address')}:{each.get('port')}" for each in facts.get("listeners") or ())


def _count(count: Any, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count or 0} {what}s"


def _between(facts: Facts) -> str:
    early, late = seconds(facts.get("notBefore")), seconds(facts.get("seconds"))
    return f"{early} to {late} after the stop signal" if facts.get("notBefore") else f"within {late} of the stop signal"


def _sockets_at_stop(facts: witness.SocketsAtStop) -> Words:
    ports = _ports(facts)
    whose = "the Pod has " if facts.get("scope") == "pod" else ""
    waiting = sum(int(each.get("backlog") or 0) for each in facts.get("listeners") or ())
    text = f"{f'listens on {ports}; ' if ports else ''}{whose}{_count(facts.get('connections'), 'connection')} open"
    return Words(f"{text}, {waiting} not accepted" if waiting else text)


def _sockets_at_exit(facts: witness.SocketsAtExit) -> Words:
    parts = [f"ended with {_count(facts.get('connections'), 'connection')} open"]
    if facts.get("backlog"):
        parts.append(f"{facts['backlog']} never accepted")
    if facts.get("unread"):
        parts.append(f"{facts['unread']} with data not read ({facts.get('unreadBytes')} bytes)")
    if facts.get("resets"):
        parts.append(f"{facts['resets']} reset")
    lost = any(facts.get(key) for key in ("resets", "backlog", "unread"))
    level = STEP if lost or facts.get("connections") else DETAIL
    return Words(", ".join(parts), level, "bad" if lost else "")


def _processes_left(facts: witness.ProcessesLeft) -> Words:
    names = [f"{each.get('name')} (pid {each.get('containerPid')})" for each in facts.get("processes") or ()]
    if facts.get("more"):
        names.append(f"{facts['more']} more")
    dead = _count(facts.get("zombies"), "zombie") if facts.get("zombies") else ""
    if not names:
        return Words(f"at {facts.get('when')}: {dead or 'no other process'}", DETAIL)
    who = ", ".join([*names, *([dead] if dead else [])])
    return Words(f"{'still alive' if facts.get('when') == 'SIGKILL' else 'killed with PID 1'}: {who}", STEP, "bad")


def _volume_busy(facts: kubelet_end.VolumeBusy) -> Words:
    holders = ", ".join(
        f"{each.get('name')} (pid {each.get('pid')})" if each.get("pid") else str(each.get("path"))
        for each in facts.get("holders") or ()
    )
    return Words(f"volume {facts.get('volume')} is busy, held by {holders or 'nobody that can be seen'}", STEP, "bad")


def _fixed(text: str, level: int = STEP, style: Style = "") -> Callable[[Facts], Words]:
    return lambda facts: Words(text.format_map(_Missing(facts)), level, style)


def _container_resized(facts: kubelet_start.ContainerResized) -> Words:
    after = facts.get("after") or {}
    cpu, memory = after.get("cpuLimit") or 0, after.get("memoryLimit") or 0
    limits = [f"{cpu:g} CPUs"] if cpu else []
    limits += [f"{memory / (1 << 20):g} MiB"] if memory else []
    return Words(f"resized in place: at most {' and '.join(limits)}" if limits else "resized in place: no limits", STEP)


def _ephemeral_added(facts: apiserver.EphemeralContainersAdded) -> Words:
    each = [
        f"{one.get('name')} beside {one['target']}" if one.get("target") else str(one.get("name"))
        for one in facts.get("containers") or []
    ]
    return Words(f"ephemeral container {', '.join(each)} added by {facts.get('user')}", STEP, "api")


class _Missing(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


def _row(kind: Kind[Told], words: Callable[[Told], Words]) -> tuple[str, Callable[[Any], Words]]:
    """mypy sees that the words read the facts of that kind."""
    return kind, words


_WORDS = dict(
    (
        _row(kinds.DELETE_SENT, _delete_sent),
        _row(kinds.POD_READY_SEEN, _fixed("Ready", STEP, "good")),
        _row(kinds.POD_GONE_SEEN, _fixed("sees DELETED: the Pod is gone", STEP, "good")),
        _row(kinds.NOT_SHOWN, _fixed("not known: {text}", NOISE)),
        _row(kinds.NODE_STATE_SEEN, _node_state),
        _row(kinds.POD_CREATED, _fixed("{namespace}/{name} created", STEP, "api")),
        _row(kinds.EPHEMERAL_CONTAINERS_ADDED, _ephemeral_added),
        _row(kinds.POD_BOUND, _fixed("bound to {node}", DETAIL, "api")),
        _row(kinds.DELETE_ACCEPTED, _delete_accepted),
        _row(kinds.GRACE_SHORTENED, _grace_shortened),
        _row(kinds.POD_STATUS_WRITTEN, _status_written),
        _row(
            kinds.HELD_BY_FINALIZERS,
            lambda facts: Words(
                f"the object stays: held by finalizers {', '.join(map(str, facts.get('finalizers') or ()))}",
                STEP,
                "signal",
            ),
        ),
        _row(kinds.OBJECT_REMOVED, _fixed("object removed from the store", STEP, "api")),
        _row(kinds.ENDPOINT_CHANGED, _endpoint_changed),
        _row(kinds.ENDPOINT_REMOVED, _endpoint_removed),
        _row(kinds.ENDPOINT_CHANGE_SEEN, _endpoint_change_seen),
        _row(kinds.ENDPOINT_RULES_WRITTEN, _endpoint_rules_written),
        _row(kinds.RULES_REFUSED, _rules_refused),
        _row(kinds.POD_SCHEDULED, _fixed("scheduled to {node}", STEP)),
        _row(kinds.POD_ADMITTED, _fixed("admitted", DETAIL)),
        _row(kinds.POD_REJECTED, _fixed("rejected: {reason}: {message}", STEP, "bad")),
        _row(kinds.MIRROR_POD_CREATED, _fixed("mirror Pod {name} made in the API", DETAIL)),
        _row(kinds.VOLUME_FAILED, _fixed("volume {volume} cannot be mounted: {error}", STEP, "bad")),
        _row(kinds.VOLUMES_MOUNTED, _fixed("volumes mounted", DETAIL)),
        _row(
            kinds.ALL_CONTAINERS_RESTARTING, _fixed("exit {exitCode} restarts all containers of the Pod", STEP, "bad")
        ),
        _row(kinds.CONTAINER_RESIZED, _container_resized),
        _row(kinds.SANDBOX_CREATED, _fixed("sandbox created", DETAIL)),
        _row(kinds.IMAGE_SUBSTITUTED, _image_substituted),
        _row(kinds.CONTAINER_CREATED, _fixed("container created from {image}", DETAIL)),
        _row(kinds.CONTAINER_STARTED, _fixed("container started", STEP)),
        _row(kinds.CONTAINER_START_FAILED, _container_start_failed),
        _row(kinds.POST_START_STARTED, _fixed("postStart {handler} starts", STEP)),
        _row(kinds.POST_START_FINISHED, _fixed("postStart {handler} {outcome}", STEP)),
        _row(kinds.PROBE_CHANGED, _probe_changed),
        _row(kinds.POD_RUNNING, _fixed("phase Running", STEP)),
        _row(kinds.TERMINATION_OBSERVED, _termination_observed),
        _row(kinds.GRACE_DECIDED, _grace_decided),
        _row(kinds.KILLING, _killing),
        _row(kinds.PRE_STOP_SKIPPED, _fixed("preStop not run: {why}", STEP, "bad")),
        _row(kinds.PRE_STOP_STARTED, _pre_stop_started),
        _row(kinds.PRE_STOP_FINISHED, _pre_stop_finished),
        _row(kinds.STOP_REQUESTED, _stop_requested),
        _row(kinds.STOP_FINISHED, _stop_finished),
        _row(kinds.SANDBOX_STOPPED, _sandbox_stopped),
        _row(kinds.VOLUMES_UNMOUNTED, _volumes_unmounted),
        _row(kinds.STATUS_SENT, _fixed("sent the status: phase {phase}", DETAIL)),
        _row(kinds.FINAL_DELETE_SENT, _fixed("final DELETE: grace 0, this uid only")),
        _row(kinds.WORKER_FINISHED, _fixed("the Pod's worker is done", DETAIL)),
        _row(kinds.PROCESS_STARTED, _fixed("process started: pid {pid}, {exe}", DETAIL)),
        _row(
            kinds.OUT_OF_MEMORY,
            _fixed("the machine ran out of memory meanwhile: probably killed for that", STEP, "bad"),
        ),
        _row(kinds.PROCESS_SIGNAL_STATE, _signal_state),
        _row(kinds.SIGNAL_SENT, _signal_sent),
        _row(kinds.PROCESS_EXITED, _process_exited),
        _row(kinds.SOCKETS_AT_STOP, _sockets_at_stop),
        _row(kinds.LISTENER_CLOSED, lambda facts: Words(f"closed its port {facts.get('port')}, {_between(facts)}")),
        _row(kinds.CONNECTIONS_CLOSED, lambda facts: Words(f"its last connection is closed, {_between(facts)}")),
        _row(kinds.SOCKETS_AT_EXIT, _sockets_at_exit),
        _row(kinds.PROCESSES_LEFT, _processes_left),
        _row(kinds.VOLUME_BUSY, _volume_busy),
        _row(
            kinds.CLAIM_HELD,
            _fixed(
                "claim {claim} was deleted and stays, held by finalizer {finalizer}, because this Pod uses it", STEP
            ),
        ),
        _row(kinds.EXEC_STARTED, _fixed("exec: pid {pid}", NOISE)),
        _row(kinds.EXEC_EXITED, _fixed("exec: exit {exitCode}", NOISE)),
        _row(kinds.OUTPUT, _output),
        _row(
            kinds.PRIVILEGE_CALL_ANSWERED,
            _fixed("{call} to id {id} answered with success, not done (one user id)", STEP),
        ),
        _row(kinds.NETWORK_ATTACHED, _fixed("network {ip} set up", DETAIL)),
        _row(kinds.NETWORK_POLICIES_APPLIED, _network_policies_applied),
        _row(kinds.NETWORK_DETACHED, _network_detached),
        _row(kinds.PROCESS_DIED, _process_died),
        _row(kinds.OWNER_WRITTEN, _owner_written),
        _row(kinds.OWNER_DELETED, _owner_deleted),
        _row(kinds.SCALE_DECIDED, _fixed("scales {ofKind} {name} from {from} to {to} ({step})", STEP)),
        _row(kinds.DELETION_DECIDED, _fixed("decides the end: {why}", STEP)),
        _row(kinds.PROCESS_RESTARTED, _fixed("{role} started again (pid {pid})", STEP)),
        _row(kinds.FAULT_CAUGHT, _fixed("an internal error was caught: {component} {key}: {error}", STEP)),
    )
)


_OF_THE_CONTAINER = (
    kinds.OUTPUT, kinds.PROCESS_EXITED, kinds.SOCKETS_AT_STOP, kinds.LISTENER_CLOSED, kinds.CONNECTIONS_CLOSED,
    kinds.SOCKETS_AT_EXIT, kinds.PROCESSES_LEFT,
)  # fmt: skip
_ACTORS = {"kube-scheduler": "scheduler"}


def actor_label(record: Record) -> str:
    """The actor in one short word."""
    if record.kind in _OF_THE_CONTAINER:
        return "container"
    return _ACTORS.get(record.actor, record.actor.removesuffix("-controller"))


def live_head(record: Record, at: float) -> str:
    """`   +3.021s  runtime      `: when and who."""
    return f"{at:+9.3f}s  {actor_label(record):13}"


def live_body(record: Record, pod: str = "") -> str:
    """`app: SIGTERM → pid 7 (StopContainer)`: the container, with `pod` before it when given, and the words.

    What nobody observed says so, as in the story.
    """
    where = printable(" ".join(part for part in (pod, record.container) if part))
    words = words_for(record).text + ("" if record.evidence == "observed" else f" ({record.evidence})")
    return f"{where}: {words}" if where else words
