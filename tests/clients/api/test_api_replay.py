"""Recorded requests and kubectl invocations of a real Kubernetes 1.36.2, replayed against a whole cluster.

Every difference stands in a table with its reason (`api_differences.yaml`, shown in docs/fidelity.md): what is not in
the table fails, and so does an entry of the table that agrees meanwhile.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import api_differences
import pytest
import yaml
from kept_cluster import kept_cluster, make_images
from kubectls import CURRENT, DEBIAN, find_kubectl
from recorded import SHARED

GOLDEN = SHARED / "golden-api"
HTTP = "http"

STAND_INS = {
    "apply-change": "apply -f web2.yaml",
    "apply-create": "apply -f web.yaml",
    "apply-server-side-force": "apply --server-side --force-conflicts -f web-ssa.yaml",
    "cr-apply-create": "apply -f -",
    "cr-patch-merge": """patch widget w1 --type=merge -p '{"spec":{"size":3}}'""",
    "delete-crd": "delete crd widgets.api-golden2.example.com",
    "cp-to-pod": "cp pods.yaml demo:copied.txt",
    "create-job-from-cronjob": "create job nightly-now --from=cronjob/nightly",
    "create-clusterrolebinding": "create clusterrolebinding api-crb --clusterrole=api-cr --user=bob",
    "create-priorityclass": "create priorityclass api-high --value=1000",
    "label": "label pod demo colour=red",
    "rollout-pause": "rollout pause deployment/web",
    "rollout-status": "rollout status deployment/web --timeout=30s",
    "rollout-status-progress": "rollout status deployment/web --timeout=60s",
    "scale": "scale deployment web --replicas=3",
    "set-image": "set image deployment/web quick=busybox:1.36",
}
STDIN = {
    "cr-apply-create": '{"apiVersion": "api-golden2.example.com/v1", "kind": "Widget", "metadata": {"name": "w1"}, '
    '"spec": {"colour": "red"}}',
}
"""Some recordings of the sequences are not at hand: those on which later ones build are played like this."""


def replay_tool(folder: Path) -> Path:
    """A copy of the program whose sequences name only recordings that are there."""
    tools = folder / "tools"
    tools.mkdir()
    for path in (SHARED / "tools").glob("api*"):
        shutil.copy(path, tools)
    prerequisites = tools / "api-prerequisites.yaml"
    content = yaml.safe_load(prerequisites.read_text())
    for title, plan in content["kubectl"].items():
        steps = []
        for step in plan:
            name = step.get("play", "")
            if not name or (GOLDEN / "kubectl" / f"{name}.json").exists():
                steps.append(step)
            elif command := STAND_INS.get(name := name.removesuffix(".v1.20")):
                steps.append({"kubectl": command} | ({"stdin": STDIN[name]} if name in STDIN else {}))
        content["kubectl"][title] = steps
    prerequisites.write_text(yaml.safe_dump(content, width=100_000))
    return tools / "api_replay.py"


@pytest.mark.real_kernel
@pytest.mark.timeout(600)
@pytest.mark.skipif(not GOLDEN.exists(), reason="the recordings are not beside the project")
@pytest.mark.parametrize("run", [HTTP, CURRENT, DEBIAN])
def test_the_api_answers_as_recorded_but_for_the_table_of_known_differences(run: str, tmp_path: Path) -> None:
    kubectl = [] if run == HTTP else ["--kubectl", find_kubectl(run)]
    make_images(tmp_path)
    report = tmp_path / "report.json"
    with kept_cluster(tmp_path) as kubeconfig:
        replay = subprocess.run(
            [sys.executable, str(replay_tool(tmp_path)), "--kubeconfig", kubeconfig, "--golden", str(GOLDEN), *kubectl,
             "-j", "6", "--json", str(report), HTTP if run == HTTP else "kubectl"],
            capture_output=True,
            text=True,
            timeout=570,
        )  # fmt: skip
    assert report.exists(), replay.stdout + replay.stderr
    result = json.loads(report.read_text())
    found = api_differences.judge(run, result, api_differences.rules())
    assert not found, "\n".join(found)
    agree = [
        each for each in result if not each["skipped"] and not any(d["level"] == "MUST" for d in each["differences"])
    ]
    assert len(agree) >= {HTTP: 45, CURRENT: 80, DEBIAN: 30}[run]


def test_the_page_shows_the_table() -> None:
    text = api_differences.PAGE.read_text()
    assert text == api_differences.written(text), "run: python tests/support/api_differences.py"
