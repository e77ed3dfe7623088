"""Rows about a Pod as a whole: its node, its Job, its finalizers, its object. Pure."""

# check: pure

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.finalizers import held_by_finalizers, held_finalizers
from lastcall.endings.findings.subjects import PodSubject
from lastcall.endings.findings.table import Fact, Row
from lastcall.endings.findings.words import seconds as _s
from lastcall.endings.story import ContainerEnding, Ending, Finding
from lastcall.records import kinds
from lastcall.records.said import Said, fact_of, tell

_EVICTED = "the kubelet evicted it: "

UNSEEN_SECONDS = 5.0
"""A kubelet that lives sees a DELETE at once."""
_LOOKED = (kinds.TERMINATION_OBSERVED, kinds.OBJECT_REMOVED, kinds.PROCESS_EXITED, kinds.NOT_SHOWN)


def _decided(*reasons: str) -> Fact[PodSubject]:
    """Return the fact that the end was decided for one of these reasons; None where nobody saw who decided."""

    def holds(s: PodSubject) -> bool | None:
        by = s.ending.decided_by
        return by.reason in reasons if by is not None else None

    return Fact("who decided its end", holds, (kinds.DELETION_DECIDED, kinds.TERMINATION_OBSERVED))


def _short_on_shutdown(ending: Ending) -> tuple[int, int, list[str]] | None:
    """Return the seconds that the node gave, those that the Pod wanted, and who was killed for it."""
    by = ending.decided_by
    chain = by.chain if by is not None else ()
    decisions = [
        entry.facts_as(kinds.DELETION_DECIDED)
        for entry in ending.entries
        if entry.record.id in chain and entry.record.kind == kinds.DELETION_DECIDED
    ]
    facts = next((each for each in decisions if "priority" in each), None)
    given = facts.get("gracePeriodSeconds") if facts is not None else None
    wanted = facts.get("ownGracePeriodSeconds") if facts is not None else None
    killed = [c.name for c in ending.containers if c.exit.sigkilled and c.stop.kill_at is not None]
    if not killed or not isinstance(given, int) or not isinstance(wanted, int) or given >= wanted:
        return None
    return given, wanted, killed


def _unseen_by_kubelet(s: PodSubject) -> bool:
    """Deleted, and no kubelet has looked at it.

    Through the API alone nobody sees that a kubelet looks: there it takes a node that is not Ready, or gone.
    """
    ending, by = s.ending, s.ending.decided_by
    accepted = any(e.record.kind == kinds.DELETE_ACCEPTED for e in ending.entries)
    bound = any(e.record.kind in (kinds.POD_BOUND, kinds.POD_ADMITTED) for e in ending.entries)
    if not accepted or not bound or ending.gone is not None or by is None:
        return False
    if any(e.record.kind in _LOOKED for e in ending.entries) and not _node_is_lost(ending):
        return False
    return by.reason == "tainted" or _last_at(ending) >= UNSEEN_SECONDS


def _last_at(ending: Ending) -> float:
    return max((e.at for e in ending.entries), default=0.0)


def _node_is_lost(ending: Ending) -> bool:
    """By the last look at its node, and nothing had ended before that."""
    states = [e for e in ending.entries if e.record.kind == kinds.NODE_STATE_SEEN]
    if not states or any(e.record.kind == kinds.PROCESS_EXITED and e.at >= 0 for e in ending.entries):
        return False
    state = states[-1].facts_as(kinds.NODE_STATE_SEEN)
    return bool(state.get("gone")) or state.get("ready") is not True


def _done_and_left(ending: Ending) -> tuple[list[ContainerEnding], list[ContainerEnding]] | None:
    """Return the containers of a Job that had succeeded, and those that ran on; None for any other Pod."""
    by = ending.decided_by
    if by is None or by.owner_kind != "Job":
        return None
    started = [c for c in ending.containers if c.kind == "container" and c.started]
    done = [c for c in started if c.exit.before_delete]
    left = [c for c in started if not c.exit.before_delete]
    return (done, left) if done and left and all(c.exit.code == 0 for c in done) else None


def _last_exit(ending: Ending) -> float:
    return max((c.exit.at for c in ending.containers if c.exit.at is not None), default=0.0)


def _lifecycle(ending: Ending) -> tuple[str, tuple[str, ...]]:
    """The node and its lifecycle conditions at the DELETE, as they were first seen; ("", ()) for none."""
    states = (e.facts_as(kinds.NODE_STATE_SEEN) for e in ending.entries if e.record.kind == kinds.NODE_STATE_SEEN)
    first = next((state for state in states if state.get("lifecycle")), None)
    return (str(first.get("node") or ""), tuple(first["lifecycle"])) if first is not None else ("", ())


_LIFECYCLE: Fact[PodSubject] = Fact(
    "what its node reports", lambda s: bool(_lifecycle(s.ending)[1]), (kinds.NODE_STATE_SEEN,)
)
_SHORTER: Fact[PodSubject] = Fact(
    "what the node gave it",
    lambda s: _short_on_shutdown(s.ending) is not None,
    (kinds.DELETION_DECIDED, kinds.SIGNAL_SENT, kinds.PROCESS_EXITED),
)
_UNSEEN: Fact[PodSubject] = Fact(
    "whether its kubelet lives",
    _unseen_by_kubelet,
    (kinds.POD_BOUND, kinds.POD_ADMITTED, kinds.DELETION_DECIDED, kinds.DELETE_ACCEPTED, kinds.NODE_STATE_SEEN),
)
_HELD: Fact[PodSubject] = Fact(
    "its finalizers", lambda s: held_finalizers(s.ending) is not None, (kinds.HELD_BY_FINALIZERS,)
)
_JOB: Fact[PodSubject] = Fact(
    "its containers",
    lambda s: _done_and_left(s.ending) is not None,
    (kinds.DELETION_DECIDED, kinds.DELETE_ACCEPTED, kinds.PROCESS_STARTED, kinds.PROCESS_EXITED),
)
_GONE_FIRST: Fact[PodSubject] = Fact(
    "when its object went",
    lambda s: _last_exit(s.ending) > s.ending.gone + 0.001 if s.ending.gone is not None else None,
    (kinds.POD_GONE_SEEN, kinds.OBJECT_REMOVED, kinds.PROCESS_EXITED),
)


def _node_pressure(s: PodSubject) -> Finding:
    by = s.ending.decided_by
    assert by is not None
    why = _without_its_beginning(by.why)
    what = "ephemeral-storage" if "ephemeral-storage" in why or by.reason == "localStorage" else "memory"
    return Finding("nodePressure", "problem", said("nodePressure", why=why), advice=fix("nodePressure", what=what))


def _without_its_beginning(why: str) -> str:
    """Return the reason of an eviction, as `causes/decided.py` words it, without who evicted."""
    if not why.startswith(_EVICTED):
        return why
    return fact_of(why, "why") if isinstance(why, Said) else why.removeprefix(_EVICTED).rstrip(".")


def _node_shutdown(s: PodSubject) -> Finding:
    """Return that the node's shutdown gave its containers less than their grace period, and that this killed them."""
    short = _short_on_shutdown(s.ending)
    assert short is not None
    given, wanted, killed = short
    text = said("nodeShutdown", given=given, wanted=wanted, names=", ".join(killed))
    return Finding("nodeShutdown", "problem", text, advice=fix("nodeShutdown", given=given, wanted=wanted))


def _node_lifecycle(s: PodSubject) -> Finding:
    """Return the lifecycle conditions of the node. Who set them is not known: an administrator, or a tool."""
    node, conditions = _lifecycle(s.ending)
    text = said("nodeLifecycle", node=node, conditions=", ".join(conditions))
    return Finding("nodeLifecycle", "info", text)


def _node_unreachable(s: PodSubject) -> Finding:
    by, pod = s.ending.decided_by, s.ending.pod
    node = pod.node or tell("that it runs on")
    why = by.why if by is not None else ""
    text = said("nodeUnreachable", pod=pod.name, seconds=f"{_last_at(s.ending):.0f}", why=why, node=node)
    return Finding("nodeUnreachable", "problem", text, advice=fix("nodeUnreachable", node=node))


def _sidecar_holds_job(s: PodSubject) -> Finding:
    found = _done_and_left(s.ending)
    assert found is not None
    done, left = found
    before = min(-(c.exit.at or 0.0) for c in done)
    names = {"done": ", ".join(c.name for c in done), "left": ", ".join(c.name for c in left)}
    text = said("sidecarHoldsJob", **names, before=tell("$seconds s", seconds=f"{before:.1f}"))
    return Finding("sidecarHoldsJob", "warning", text, advice=fix("sidecarHoldsJob", left=names["left"]))


def _gone_first(s: PodSubject) -> Finding:
    text = said("goneBeforeContainers", gone=_s(s.ending.gone), last=_s(_last_exit(s.ending)))
    return Finding("goneBeforeContainers", "warning", text, advice=fix("goneBeforeContainers"))


ROWS = (
    Row("heldByFinalizers", (_HELD,), lambda s: held_by_finalizers(s.ending)),
    Row("nodePressure", (_decided("nodePressure", "localStorage"),), _node_pressure),
    Row("nodeShutdown", (_decided("nodeShutdown"), _SHORTER), _node_shutdown),
    Row("nodeUnreachable", (_UNSEEN,), _node_unreachable),
    Row("nodeLifecycle", (_LIFECYCLE,), _node_lifecycle),
    Row("sidecarHoldsJob", (_JOB,), _sidecar_holds_job),
    Row("goneBeforeContainers", (_GONE_FIRST,), _gone_first),
)
