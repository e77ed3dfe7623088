"""No false alarm: what lastcall says of the manifests in tests/clean, which were written before its rules saw them.

`lint` reads all of them in tests/unit/lint. On the real kernel a few are tried at a time, others with every commit (its
hash chooses); `LASTCALL_CLEAN=all` tries all.
"""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_server import CONTROLLER, running_server, stand_in_controllers
from kubectls import needs_kubectl
from staying import Place

from lastcall.kube.api.meta import Object
from lastcall.kube.cri.sandbox.images import HOST_SUBSTITUTES
from lastcall.kube.cri.sandbox.images.reference import parse_reference
from lastcall.world.tasks import Tasks

CLEAN = Path(__file__).resolve().parents[1] / "clean"
EVERY = sorted(str(path.relative_to(CLEAN)) for path in CLEAN.rglob("*.yaml"))
AT_A_TIME = 3
"""Of each command's manifests; about half a minute each."""

RUN: dict[str, tuple[str, ...]] = {
    "charts/dashboards.yaml": (),
    "charts/shop.yaml": (),
    "charts/webapp.yaml": (),
    "jobs/etl-with-proxy.yaml": (),
    "jobs/report.yaml": (),
    "jobs/shards.yaml": (),
    "jobs/train.yaml": (),
    "jvm/slow-starter.yaml": (),
    "nodes/log-agent.yaml": (),
    "nodes/node-local-proxy.yaml": (),
    "stateful/cache-with-exporter.yaml": (),
    "stateful/notes-store.yaml": (),
    "stateful/ring.yaml": (),
    "web/accounts-api.yaml": (),
    "web/behind-proxy.yaml": (),
    "web/drain-endpoint.yaml": (),
    "web/listed.yaml": (),
    "web/static-site.yaml": (),
    "web/storefront.yaml": (),
    "web/two-ports.yaml": (),
    "web/with-log-sidecar.yaml": (),
    "workers/chat-bot.yaml": (),
    "workers/queue-worker.yaml": (),
    "workers/shell-loop.yaml": (),
    "workers/toolbox.yaml": (),
}
"""Manifest → what `run` is told besides: all whose images this machine can stand in for."""

ROLLOUT: dict[str, tuple[str, ...]] = {
    "charts/webapp.yaml": (),
    "jvm/slow-starter.yaml": (),
    "nodes/node-local-proxy.yaml": (),
    "stateful/notes-store.yaml": ("--service", "notes-store"),
    "web/accounts-api.yaml": (),
    "web/behind-proxy.yaml": (),
    "web/drain-endpoint.yaml": (),
    "web/listed.yaml": (),
    "web/static-site.yaml": (),
    "web/storefront.yaml": (),
    "web/two-ports.yaml": ("--port", "http"),
    "web/with-log-sidecar.yaml": (),
}
"""Those of them that promise an update without a lost request, and have one workload: rollout takes no more."""

SHORT = ("--load", "fresh=40,keep-alive=15", "--propagation", "1s", "--control", "1s", "--settle", "1s")
TRUE_OF_THE_MACHINE = {"imageSubstituted"}
"""Findings that say how the manifest was run, not what is wrong with it."""


def test_there_are_fifty_each_with_a_comment_that_says_what_it_is() -> None:
    assert len(EVERY) == 50
    for name in EVERY:
        assert (CLEAN / name).read_text().startswith("# "), name


def images(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["image"]} if isinstance(value.get("image"), str) else set()
        return own.union(*map(images, value.values()))
    return set().union(*map(images, value)) if isinstance(value, list) else set()


def test_whatever_runs_without_a_registry_is_run() -> None:
    offline = set()
    for name in EVERY:
        documents = [each for each in yaml.safe_load_all((CLEAN / name).read_text()) if each]
        stand_in = {parse_reference(image).familiar in HOST_SUBSTITUTES for image in images(documents)}
        if stand_in == {True} and not any(each["kind"] == "CronJob" for each in documents):  # which starts nothing
            offline.add(name)
    assert offline == set(RUN) and len(offline) >= 20
    assert set(ROLLOUT) <= offline


@needs_kubectl
async def test_every_clean_manifest_passes_a_strict_dry_run_without_a_warning(tmp_path: Path) -> None:
    async with running_server() as running, Tasks() as tasks:
        tasks.spawn(stand_in_controllers(running.server.client(CONTROLLER), b"ca"), name="controllers")
        (tmp_path / "config").write_text(running.kubeconfig)
        environment = {**os.environ, "KUBECONFIG": str(tmp_path / "config"), "HOME": str(tmp_path)}

        async def kubectl(*arguments: str) -> tuple[int | None, list[str]]:
            pipes = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.PIPE}
            process = await asyncio.create_subprocess_exec("kubectl", *arguments, env=environment, **pipes)
            async with asyncio.timeout(120):
                _, err = await process.communicate()
            return process.returncode, err.decode().splitlines()

        namespace = await kubectl("create", "--save-config", "namespace", "payments")  # web/payments.yaml has it, too
        assert namespace == (0, [])
        assert await kubectl("apply", "--dry-run=server", "--validate=strict", "-R", "-f", str(CLEAN)) == (0, [])
        tasks.cancel()


def chosen(table: dict[str, tuple[str, ...]]) -> list[Any]:
    """`AT_A_TIME` in a row, from where the commit's hash says; all with LASTCALL_CLEAN=all."""
    names = sorted(table)
    if os.environ.get("LASTCALL_CLEAN") != "all":
        command = ["git", "-C", str(CLEAN), "rev-parse", "HEAD"]
        commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        begin = int(commit[:8] or "0", 16)
        names = [names[(begin + number) % len(names)] for number in range(AT_A_TIME)]
    return [pytest.param(name, table[name], id=name) for name in names]


def told_by(verb: str, *arguments: str) -> Object:
    """The document of a command that has nothing to complain about, or of the machine alone."""
    for tries_left in (2, 1, 0):
        with Place() as place:
            result = place.run(verb, *arguments, "-o", "json", timeout=400)
        if result.status == 0 or not tries_left or not blames_the_machine(result.out):
            break
    assert result.status == 0, (result.out[-3000:], result.err)
    document: Object = json.loads(result.out)
    return document


def blames_the_machine(said: str) -> bool:
    """Readiness probes failed under load on Pods that nothing ended: "try again" is the advice, and it is taken."""
    experiments = json.loads(said or "{}").get("experiments") or [{}]
    only = set(experiments[0].get("byCause") or ()) == {"no endpoint"}
    return only and "this machine was too busy" in experiments[0]["sentence"]


@pytest.mark.proof
@pytest.mark.real_kernel
@pytest.mark.parametrize(("name", "options"), chosen(RUN))
def test_run_has_no_complaint(name: str, options: tuple[str, ...]) -> None:
    document = told_by("run", str(CLEAN / name), *options)
    assert document["pods"]
    for pod in document["pods"]:
        alarms = [
            each for each in pod["findings"] if each["severity"] != "info" and each["id"] not in TRUE_OF_THE_MACHINE
        ]
        assert (pod["outcome"], alarms) == ("graceful", []), pod["name"]


@pytest.mark.proof
@pytest.mark.real_kernel
@pytest.mark.parametrize(("name", "options"), chosen(ROLLOUT))
def test_rollout_has_no_complaint(name: str, options: tuple[str, ...]) -> None:
    document = told_by("rollout", str(CLEAN / name), *SHORT, *options)
    (found,) = document["experiments"]
    assert (found["verdict"], found["lost"], found["control"]["lost"]) == ("nothing lost", 0, 0)
    assert not found["advice"] and found["control"]["total"] > 0
