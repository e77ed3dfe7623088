"""Recordings of a real Kubernetes 1.36.2, replayed with containerd as the runtime, of each version that is here.

All of them: also those that restart the kubelet, pull from a slow registry, or take the node for themselves.
"""

import io
import json
import os
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from engines.containerd import IMAGES, VERSIONS, Containerd
from engines.differences import is_known
from recorded import REPLAY, SHARED, is_late, replay, slow_registry

pytestmark = [
    pytest.mark.real_kernel,
    pytest.mark.timeout(5400),
    pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project"),
]

NAME = f"recorded-{os.getpid()}"
CONTROL = Path(__file__).resolve().parents[1] / "support" / "engines" / "node_control.py"
ALONE = ("delete-during-pull", "image-pull", "kubelet-", "preemption", "taint-")
"""How the names begin of those that need the node, or its pulls, for themselves."""
AT_ONCE, ATTEMPTS, LATE_ATTEMPTS = 3, 3, 5
"""Attempts, one by one, of what differs; of what differs in nothing but late Events."""


@dataclass(frozen=True)
class Cluster:
    containerd: Containerd
    kubeconfig: str
    init: int

    def differences(self, report: Path, jobs: int, names: list[str]) -> dict[str, list[str]]:
        """Scenario → what differs from the recording."""
        control = f"{sys.executable} {CONTROL} {self.init}"
        flags = ("-j", str(jobs), "--exclusive", "--have", "slow-registry", "--node-control", control)
        found = replay(self.kubeconfig, report, *flags, *names, inside=self.containerd.inside, seconds=3600)
        assert len(found["scenarios"]) == len(names) and not found["counts"]["skipped"], found["counts"]
        return {each["scenario"]: [*filter(None, [each["reason"]]), *each["must"]] for each in found["scenarios"]}


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Containerd(request.param) as containerd:
        image = "docker.io/library/busybox:1.36"
        containerd.ctr("-n", "k8s.io", "images", "tag", image, f"{image}-b")
        flags = ("--kubernetes-version", "1.36", "--container-runtime-endpoint", containerd.endpoint)
        done = containerd.lastcall("up", NAME, "--detach", "-o", "json", *flags, "--timeout", "200")
        assert done.returncode == 0, done.stderr
        try:
            (running,) = json.loads(containerd.lastcall("status", NAME, "-o", "json").stdout)["clusters"]
            init = next(each["pid"] for each in running["processes"] if each["role"] == "init")
            with slow_registry(quick(), f"/run/netns/{containerd.netns}", with_manifest=True):
                yield Cluster(containerd, json.loads(done.stdout)["kubeconfig"], init)
        finally:
            ended = containerd.lastcall("down", NAME)
        assert ended.returncode == 0, ended.stderr
        assert containerd.sandboxes() == []


def quick() -> bytes:
    """The program of the image quick:1."""
    with tarfile.open(IMAGES / "quick.tar") as image:
        layer = image.extractfile("layer.tar")
        assert layer is not None
        with tarfile.open(fileobj=io.BytesIO(layer.read())) as files:
            program = files.extractfile(files.getnames()[-1])
            assert program is not None
            return program.read()


@pytest.mark.parametrize("alone", [False, True], ids=["beside others", "alone"])
def test_recorded_lifecycles_are_as_on_a_real_kubernetes(
    cluster: Cluster, tmp_path: Path, record_property: Callable[[str, object], None], alone: bool
) -> None:
    """What differs is replayed once more, alone as it was recorded; what differs only in late Events more often."""
    names = sorted(path.parent.name for path in (SHARED / "golden").glob("*/summary.json"))
    names = [name for name in names if name.startswith(ALONE) is alone]
    found = cluster.differences(tmp_path / "report.json", 1 if alone else AT_ONCE, names)
    for attempt in range(LATE_ATTEMPTS):
        unknown = {name: [text for text in texts if not is_known(name, text)] for name, texts in found.items()}
        print(f"attempt {attempt}:", *(f"{name}: {text}" for name in found for text in found[name]), sep="\n")
        again = [name for name, texts in unknown.items() if texts and (attempt < ATTEMPTS or all(map(is_late, texts)))]
        if again:
            found |= cluster.differences(tmp_path / "report.json", 1, again)
    record_property("recordings", json.dumps(found))
    wrong = [f"{name}: {text}" for name, texts in found.items() for text in texts if not is_known(name, text)]
    assert not wrong, wrong
