"""The story as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open.

A process for each Pod with a track for each phase of its containers, for what its endpoints were, and for each actor.
Every record is a slice of a microsecond, because arrows only join slices; what led to it arrives as an arrow. Signals
are instants too. `args` hold facts, rule and evidence. Deaths of the cluster's processes are in a process of their own.

Format: Trace Event Format, JSON object form; `ts` and `dur` are microseconds, from the first record on.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from lastcall.endings.picture.lanes import ACTORS, Bar, Lane, decide_picture
from lastcall.endings.render.lines import actor_label
from lastcall.endings.story import Ending, Entry
from lastcall.endings.verdict import outcome_words
from lastcall.records import kinds
from lastcall.records.signal_names import signal_name
from lastcall.records.words import words_for

Event = dict[str, Any]

RECORD_US = 1.0
"""How long a record's slice is: an instant that can be seen and joined."""

_SHIFT_US = 0.001
"""Slices of a track may not lie on one another."""

_APART = 1_000_000
"""Between the numbers of one Pod and the next: Perfetto takes whole numbers only, and knows tracks by theirs alone."""


def trace_document(endings: Sequence[Ending], *, kubernetes_version: str, lastcall_version: str) -> Event:
    """Return the whole trace, its events sorted by time."""
    first = min((_ns(ending, ending.entries[0].at) for ending in endings if ending.entries), default=0)
    metadata: list[Event] = []
    events: list[Event] = []
    for pid, ending in enumerate(endings, 1):
        pod = _Pod(ending, pid, (ending.zero_ns - first) / 1000)
        events += pod.events()
        metadata += pod.metadata()
    events += _deaths(endings, len(endings) + 1, first, metadata)
    events.sort(key=lambda event: event["ts"])
    return {
        "displayTimeUnit": "ms",
        "otherData": {"lastcallVersion": lastcall_version, "kubernetesVersion": kubernetes_version},
        "traceEvents": [*metadata, *events],
    }


def _ns(ending: Ending, at: float) -> int:
    return ending.zero_ns + round(at * 1e9)


class _Pod:
    """The events of one Pod; `zero` is its DELETE in microseconds of the trace."""

    def __init__(self, ending: Ending, pid: int, zero: float) -> None:
        self._ending = ending
        self._pid = pid
        self._zero = zero
        self._picture = decide_picture(ending, most=1 << 30)
        self._tracks: dict[str, int] = {}
        self._places: dict[str, tuple[int, float]] = {}
        self._last: dict[int, float] = {}

    def metadata(self) -> list[Event]:
        pod = self._ending.pod
        named = [_name(self._pid, 0, "process_name", name=f"{pod.namespace}/{pod.name} {outcome_words(self._ending)}")]
        named.append(_name(self._pid, 0, "process_sort_index", sort_index=self._pid))
        if pod.node:
            named.append(_name(self._pid, 0, "process_labels", labels=f"{pod.node}, {pod.uid}"))
        for track, tid in self._tracks.items():
            named.append(_name(self._pid, tid, "thread_name", name=track))
            named.append(_name(self._pid, tid, "thread_sort_index", sort_index=tid))
        return named

    def events(self) -> list[Event]:
        for track in self._order():
            self._tid(track)
        return [*self._phases(), *self._records(), *self._flows()]

    def _order(self) -> Iterator[str]:
        """Tracks from the top: the phases of the containers and endpoints, then who did what."""
        for lane in self._picture.lanes:
            yield from dict.fromkeys(_track(lane, bar) for bar in lane.bars)
        present = {entry.record.actor for entry in self._own()}
        yield from (actor for actor, _ in ACTORS if actor in present)

    def _tid(self, track: str) -> int:
        return self._tracks.setdefault(track, self._pid * _APART + len(self._tracks) + 1)

    def _us(self, at: float) -> float:
        return round(self._zero + at * 1e6, 3)

    def _phases(self) -> Iterator[Event]:
        for lane in self._picture.lanes:
            for bar in lane.bars:
                start, end = self._us(bar.start), self._us(self._picture.end if bar.end is None else bar.end)
                yield {
                    "ph": "X",
                    "name": bar.label or bar.kind,
                    "cat": "phase",
                    "pid": self._pid,
                    "tid": self._tid(_track(lane, bar)),
                    "ts": start,
                    "dur": max(_SHIFT_US, round(end - start, 3)),
                    "args": {"phase": bar.kind, "endSeen": bar.end is not None},
                }

    def _records(self) -> Iterator[Event]:
        following: dict[str, list[float]] = {}
        for entry in self._own():
            following.setdefault(entry.record.actor, []).append(self._us(entry.at))
        for entry in self._own():
            record, words = entry.record, words_for(entry.record)
            tid = self._tid(entry.record.actor)
            later = following[entry.record.actor]
            later.pop(0)
            start = max(self._us(entry.at), self._last.get(tid, -1.0))
            room = later[0] - start if later else RECORD_US
            length = round(max(_SHIFT_US, min(RECORD_US, room)), 3)
            self._last[tid] = round(start + length, 3)
            self._places[record.id] = (tid, start)
            yield {
                "ph": "X",
                "name": record.kind,
                "cat": record.actor,
                "pid": self._pid,
                "tid": tid,
                "ts": start,
                "dur": length,
                "args": _args(entry, words.text),
            }
            if record.kind == kinds.SIGNAL_SENT:
                yield {
                    "ph": "i",
                    "s": "p",
                    "name": signal_name(record.facts_as(kinds.SIGNAL_SENT).get("signal")) or "signal",
                    "cat": "signal",
                    "pid": self._pid,
                    "tid": tid,
                    "ts": start,
                    "args": _args(entry, words.text),
                }

    def _own(self) -> Iterator[Entry]:
        return (entry for entry in self._ending.entries if entry.record.pod_uid)

    def _flows(self) -> Iterator[Event]:
        """An arrow for each cause, from its slice to the one it led to."""
        for number, entry in enumerate(self._own()):
            start, end = self._places.get(entry.cause_id or ""), self._places[entry.record.id]
            if start is None or start[1] > end[1]:
                continue
            common = {"name": "cause", "cat": "cause", "id": self._pid * _APART + number, "pid": self._pid}
            yield {"ph": "s", **common, "tid": start[0], "ts": start[1]}
            yield {"ph": "f", "bp": "e", **common, "tid": end[0], "ts": end[1]}


def _track(lane: Lane, bar: Bar) -> str:
    return f"{lane.name}: {bar.kind}" if lane.kind == "container" else f"endpoint of {lane.detail}"


def _args(entry: Entry, words: str) -> Event:
    record = entry.record
    said: Event = {"what": words, "evidence": record.evidence}
    if record.container:
        said["container"] = record.container
    if record.rule:
        said["rule"] = record.rule
    return {**said, "facts": record.facts, "id": record.id, "secondsSinceDelete": round(entry.at, 6)}


def _name(pid: int, tid: int, what: str, **args: Any) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _deaths(endings: Sequence[Ending], pid: int, first: int, metadata: list[Event]) -> list[Event]:
    """Processes of the cluster that died meanwhile, each once."""
    found: dict[str, tuple[Ending, Entry]] = {}
    for ending in endings:
        for entry in ending.entries:
            if not entry.record.pod_uid:
                found.setdefault(entry.record.id, (ending, entry))
    if found:
        metadata.append(_name(pid, 0, "process_name", name="the cluster's processes"))
        metadata.append(_name(pid, pid * _APART + 1, "thread_name", name="init"))
    return [
        {
            "ph": "i",
            "s": "g",
            "name": f"{actor_label(entry.record)}: {words_for(entry.record).text}",
            "cat": entry.record.actor,
            "pid": pid,
            "tid": pid * _APART + 1,
            "ts": max(0.0, round((_ns(ending, entry.at) - first) / 1000, 3)),
            "args": _args(entry, words_for(entry.record).text),
        }
        for ending, entry in found.values()
    ]
