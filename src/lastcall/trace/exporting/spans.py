"""One Pod's end as a trace: what each span is called, when it was, and what led to it. Pure.

The root is the DELETE, until the object is gone. Its children are hooks, drains, endpoints, the Pod's network and its
volumes. A span's links lead to the spans that caused it, and the root's to the decision that many Pods may share
(a rollout, an evicting drain), which is a trace of its own. Ids are made of uids and names, so that a story that is
exported twice is one trace.
"""

# check: pure
# check: reads facts because any kind of record may stand at the top of what decided an end

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from hashlib import sha256

from lastcall.endings import ContainerEnding, Ending, Entry, verdict
from lastcall.records import kinds
from lastcall.trace.exporting.samples import grace_used, trace_id_of
from lastcall.trace.exporting.workload import clean, workload_of
from lastcall.world.dataclass import dataclass

Value = str | bool | int | float | tuple[str, ...]

MOST_TEXT = 1000
"""Characters of an attribute: a hook's output may be long."""
MOST_EVENTS = 100


@dataclass(frozen=True, slots=True)
class SpanId:
    """32 and 16 hexadecimal digits."""

    trace: str
    span: str


@dataclass(frozen=True, slots=True)
class Link:
    to: SpanId
    why: str


@dataclass(frozen=True, slots=True)
class SpanEvent:
    name: str
    at_ns: int
    attributes: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """`start_ns` and `end_ns` are nanoseconds since the epoch. `failed`: a sentence of what went wrong, "" for none."""

    id: SpanId
    name: str
    start_ns: int
    end_ns: int
    parent: SpanId | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    links: tuple[Link, ...] = ()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """A child of the root, in the story's seconds. `records`: kinds of the records that report it, of `container`;
    its `key` sets parts of one name apart."""

    name: str
    start: float
    end: float | None
    records: tuple[str, ...]
    container: str = ""
    key: str = ""
    attributes: Mapping[str, Value] = field(default_factory=dict)
    failed: str = ""


def spans_of(ending: Ending) -> list[Span]:
    """Return the trace of a story: the root first, a decision that others may share last. Empty without records."""
    zero = next((e for e in ending.entries if e.record.kind == ending.zero_kind), None)
    zero = zero or next(iter(ending.entries), None)
    if zero is None:
        return []
    zero_ns = zero.record.wall_ns - round(zero.at * 1e9)

    def wall(at: float) -> int:
        return zero_ns + round(at * 1e9)

    trace = trace_id_of(ending)
    root = SpanId(trace, _short(trace, "root"))
    parts = {SpanId(trace, _short(trace, each.name, each.container, each.key)): each for each in _parts(ending)}
    last = max((at for each in parts.values() for at in (each.start, each.end) if at is not None), default=0.0)
    end = max(ending.gone if ending.gone is not None else last, 0.0)
    owners = _owners(ending, parts)
    decided = _decision(ending, wall)
    spans = [
        Span(
            root,
            "DELETE" if ending.zero_kind in _DELETES else "TERMINATE",
            wall(0.0),
            wall(end),
            attributes=_about(ending),
            events=tuple(_events(ending, wall)),
            links=(Link(decided.id, decided.name),) if decided is not None else (),
            failed=_text(verdict(ending)) if ending.outcome in _FAILED else "",
        )
    ]
    for identity, part in parts.items():
        attributes = (
            {"k8s.container.name": _text(part.container), **part.attributes} if part.container else {**part.attributes}
        )
        if part.end is None:
            attributes["lastcall.end_seen"] = False
        finish = part.end if part.end is not None else end
        spans.append(
            Span(
                identity,
                _text(part.name),
                wall(part.start),
                wall(max(finish, part.start)),
                root,
                attributes,
                links=tuple(Link(each, parts[each].name) for each in _causes(ending, part, identity, owners)),
                failed=_text(part.failed),
            )
        )
    return [*spans, decided] if decided is not None else spans


_DELETES = (kinds.DELETE_ACCEPTED, kinds.DELETE_SENT)
_FAILED = ("killed", "crashed", "hookFailed")


def _parts(ending: Ending) -> Iterator[_Part]:
    for run in ending.containers:
        if not run.exit.before_delete:
            yield from _of_container(run)
    yield from _endpoints(ending)
    for kind, name in ((kinds.NETWORK_DETACHED, "network"), (kinds.VOLUMES_UNMOUNTED, "unmount")):
        for entry in ending.entries:
            if entry.record.kind == kind and entry.at >= 0:
                seconds = entry.record.facts.get("seconds")
                took = float(seconds) if isinstance(seconds, int | float) else 0.0
                yield _Part(name, entry.at - took, entry.at, (kind,), key=entry.record.id)


def _of_container(run: ContainerEnding) -> Iterator[_Part]:
    hook = run.hook
    if hook is not None and hook.started_at is not None:
        attributes: dict[str, Value] = {
            "lastcall.hook.handler": _text(hook.handler),
            "lastcall.hook.outcome": hook.outcome,
        }
        if hook.exit_code is not None:
            attributes["lastcall.hook.exit_code"] = hook.exit_code
        if hook.output:
            attributes["lastcall.hook.output"] = _text(hook.output)
        failed = hook.detail or f"preStop hook {hook.outcome}" if hook.outcome in ("failed", "outlived") else ""
        kinds_of_hook = (kinds.PRE_STOP_STARTED, kinds.PRE_STOP_FINISHED)
        yield _Part("preStop", hook.started_at, hook.finished_at, kinds_of_hook, run.name, "", attributes, failed)
    if run.stop.signal_at is None:
        return
    about: dict[str, Value] = {"lastcall.stop_signal": _text(run.stop.signal)}
    for name, value in (
        ("exit_code", run.exit.code),
        ("reason", run.exit.reason),
        ("signal", run.exit.signal),
        ("killed_by", run.exit.killed_by),
        ("disposition", run.process.disposition),
        ("command", run.process.command),
    ):
        if value not in (None, ""):
            about[f"lastcall.{name}"] = _text(value) if isinstance(value, str) else value
    who = f": {run.exit.killed_by}" if run.exit.killed_by else "; its sender is not known"
    killed = f"ended by SIGKILL{who}" if run.exit.sigkilled else ""
    records = (kinds.STOP_REQUESTED, kinds.SIGNAL_SENT, kinds.PROCESS_EXITED, kinds.STOP_FINISHED)
    yield _Part("drain", run.stop.signal_at, run.exit.at, records, run.name, "", about, killed)


def _endpoints(ending: Ending) -> Iterator[_Part]:
    """From the DELETE until the last Service has it as ready no longer, for each of them."""
    for service, address in sorted({(each.service, each.address) for each in ending.endpoints}):
        changes = [each for each in ending.endpoints if (each.service, each.address) == (service, address)]
        end = next((each.at for each in changes if not each.ready), None)
        about: dict[str, Value] = {"lastcall.service": _text(service), "lastcall.address": _text(address)}
        records = (kinds.ENDPOINT_CHANGED, kinds.ENDPOINT_REMOVED)
        yield _Part("endpoint", 0.0, end, records, key=f"{service} {address}", attributes=about)


def _owners(ending: Ending, parts: Mapping[SpanId, _Part]) -> dict[str, SpanId]:
    """Id of a record → the span that reports it."""
    found: dict[str, SpanId] = {}
    for identity, part in parts.items():
        for entry in ending.entries:
            if _belongs_to(entry, part):
                found.setdefault(entry.record.id, identity)
    return found


def _belongs_to(entry: Entry, part: _Part) -> bool:
    record = entry.record
    if record.kind not in part.records or record.container != part.container or entry.at < min(part.start, 0.0):
        return False
    if part.name in ("network", "unmount"):
        return record.id == part.key
    return part.name != "endpoint" or part.key == f"{record.facts.get('service', '')} {record.facts.get('address', '')}"


def _causes(ending: Ending, part: _Part, identity: SpanId, owners: Mapping[str, SpanId]) -> list[SpanId]:
    """The spans that led to this one, as the records' causes tell. The DELETE itself is its parent already."""
    by_id = {entry.record.id: entry for entry in ending.entries}
    found: list[SpanId] = []
    for entry in ending.entries:
        if owners.get(entry.record.id) != identity:
            continue
        cause, seen = entry.cause_id, {entry.record.id}
        while cause and cause in by_id and cause not in seen:
            seen.add(cause)
            owner = owners.get(cause)
            if owner is not None:
                if owner != identity and owner not in found and by_id[cause].at <= entry.at:
                    found.append(owner)
                break
            cause = by_id[cause].cause_id
    return found


def _decision(ending: Ending, wall: Callable[[float], int]) -> Span | None:
    """What decided it, as a trace of its own: the first record of its chain is the same for all Pods of a rollout."""
    decided = ending.decided_by
    by_id = {entry.record.id: entry for entry in ending.entries}
    chain = [by_id[each] for each in decided.chain if each in by_id] if decided is not None else []
    above = [each for each in chain if each.record.pod_uid != ending.pod.uid]
    if decided is None or not above:
        return None
    first = above[-1]
    owner = str(first.record.facts.get("uid") or first.record.facts.get("ownerUid") or "")
    version = str(first.record.facts.get("generation") or first.record.facts.get("resourceVersion") or first.record.id)
    trace = sha256("\0".join(("decision", owner, first.record.kind, version)).encode("utf-8", "replace")).hexdigest()
    about: dict[str, Value] = {"lastcall.actor": _text(decided.actor), "lastcall.reason": _text(decided.reason)}
    for name, value in (("k8s.user", decided.user), ("k8s.client", decided.client)):
        if value:
            about[name] = _text(value)
    at = wall(first.at)
    return Span(SpanId(trace[:32], trace[32:48]), f"decision: {_text(decided.reason)}", at, at, attributes=about)


def _about(ending: Ending) -> dict[str, Value]:
    pod = ending.pod
    about: dict[str, Value] = {
        "k8s.namespace.name": _text(pod.namespace),
        "k8s.pod.name": _text(pod.name),
        "k8s.pod.uid": _text(pod.uid),
        "k8s.node.name": _text(pod.node),
        "lastcall.workload": workload_of(ending).name,
        "lastcall.outcome": ending.outcome,
    }
    if ending.grace_seconds is not None:
        about["lastcall.grace_seconds"] = ending.grace_seconds
    if (used := grace_used(ending)) is not None:
        about["lastcall.grace_used"] = round(used, 6)
    if ending.decided_by is not None:
        about["lastcall.actor"] = _text(ending.decided_by.actor)
        about["lastcall.reason"] = _text(ending.decided_by.reason)
        about["lastcall.why"] = _text(ending.decided_by.why)
    if ending.not_known:
        about["lastcall.not_known"] = tuple(_text(each) for each in ending.not_known)
    return {name: value for name, value in about.items() if value != ""}


def _events(ending: Ending, wall: Callable[[float], int]) -> Iterator[SpanEvent]:
    """What is worth knowing, and the signals."""
    for finding in ending.findings[:MOST_EVENTS]:
        about: dict[str, Value] = {"id": finding.id, "severity": finding.severity, "text": _text(finding.text)}
        if finding.container:
            about["k8s.container.name"] = _text(finding.container)
        if finding.advice:
            about["fix"] = _text(finding.advice)
        yield SpanEvent("finding", wall(max(ending.gone or 0.0, 0.0)), about)
    for signal in ending.signals[:MOST_EVENTS]:
        attributes: dict[str, Value] = {"signal": _text(signal.signal), "k8s.container.name": _text(signal.container)}
        yield SpanEvent("signal", wall(signal.at), attributes)


def _text(text: str) -> str:
    return clean(text)[:MOST_TEXT]


def _short(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
