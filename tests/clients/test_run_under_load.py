"""`lastcall run --load` on the real kernel: which requests are lost when the Pods of an application end for good."""

import json
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
import yaml
from published_schema import documented
from staying import Place

pytestmark = pytest.mark.real_kernel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "rollout"


def run(place: Place, manifest: Path, *options: str) -> tuple[int, dict[str, Any]]:
    result = place.run("run", str(manifest), "--load", "fresh=20,slow=20", *options, "-o", "json", timeout=240)
    assert result.out, result.err
    document = json.loads(result.out)
    documented(document)
    return result.status, document


@pytest.mark.core
def test_a_pod_that_leaves_at_once_loses_what_is_under_way_and_the_run_says_why() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        manifest = place.home / "pod.yaml"
        manifest.write_text(yaml.safe_dump_all(alone(each) for each in documents("naive")))
        status, document = run(place, manifest)
        manifest.unlink()
    found = document["requests"]
    assert (status, document["exitStatus"], found["verdict"]) == (3, 3, "requests lost")
    assert found["workload"] == "Pod naive" and found["control"]["lost"] == 0
    # About a second of slow requests is under way; what comes when no Pod is ready any more does not count.
    assert found["byCause"].get("cut off", 0) >= 5 and found["byCause"].get("no endpoint", 0) == 0
    assert found["lost"] == len(found["lostRequests"]) <= found["total"] < 100
    assert all("template" not in each["patch"].get("spec", {}) for each in found["advice"])
    (pod,) = document["pods"]
    assert pod["outcome"] == "graceful" and not any("lc-" in line["text"] for line in pod["output"])


@pytest.mark.core
def test_pods_that_answer_what_is_under_way_lose_nothing() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        status, document = run(place, EXAMPLES / "polite.yaml")
    found = document["requests"]
    assert (status, found["verdict"], found["lost"]) == (0, "nothing lost", 0), found["sentence"]
    assert found["total"] >= 10 and found["disrupt"] == "delete" and len(document["pods"]) == 3


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()))


def alone(obj: dict[str, Any]) -> dict[str, Any]:
    """A Deployment as one Pod; anything else as it is."""
    if obj["kind"] != "Deployment":
        return obj
    template = obj["spec"]["template"]
    meta = {"name": obj["metadata"]["name"], "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
