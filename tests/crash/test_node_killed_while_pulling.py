"""SIGKILL of the node while an image comes: the next node goes on with the download, over the same way out."""
# ruff: noqa: ASYNC240 - a scenario has its process to itself

import os
import shutil
from pathlib import Path

import pytest
from oci_registry import Fault, Registry
from pods import container, pod
from staying_cluster import StayingCluster, staying

from lastcall.kube.cri.sandbox.images import default_root
from lastcall.kube.cri.sandbox.images.from_host import static_busybox

APP = "trap 'exit 0' TERM; echo up; while true; do sleep 0.02; done"


@staying
@pytest.mark.parametrize("times", [1, 3])
async def test_a_killed_node_goes_on_with_a_pull(cluster: StayingCluster, times: int) -> None:
    program = Path(str(static_busybox())).read_bytes()
    data = Path(os.environ["XDG_DATA_HOME"])
    assert data in default_root().parents, "what is pulled here goes when the test has ended"
    try:
        with Registry() as registry:
            registry.add("app:v1", {"bin/sh": program, "bin/sleep": program})
            layer = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
            steps = [100_000 * (number + 1) for number in range(times)]
            registry.faults += [Fault(layer, hang_at=100_000) for _ in steps]
            download = default_root() / "downloads" / layer[7:]
            await cluster.create(pod("p", container("app", APP, image=f"{registry.host}/app:v1"), grace=3))
            for size in steps:
                await cluster.until(lambda size=size: download.exists() and download.stat().st_size == size)
                await cluster.kill_and_wait("node-1")
            await cluster.ready()
            asked = [headers.get("Range") for _, _, headers in registry.asked(layer)]
            assert asked == [None, *(f"bytes={size}-" for size in steps)]
            assert cluster.container()["imageID"].startswith(f"{registry.host}/app@sha256:")
            await cluster.delete()
            await cluster.gone()
            await cluster.nothing_left()
    finally:
        shutil.rmtree(data, ignore_errors=True)
