"""The picture of a Pod's end: who did what when, in lanes on one time axis. Pure; the renderers only draw it.

A signal and an exit lie in the lane of their container, where they happen, no matter who recorded them.
"""

# check: pure

from typing import Literal

from lastcall.endings.story import OVERRUN_SECONDS, ContainerEnding, Ending, EndpointTransition, Entry, endpoint_of
from lastcall.endings.verdict import is_ongoing
from lastcall.records import kinds
from lastcall.records.said import tell
from lastcall.records.sentences import DETAIL, NOISE, STEP
from lastcall.records.signal_names import SIGKILL, signal_name
from lastcall.records.text import seconds
from lastcall.records.words import words_for
from lastcall.world.dataclass import dataclass

LaneKind = Literal["actor", "endpoint", "container", "output"]
BarKind = Literal[
    "running", "preStop", "waiting", "drain", "overrun", "ready", "notReady", "serving", "terminating", "work"
]
Glyph = Literal["step", "detail", "signal", "kill", "exit", "good", "bad"]

ACTORS = (
    ("client", tell("client")),
    ("apiserver", tell("API server")),
    ("scheduler", tell("scheduler")),
    ("endpointslice-controller", tell("EndpointSlice controller")),
    ("kube-proxy", tell("service proxy")),
    ("kubelet", "kubelet"),
    ("runtime", tell("runtime")),
    ("init", "init"),
)
"""Actor and what its lane is called, from the top. Lanes of endpoints follow their controller."""

_IN_CONTAINER = (
    kinds.SIGNAL_SENT, kinds.PROCESS_EXITED, kinds.PROCESS_STARTED, kinds.SOCKETS_AT_STOP, kinds.LISTENER_CLOSED,
    kinds.LISTENER_CLOSED_IN_HOOK, kinds.CONNECTIONS_CLOSED, kinds.SOCKETS_AT_EXIT, kinds.PROCESSES_LEFT,
    kinds.CHILD_ENDED, kinds.PROCESSES_AT_STOP, kinds.WAITS_AT_KILL,
)  # fmt: skip
CONTAINER_KINDS: dict[str, str] = {
    "container": "",
    "init": tell("init"),
    "sidecar": tell("sidecar"),
    "ephemeral": tell("ephemeral"),
}
_BEFORE = (kinds.DELETE_SENT,)
"""What is shown although it lies before the zero."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One record in a lane. `number` counts the records of the picture by time, from 1."""

    entry: Entry
    number: int
    glyph: Glyph
    label: str = ""
    """A word beside it, for the few that decide: `SIGTERM`, `exit 0`."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A phase. `end` is None when nobody saw it."""

    kind: BarKind
    label: str
    start: float
    end: float | None


@dataclass(frozen=True, slots=True)
class Lane:
    """`detail` is a second line for the lane's name."""

    kind: LaneKind
    name: str
    detail: str = ""
    bars: tuple[Bar, ...] = ()
    marks: tuple[Mark, ...] = ()
    lines: tuple[float, ...] = ()
    """When lines of output came."""


@dataclass(frozen=True, slots=True)
class Picture:
    """`start` and `end` of the time shown, in seconds; `left_out` counts records that were too many to draw."""

    lanes: tuple[Lane, ...]
    start: float
    end: float
    left_out: int = 0

    @property
    def marks(self) -> list[Mark]:
        """Return all marks by number."""
        return sorted((mark for lane in self.lanes for mark in lane.marks), key=lambda mark: mark.number)


def decide_picture(ending: Ending, *, most: int = 400) -> Picture:
    """Return the lanes of a Pod's end. At most about `most` records are drawn: details go first, then the middle."""
    drawn, left_out = _drawn(ending, most)
    marks = [Mark(entry, number, *_glyph(entry)) for number, entry in enumerate(drawn, 1)]
    start = min([0.0, *(mark.entry.at for mark in marks)])
    end = max([0.0, *_ends(ending), *(mark.entry.at for mark in marks)])
    lanes: list[Lane] = []
    for actor, name in ACTORS:
        own = tuple(m for m in marks if m.entry.record.actor == actor and not _is_in_container(m.entry, ending))
        if own:
            lanes.append(Lane("actor", name, marks=own))
        if actor == "endpointslice-controller":
            lanes += _endpoint_lanes(ending, start, end)
    known = {actor for actor, _ in ACTORS}
    for actor in sorted({m.entry.record.actor for m in marks} - known):
        lanes.append(Lane("actor", actor, marks=tuple(m for m in marks if m.entry.record.actor == actor)))
    for container in ending.containers:
        if container.exit.before_delete and not any(m.entry.record.container == container.name for m in marks):
            continue
        own = tuple(
            m for m in marks if m.entry.record.container == container.name and _is_in_container(m.entry, ending)
        )
        detail = CONTAINER_KINDS.get(container.kind, container.kind)
        lanes.append(Lane("container", container.name, detail, _phases(container, ending, start, end), own))
        lines = tuple(line.at for line in ending.output if line.container == container.name)
        if lines:
            lanes.append(Lane("output", tell("output"), container.name, lines=lines))
    return Picture(tuple(lanes), start, end, left_out)


def is_about_the_end(entry: Entry, ending: Ending) -> bool:
    """Return whether a record belongs to the end, not to the Pod's life before."""
    if entry.at >= 0:
        return True
    if entry.record.kind == kinds.PROCESS_EXITED:
        return any(c.name == entry.record.container and c.exit.at == entry.at for c in ending.containers)
    return entry.record.kind in _BEFORE


def _drawn(ending: Ending, most: int) -> tuple[list[Entry], int]:
    """The entries that get a mark, and how many more should have."""
    shown = [
        (entry, words_for(entry.record).level)
        for entry in ending.entries
        if entry.record.kind != kinds.OUTPUT and is_about_the_end(entry, ending)
    ]
    shown = [(entry, level) for entry, level in shown if level < NOISE]
    everything = len(shown)
    if everything > most:
        shown = [(entry, level) for entry, level in shown if level < DETAIL]
    if len(shown) > most:
        shown = [*shown[: most // 2], *shown[-most // 2 :]]
    return [entry for entry, _ in shown], everything - len(shown)


def _glyph(entry: Entry) -> tuple[Glyph, str]:
    record, words = entry.record, words_for(entry.record)
    if record.kind == kinds.SIGNAL_SENT:
        name = (signal_name(record.facts_as(kinds.SIGNAL_SENT).get("signal")) or "signal")[:12]
        return ("kill" if name == SIGKILL else "signal"), name
    if record.kind == kinds.PROCESS_EXITED:
        return "exit", tell("exit $code", code=record.facts_as(kinds.PROCESS_EXITED).get("exitCode"))
    if record.kind == kinds.DELETE_ACCEPTED:
        return "step", "DELETE"
    if record.kind == kinds.POD_GONE_SEEN:
        return "good", tell("gone")
    if words.level > STEP:
        return "detail", ""
    if words.style in ("good", "bad"):
        return words.style, ""
    return "step", ""


def _is_in_container(entry: Entry, ending: Ending) -> bool:
    record = entry.record
    return record.kind in _IN_CONTAINER and any(c.name == record.container for c in ending.containers)


def _ends(ending: Ending) -> list[float]:
    found = [ending.gone, *(c.exit.at for c in ending.containers), *(span.end for span in ending.spans)]
    return [end for end in found if end is not None] + [entry.at for entry in ending.entries[-1:]]


# -- bars ---------------------------------------------------------------------------------------------------------


def _phases(c: ContainerEnding, ending: Ending, start: float, end: float) -> tuple[Bar, ...]:
    """running, hook, waiting, drain, overrun, one after the other. A hook that outlives its time ends at SIGTERM.

    Before them the earlier runs. What still runs has no end."""
    if not c.started:
        return ()
    bars = _earlier_runs(c, ending, start)
    begun = start if c.started_at is None else max(start, c.started_at)
    hook = c.hook if c.hook and c.hook.started_at is not None else None
    hook_start = hook.started_at if hook else None
    turn = c.stop.requested_at if c.kind == "sidecar" else None
    first = next((at for at in (hook_start, turn, c.stop.signal_at, c.exit.at) if at is not None), None)
    running_to = end if first is None and c.exit.at is None else first
    still = first is None and c.exit.at is None and is_ongoing(ending)
    if running_to is not None and (still or running_to > begun):
        waits = bool(c.kind == "sidecar" and ending.zero_kind and hook is None and running_to > 0.05)
        begins = begun
        if waits and begun < 0:
            bars.append(Bar("running", tell("running"), begun, 0.0))
            begins = 0.0
        label = _waits(running_to) if waits else tell("running")
        bars.append(Bar("waiting" if waits else "running", label, begins, None if still else running_to))
    after = running_to
    if hook is not None and hook_start is not None:
        handler = f"preStop {hook.handler}".strip()
        bars.append(Bar("preStop", f"{handler} {seconds(hook.seconds)}", hook_start, hook.finished_at))
        after = hook.finished_at
        if after is not None and turn is not None and turn - after > 0.02:
            bars.append(Bar("waiting", _waits(turn - after), after, turn))
            after = turn
    following = c.stop.signal_at if c.stop.signal_at is not None else c.exit.at
    if after is not None and following is not None and following - after > 1e-6:
        bars.append(Bar("running", "", after, following))
    return (*bars, *(_drain(c, ending) if c.stop.signal_at is not None else ()))


def _waits(length: float) -> str:
    return tell("waits for its turn $time", time=seconds(length))


def _earlier_runs(c: ContainerEnding, ending: Ending, start: float) -> list[Bar]:
    """A container that waits for its next run does not run."""
    bars = []
    for each in ending.earlier:
        if each.name == c.name and each.exit.at is not None and each.exit.at > start:
            begun = start if each.started_at is None else max(start, each.started_at)
            bars.append(Bar("running", tell("running"), begun, each.exit.at))
    return bars


def _drain(c: ContainerEnding, ending: Ending) -> list[Bar]:
    """From the stop signal to the exit, cut where the grace period is over."""
    assert c.stop.signal_at is not None
    label = tell("drain") if c.exit.at is None else tell("drain $time", time=seconds(c.drain_seconds))
    over = ending.budget.grace if ending.budget else ending.grace_seconds
    if over is None or c.exit.at is None or c.exit.at <= over + OVERRUN_SECONDS:
        return [Bar("drain", label, c.stop.signal_at, c.exit.at)]
    if c.stop.signal_at >= over:
        return [Bar("overrun", tell("$time over", time=seconds(c.drain_seconds)), c.stop.signal_at, c.exit.at)]
    late = tell("$time over", time=seconds(c.exit.at - over))
    return [Bar("drain", label, c.stop.signal_at, over), Bar("overrun", late, over, c.exit.at)]


def _endpoint_lanes(ending: Ending, start: float, end: float) -> list[Lane]:
    """One lane for each Service: what its endpoint of this Pod was to a proxy."""
    before = _endpoints_before(ending)
    groups: dict[tuple[str, str], list[EndpointTransition]] = {}
    for each in [*before, *ending.endpoints]:
        groups.setdefault((each.service, each.address), []).append(each)
    lanes = []
    for (service, address), changes in groups.items():
        bars = []
        for change, following in zip(changes, [*changes[1:], None], strict=True):
            if change.removed:
                continue
            begins = max(start, change.at)
            ends = following.at if following else None
            if ends is None or ends > begins:
                bars.append(Bar(*_state(change), begins, ends))
        if bars:
            lanes.append(Lane("endpoint", tell("endpoint"), f"{service} {address}".strip(), tuple(bars)))
    return lanes


def _endpoints_before(ending: Ending) -> list[EndpointTransition]:
    """The state of each endpoint right before the DELETE."""
    last: dict[tuple[str, str], EndpointTransition] = {}
    for entry in ending.entries:
        if entry.at >= 0 or entry.record.kind not in (kinds.ENDPOINT_CHANGED, kinds.ENDPOINT_REMOVED):
            continue
        if entry.record.kind == kinds.ENDPOINT_REMOVED:
            service, _, address = endpoint_of(entry.facts_as(kinds.ENDPOINT_REMOVED))
            last.pop((service, address), None)
            continue
        facts = entry.facts_as(kinds.ENDPOINT_CHANGED)
        where = endpoint_of(facts)
        last[where[0], where[2]] = EndpointTransition(
            entry.at,
            *where,
            ready=bool(facts.get("ready")),
            serving=bool(facts.get("serving")),
            terminating=bool(facts.get("terminating")),
        )
    return list(last.values())


def _state(change: EndpointTransition) -> tuple[BarKind, str]:
    if change.terminating:
        if change.serving:
            return "serving", tell("serving, terminating")
        return "terminating", tell("terminating, not serving")
    return ("ready", tell("ready")) if change.ready else ("notReady", tell("not ready"))
