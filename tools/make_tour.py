"""Play the tour's experiments in virtual time: `python tools/make_tour.py` (`--check` only says what is out of date).

- ui/src/tour-versions.json: what differs between versions of Kubernetes, for the page
- ui/src/tour-rules.json: what the rules of its steps say, in each language
- src/lastcall/ui/tour/recorded.json: the runs of levels that need what not every machine has
- `tour_data()`: every run with its story, for the tour of the documentation, which has no cluster behind it

The cluster is that of tests/support: API server, controllers, scheduler, kubelet and proxy are the real ones, and
containers are simulated. So what it shows is predicted, and the page says so.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/support"), str(Path(__file__).parent)]

from scenario.programs import ShellPrograms  # noqa: E402
from virtual_cluster import VirtualCluster, run_cluster  # noqa: E402
from virtual_proxy import proxies  # noqa: E402

from lastcall.endings.ending import build_endings  # noqa: E402
from lastcall.endings.story import ContainerEnding, Ending, PodFacts  # noqa: E402
from lastcall.kube.api.features.releases import DEFAULT_VERSION  # noqa: E402
from lastcall.kube.cri.api import ContainerConfig, ContainerState, PodSandboxConfig  # noqa: E402
from lastcall.kube.cri.simulated_program import Program  # noqa: E402
from lastcall.records import kinds  # noqa: E402
from lastcall.records import language as languages  # noqa: E402
from lastcall.records.explain import explain  # noqa: E402
from lastcall.records.rules import SAYS  # noqa: E402
from lastcall.ui.story import story  # noqa: E402
from lastcall.ui.tour.experiments import EXPERIMENTS, FORWARDS, Experiment  # noqa: E402
from lastcall.ui.tour.levels import Level, experiment_of, level_document, levels  # noqa: E402
from lastcall.ui.tour.running import Run  # noqa: E402

LESSON = ROOT / "ui/src/tour.json"
VERSIONS_FILE = ROOT / "ui/src/tour-versions.json"
COMPARED = ("1.23", "1.27", "1.36")
"""The versions that the page shows side by side: 1.37 changes none of what the steps show."""
RULES_FILE = ROOT / "ui/src/tour-rules.json"
RECORDED_FILE = ROOT / "src/lastcall/ui/tour/recorded.json"

NODES = 2
"""Each has a proxy."""

Document = dict[str, Any]


TAKES_MEMORY = "head -c 48m"
"""What a container of a level does on SIGTERM that has a limit below that: the kernel ends it."""
OOM_SECONDS = 0.4


async def _run_out_of_memory(cluster: VirtualCluster, shown: list[Document]) -> None:
    await cluster.wait_until(lambda: shown and shown[-1]["state"] == "ending", 60)
    await cluster.sleep(OOM_SECONDS)
    for node in cluster.nodes.values():
        for container in await node.runtime.list_containers():
            if container.state == ContainerState.CONTAINER_RUNNING:
                node.runtime.kill(container.id, oom=True)


def _has_too_little(experiment: Experiment) -> bool:
    text = orjson.dumps(experiment.objects).decode()
    return TAKES_MEMORY in text and '"memory":"24Mi"' in text


def play(experiment: Experiment, version: str = DEFAULT_VERSION) -> tuple[Document, Ending | None]:
    """Return what the page gets at the end of a run, and the Pod's ending; None if it never came to that."""
    shown: list[Document] = []
    programs: list[ShellPrograms] = []

    def ending_of(cluster: VirtualCluster, uid: str) -> Ending:
        records = [each for each in cluster.all_records if each.pod_uid in ("", uid)]
        if not any(each.pod_uid == uid for each in records):
            raise LookupError(uid)
        return build_endings(records, [PodFacts(uid, "", "")], kubernetes_version=version)[0]

    async def scenario(cluster: VirtualCluster) -> None:
        programs.append(ShellPrograms(cluster.world, cluster.volumes.messages))
        run = Run(experiment, cluster.client, cluster.world, lambda uid: ending_of(cluster, uid), shown.append)
        async with proxies(cluster), asyncio.TaskGroup() as tasks:
            if _has_too_little(experiment):
                tasks.create_task(_run_out_of_memory(cluster, shown))
            await run.run()

    def program(config: ContainerConfig, sandbox: PodSandboxConfig) -> Program:
        if FORWARDS in config.command:
            return Program(exit_code=143, term_output=((0.0, "passing SIGTERM on"),))
        if TAKES_MEMORY in "".join(config.command):
            return Program(drain_seconds=1.0, term_output=((0.0, "flushing"),))
        return programs[0](config, sandbox)

    cluster = run_cluster(scenario, program, kubernetes_version=version, nodes=NODES)
    uid = shown[-1]["uid"]
    return shown[-1], ending_of(cluster, uid) if uid and shown[-1]["answers"] else None


def facts(shown: Document, ending: Ending | None) -> Document:
    """Return what is compared between versions: of the first container, and of the Pod."""
    if ending is None:
        return {"error": shown["error"]}
    main = next(each for each in ending.containers if each.kind == "container")
    phases = [
        each.facts_as(kinds.POD_STATUS_WRITTEN).get("phase")
        for each in ending.entries
        if each.record.kind == kinds.POD_STATUS_WRITTEN
    ]
    return {**_of_container(main), "gone": _seconds(ending.gone), "phase": phases[-1] if phases else ""}


def _of_container(main: ContainerEnding) -> Document:
    hook = main.hook
    return {
        "hook": [_seconds(hook.started_at), _seconds(hook.finished_at)] if hook is not None else None,
        "term": _seconds(main.stop.signal_at),
        "kill": _seconds(main.stop.kill_at),
        "exit": _seconds(main.exit.at),
        "code": main.exit.code,
    }


def _seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


PHASES = "graceful"
"""The last phase differs in every experiment: one shows it."""


def _differ(found: Mapping[str, Document]) -> bool:
    return len({orjson.dumps({**each, "phase": ""}) for each in found.values()}) > 1


def versions() -> Document:
    """Return the experiments for which a version of Kubernetes makes a difference."""
    runs: dict[str, Mapping[str, Document]] = {}
    for name, experiment in EXPERIMENTS.items():
        found = {version: facts(*play(experiment, version)) for version in COMPARED}
        if _differ(found) or name == PHASES:
            runs[name] = found
    return {"versions": list(COMPARED), "runs": runs}


def tour_data() -> Document:
    """Return every experiment under the newest version, with the story that the page draws."""
    runs = {}
    for name, experiment in EXPERIMENTS.items():
        run, ending = play(experiment)
        assert ending is not None, f"{name}: {run['error'][languages.ENGLISH]}"
        last = max(each.record.at_ns for each in ending.entries)
        made = story(ending, None, last, DEFAULT_VERSION)
        runs[name] = {**run, "story": {each: languages.translate(made, each) for each in languages.LANGUAGES}}
    return {"kubernetesVersion": DEFAULT_VERSION, "runs": runs, "levels": [_level(each) for each in levels().values()]}


def play_level(level: Level, *, solved: bool) -> tuple[Document, Ending | None]:
    """Play a level as it is given, or solved."""
    manifest, grace = (level.solved, level.grace) if solved else (level.manifest, None)
    return play(experiment_of(level, manifest, grace))


def _level(level: Level) -> Document:
    """With both of its runs, for a page without a cluster."""
    runs = {name: _run_of(level, solved=name == "solved") for name in ("given", "solved")}
    return {**level_document(level), "runs": runs}


def _run_of(level: Level, *, solved: bool) -> Document:
    """With its story in each language."""
    run, ending = play_level(level, solved=solved)
    assert ending is not None, f"{level.id}: {run['error'][languages.ENGLISH]}"
    last = max(each.record.at_ns for each in ending.entries)
    made = story(ending, None, last, DEFAULT_VERSION)
    return {**run, "story": {each: languages.translate(made, each) for each in languages.LANGUAGES}}


def recorded() -> Document:
    """Map each level to how it ends as it is given, for a machine that has not what it needs."""
    return {each.id: _run_of(each, solved=False) for each in levels().values() if each.needs}


def rules() -> dict[str, dict[str, str]]:
    """Map `file:function` to what it says in each language, for the rules of the lesson's steps."""
    steps = orjson.loads(LESSON.read_bytes())["steps"]
    named = {step["rule"] for step in steps}
    return {
        key: {each: str(languages.translate(explain(key), each)) for each in languages.LANGUAGES}
        for key in SAYS
        if any(each.endswith(f"/{key}") or each == key for each in named)
    }


def texts() -> dict[Path, str]:
    """Return what the page gets from here."""
    made = {VERSIONS_FILE: versions(), RULES_FILE: rules()}
    texts = {path: orjson.dumps(data, option=orjson.OPT_INDENT_2).decode() + "\n" for path, data in made.items()}
    return {**texts, RECORDED_FILE: orjson.dumps(recorded()).decode() + "\n"}


if __name__ == "__main__":
    made = texts()
    old = [path for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:] and old:
        names = ", ".join(path.name for path in old)
        raise SystemExit(f"out of date: {names}; fix: python tools/make_tour.py, then make ui")
    for path in old:
        path.write_text(made[path], "utf-8")
