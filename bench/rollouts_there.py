"""`python -m bench rollouts --context NAME`: the same on an existing cluster, beside what the embedded one says.

Each example is applied in a namespace of its own, which is deleted at the end, and rolled out so many times by the real
command, with requests from a Pod. Before the first run and after each one the whole API is listed (what is in the
namespaces of others is left out, for they may work meanwhile): it has to be equal. Then the embedded cluster runs the
same manifest once; the verdicts have to agree.
"""

import argparse
import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from api_snapshot import difference, whole_api

from bench.figures import machine
from bench.rollout_table import CONTROL, EXAMPLES, HEADER, LAG, Variant, row
from bench.rollout_table import run as run_embedded
from lastcall.kube.api.resources import DEPLOYMENTS, NAMESPACES, PODS, SERVED, Resource
from lastcall.kube.client.api import Client
from lastcall.kube.client.kubeconfig import client_for, load_kubeconfig
from lastcall.manifests.yaml_documents import read_documents

MANIFESTS = ("naive", "polite")
"""What the proof takes: one that loses requests, and one that does not."""
READY_SECONDS = 120.0


@dataclass(frozen=True)
class There:
    """`image` is that of the Pod that sends; the applications run in it, too, if `python` names no other."""

    context: str
    kubeconfig: str
    image: str
    python: str

    @property
    def options(self) -> list[str]:
        given = ["--context", self.context, f"--yes={self.context}", "--image", self.image]
        return [*given, "--kubeconfig", self.kubeconfig] if self.kubeconfig else given


def rollouts_there(there: There, variants: Sequence[Variant], runs: int, seconds: float, raw: Path | None) -> bool:
    """Print the table. Answers whether verdicts agree, nothing is left, and every request has an outcome."""
    print(f"{machine()}; context {there.context}, load of the machine at the begin {os.getloadavg()[0]:.1f}\n")
    print(HEADER, flush=True)
    lines: list[str] = []
    once = {each.manifest: each for each in reversed(variants)}
    for manifest in MANIFESTS:
        if manifest in once:
            plain = tuple(each for each in once[manifest].arguments if each != "--apply-advice")
            lines += asyncio.run(_variant(there, replace(once[manifest], arguments=plain), runs, seconds, raw))
    for line in lines:
        print(line)
    return not any(line.startswith("WRONG") for line in lines)


async def _variant(there: There, variant: Variant, runs: int, seconds: float, raw: Path | None) -> list[str]:
    namespace = f"bench-{variant.manifest}-{secrets.token_hex(3)}"
    config = load_kubeconfig(there.kubeconfig)
    client = client_for(config)
    found: list[dict[str, Any]] = []
    lines: list[str] = []
    try:
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        await _apply(client, namespace, variant, there.python or there.image)
        await _settled(client, namespace, variant.manifest)
        before = await _api(client, namespace)
        for number in range(runs):
            found.append(each := await asyncio.to_thread(_run, there, variant, namespace, seconds))
            await _settled(client, namespace, variant.manifest)
            if left := difference(before, await _api(client, namespace)):
                lines.append(f"WRONG: {variant.name}, run {number + 1} left: {'; '.join(left)}")
            if raw is not None:
                with raw.open("a") as file:
                    file.write(json.dumps(each) + "\n")
    finally:
        await client.delete(NAMESPACES, namespace)
        await client.close()
    experiments = [each["experiments"][0] for each in found if each["experiments"]]
    statuses = Counter(each["status"] for each in found)
    print(row(variant.name, experiments, statuses, len(found)), flush=True)
    embedded = await asyncio.to_thread(run_embedded, variant, seconds)
    first = [each["verdict"] for each in embedded["experiments"][:1]]
    print(row(f"{variant.name}, embedded", embedded["experiments"][:1], None, 1), flush=True)
    verdicts = {each["verdict"] for each in experiments}
    loads = sorted(each["load"] for each in found)
    lines.append(f"{variant.name}: the machine's load was {loads[0]:g} to {loads[-1]:g}" if loads else "no run")
    if len(experiments) < runs or verdicts != set(first):
        lines.append(f"WRONG: {variant.name}: {len(experiments)} results, {verdicts} there, {first} embedded")
    books = sum(len(each[key]) for each in experiments for key in ("withoutOutcome", "unaccounted"))
    lines += [f"WRONG: {variant.name}: {books} requests are unaccounted"] if books else []
    lines += [f"WRONG: {variant.name}: {each['stderr']}" for each in found if each["status"] not in (0, 3)]
    return lines


def _run(there: There, variant: Variant, namespace: str, seconds: float) -> dict[str, Any]:
    settle = max(1.0, seconds - variant.took)
    load = variant.arguments[len(LAG) :]  # the lag there is the cluster's own
    command = [
        *(sys.executable, "-m", "lastcall.cli.main", "rollout", f"deployment/{variant.manifest}", "-n", namespace),
        *(*there.options, "-o", "json", "--timeout", "300s", "--control", f"{CONTROL}s", "--settle", f"{settle:g}s"),
        *load,
    ]
    began = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900 + 4 * seconds)
    document = json.loads(done.stdout) if done.stdout.startswith("{") else {"experiments": []}
    return {
        "variant": f"{variant.name}, context {there.context}",
        "status": done.returncode,
        "stderr": done.stderr,
        "took": round(time.monotonic() - began, 1),
        "load": round(os.getloadavg()[0], 1),
        "experiments": document["experiments"],
    }


async def _apply(client: Client, namespace: str, variant: Variant, python: str) -> None:
    text = (EXAMPLES / f"{variant.manifest}.yaml").read_text()
    text = re.sub(r"image: python:\S+", f"image: {python}", text)
    for each in read_documents(text):
        await client.create(_resource(each.value), each.value, namespace)


def _resource(obj: dict[str, Any]) -> Resource:
    return next(each for each in SERVED if (each.kind, each.api_version) == (obj["kind"], obj["apiVersion"]))


async def _settled(client: Client, namespace: str, name: str) -> None:
    """Until all Pods are of the newest template and available, and no other is left."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        owner = await client.get(DEPLOYMENTS, name, namespace)
        wanted, status = owner["spec"]["replicas"], owner.get("status") or {}
        counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
        seen = status.get("observedGeneration", 0) >= owner["metadata"]["generation"]
        if seen and counts == [wanted] * 3 and len((await client.list(PODS, namespace)).items) == wanted:
            return
        await asyncio.sleep(0.5)
    raise SystemExit(f"Deployment {name} in {namespace} is not settled after {READY_SECONDS:g} s")


async def _api(client: Client, namespace: str) -> Counter[str]:
    """Without what is in other namespaces, and those themselves."""
    found = await whole_api(client)
    ours = re.compile(rf"Namespace /{namespace} |(?!Namespace )\S+ (?:{namespace})?/")
    return Counter({line: count for line, count in found.items() if ours.match(line)})


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--context", default="", help="on this cluster, in place of embedded ones")
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--image", default="localhost/lastcall-agent:0.1.0", help="of the Pod that sends")
    parser.add_argument("--python", default="", help="image of the applications, that of --image by default")
