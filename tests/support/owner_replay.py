"""Plays recordings in which an owner makes the Pods: what became of the Pods, what the owner's status and Events said.

Pods of generated names are `j-#1`, `j-#2` in the order of their creation. Steps and facts are those of
`scenario.replay`; `@0` is the oldest Pod that is there.
"""

import json
from pathlib import Path
from typing import Any

from kept_cluster import COMPARED
from scenario.facts import final_facts
from scenario.programs import ShellPrograms
from scenario.replay import _counted, _difference, _is_optional, _normal, _sets
from virtual_cluster import KINDS, VirtualCluster, run_cluster

from lastcall.kube.api.meta import Object, is_terminating, name_of
from lastcall.kube.api.resources import DAEMONSETS, EVENTS, JOBS, PODS, STATEFULSETS
from lastcall.kube.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from lastcall.kube.controllers.ownership import controller_of

DATA = Path(__file__).parents[1] / "scenarios" / "data" / "owners"
OWNERS = (DAEMONSETS, JOBS, STATEFULSETS)
COUNTERS = (
    "replicas", "updatedReplicas", "currentReplicas", "readyReplicas", "availableReplicas",
    "currentNumberScheduled", "desiredNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable",
    "numberUnavailable", "active", "ready", "terminating", "succeeded", "failed",
)  # fmt: skip

Json = dict[str, Any]


def recording_names() -> list[str]:
    return sorted(path.stem for path in DATA.glob("*.json"))


class OwnerReplay:
    """One recording played in virtual time."""

    def __init__(self, name: str) -> None:
        self.recording: Json = json.loads((DATA / f"{name}.json").read_text())
        self.cluster: VirtualCluster

    def run(self, **options: Any) -> "OwnerReplay":
        holder: list[ShellPrograms] = []

        def programs(config: Any, sandbox: Any) -> Any:
            if not holder:
                holder.append(ShellPrograms(self.cluster.world, self.cluster.volumes.messages))
            return holder[0](config, sandbox)

        async def main(cluster: VirtualCluster) -> None:
            self.cluster = cluster
            for step in self.recording["steps"]:
                await self._play(step)

        self.cluster = run_cluster(main, programs, watched=OWNERS, kubernetes_version=COMPARED, **options)
        return self

    # -- steps

    async def _play(self, step: Json) -> None:
        cluster = self.cluster
        match step:
            case {"create": "all"}:
                for manifest in self.recording["manifests"]:
                    await cluster.create(manifest)
            case {"wait": {"object": what, "is": "gone"}} if what.startswith("pod/"):
                # It may be there again at once: the recorder watched.
                number = len(self._deleted(what))
                await cluster.wait_until(lambda: len(self._deleted(what)) > number, step["wait"].get("limit", 60))
            case {"wait": {"object": what, "is": state}}:
                await cluster.wait_until_async(lambda: self._is(what, state), step["wait"].get("limit", 60))
            case {"wait": {"pods": count, **more}}:
                await cluster.wait_until_async(lambda: self._pods(count, bool(more.get("ready"))), 60)
            case {"sleep": seconds}:
                await cluster.sleep(seconds)
            case {"delete": what, **more}:
                options = more.get("options") or {}
                named = self._named(what)
                await cluster.delete(named, options.get("gracePeriodSeconds"), options.get("propagationPolicy"))
            case {"evict": what}:
                name = self._named(what).split("/")[1]
                body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
                await cluster.client.create(PODS, body, "default", name=name, subresource="eviction")
            case {"patch": what, "body": body, **more}:
                strategic = more.get("type") == "strategic"
                content_type = STRATEGIC_MERGE_PATCH if strategic else MERGE_PATCH
                subresource = more.get("subresource", "").strip("/")
                await cluster.patch(what, body, content_type=content_type, subresource=subresource)
            case {"gone": limit}:
                await cluster.wait_until_async(lambda: self._pods(0, ready=False), limit)
                await cluster.sleep(2.0)
            case _:
                raise ValueError(f"unknown step {step}")

    def _deleted(self, what: str) -> list[str]:
        name = what.split("/")[1]
        return [seen.name for seen in self.cluster.history[PODS] if seen.type == "DELETED" and seen.name == name]

    def _named(self, what: str) -> str:
        if what != "pod/@0":
            return what
        return f"pod/{self.cluster.last_of_each_pod()[0].name}"

    async def _pods(self, count: int, ready: bool) -> bool:
        found = (await self.cluster.client.list(PODS, "default")).items
        if ready:
            return sum(_has(pod, "Ready") and not is_terminating(pod) for pod in found) == count
        return len(found) == count

    async def _is(self, what: str, state: str) -> bool:
        kind, name = what.split("/")
        resource = next(resource for known, resource in KINDS.items() if known.lower() == kind)
        there = (await self.cluster.client.list(resource, "default")).items
        found = next((each for each in there if name_of(each) == name), None)
        if state == "gone" or found is None:
            return state == "gone" and found is None
        if state == "ready":
            return _has(found, "Ready") and not is_terminating(found)
        if state.startswith("eq status."):
            _, path, number = state.split()
            return bool((found.get("status") or {}).get(path.removeprefix("status."), 0) == int(number))
        if state.startswith("condition="):
            return _has(found, *state.removeprefix("condition=").split(":"))
        raise ValueError(f"unknown state {state!r}")

    # -- comparing

    def disagreements(self) -> dict[str, str]:
        """What differs, by aspect: `milestones j-#1`, `final j-#1`, `events Job/j`, `status Job/j`."""
        found: dict[str, str] = {}

        def compare(aspect: str, recorded: Any, here: Any) -> None:
            if recorded != here:
                found[aspect] = f"{aspect} (- recorded, + here)\n{_difference(recorded, here)}"

        names = self._names()
        recorded_pods = self.recording["pods"]
        compare("pods", sorted(recorded_pods), sorted(names.values()))
        for uid, name in names.items():
            if name not in recorded_pods:
                continue
            pod = self.cluster.alias(uid)
            compare(f"milestones {name}", *self._milestones(name, pod))
            compare(f"final {name}", recorded_pods[name]["final"], final_facts(self.cluster.pod(pod), gone=True))
        for key, lines in self.recording["events"].items():
            wanted = [_normal(line) for line in (lines if isinstance(lines, list) else lines["any_order"])]
            here = self._events(key, names)
            compare(f"events {key}", sorted(filter(_matters, wanted)), sorted(filter(_matters, here)))
        for key, states in self.recording["controllers"].items():
            compare(f"status {key}", states, self._states(key))
        return found

    def _milestones(self, name: str, pod: str) -> tuple[list[list[str]], list[list[str]]]:
        """Recorded and here; where two recorded runs wrote in other groups, single facts in any order."""
        recorded, here = self.recording["pods"][name]["milestones"], self.cluster.milestones(pod)
        varied = next((each for each in self.recording["varied"] if each.startswith(f"pods.{name}.milestones")), "")
        if not varied:
            return _sets(recorded), _sets(here)
        return sorted(recorded), sorted([fact] for group in here for fact in group if f'"{fact}"' not in varied)

    def _names(self) -> dict[str, str]:
        """uid → the recording's name."""
        found: dict[str, str] = {}
        counts: dict[str, int] = {}
        for uid, versions in self.cluster._versions.items():
            made = versions[0].object
            owner = controller_of(made)
            # A StatefulSet's Pods have the field too, and names of their own.
            named = owner is None or owner["kind"] == STATEFULSETS.kind
            prefix = "" if named else made["metadata"]["generateName"]
            if prefix:
                counts[prefix] = counts.get(prefix, 0) + 1
            found[uid] = f"{prefix}#{counts[prefix]}" if prefix else self.cluster.alias(uid)
        return found

    def _events(self, key: str, names: dict[str, str]) -> list[str]:
        kind, name = key.split("/")
        found: dict[str, Object] = {}
        for seen in self.cluster.history[EVENTS]:
            about = seen.object["involvedObject"]
            if about["kind"] == kind and names.get(about["uid"], about["name"]) == name and seen.type != "DELETED":
                found[seen.name] = seen.object
        lines = []
        for event in found.values():
            path = event["involvedObject"].get("fieldPath", "").removeprefix("spec.")
            where = f" [{path}]" if path else ""
            line = f"{event['type']} {event['reason']}{where}: {event['message']}"
            for uid, called in names.items():
                line = line.replace(self.cluster.alias(uid), called) if "#" in called else line
            count = event.get("count") or 1
            lines.append(line + (f" (x{count})" if count > 1 else ""))
        return _counted([_normal(line) for line in lines])

    def _states(self, key: str) -> list[Json]:
        """What each write of the owner changed of its counters and conditions."""
        kind, name = key.split("/")
        states: list[Json] = []
        for seen in self.cluster.history[KINDS[kind]]:
            if seen.name == name:
                state = {"DELETED": True} if seen.type == "DELETED" else _state(seen.object)
                if not states or states[-1] != state:
                    states.append(state)
        return states


def _state(owner: Object) -> Json:
    status = owner.get("status") or {}
    facts: Json = {}
    if "replicas" in owner["spec"]:
        facts["spec.replicas"] = owner["spec"]["replicas"]
    if is_terminating(owner):
        facts["deleting"] = True
    if owner["metadata"].get("finalizers"):
        facts["finalizers"] = ",".join(owner["metadata"]["finalizers"])
    facts |= {key: status[key] for key in COUNTERS if status.get(key) is not None}
    uncounted = {key: len(uids) for key, uids in (status.get("uncountedTerminatedPods") or {}).items() if uids}
    if uncounted:
        facts["uncounted"] = uncounted
    if status.get("conditions"):
        facts["conditions"] = [f"{e['type']}={e['status']}({e.get('reason', '')})" for e in status["conditions"]]
    return facts


def _has(obj: Object, kind: str, status: str = "True") -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return any((each["type"], each["status"]) == (kind, status) for each in conditions)


def _matters(line: str) -> bool:
    return not _is_optional(line)
