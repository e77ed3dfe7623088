"""Plays a recording's steps on a virtual cluster and names every disagreement with what was recorded."""

import difflib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kept_cluster import COMPARED
from virtual_cluster import VirtualCluster, run_cluster

from lastcall.kube.api.resources import EVENTS
from lastcall.kube.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.records import kinds
from lastcall.records.record import Record
from scenario.facts import final_facts
from scenario.programs import ShellPrograms, images_of

DATA = Path(__file__).parents[2] / "scenarios" / "data"
TOLERANCE = 0.5
REQUEST_SECONDS = 0.02
"""From one DELETE of the recorder to its next request."""
INVALID_IMAGE = RuntimeServiceError(
    'couldn\'t parse image name "Bad Name:1": '
    "invalid reference format: repository name (library/Bad Name) must be lowercase",
    "InvalidImageName",
)
"""What the runtime says about the only invalid image name of the recordings."""

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
            for volume in _missing_config_maps(manifests):
                cluster.volumes.failures[volume] = 'configmap "missing" not found'
            if '"Bad Name:1"' in json.dumps(manifests):
                cluster.runtime.fail_next("image_status", INVALID_IMAGE, times=1000)
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

        self.cluster = run_cluster(main, programs, images=images_of(manifests), kubernetes_version=COMPARED, **options)
        return self

    async def _play(self, cluster: VirtualCluster, step: Json) -> None:
        manifests = {f"{m['kind'].lower()}/{m['metadata']['name']}": m for m in self.recording["manifests"]}
        match step:
            case {"create": names}:
                # The recorder creates what Pods need before them and Services last, as the answers show.
                wanted = list(manifests) if names == "all" else names
                for name in wanted:
                    await cluster.create(manifests[name])
            case {"wait": {"object": what, "is": state}} if "event" not in step["wait"]:
                await self._wait(cluster, lambda: _is(cluster, what.split("/")[1], state), step["wait"])
            case {"wait": {"event": reason}}:
                await self._wait(cluster, lambda: _has_event(cluster, reason, step["wait"].get("object")), step["wait"])
            case {"wait": {"log": text}}:
                await cluster.wait_until(lambda: any(r.facts["text"] == text for r in cluster.records(kinds.OUTPUT)))
            case {"sleep": seconds}:
                await cluster.sleep(seconds)
            case {"delete": what, **more}:
                options = more.get("options") or {}
                answer = await cluster.delete(what, options.get("gracePeriodSeconds"))
                self.answers.append(answer)
                await cluster.sleep(REQUEST_SECONDS)
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
                found[aspect] = f"{aspect} (- recorded, + here)\n{_difference(recorded, here)}"

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
            here = _counted([_normal(line) for line in cluster.events(pod) if not _is_optional(line)])
            wanted = [_normal(line) for line in lines if not _is_optional(line)]
            repeated = [line.removesuffix(" (repeated)") for line in wanted if line.endswith(" (repeated)")]
            here = [re.sub(r" \(x\d+\)$", " (repeated)", line) if _bare(line) in repeated else line for line in here]
            if ordered:
                compare(f"events {pod}", _killing_in_any_order(wanted), _killing_in_any_order(here))
            else:  # kept without counts
                compare(f"events {pod}", sorted(map(_bare, wanted)), sorted(map(_bare, here)))
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
            here = self._runtime(pod)
            if "exec" not in json.dumps(recorded):  # the recorder left them out where probes run too
                here = [line for line in here if not line.startswith("exec")]
            if isinstance(recorded, dict):
                for container, lines in recorded.items():
                    lines = lines["any_order"] if isinstance(lines, dict) else lines
                    own = [line for line in here if line.split()[1] == container]
                    varied = f"runtime.{pod}.{container}" in " ".join(recording.get("varied", []))
                    wanted = _exec_exits_first([_with_name(line, container) for line in lines])
                    compare(f"runtime {pod}/{container}", sorted(wanted) if varied else wanted,
                            sorted(own) if varied else own)  # fmt: skip
            else:
                compare(f"runtime {pod}", _exec_exits_first(recorded), here)
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
        return _exec_exits_first(lines)

    def _is_hook(self, record: Record) -> bool:
        return list(record.facts["argv"]) in self._hook_commands

    def _compare_seconds(self, found: dict[str, str]) -> None:
        killings = {
            (self.cluster.alias(record.pod_uid), record.container): self._killings(record)
            for record in self.cluster.records(kinds.KILLING)
        }
        here = self._times()
        varied = " ".join(self.recording.get("varied", []))
        for key, recorded in self.recording.get("seconds_after_killing", {}).items():
            owner, what, number = re.fullmatch(r"(\S+): (.*?)(?: \(Killing #(\d+)\))?", key).groups()  # type: ignore[union-attr]
            line = re.fullmatch(r"log '(.*)'", what)
            if (line and line[1] in self._hook_lines) or f"{owner}: {what}" in varied:
                continue
            pod, container = owner.split("/")
            zero = [*killings.get((pod, container), []), 0.0][int(number or 1) - 1]
            times = [round(at - zero, 3) for at in here.get((pod, container, what), [])]
            if not any(abs(value - recorded) <= TOLERANCE for value in times):
                found[f"seconds {key}"] = f"seconds {key}: recorded {recorded}, here {times}"

    def _killings(self, killing: Record) -> list[float]:
        records = self.cluster.records(kinds.KILLING, killing.container)
        return [record.at_ns / 1e9 for record in records if record.pod_uid == killing.pod_uid]

    def _times(self) -> dict[tuple[str, str, str], list[float]]:
        """When each fact of a container happened, by (pod, container, the recording's words)."""
        cluster = self.cluster
        times: dict[tuple[str, str, str], list[float]] = {}
        hooks: set[str] = set()
        for record in cluster.all_records:
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
                owner = (cluster.alias(record.pod_uid), record.container, what)
                times.setdefault(owner, []).append(record.at_ns / 1e9)
        for seen in cluster.history[EVENTS]:
            involved = seen.object["involvedObject"]
            container = re.search(r"\{(.*)\}", involved.get("fieldPath", ""))
            if container:
                owner = (cluster.alias(involved["uid"]), container[1], f"event {seen.object['reason']}")
                times.setdefault(owner, []).append(seen.at)
        return times

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


def _normal(line: str) -> str:
    line = re.sub(r" in \S+ \(\S+ including waiting\)\. Image size: \d+ bytes", " in <d>", line)
    line = re.sub(r"Preempted by pod \S+ on", "Preempted by pod <uid> on", line)
    return re.sub(r"_default\([^)]*\)", "_default(<uid>)", line)


def _counted(lines: list[str]) -> list[str]:
    """Equal Events as one with their counts added: a kubelet that was restarted starts new ones."""
    counts: dict[str, int] = {}
    for line in lines:
        match = re.search(r" \(x(\d+)\)$", line)
        counts[_bare(line)] = counts.get(_bare(line), 0) + (int(match[1]) if match else 1)
    return [f"{line} (x{count})" if count > 1 else line for line, count in counts.items()]


def _is_optional(line: str) -> bool:
    """A readiness probe that runs into the end of its container: seen in half of the runs (golden correction 22)."""
    return "Readiness probe errored and resulted in unknown state" in line


def _killing_in_any_order(lines: list[str]) -> list[str]:
    """Killing Events of one Pod come at T0 in any order (golden correction 16)."""
    for start in range(len(lines)):
        end = start
        while end < len(lines) and lines[end].startswith("Normal Killing"):
            end += 1
        lines = [*lines[:start], *sorted(lines[start:end]), *lines[end:]]
    return lines


def _sequence(states: list[list[str]], pod: str) -> list[str]:
    sequence: list[str] = []
    for state in states:
        own = [line.removeprefix(f"{pod} ") for line in state if line.startswith(f"{pod} ")]
        shown = own[0] if own else "absent"
        if (sequence or shown != "absent") and (not sequence or sequence[-1] != shown):
            sequence.append(shown)
    return sequence


def _exec_exits_first(lines: list[str]) -> list[str]:
    """An exec that dies with its container: which of them is told first is chance."""
    for at in range(len(lines) - 1):
        one, two = lines[at : at + 2]
        if one.startswith("exec-start") and two == f"start {one.split()[1]}":
            lines = [*lines[:at], two, one, *lines[at + 2 :]]
        if one.startswith("exit") and two.startswith("exec-exit") and one.split()[1] == two.split()[1]:
            lines = [*lines[:at], two, one, *lines[at + 2 :]]
    return lines


def _with_name(line: str, container: str) -> str:
    """`start` of a per-container list is `start NAME` of a whole one."""
    words = line.split()
    return line if container in words else " ".join([words[0], container, *words[1:]])


def _difference(recorded: Any, here: Any) -> str:
    before, after = _lines(recorded), _lines(here)
    return "\n".join(line for line in difflib.ndiff(before, after) if line[0] in "+-")


def _lines(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}: {json.dumps(item)}" for key, item in value.items()]
    return [each if isinstance(each, str) else json.dumps(each) for each in value]
