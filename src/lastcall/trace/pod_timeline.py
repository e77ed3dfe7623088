"""The records of one Pod whose end has begun, in bounded memory, each at its place on our clock. No I/O, no clock."""

# check: pure

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from lastcall.kube.api import Object, containers_of, handler_detail, handler_name, uid_of
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace.drafts import Draft
from lastcall.trace.events import PodEvent, failed_probe, kill_reason, steps_of
from lastcall.trace.pods import before_the_end, deletion_of, statuses_of
from lastcall.trace.stamps import SECOND, Clocks
from lastcall.trace.stops import Stop, ended, exit_signal, is_hook, stop_steps
from lastcall.world.dataclass import dataclass

MAX_RECORDS = 800
"""Of one Pod; what is dropped is counted, and the story says so."""
MAX_LINES = 400
"""Lines of output of one Pod."""
_ALIVE = (kinds.CONTAINER_STARTED, kinds.KILLING, kinds.SIGNAL_SENT, kinds.OUTPUT)
"""Until then it ran."""
LEAST_GRACE = 1
"""Of a Pod that ends, also deleted with 0 and held by finalizers. (`pod_workers.go:calculateEffectiveGracePeriod`)"""
EARLY_NS = SECOND
"""A hook's process may be seen before the Event that reports its beginning."""
PROBE_NS = 2 * SECOND
"""A kubelet ends a container so soon after the Event of the failure that was one too many."""
EVENT_LATE_NS = 3 * SECOND
"""A kubelet's Event is here so soon. One whose stamp is older is placed by its stamp."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Now, by our monotonic and our wall clock, in ns."""

    at_ns: int
    wall_ns: int


@dataclass(slots=True)
class PodTimeline:
    """`pod` is the last object seen. `new_id` makes the ids of records, by actor; `on_record` hears of each record."""

    pod: Object
    clocks: Clocks
    new_id: Callable[[str], str]
    on_record: Callable[[Record], None]
    began: Moment
    first: Object = field(default_factory=dict)
    """The object as it was when the end began, or when it was first seen to be ending."""
    history: list[tuple[PodEvent, Moment]] = field(default_factory=list)
    """Events of runs that had ended by then, and when each came."""
    late: bool = False
    """Its end had begun before it was followed."""
    explained_from_ns: int | None = None
    """Since when every Event of it is known, None where they are not read. What ended a container before is not."""
    records: list[Record] = field(default_factory=list)
    stops: dict[str, Stop] = field(default_factory=dict)
    gone: Moment | None = None
    deleted_ns: int | None = None
    dropped: int = 0
    lines: int = 0
    not_shown: dict[str, str] = field(default_factory=dict)
    """Sentences on what was missed → why, as in the record NotShown."""
    _written: set[tuple[str, str, str]] = field(default_factory=set)
    _events: dict[str, str] = field(default_factory=dict)
    _failing: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Container → (the reason of a Killing for its probe, when that failed last)."""
    _seen_exits: set[str] = field(default_factory=set)
    """Containers whose last end a node saw."""

    @property
    def uid(self) -> str:
        return uid_of(self.pod)

    @property
    def node(self) -> str:
        return str((self.pod.get("spec") or {}).get("nodeName") or "")

    def write(self, each: Draft, now: Moment) -> None:
        """Make a record of a draft."""
        at_ns = self._place(each, now)
        facts = dict(each.facts)
        if each.kind == kinds.PROCESS_EXITED and each.evidence == "inferred":
            at_ns = self._exited(each.container, at_ns, facts, now)
        elif each.kind == kinds.DELETE_ACCEPTED and self.deleted_ns is None:
            self.deleted_ns = at_ns
        elif each.kind == kinds.CONTAINER_STARTED:
            self._new_run(each.container)
        self._append(self.record_of(each, at_ns, now, facts))

    def record_of(self, each: Draft, at_ns: int, now: Moment, facts: Mapping[str, Any] | None = None) -> Record:
        """Return the record of a draft at its place, with other `facts` where they are known better."""
        return Record(
            id=self.new_id(each.actor),
            at_ns=at_ns,
            wall_ns=now.wall_ns - (now.at_ns - at_ns),
            actor=each.actor,
            kind=each.kind,
            pod_uid=self.uid,
            container=each.container,
            rule=each.rule,
            facts=dict(each.facts if facts is None else facts),
            evidence=each.evidence,
        )

    def is_past(self, event: PodEvent, now: Moment) -> bool:
        """Return whether an Event is about a run that had ended when the end began, or ends with it."""
        status = statuses_of(self.first).get(event.container) or {}
        running = (status.get("state") or {}).get("running")
        if not event.container or running is None:
            return True
        return bool(event.stamp) and event.stamp < str(running.get("startedAt") or "")

    def is_new(self, each: Draft) -> bool:
        """Return True if no earlier Event reported the step: a probe that fails again reports the same again."""
        which = ""
        if each.kind == kinds.PROBE_CHANGED:
            which = each.facts_as(kinds.PROBE_CHANGED)["probe"]
        elif each.kind == kinds.VOLUME_FAILED:
            which = each.facts_as(kinds.VOLUME_FAILED)["volume"]
        key = (each.container, each.kind, which)
        if key in self._written:
            return False
        self._written.add(key)
        stop = self.stops.get(each.container)
        return stop is None or stop.exited is None

    def past(self, now: Moment) -> list[Record]:
        """Return the records of what the first object and the Events of then tell."""
        past = PodTimeline(self.first, self.clocks, self.new_id, lambda record: None, self.began)
        past.explained_from_ns = self.explained_from_ns
        steps: list[tuple[int, int, Draft | PodEvent]] = []
        killed: dict[str, list[int]] = {}
        for index, (event, came) in enumerate(self.history):
            at_ns = past._event_at(event, came)
            steps.append((at_ns, -1000 + index, event))
            if event.reason == "Killing":
                killed.setdefault(event.container, []).append(at_ns)
        from_object = before_the_end(self.first)
        places = [past._place(each, self.began) for each in from_object]
        for index, each in enumerate(from_object):
            if each.kind == kinds.PROCESS_EXITED:
                # Known to a second: it may have been right after the Killing of the same second.
                for at_ns in killed.get(each.container, ()):
                    if places[index] < at_ns <= places[index] + SECOND:
                        places[index] = at_ns + 1
        runs_in_order(from_object, places)
        steps += [(places[index], index, each) for index, each in enumerate(from_object)]
        for at_ns, _, step in sorted(steps, key=lambda each: each[:2]):
            moment = Moment(at_ns, self.began.wall_ns - (self.began.at_ns - at_ns))
            if isinstance(step, PodEvent):
                past.event(step, moment)
                for new in steps_of(step):
                    if past.is_new(new):
                        past.write(replace(new, at_ns=at_ns), moment)
            else:
                past.write(replace(step, at_ns=at_ns), moment)
        return past.records

    def add(self, record: Record) -> None:
        """Add a record from elsewhere: a node's agent. What it saw goes before what was concluded."""
        self._append(record)
        now = Moment(record.at_ns, record.wall_ns)
        if record.kind == kinds.PROCESS_EXITED and record.container:
            self._seen_exits.add(record.container)
            stop = self.stops.get(record.container) or self._new_stop(record.container)
            self.stops[record.container] = ended(stop, record.at_ns, dict(record.facts))
            self.advance(now)
        elif record.kind == kinds.EXEC_EXITED:
            self.advance(now)

    def _look_for_hook(self, stop: Stop) -> Stop:
        """With the end of the hook's process, if a node saw it."""
        if stop.handler != "exec" or stop.killing is None or stop.hook_ended is not None:
            return stop
        command = [str(word) for word in self._hook_of(stop.container).get("exec", {}).get("command") or ()]
        begun = {
            str(r.facts_as(kinds.EXEC_STARTED)["execId"])
            for r in self.records
            if r.kind == kinds.EXEC_STARTED
            and r.container == stop.container
            and r.at_ns > stop.killing - EARLY_NS
            and is_hook(command, [str(word) for word in r.facts_as(kinds.EXEC_STARTED)["argv"]])
        }
        for r in self.records:
            if r.kind == kinds.EXEC_EXITED and str(r.facts_as(kinds.EXEC_EXITED)["execId"]) in begun:
                code = r.facts_as(kinds.EXEC_EXITED)["exitCode"]
                return replace(stop, hook_ended=max(r.at_ns, stop.killing), hook_code=code or 0)
        return stop

    def event(self, event: PodEvent, now: Moment) -> None:
        """Take Killing or FailedPreStopHook of a container: its stop, up to where it has come."""
        if self._events.get(event.uid) == event.version:
            return
        self._events[event.uid] = event.version
        at = self._event_at(event, now)
        if event.container and (probe := failed_probe(event)):
            self._failing[event.container] = (probe, at)
        if not event.container or event.reason not in ("Killing", "FailedPreStopHook"):
            return
        stop = self.stops.get(event.container) or self._new_stop(event.container)
        if stop.exited is not None and at > stop.exited + SECOND:
            return  # of a run that was not seen to start: nothing of it is known yet
        if event.reason == "Killing" and stop.killing is None:
            reason = kill_reason(event.message)
            if event.container in self._seen_exits and stop.exited is not None:
                at = min(at, stop.exited)  # an Event may come after what a node saw
            if not reason and self.deleted_ns is not None:
                at = max(at, self.deleted_ns)
            grace = self._grace(event.container, reason)
            reason = reason or self._probe_before(event.container, at)
            stop = replace(stop, killing=at, message=event.message, reason=reason, grace=grace)
            self._observed_by_kubelet(at, now, reason)
        elif event.reason == "FailedPreStopHook":
            stop = replace(stop, hook_failed=max(at, stop.killing or at), hook_message=event.message)
        self.stops[event.container] = stop
        self.advance(now)

    def advance(self, now: Moment) -> None:
        """Write the steps of stops that have become known by now."""
        self._turns()
        for name, stop in list(self.stops.items()):
            self.stops[name] = self._look_for_hook(stop)
            self._advance(self.stops[name], now)

    def line(self, container: str, at_ns: int, now: Moment, text: str, attempt: int) -> None:
        """Write a line that a container printed. Of too many the first are kept."""
        self.lines += 1
        if self.lines > MAX_LINES:
            return
        facts = {"stream": "stdout", "text": text, "attempt": attempt}
        self.write(Draft(kinds.OUTPUT, facts, "runtime", container, at_ns=min(at_ns, now.at_ns)), now)

    def _new_run(self, name: str) -> None:
        self.stops.pop(name, None)
        self._seen_exits.discard(name)
        self._written = {each for each in self._written if each[0] != name}

    # -- inside -------------------------------------------------------------------------------------------------------

    def _append(self, record: Record) -> None:
        if len(self.records) >= MAX_RECORDS and record.kind not in (kinds.OBJECT_REMOVED, kinds.POD_GONE_SEEN):
            self.dropped += 1
            return
        self.records.append(record)
        self.on_record(record)

    def _place(self, each: Draft, now: Moment) -> int:
        if each.at_ns is not None:
            return each.at_ns
        if not each.clock or not each.stamp:
            return now.at_ns
        wall = self.clocks.ours(self.node if each.clock == "node" else "", each.stamp)
        if wall is not None and each.kind != kinds.PROCESS_EXITED:
            # A beginning is placed at the beginning of its second: what it began comes after it.
            return now.at_ns - max(0, now.wall_ns - wall)
        if wall is None or wall + SECOND >= now.wall_ns:
            return now.at_ns
        middle = wall + (0 if "." in each.stamp else SECOND // 2)
        return now.at_ns - (now.wall_ns - middle)

    def _event_at(self, event: PodEvent, now: Moment) -> int:
        wall = self.clocks.ours(self.node, event.stamp)
        if wall is None or now.wall_ns - wall < EVENT_LATE_NS:
            return now.at_ns
        return now.at_ns - (now.wall_ns - wall - SECOND // 2)

    def _grace(self, container: str, reason: str) -> int:
        spec = self.pod.get("spec") or {}
        _, grace = deletion_of(self.pod)
        own = spec.get("terminationGracePeriodSeconds")
        if reason in ("LivenessProbe", "StartupProbe"):
            probe = self._spec_of(container).get("livenessProbe" if reason == "LivenessProbe" else "startupProbe") or {}
            own = probe.get("terminationGracePeriodSeconds", own)
            grace = None
        value = own if grace is None else grace
        value = value if isinstance(value, int) else 30
        return value if reason else max(LEAST_GRACE, value)

    def _probe_before(self, container: str, at: int) -> str:
        """Why a Pod that nobody deleted is ended as a whole: the last container of one that starts none again failed
        its probe just before. (`kuberuntime_manager.go:computePodActions`)"""
        probe, failed = self._failing.get(container, ("", 0))
        never = (self.pod.get("spec") or {}).get("restartPolicy") == "Never"
        why = (self.pod.get("status") or {}).get("reason")
        return probe if never and not why and self.deleted_ns is None and 0 <= at - failed <= PROBE_NS else ""

    def _spec_of(self, name: str) -> Mapping[str, Any]:
        found = (each for _, each in containers_of(self.pod.get("spec") or {}) if each.get("name") == name)
        return next(found, {})

    def _hook_of(self, name: str) -> Any:
        return (self._spec_of(name).get("lifecycle") or {}).get("preStop") or {}

    def _new_stop(self, name: str) -> Stop:
        spec = self._spec_of(name)
        hook = self._hook_of(name)
        status = statuses_of(self.pod).get(name) or {}
        signal = status.get("stopSignal") or (spec.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
        sleep = (hook.get("sleep") or {}).get("seconds")
        return Stop(
            name,
            handler=handler_name(hook),
            detail=handler_detail(hook) if hook else "",
            sleep=sleep if isinstance(sleep, int) else None,
            waits_for_turn=any(
                kind == "sidecar" and each.get("name") == name
                for kind, each in containers_of(self.pod.get("spec") or {})
            ),
            signal=str(signal),
        )

    def _turns(self) -> None:
        """When the containers that each sidecar waits for had ended: regular ones that ran, and sidecars after it.

        (`pod_termination_order.go:newTerminationOrdering`)
        """
        if not any(stop.waits_for_turn for stop in self.stops.values()):
            return
        spec = self.pod.get("spec") or {}
        ran = statuses_of(self.first)
        before = [
            name
            for kind, each in containers_of(spec)
            if kind == "container"
            and ((name := str(each.get("name"))) in self.stops or (ran.get(name, {}).get("state") or {}).get("running"))
        ]
        sidecars = [str(each.get("name")) for kind, each in containers_of(spec) if kind == "sidecar"]
        for name in reversed(sidecars):
            stop = self.stops.get(name)
            ends = [self.stops[each].exited if each in self.stops else None for each in before]
            if stop is not None and all(end is not None for end in ends):
                at = max((end for end in ends if end is not None), default=stop.killing)
                self.stops[name] = replace(stop, turn=at)
            before.append(name)

    def _advance(self, stop: Stop, now: Moment) -> None:
        for each in stop_steps(stop, now.at_ns):
            sent = each.kind == kinds.SIGNAL_SENT
            key = (each.container, each.kind, str(each.facts_as(kinds.SIGNAL_SENT)["signal"]) if sent else "")
            if key not in self._written:
                self._written.add(key)
                self.write(each, now)

    def _exited(self, name: str, at_ns: int, facts: dict[str, Any], now: Moment) -> int:
        """Fill in how a container ended; answers when."""
        stop = self.stops.get(name) or self._new_stop(name)
        if name in self._seen_exits and stop.exited is not None:
            facts["signal"] = exit_signal(stop, now.at_ns)
            return stop.exited
        alive = (r.at_ns for r in self.records if r.container == name and r.kind in _ALIVE)
        least = max((at for at in alive if at <= now.at_ns), default=at_ns)
        at_ns = min(max(at_ns, least), now.at_ns)
        stop = ended(stop, at_ns, facts)
        self.stops[name] = stop
        self._turns()
        stop = self.stops[name]
        self._advance(stop, now)
        facts["signal"] = exit_signal(stop, now.at_ns)
        since = self.explained_from_ns
        if stop.killing is None and self.deleted_ns is None and (since is None or at_ns < since):
            facts["unexplained"] = True
        return max(at_ns, stop.killing or at_ns)

    def _observed_by_kubelet(self, at: int, now: Moment, reason: str) -> None:
        if reason or self.deleted_ns is None or ("", kinds.TERMINATION_OBSERVED, "") in self._written:
            return
        self._written.add(("", kinds.TERMINATION_OBSERVED, ""))
        facts = {"cause": "deletionTimestamp", "gracePeriodSeconds": deletion_of(self.pod)[1]}
        facts["observedResourceVersion"] = ""
        self.write(Draft(kinds.TERMINATION_OBSERVED, facts, "kubelet", "", "", "inferred", at_ns=at), now)


def runs_in_order(steps: Sequence[Draft], places: list[int]) -> None:
    """Move the places of starts and ends that an object has, known to a second, so that each container's are in the
    order in which it has them: a run ends before the next one starts."""
    later: dict[str, int] = {}
    for index in reversed(range(len(steps))):
        name = steps[index].container
        if not name:
            continue
        if name in later:
            places[index] = min(places[index], later[name] - 1)
        later[name] = places[index]
