"""What is around the Pods: owners, namespaces, nodes and budgets, each in a few words. No I/O, no clock."""

# check: pure

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from lastcall.kube.api import AnyObject, Object, name_of, namespace_of, no_execute_taints, resource_version_of, uid_of
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace import owners
from lastcall.trace.autoscalers import Autoscalers
from lastcall.trace.drafts import Draft, draft
from lastcall.trace.owners import OwnerState
from lastcall.trace.pod_timeline import Moment
from lastcall.trace.stamps import SECOND

if TYPE_CHECKING:
    from lastcall.records.definitions.apiserver import OwnerDeleted
    from lastcall.records.definitions.client import NodeStateSeen

LATER_NS = SECOND
"""What led to a step (a write or the deletion of an owner, a taint) is seen by another watch: so much later at most."""
MOST_GONE = 4096
"""Owners that are gone and still known."""
MOST_RECORDS = 8
"""Of one owner."""
MOST_STATES = 4
"""Of one owner: what it was when a Pod was deleted whose story comes later."""
_TAINTS = ("NoExecute", "NoSchedule")


LIFECYCLE = (
    "DrainInProgress",
    "Drained",
    "MaintenancePlanned",
    "MaintenanceInProgress",
    "GracefulNodeShutdownInProgress",
)
"""Conditions of a node that administrators and their tools set. Kubernetes 1.37 gave them these names and acts on none
of them (KEP-5683, kubernetes#139993)."""


class Node(NamedTuple):
    ready: bool | None
    taints: tuple[str, ...]
    lifecycle: tuple[str, ...] = ()


class ClusterState:
    def __init__(self, new_id: Callable[[str], str], on_record: Callable[[Record], None]) -> None:
        self._new_id = new_id
        self._on_record = on_record
        self._owners: dict[str, OwnerState] = {}
        self._gone: OrderedDict[str, OwnerState] = OrderedDict()
        self._states: dict[str, list[tuple[int, OwnerState]]] = {}
        self._records: OrderedDict[str, list[Record]] = OrderedDict()
        self._namespaces: dict[str, Record] = {}
        self._nodes: dict[str, Node] = {}
        self._evicting: dict[str, list[tuple[int, Sequence[AnyObject]]]] = {}
        """Node → its last states: since when, and its NoExecute taints."""
        self.autoscalers = Autoscalers()
        self._budgets: dict[tuple[str, str], str] = {}
        self._known_nodes = False

    # -- owners -------------------------------------------------------------------------------------------------------

    def owner(self, kind: str, type_: str, obj: Object, now: Moment, *, changed: bool = True) -> None:
        """Handle an event of a watch. `changed` False: it is how it was when the watch began."""
        uid = uid_of(obj)
        old = self._owners.get(uid)
        version = resource_version_of(obj)
        if type_ == "DELETED":
            if old is None:
                old = owners.state_of(kind, obj)
            self._owners.pop(uid, None)
            self._remember_gone(old)
            self._write(uid, owners.removed(old, version), now)
            return
        new = owners.state_of(kind, obj, old)
        self._owners[uid] = new
        seen = self._states.setdefault(uid, [])
        if not seen or owners.differ(seen[-1][1], new):
            seen.append((now.at_ns, new))
            del seen[:-MOST_STATES]
        if changed:
            self._write(uid, owners.changes(old, new, version, self._newest_revision(new)), now)

    def _newest_revision(self, state: OwnerState) -> str:
        """Of the Deployment above: the revision that it is at, or is about to get because its template was changed.

        With the strategy Recreate the old ReplicaSet is scaled in before there is a new one.
        """
        above = self._owners.get(state.owner_uid)
        if above is None:
            return ""
        last = next(
            (r for r in reversed(self._records.get(above.uid, ())) if r.kind == kinds.OWNER_WRITTEN),
            None,
        )
        changed = last.facts_as(kinds.OWNER_WRITTEN).get("changed") or () if last is not None else ()
        if "template" in changed and above.revision == state.revision and state.replicas == 0:
            return str(int(above.revision) + 1) if above.revision.isdigit() else "next"
        return above.revision

    def owners_listed(self, kind: str, items: Iterable[Object], now: Moment) -> None:
        """Take all owners of a kind that are there."""
        there = set()
        for obj in items:
            there.add(uid_of(obj))
            self.owner(kind, "MODIFIED", obj, now, changed=uid_of(obj) in self._owners)
        for uid, state in list(self._owners.items()):
            if state.kind == kind and uid not in there:
                del self._owners[uid]
                self._remember_gone(state)
                self._write(uid, owners.removed(state, ""), now)

    def job_replaced(self, cron_uid: str, cron_name: str, job: str, now: Moment) -> None:
        """Note that a CronJob says to have deleted a Job of its own that had not finished: the next run replaces it.

        (`cronjob_controllerv2.go:deleteJob`) The Event also comes for finished Jobs above the history limit.
        """
        known = [*self._owners.values(), *reversed(self._gone.values())]
        found = next((each for each in known if each.owner_uid == cron_uid and each.name == job), None)
        if found is not None and not found.finished:
            self._write(found.uid, owners.replaced_by_cron_job(found, cron_name), now)

    def state(self, uid: str) -> OwnerState | None:
        return self._owners.get(uid) or self._gone.get(uid)

    def state_at(self, uid: str, at_ns: int) -> OwnerState | None:
        """Return the state as it was seen to be at that time, the last known state where that is not kept."""
        before = [state for seen_ns, state in self._states.get(uid, ()) if seen_ns <= at_ns]
        return before[-1] if before else self.state(uid)

    def is_gone(self, uid: str, by_ns: int) -> bool:
        """Return whether it was deleted, or was being deleted, at that time."""
        state = self._owners.get(uid)
        if not (uid in self._gone if state is None else state.deleting):
            return False
        deleted = [r.at_ns for r in self._records.get(uid, ()) if r.kind == kinds.OWNER_DELETED]
        return not deleted or min(deleted) <= by_ns

    def chain(self, uid: str) -> Iterator[OwnerState]:
        """Yield the owner and its owners."""
        for _ in range(4):
            state = self.state(uid)
            if state is None:
                return
            yield state
            uid = state.owner_uid

    def records(self, uid: str, namespace: str) -> list[Record]:
        """Return what was written of an owner, its owners, and of the namespace."""
        found = [self._observed(record) for each in self.chain(uid) for record in self._records.get(each.uid, ())]
        scaled = [(record, by) for record in found if (by := self.autoscalers.decision(record)) is not None]
        found += [self._record(by, Moment(record.at_ns, record.wall_ns)) for record, by in scaled]
        ends = self._namespaces.get(namespace)
        return [*found, ends] if ends is not None else found

    def _observed(self, record: Record) -> Record:
        """Return the record of a resize with the generation of the owner that it goes back to, as seen by then."""
        if record.kind != kinds.SCALE_DECIDED:
            return record
        state = self.state_at(str(record.facts_as(kinds.SCALE_DECIDED).get("ownerUid")), record.at_ns + LATER_NS)
        return record if state is None else replace(record, facts={**record.facts, "ownerGeneration": state.generation})

    def _remember_gone(self, state: OwnerState) -> None:
        self._gone[state.uid] = state
        while len(self._gone) > MOST_GONE:
            uid, _ = self._gone.popitem(last=False)
            self._records.pop(uid, None)
            self._states.pop(uid, None)

    def _write(self, uid: str, drafts: Iterator[Draft], now: Moment) -> None:
        for each in drafts:
            record = self._record(each, now)
            kept = self._records.setdefault(uid, [])
            kept.append(record)
            del kept[:-MOST_RECORDS]
            self._on_record(record)
        while len(self._records) > 2 * MOST_GONE:
            self._records.popitem(last=False)

    def _record(self, each: Draft, now: Moment) -> Record:
        return Record(
            id=self._new_id(each.actor),
            at_ns=now.at_ns,
            wall_ns=now.wall_ns,
            actor=each.actor,
            kind=each.kind,
            rule=each.rule,
            facts=dict(each.facts),
            evidence=each.evidence,
        )

    # -- namespaces, nodes, budgets -----------------------------------------------------------------------------------

    def namespace(self, obj: Object, now: Moment, *, gone: bool) -> None:
        name = name_of(obj)
        if gone:
            return  # its Pods' stories may still be reported
        if not obj["metadata"].get("deletionTimestamp"):
            self._namespaces.pop(name, None)
        elif name not in self._namespaces:
            facts: OwnerDeleted = {
                "ofKind": "Namespace",
                "namespace": "",
                "name": name,
                "uid": uid_of(obj),
                "ownerUid": "",
                "generation": 0,
                "resourceVersion": resource_version_of(obj),
                "user": "",
                "userAgent": "",
            }
            self._namespaces[name] = self._record(draft(kinds.OWNER_DELETED, facts, "apiserver"), now)
            while len(self._namespaces) > MOST_GONE:
                self._namespaces.pop(next(iter(self._namespaces)))

    def namespace_ends(self, name: str, by_ns: int) -> bool:
        """Return whether it was being deleted at that time."""
        deleted = self._namespaces.get(name)
        return deleted is not None and deleted.at_ns <= by_ns

    def node(self, obj: Object, now: Moment, *, gone: bool) -> bool:
        """Take a node's state. Return whether that changed what is known of it."""
        name = name_of(obj)
        self._known_nodes = True
        if gone:
            self._evicting.pop(name, None)
            return self._nodes.pop(name, None) is not None
        conditions = (obj.get("status") or {}).get("conditions") or ()
        ready = next((each.get("status") for each in conditions if each.get("type") == "Ready"), None)
        taints = tuple(
            f"{each.get('key')}:{each.get('effect')}"
            for each in (obj.get("spec") or {}).get("taints") or ()
            if each.get("effect") in _TAINTS
        )
        lifecycle = tuple(
            f"{each['type']} ({each['reason']})" if each.get("reason") else str(each["type"])
            for each in conditions
            if each.get("type") in LIFECYCLE and each.get("status") == "True"
        )
        new = Node({"True": True, "False": False}.get(str(ready)), taints, lifecycle)
        states, evicting = self._evicting.setdefault(name, []), no_execute_taints(obj)
        if not states or states[-1][1] != evicting:
            states.append((now.at_ns, evicting))
            del states[:-MOST_STATES]
        changed = self._nodes.get(name) != new
        self._nodes[name] = new
        return changed

    def node_state(self, name: str) -> Draft | None:
        """Return the record on a node; None where nodes may not be read, or there is none."""
        if not name or not self._known_nodes:
            return None
        node = self._nodes.get(name)
        facts: NodeStateSeen = {
            "node": name,
            "ready": node.ready if node else None,
            "gone": node is None,
            "taints": list(node.taints) if node else [],
        }
        if node is not None and node.lifecycle:
            facts["lifecycle"] = list(node.lifecycle)
        return draft(kinds.NODE_STATE_SEEN, facts, "client")

    def taints(self, name: str, from_ns: int, to_ns: int) -> list[Sequence[AnyObject]]:
        """Return the NoExecute taints of a node, for each state that it was seen to have at some time between."""
        states = self._evicting.get(name, [])
        before = [taints for at, taints in states if at <= from_ns]
        return [*before[-1:], *(taints for at, taints in states if from_ns < at <= to_ns)]

    def budget(self, obj: Object) -> None:
        """Take a budget: `status.disruptedPods` names the Pods whose eviction was allowed a moment ago."""
        name = f"{namespace_of(obj)}/{name_of(obj)}"
        for pod in (obj.get("status") or {}).get("disruptedPods") or {}:
            self._budgets[(namespace_of(obj), str(pod))] = name
        while len(self._budgets) > MOST_GONE:
            self._budgets.pop(next(iter(self._budgets)))

    def budgets_of(self, namespace: str, pod: str) -> tuple[str, ...]:
        found = self._budgets.get((namespace, pod))
        return (found,) if found else ()
