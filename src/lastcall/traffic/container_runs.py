"""The runs of a Pod's containers, from records, and which of them serve; in seconds of the monotonic clock. Pure."""

# check: pure

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.lives import Outage
from lastcall.traffic.moments import Moment, exactly

if TYPE_CHECKING:
    from lastcall.records.definitions.parts import Listener
    from lastcall.records.definitions.runtime import SignalSent


@dataclass(slots=True)
class Run:
    """One run of one container: what became of it, and the ports on which it was seen to listen."""

    started: float | None = None
    hook: float | None = None
    stop: float | None = None
    term: float | None = None
    exited: float | None = None
    killed: bool = False
    never_accepted: int | None = None
    unread: int | None = None
    ports: set[int] = field(default_factory=set)
    closed: dict[int, float] = field(default_factory=dict)
    """Port → when it was closed."""

    def note(self, record: Record, at: float) -> None:
        match record.kind:
            case kinds.PROCESS_STARTED:
                self.started = at
            case kinds.PRE_STOP_STARTED if self.hook is None:
                self.hook = at
            case kinds.STOP_REQUESTED if self.stop is None:
                self.stop = at
            case kinds.SIGNAL_SENT:
                self._signalled(record.told(kinds.SIGNAL_SENT), at)
            case kinds.LISTENER_CLOSED:
                self.ports.add(port := int(record.told(kinds.LISTENER_CLOSED).get("port") or 0))
                self.closed.setdefault(port, at)
            case kinds.SOCKETS_AT_STOP:
                self._listened(record.told(kinds.SOCKETS_AT_STOP).get("listeners") or ())
            case kinds.SOCKETS_AT_EXIT:
                last = record.told(kinds.SOCKETS_AT_EXIT)
                self._listened(last.get("listeners") or ())
                self.never_accepted = (self.never_accepted or 0) + int(last.get("backlog") or 0)
                self.unread = (self.unread or 0) + int(last.get("unread") or 0)
            case kinds.PROCESS_EXITED:
                self.exited = at

    def _signalled(self, sent: "SignalSent", at: float) -> None:
        if sent.get("signal") == "SIGKILL":
            self.killed = self.killed or sent.get("why") == "grace over"
        elif self.term is None and sent.get("why") == "StopContainer":
            self.term = at

    def _listened(self, listeners: "Sequence[Listener]") -> None:
        self.ports |= {int(each.get("port") or 0) for each in listeners}

    def stopped_listening(self, port: int | None) -> float | None:
        """When it closed `port`; any, where it was not seen to listen on that."""
        if port in self.ports:
            return self.closed.get(port) if port is not None else None
        return min(self.closed.values(), default=None)


def serving_containers(pod_spec: Mapping[str, Any], port: int | str) -> tuple[int | None, set[str]]:
    """Of a Service's target port: its number, None where only the Pod knows it, and the containers that declare it."""
    declared = [
        (each["name"], its["containerPort"])
        for each in [*(pod_spec.get("initContainers") or ()), *pod_spec["containers"]]
        for its in each.get("ports") or ()
        if port in (its["containerPort"], its.get("name"))
    ]
    number = port if isinstance(port, int) else next((number for _, number in declared), None)
    return number, {name for name, _ in declared}


_SERVE = ("container", "sidecar")


@dataclass(slots=True)
class ContainerRuns:
    """Of the containers of a Pod, each with its runs; the last one is the newest."""

    sorts: dict[str, str] = field(default_factory=dict)
    """Container → container, sidecar, init or ephemeral."""
    runs: dict[str, list[Run]] = field(default_factory=dict)

    def note(self, record: Record, at: float) -> None:
        if record.kind == kinds.POD_CREATED:
            made = record.told(kinds.POD_CREATED).get("containers") or ()
            self.sorts.update({str(each.get("name")): str(each.get("kind")) for each in made})
        elif record.kind == kinds.EPHEMERAL_CONTAINERS_ADDED:
            added = record.told(kinds.EPHEMERAL_CONTAINERS_ADDED).get("containers") or ()
            self.sorts.update({str(each.get("name")): "ephemeral" for each in added})
        elif record.kind in _OF_A_RUN and self.sorts.get(record.container, "container") in _SERVE:
            runs = self.runs.setdefault(record.container, [Run()])
            if record.kind == kinds.PROCESS_STARTED and runs[-1].exited is not None:
                runs.append(Run())
            runs[-1].note(record, at)

    def serving(self, port: int | None, declared: Collection[str]) -> list[list[Run]]:
        """Of the containers that were `declared` to have the port, else of those seen to listen on it, else of all."""
        return [self.runs[name] for name in self._serving(port, declared)]

    def stopped_behind(self, port: int | None, declared: Collection[str]) -> dict[str, float]:
        """The other containers that listened → when each stopped that, or exited."""
        others = {name: runs[-1] for name, runs in self.runs.items() if name not in self._serving(port, declared)}
        ends = {name: [*run.closed.values(), run.exited] for name, run in others.items() if run.ports}
        found = {name: [at for at in moments if at is not None] for name, moments in ends.items()}
        return {name: min(moments) for name, moments in found.items() if moments}

    def _serving(self, port: int | None, declared: Collection[str]) -> list[str]:
        listened = [name for name, runs in self.runs.items() if any(port in run.ports for run in runs)]
        return [name for name in self.runs if name in declared] or listened or list(self.runs)


_OF_A_RUN = frozenset(
    {
        kinds.PROCESS_STARTED,
        kinds.PRE_STOP_STARTED,
        kinds.STOP_REQUESTED,
        kinds.SIGNAL_SENT,
        kinds.LISTENER_CLOSED,
        kinds.SOCKETS_AT_STOP,
        kinds.SOCKETS_AT_EXIT,
        kinds.PROCESS_EXITED,
    }
)


def outages(runs: Sequence[Run], deleted: float | None) -> Iterator[Outage]:
    """The ends of a container before the Pod's own, which began with its DELETE."""
    for run, after in zip(runs, [*runs[1:], None], strict=True):
        if run.exited is not None and (after is not None or deleted is None or run.exited < deleted):
            stop = run.term if run.stop is None else run.stop
            restarted = after.started if after is not None else None
            yield Outage(Moment.at(run.exited), exactly(restarted), exactly(stop))
