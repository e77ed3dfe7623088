"""Say what of an end cannot be known through the API, one sentence each. Pure.

A sentence goes away when a record has what it misses: a node's agent writes such records.
"""

# check: pure

from collections.abc import Iterator, Sequence

from lastcall.kube.api import Object, containers_of
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace.pods import controller_of, statuses_of

NODE_ONLY = {
    "what PID 1 does with its stop signal": (kinds.PROCESS_SIGNAL_STATE,),
    "open connections and ports": (kinds.SOCKETS_AT_STOP, kinds.SOCKETS_AT_EXIT),
    "processes that were left": (kinds.PROCESSES_LEFT,),
    "when a node's rules for Services changed": (kinds.ENDPOINT_RULES_WRITTEN, kinds.ENDPOINT_CHANGE_SEEN),
}
"""What only a node sees → kinds of which one record has it."""


def unknown(pod: Object, records: Sequence[Record], *, audited: bool = False) -> Iterator[str]:
    """Yield what is unknown of a Pod whose end is over. `audited`: an audit log was read, too."""
    there = {record.kind for record in records}
    if any(record.kind == kinds.PROCESS_EXITED and record.evidence == "observed" for record in records):
        there.add(kinds.PROCESSES_LEFT)  # a node's agent was there, and would have reported it
    ran = bool(there & {kinds.CONTAINER_STARTED, kinds.PROCESS_STARTED})
    if kinds.DELETE_ACCEPTED in there and kinds.DELETION_DECIDED not in there:
        sent = next(r for r in records if r.kind == kinds.DELETE_ACCEPTED)
        if not sent.facts_as(kinds.DELETE_ACCEPTED).get("user") and audited:
            yield "Who deleted it is not known: the audit log has no such request, or it came too late."
        elif not sent.facts_as(kinds.DELETE_ACCEPTED).get("user"):
            owned = ", and its owner does not say that it was" if controller_of(pod) else ""
            why = f"the API does not expose it{owned}; an audit log of the API server does."
            yield f"Who deleted it is not known: {why}"
    if not ran:
        return
    misses = [what for what, tell in NODE_ONLY.items() if not there & set(tell)]
    if misses:
        yield f"Only the node sees {_listed(misses)}: not known."
    exits = [
        r
        for r in records
        if r.kind == kinds.PROCESS_EXITED
        and "finishedAt" in r.facts_as(kinds.PROCESS_EXITED)
        and r.evidence != "observed"
    ]
    if exits:
        yield "When containers ended is known to a second: finishedAt of their status, by the node's clock."
    more = [
        name
        for name, status in statuses_of(pod).items()
        if int(status.get("restartCount") or 0) > bool((status.get("lastState") or {}).get("terminated"))
    ]
    if more:
        yield f"Earlier runs of {_listed(more)} are not in this report: a status keeps only the last one that ended."
    yield from _hooks(records)
    yield from _stop_signals(pod, records)


def _hooks(records: Sequence[Record]) -> Iterator[str]:
    """Hooks that failed in the second in which their container ended: which was first is not known."""
    ends = {r.container: r for r in records if r.kind == kinds.PROCESS_EXITED}
    for record in records:
        end = ends.get(record.container)
        if record.kind != kinds.PRE_STOP_FINISHED or end is None or record.evidence == "observed":
            continue
        if record.facts_as(kinds.PRE_STOP_FINISHED)["outcome"] == "failed" and end.at_ns < record.at_ns:
            name = record.container
            yield (
                f"Whether the preStop hook of {name} failed before {name} ended, or because it ended, is not known: "
                "both were in the same second."
            )


def _stop_signals(pod: Object, records: Sequence[Record]) -> Iterator[str]:
    """Containers for which the stop signal's name, or its time, is not known."""
    statuses = statuses_of(pod)
    taken = {r.container for r in records if r.kind == kinds.SIGNAL_SENT and r.evidence == "inferred"}
    seen = {r.container for r in records if r.kind == kinds.SIGNAL_SENT and r.evidence == "observed"}
    names = [
        str(container.get("name"))
        for _, container in containers_of(pod.get("spec") or {})
        if container.get("name") in taken - seen
        and not (statuses.get(str(container.get("name"))) or {}).get("stopSignal")
        and not (container.get("lifecycle") or {}).get("stopSignal")
    ]
    if names:
        yield f"The stop signal of {_listed(names)} is taken to be SIGTERM: an image may name another (STOPSIGNAL)."


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
