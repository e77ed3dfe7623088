"""Where the story of a Pod that `trace` reports differs from the exact one of `run` for the same lifecycle.

What `trace` says it does not know is not a difference; what it claims and what it leaves out without a word is. Pure.
"""

import re
from collections.abc import Iterable, Iterator

from lastcall.endings.story import ContainerEnding, Ending
from lastcall.records import kinds
from lastcall.records.record import Record

STEPS = (
    kinds.DELETE_ACCEPTED,
    kinds.GRACE_SHORTENED,
    kinds.HELD_BY_FINALIZERS,
    kinds.KILLING,
    kinds.PRE_STOP_STARTED,
    kinds.PRE_STOP_FINISHED,
    kinds.STOP_REQUESTED,
    kinds.SIGNAL_SENT,
    kinds.PROCESS_EXITED,
    kinds.OBJECT_REMOVED,
)
"""What both report, in the order of its first mention for each container."""
APART_SECONDS = 2.5
"""Steps of different containers have an order when they are so far apart: ends are known to a second, and Events come
when they come."""
OF_THE_CLUSTER = {"heldByFinalizers"}
"""Findings about how long controllers of that cluster took: true of it, and of no other."""
JOB = "batch.kubernetes.io/job-tracking"
_EARLIER = re.compile(r"^Earlier runs of ")
_HOOK = re.compile(r"^How the preStop hook of (\S+) ended is not known")
_END = re.compile(r"^How (\S+) ended is not known")


def unknown_of(told: Ending) -> tuple[set[str], set[str]]:
    """Containers of which (the hook's end and the stop signal, the whole end) are said to be unknown."""
    hooks = {found[1] for each in told.not_known if (found := _HOOK.match(each))}
    ends = {found[1] for each in told.not_known if (found := _END.match(each))}
    return hooks, ends


def steps(records: Iterable[Record]) -> list[tuple[str, str, str, int]]:
    """(container, kind, detail, when in ns) of each step of the last runs."""
    found: list[tuple[str, str, str, int]] = []
    for record in records:
        if record.kind == kinds.CONTAINER_STARTED:
            found = [each for each in found if each[0] != record.container]
        has_ended = any(each[:2] == (record.container, kinds.PROCESS_EXITED) for each in found)
        if record.kind not in STEPS or (record.kind == kinds.STOP_REQUESTED and has_ended):
            continue  # nothing is left to stop
        if record.kind == kinds.HELD_BY_FINALIZERS and JOB in record.facts_as(kinds.HELD_BY_FINALIZERS)["finalizers"]:
            continue  # whether its controller is faster than the kubelet is chance
        detail = ""
        if record.kind == kinds.SIGNAL_SENT:
            signal = record.facts_as(kinds.SIGNAL_SENT)
            if signal.get("why") not in ("StopContainer", "grace over"):
                continue  # to a hook's process, or with the sandbox: the API does not show that
            detail = str(signal["signal"])
        elif record.kind == kinds.PROCESS_EXITED:
            detail = str(record.facts_as(kinds.PROCESS_EXITED).get("exitCode"))
        if not any(each[:3] == (record.container, record.kind, detail) for each in found):
            found.append((record.container, record.kind, detail, record.at_ns))
    return found


def differences(told: Ending, exact: Ending) -> Iterator[str]:
    """One sentence each."""
    hooks, ends = unknown_of(told)
    if told.outcome != exact.outcome and told.outcome != "unknown":
        yield f"outcome {told.outcome}, not {exact.outcome}"
    if told.outcome == "unknown" and exact.outcome != "unknown" and not told.not_known:
        yield "how it ended is not known, and nothing says why"
    mine, its = steps(e.record for e in told.entries), steps(e.record for e in exact.entries)
    of_itself = told.zero_kind == kinds.TERMINATION_OBSERVED and told.gone is None
    if of_itself:  # its story was over then: a DELETE of what is left is none of it
        its = [each for each in its if each[0]]
    yield from _steps(mine, its, hooks, ends)
    if told.grace_seconds != exact.grace_seconds and not of_itself:
        yield f"grace period {told.grace_seconds} s, not {exact.grace_seconds} s"
    if (told.gone is None) != (exact.gone is None) and not of_itself:
        yield f"gone {told.gone}, not {exact.gone}"
    others = {each.name: each for each in exact.containers}
    for container in told.containers:
        yield from _container(container, others.get(container.name), hooks, ends)
    runs = [(each.name, each.exit.code, each.exit.ended_by) for each in told.earlier]
    if any(_EARLIER.match(each) for each in told.not_known):
        pass
    elif runs != (wanted := [(each.name, each.exit.code, each.exit.ended_by) for each in exact.earlier]):
        yield f"earlier runs {runs}, not {wanted}"
    yield from _decision(told, exact)
    claimed = {each.id for each in told.findings} - {each.id for each in exact.findings} - OF_THE_CLUSTER
    if claimed:
        yield f"claims {', '.join(sorted(claimed))}"
    if (states := _states(told)) != (real := _states(exact)) and not of_itself:
        yield f"endpoints {states}, not {real}"


def _steps(
    mine: list[tuple[str, str, str, int]], its: list[tuple[str, str, str, int]], hooks: set[str], ends: set[str]
) -> Iterator[str]:
    unclear = (kinds.PRE_STOP_FINISHED, kinds.STOP_REQUESTED, kinds.SIGNAL_SENT)

    def is_known(step: tuple[str, str, str, int]) -> bool:
        return not (step[0] in ends or (step[0] in hooks and step[1] in unclear))

    left, right = list(filter(is_known, mine)), list(filter(is_known, its))
    for container in sorted({each[0] for each in (*left, *right)}):
        one = [f"{kind} {detail}".strip() for name, kind, detail, _ in left if name == container]
        other = [f"{kind} {detail}".strip() for name, kind, detail, _ in right if name == container]
        if one != other:
            yield f"steps of {container or 'the Pod'} {one}, not {other}"
    order = {each[:3]: index for index, each in enumerate(left)}
    for index, first in enumerate(right):
        for second in right[index + 1 :]:
            far = second[3] - first[3] > APART_SECONDS * 1e9
            if far and order.get(first[:3], -1) > order.get(second[:3], len(order)):
                yield f"{first[1]} of {first[0]} after {second[1]} of {second[0]}"


def _container(mine: ContainerEnding, its: ContainerEnding | None, hooks: set[str], ends: set[str]) -> Iterator[str]:
    if its is None:
        yield f"container {mine.name}, which is not there"
        return
    if mine.name in ends:
        return
    for field in ("started", "exit_code", "reason", "signal", "ended_by"):
        one, other = getattr(mine, field), getattr(its, field)
        if one != other and not (field == "signal" and mine.name in hooks):
            yield f"{field} of {mine.name} {one!r}, not {other!r}"
    one_hook, other_hook = mine.hook, its.hook
    if (one_hook is None) != (other_hook is None):
        yield f"preStop hook of {mine.name}: {one_hook}, not {other_hook}"
    elif one_hook and other_hook and one_hook.outcome not in ("unknown", other_hook.outcome):
        yield f"preStop hook of {mine.name} {one_hook.outcome}, not {other_hook.outcome}"


def _decision(told: Ending, exact: Ending) -> Iterator[str]:
    one, other = told.decided_by, exact.decided_by
    said = any(each.startswith("Who deleted it is not known") for each in told.not_known)
    if one is None and said:
        return
    if (one and one.reason) != (other and other.reason):
        yield f"decided: {one and one.reason}, not {other and other.reason}"


def _states(ending: Ending) -> dict[str, list[tuple[bool | None, ...]]]:
    """Service → the conditions of the endpoint one after the other from the DELETE on."""
    found: dict[str, list[tuple[bool | None, ...]]] = {}
    for each in ending.endpoints:
        states = found.setdefault(each.service, [])
        state = (each.ready, each.serving, each.terminating)
        if each.at >= 0 and (not states or states[-1] != state):
            states.append(state)
    return {service: states for service, states in found.items() if states}
