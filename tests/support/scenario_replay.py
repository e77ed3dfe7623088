"""Plays a recording's steps on a virtual cluster and names every disagreement with what was recorded."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scenario_facts import final_facts
from scenario_programs import ShellPrograms, images_of
from virtual_cluster import KINDS, VirtualCluster, run_cluster

from lastcall.api.resources import EVENTS
from lastcall.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from lastcall.timeline import kinds
from lastcall.timeline.record import Record

DATA = Path(__file__).parents[1] / "scenarios" / "data"
TOLERANCE = 0.5
_HOOK_LINES = re.compile(r"echo (\S+) > /proc/1/fd/1")

Json = dict[str, Any]


def recording_names() -> list[str]:
    return sorted(path.stem for path in DATA.glob("*.json"))


def load_recording(name: str) -> Json:
    loaded: Json = json.loads((DATA / f"{name}.json").read_text())
    return loaded


class Replay:
    """One recording played in virtual time. `answers` are what the API server answered, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.recording = load_recording(name)
        self.answers: list[Json] = []
        text = json.dumps(self.recording["manifests"])
        self._hook_lines = set(_HOOK_LINES.findall(text))
        self._hook_commands = [
            container["lifecycle"]["preStop"]["exec"]["command"]
            for manifest in self.recording["manifests"]
            for key in ("initContainers", "containers")
            for container in manifest.get("spec", {}).get(key, [])
            if "exec" in container.get("lifecycle", {}).get("preStop", {})
        ] + [
            container["lifecycle"]["postStart"]["exec"]["command"]
            for manifest in self.recording["manifests"]
            for container in manifest.get("spec", {}).get("containers", [])
            if "exec" in container.get("lifecycle", {}).get("postStart", {})
        ]

    def run(self, **options: Any) -> "Replay":
        manifests = self.recording["manifests"]

        async def scenario(cluster: VirtualCluster) -> None:
            for name in _missing_config_maps(manifests):
                volume = name
                cluster.volumes.failures[volume] = 'configmap "missing" not found'
            for step in self.recording["steps"]:
                await self._play(cluster, step)

        # The programs need the cluster's world: the function is made when the first container is created.
        holder: list[ShellPrograms] = []

        def programs(config: Any, sandbox: Any) -> Any:
            if not holder:
                holder.append(ShellPrograms(self.cluster.world, self.cluster.volumes.messages))
            return holder[0](config, sandbox)

        async def main(cluster: VirtualCluster) -> None:
            self.cluster = cluster
            await scenario(cluster)

        self.cluster = run_cluster(main, programs, images=images_of(manifests), **options)
        return self

    async def _play(self, cluster: VirtualCluster, step: Json) -> None:
        manifests = {f"{m['kind'].lower()}/{m['metadata']['name']}": m for m in self.recording["manifests"]}
        match step:
            case {"create": names}:
                # The recorder creates what Pods need before them and Services last, as the answers show.
                wanted = list(manifests) if names == "all" else names
                for name in wanted:
                    await cluster.create(manifests[name])
            case {"wait": {"object": what, "is": state, **more}} if "event" not in step["wait"]:
                await self._wait(cluster, lambda: _is(cluster, what.split("/")[1], state), more)
            case {"wait": {"event": reason, **more}}:
                await self._wait(cluster, lambda: _has_event(cluster, reason, more.get("object")), more)
            case {"wait": {"log": text}}:
                await cluster.wait_until(lambda: any(r.facts["text"] == text for r in cluster.records(kinds.OUTPUT)))
            case {"sleep": seconds}:
                await cluster.sleep(seconds)
            case {"delete": what, **more}:
                options = more.get("options") or {}
                answer = await cluster.delete(what, options.get("gracePeriodSeconds"))
                self.answers.append(answer)
            case {"patch": what, "body": body, **more}:
                strategic = more.get("type") == "strategic"
                await cluster.patch(
                    what,
                    body,
                    content_type=STRATEGIC_MERGE_PATCH if strategic else MERGE_PATCH,
                    subresource=more.get("subresource", "").strip("/"),
                )
            case {"kubelet": "kill"}:
                await cluster.kill_kubelet()
            case {"kubelet": "start"}:
                cluster.start_kubelet()
            case {"gone": limit}:
                pods = [name.split("/")[1] for name in manifests if name.startswith("pod/")]
                for pod in pods:
                    last = f"{pod}~2" if f"{pod}~2" in self.recording["pods"] else pod
                    await cluster.wait_gone(last, limit=limit)
                await cluster.sleep(2.0)
            case _:
                raise ValueError(f"{self.name}: unknown step {step}")

    async def _wait(self, cluster: VirtualCluster, predicate: Callable[[], Any], more: Json) -> None:
        try:
            await cluster.wait_until(predicate, more.get("limit", 60))
        except AssertionError:
            if not more.get("optional"):
                raise

    # -- comparing

    def disagreements(self) -> dict[str, str]:
        """What differs, by aspect: `milestones p`, `final p`, `events p`, `endpoints svc`, `logs p/app#0`, …"""
        found: dict[str, str] = {}

        def compare(aspect: str, recorded: Any, here: Any) -> None:
            if recorded != here:
                found[aspect] = f"{aspect}\n  recorded: {_shown(recorded)}\n  here:     {_shown(here)}"

        cluster, recording = self.cluster, self.recording
        for pod, recorded in recording["pods"].items():
            compare(f"milestones {pod}", _sets(recorded["milestones"]), _sets(cluster.milestones(pod)))
            final = final_facts(cluster.pod(pod), cluster.is_gone(pod))
            expected = {**recorded["final"]}
            if f"pods.{pod}.final.podIPkept" in " ".join(recording.get("varied", [])):
                final.pop("podIPkept")
            compare(f"final {pod}", expected, final)
        for key, recorded in recording.get("events", {}).items():
            pod = key.removeprefix("Pod/")
            lines, ordered = (recorded, True) if isinstance(recorded, list) else (recorded["any_order"], False)
            ordered = ordered and f"events.{key}" not in " ".join(recording.get("varied", []))
            optional = [line for line in recording.get("optional_events", []) if line.startswith(key)]
            here = [_normal(line, self.name, optional, key) for line in cluster.events(pod)]
            wanted = [_normal(line, self.name, [], key) for line in lines]
            here = [line for line in here if line]
            repeated = [line.removesuffix(" (repeated)") for line in wanted if line.endswith(" (repeated)")]
            here = [re.sub(r" \(x\d+\)$", " (repeated)", line) if _bare(line) in repeated else line for line in here]
            compare(f"events {pod}", wanted if ordered else sorted(wanted), here if ordered else sorted(here))
        for service, recorded in recording.get("endpointslices", {}).items():
            compare(f"endpoints {service}", recorded, cluster.endpoints(service))
        for service, pods in recording.get("endpoint_sequences_per_pod", {}).items():
            for pod, recorded in pods.items():
                compare(f"endpoints {service}/{pod}", recorded, _sequence(cluster.endpoints(service), pod))
        for key, recorded in recording.get("logs", {}).items():
            pod, container, attempt = re.fullmatch(r"(.*)/(.*)#(\d+)", key).groups()  # type: ignore[union-attr]
            lines = [line for line in recorded if line not in self._hook_lines]
            compare(f"logs {key}", lines, cluster.output(container, pod, int(attempt)))
        for pod, recorded in recording.get("runtime", {}).items():
            if isinstance(recorded, dict):
                for container, lines in recorded.items():
                    here = [line for line in self._runtime(pod) if _about(line) == container]
                    in_order = f"runtime.{pod}.{container}" not in " ".join(recording.get("varied", []))
                    own = [re.sub(r"^(start|exit|exec-start|exec-exit)( \S+)?", r"\1", x) for x in here]
                    del own
                    wanted = [_with_name(line, container) for line in lines]
                    same = wanted if in_order else sorted(wanted)
                    compare(f"runtime {pod}/{container}", same, here if in_order else sorted(here))
            else:
                compare(f"runtime {pod}", recorded, self._runtime(pod))
        self._compare_seconds(found)
        self._compare_answers(found)
        return found

    def _runtime(self, pod: str) -> list[str]:
        lines = []
        hooks: dict[str, str] = {}
        shown = {kinds.SANDBOX_CREATED: "start (sandbox)", kinds.SANDBOX_STOPPED: "exit (sandbox)"}
        stopped = False
        for record in self.cluster.records(pod=pod):
            if record.kind in shown:
                if record.kind == kinds.SANDBOX_STOPPED and stopped:
                    continue
                stopped = stopped or record.kind == kinds.SANDBOX_STOPPED
                lines.append(shown[record.kind])
            elif record.kind == kinds.PROCESS_STARTED:
                lines.append(f"start {record.container}")
            elif record.kind == kinds.PROCESS_EXITED:
                lines.append(f"exit {record.container} {record.facts['exitCode']}")
            elif record.kind == kinds.EXEC_STARTED and self._is_hook(record):
                hooks[record.facts["execId"]] = record.container
                lines.append(f"exec-start {record.container}")
            elif record.kind == kinds.EXEC_EXITED and record.facts["execId"] in hooks:
                lines.append(f"exec-exit {record.container} {record.facts['exitCode']}")
        return lines

    def _is_hook(self, record: Record) -> bool:
        return list(record.facts["argv"]) in self._hook_commands

    def _compare_seconds(self, found: dict[str, str]) -> None:
        here = self._seconds()
        varied = " ".join(self.recording.get("varied", []))
        for key, recorded in self.recording.get("seconds_after_killing", {}).items():
            line = re.search(r"log '(.*?)'", key)
            if (line and line[1] in self._hook_lines) or key.split(" (")[0] in varied:
                continue
            value = here.get(key)
            if value is None or abs(value - recorded) > TOLERANCE:
                found[f"seconds {key}"] = f"seconds {key}: recorded {recorded}, here {value}"

    def _seconds(self) -> Json:
        """Every fact of a container after a Killing event, first occurrence, in the recording's words."""
        cluster = self.cluster
        seconds: Json = {}
        killings: dict[tuple[str, str], list[float]] = {}
        hooks: set[str] = set()
        for record in cluster.all_records:
            if not record.pod_uid or not record.container:
                continue
            owner = (record.pod_uid, record.container)
            at = record.at_ns / 1e9
            if record.kind == kinds.KILLING:
                killings.setdefault(owner, []).append(at)
                continue
            if owner not in killings:
                continue
            what = ""
            if record.kind == kinds.OUTPUT:
                what = f"log '{record.facts['text']}'"
            elif record.kind == kinds.PROCESS_EXITED:
                what = f"container exit {record.facts['exitCode']}"
            elif record.kind == kinds.EXEC_STARTED and self._is_hook(record):
                hooks.add(record.facts["execId"])
                what = "hook process starts"
            elif record.kind == kinds.EXEC_EXITED and record.facts["execId"] in hooks:
                what = f"hook process ends {record.facts['exitCode']}"
            if what:
                self._note(seconds, killings[owner], record.pod_uid, record.container, what, at)
        for (uid, container), times in killings.items():
            pod = cluster.alias(uid)
            for at in cluster.event_times("FailedPreStopHook", pod):
                if any(f"{{{container}}}" in line and "FailedPreStopHook" in line for line in cluster.events(pod)):
                    self._note(seconds, times, uid, container, "event FailedPreStopHook", at)
        return seconds

    def _note(self, seconds: Json, killings: list[float], uid: str, container: str, what: str, at: float) -> None:
        number = sum(killing <= at for killing in killings)
        if number:
            suffix = f" (Killing #{number})" if number > 1 else ""
            key = f"{self.cluster.alias(uid)}/{container}: {what}{suffix}"
            seconds.setdefault(key, round(at - killings[number - 1], 3))

    def _compare_answers(self, found: dict[str, str]) -> None:
        recorded = [answer for answer in self.recording.get("answers", []) if "delete" in answer["do"]]
        recorded = [answer for answer in recorded if answer["do"]["delete"].startswith("pod/")]
        pods = [answer for answer in self.answers if answer.get("kind") == "Pod"]
        for number, (want, got) in enumerate(zip(recorded, pods, strict=False)):
            for key in ("deletionGracePeriodSeconds", "generation"):
                if key in want and want[key] != got["metadata"].get(key):
                    found[f"answer {number} {key}"] = f"answer {number} {key}: {want[key]}, {got['metadata'].get(key)}"
        if len(recorded) > len(pods):
            found["answers"] = f"answers: recorded {len(recorded)}, here {len(pods)}"


def _is(cluster: VirtualCluster, pod: str, state: str) -> bool:
    key, _, value = state.partition("=")
    status = cluster.status(pod)
    every = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    match key:
        case "ready":
            return cluster.condition(pod, "Ready") == "True"
        case "phase":
            return bool(status.get("phase") == value)
        case "waiting":
            return any((each["state"].get("waiting") or {}).get("reason") == value for each in every)
        case "running":
            return any("running" in each["state"] for each in every if value in ("", each["name"]))
        case "restarts":
            return any(each["restartCount"] >= int(value) for each in every)
        case "condition":
            type_, _, wanted = value.partition(":")
            return cluster.condition(pod, type_) == wanted
        case _:
            raise ValueError(f"unknown state {state!r}")


def _has_event(cluster: VirtualCluster, reason: str, what: str | None) -> bool:
    name = what.split("/")[1] if what else None
    return any(
        seen.object["reason"] == reason and name in (None, seen.object["involvedObject"]["name"])
        for seen in cluster.history[EVENTS]
    )


def _missing_config_maps(manifests: list[Json]) -> list[str]:
    return [
        volume["name"]
        for manifest in manifests
        for volume in manifest.get("spec", {}).get("volumes", [])
        if volume.get("configMap", {}).get("name") == "missing"
    ]


def _sets(groups: list[list[str]]) -> list[list[str]]:
    return [sorted(group) for group in groups]


def _bare(line: str) -> str:
    return re.sub(r" \(x\d+\)$", "", line)


def _normal(line: str, name: str, optional: list[str], key: str) -> str:
    line = re.sub(r"_(gold-[a-z0-9-]+|default)\([^)]*\)", "_default(<uid>)", line)
    head = " ".join(f"{key} {line}".split()[:4])
    if any(each.startswith(head) and _same_start(each, f"{key} {line}") for each in optional):
        return ""
    return line


def _same_start(optional: str, line: str) -> bool:
    text = optional.split(" (the container")[0]
    return line.startswith(text)


def _sequence(states: list[list[str]], pod: str) -> list[str]:
    sequence: list[str] = []
    for state in states:
        own = [line.removeprefix(f"{pod} ") for line in state if line.startswith(f"{pod} ")]
        shown = own[0] if own else "absent"
        if (sequence or shown != "absent") and (not sequence or sequence[-1] != shown):
            sequence.append(shown)
    return sequence


def _about(line: str) -> str:
    return line.split()[1]


def _with_name(line: str, container: str) -> str:
    """`start` of a per-container list is `start NAME` of a whole one."""
    words = line.split()
    return line if container in words else " ".join([words[0], container, *words[1:]])


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return "\n            ".join([""] + [json.dumps(each) for each in value])
    return json.dumps(value)


assert KINDS  # the kinds a recording's manifests may have
