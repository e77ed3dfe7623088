"""What `lastcall rollout` waits for: Pods Ready, rules that name them, the end of the disruption; and why not yet."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from lastcall.errors import Crashed, NotReady
from lastcall.experiment.ready.progress import unsettled
from lastcall.experiment.reasons.named import Explained, causes_in
from lastcall.experiment.reasons.object_events import events_of, hook_keeps_failing, webhooks_of, why_late
from lastcall.experiment.reasons.siblings import fix_of_old_pod
from lastcall.experiment.reasons.why_not_ready import (
    HOPELESS,
    Refused,
    Unschedulable,
    hopeless_reason,
    in_short,
    is_crash_looping,
    is_ready,
    replica_failure,
    told_once,
    unschedulable_message,
    why_no_pods,
    why_still_there,
)
from lastcall.experiment.rollout.custom import scaled, why_unsettled
from lastcall.experiment.rollout.fields import is_custom
from lastcall.kube.api import PODS, REPLICASETS, Object, name_of, namespace_of, uid_of
from lastcall.kube.client import Client
from lastcall.manifests import Manifest
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.world.clock import Clock, monotonic, now

LOOK_SECONDS = 0.05


@dataclass(slots=True)
class Waiting:
    """`limit` is seconds for each thing that is waited for. `records` grow meanwhile. `show` gets now, the seconds
    so far, and what is waited for and why."""

    client: Callable[[], Client]
    clock: Clock
    workload: Manifest
    records: Sequence[Record]
    limit: float
    show: Callable[[float, float, str], None]
    version: str = ""
    _stuck: Unschedulable = field(default_factory=Unschedulable)
    _refusals: Refused = field(default_factory=Refused)

    async def until(
        self, condition: Callable[[], Awaitable[str]], what: str, *, may_strand: bool = False
    ) -> list[Object]:
        """Until `condition` answers "", which else says what is missing. Raises WorldError: not in time, or waiting
        changes nothing; it names the Pods and says why. `Crashed` where a container keeps crashing. With `may_strand`
        it ends, too, when all that is missing are Pods that no node takes, and answers those: a drained node may be
        the one that they need."""
        began = monotonic(self.clock)
        next_look = began + 1.0
        while missing := await condition():
            now = monotonic(self.clock)
            if now >= began + self.limit:
                why = await self._why()
                timed_out = f"timed out after {self.limit:g} s (--timeout) waiting for {what}: {missing}"
                raise NotReady("\n".join([timed_out, *why.lines]), why.causes)
            if now >= next_look:
                next_look = now + 1.0
                pods = await self.pods()
                # A Pod that the node refused is replaced: that is not a reason to give up.
                hopeless = [pod for pod in pods if hopeless_reason(pod) in HOPELESS]
                stranded = await self._unschedulable(pods, now)
                if may_strand and stranded and not hopeless:
                    return stranded
                if hopeless or stranded:
                    hopeless = hopeless or stranded
                    why = await self._why_not_ready(hopeless)
                    raise NotReady("\n".join([f"giving up waiting for {what}: {missing}", *why.lines]), why.causes)
                if await self._refused(now):
                    why = await self._why()
                    raise NotReady("\n".join([f"giving up waiting for {what}: {missing}", *why.lines]), why.causes)
                if crashing := await self._crashing(pods):
                    why = await self._why_not_ready(crashing)
                    raise Crashed("\n".join([f"giving up waiting for {what}: {missing}", *why.lines]), why.causes)
                self.show(now, now - began, f"{what}: {await self._in_short(missing)}")
            await self.clock.sleep(LOOK_SECONDS)
        return []

    async def _unschedulable(self, pods: Sequence[Object], now: float) -> list[Object]:
        if not any(map(unschedulable_message, pods)):
            return []
        everywhere = (await self.client().list(PODS)).items
        more_to_come = bool(self.workload.obj["spec"].get("minReadySeconds"))
        return self._stuck.look(pods, everywhere, now, more_to_come=more_to_come)

    async def _refused(self, now: float) -> bool:
        """Whether the API server refuses the owner's Pods, has for a while, and nothing goes on that may change it."""
        owner = await self._owner()
        everywhere = (await self.client().list(PODS)).items if replica_failure(owner) else ()
        return self._refusals.look([owner], everywhere, now) and not owner["spec"].get("minReadySeconds")

    async def _crashing(self, pods: Sequence[Object]) -> list[Object]:
        """Those that crash again and again, with nothing else left to come up that they may be waiting for."""
        crashing = [pod for pod in pods if is_crash_looping(pod) or await hook_keeps_failing(self.client(), pod)]
        if not crashing:
            return []
        of_it = {uid_of(pod) for pod in pods}
        others = [pod for pod in (await self.client().list(PODS)).items if uid_of(pod) not in of_it]
        waits = any(
            not is_ready(pod) and (pod.get("status") or {}).get("phase") in (None, "Pending", "Running")
            for pod in others
        )
        return [] if waits else crashing

    async def settled(self) -> str:
        """Every replica is of the newest template and Ready, and nothing older is left."""
        found, resource = await self._owner(), self.workload.resource
        if is_custom(resource):
            return why_unsettled(found, await scaled(self.client(), resource, found))
        return unsettled(found)

    async def routed(self) -> str:
        """The node's rules name every Pod."""
        pods = await self.pods()
        routed = {
            record.pod_uid
            for record in self.records
            if record.kind == kinds.ENDPOINT_RULES_WRITTEN
            and record.facts_as(kinds.ENDPOINT_RULES_WRITTEN).get("receives")
        }
        missing = [name_of(pod) for pod in pods if pod["metadata"]["uid"] not in routed]
        return f"{', '.join(missing) or 'no Pod'} not yet" if missing or not pods else ""

    async def over(self) -> str:
        """Settled, and no Pod is ending."""
        missing = await self.settled()
        leaving = [name_of(pod) for pod in await self.pods() if "deletionTimestamp" in pod["metadata"]]
        return missing or (f"{', '.join(leaving)} are ending" if leaving else "")

    async def pods(self) -> list[Object]:
        """Of the workload, by the labels of its template."""
        workload = self.workload.obj
        labels = workload["spec"]["template"]["metadata"].get("labels") or {}
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        listed = await self.client().list(PODS, namespace_of(workload), label_selector=selector)
        return listed.items

    async def _owner(self) -> Object:
        workload = self.workload
        found: Object = await self.client().get(workload.resource, name_of(workload.obj), namespace_of(workload.obj))
        return found

    async def _in_short(self, missing: str) -> str:
        """In one line: the first Pods that are waited for."""
        late = [pod for pod in await self.pods() if "deletionTimestamp" in pod["metadata"] or not is_ready(pod)]
        told = [in_short(pod, await events_of(self.client(), pod)) for pod in late[:2]]
        more = [f"{len(late) - 2} more"] if len(late) > 2 else []
        return "; ".join([missing, *told, *more])

    async def _why(self) -> Explained:
        """What is missing, and why."""
        pods = await self.pods()
        late = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and not is_ready(pod)]
        ending = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
        lines = [line for pod in ending for line in why_still_there(pod, now=now(self.clock))]
        owner = await self._owner()
        wanted = owner["spec"].get("replicas")
        if not pods or (not late and not lines):
            what = f"{self.workload.resource.kind} {namespace_of(owner)}/{name_of(owner)}"
            ready = sum(map(is_ready, pods))
            lines += why_no_pods(what, owner, ready, wanted, await events_of(self.client(), owner))
            for replica_set in await self._replica_sets(owner):
                events = await events_of(self.client(), replica_set)
                more = why_no_pods("", replica_set, 0, 1, events, await webhooks_of(self.client(), events))[1:]
                lines += told_once(more, lines)
        causes = causes_in(f"{self.workload.resource.kind} {namespace_of(owner)}/{name_of(owner)}", lines)
        told = await self._why_not_ready(late)
        found = (fix_of_old_pod(pod, pods, now(self.clock)) for pod in late)
        if in_the_way := next(filter(None, found), ""):
            # Of a probe that the old Pod answers there is nothing to correct.
            added = (*(line for line in told.lines if not line.endswith("[probeFailed]")), f"  fix: {in_the_way}")
            others = (each for each in told.causes if each.id != "probeFailed")
            told = Explained(added, (*others, *causes_in("", added[-1:])))
        return Explained((*lines, *told.lines), (*causes, *told.causes))

    async def _why_not_ready(self, pods: Sequence[Object]) -> Explained:
        return await why_late(self.client(), self.clock, pods, self.records, self.version)

    async def _replica_sets(self, owner: Object) -> list[Object]:
        """What stands between a Deployment and its Pods."""
        if self.workload.resource.kind != "Deployment":
            return []
        listed = await self.client().list(REPLICASETS, namespace_of(owner))
        return [
            each
            for each in listed.items
            if any(ref.get("uid") == uid_of(owner) for ref in each["metadata"].get("ownerReferences") or [])
        ]
