"""A whole cluster on the real kernel in a process of its own, for as long as a block runs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

COMPARED = "1.36"
"""The version of what is compared with a real Kubernetes 1.36.2: there is no newer one to ask."""

_KEEP = """
import asyncio, json, sys
from lastcall.kube.cluster.embedded import start
from lastcall.kube.cluster.options import ClusterOptions
cluster = start(ClusterOptions(feature_gates=json.loads(sys.argv[1]), kubernetes_version=sys.argv[2]))
async def main():
    await cluster.connect()
    await cluster.wait_node_ready()
    print(cluster.kubeconfig_path(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await cluster.client.close()
try:
    asyncio.run(main())
finally:
    cluster.stop()
"""

_QUICK = """
#include <signal.h>
#include <unistd.h>
static void term(int number) { _exit(0); }
static struct sigaction action;
int main(void) { action.sa_handler = term; sigaction(SIGTERM, &action, 0); for (;;) pause(); }
"""


def make_images(root: Path) -> None:
    """busybox:1.36, busybox:1.36-b and quick:1 in the store of `root`."""
    from lastcall.kube.cri.sandbox.images import ImageStore, build_image, host_image
    from lastcall.kube.cri.sandbox.spec import ImageConfig

    store = ImageStore(root / "lastcall" / "images", unpacked=root / "unpacked")
    for name in ("busybox:1.36", "busybox:1.36-b"):
        store.add(name, host_image())
    source, program = root / "quick.c", root / "quick"
    source.write_text(_QUICK)
    subprocess.run(["gcc", "-static", "-O1", "-o", str(program), str(source)], check=True, timeout=60)
    build_image(store, "quick:1", {"/quick": (str(program), 0o755)}, ImageConfig(entrypoint=("/quick",)))


@contextmanager
def kept_cluster(
    data_home: Path, feature_gates: Mapping[str, bool] | None = None, version: str = COMPARED
) -> Iterator[str]:
    """Yields the path of the admin's kubeconfig. The images of `data_home` are those of the cluster."""
    cluster = subprocess.Popen(
        [sys.executable, "-c", _KEEP, json.dumps(dict(feature_gates or {})), version],
        env={**os.environ, "XDG_DATA_HOME": str(data_home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert cluster.stdin is not None and cluster.stdout is not None
    try:
        kubeconfig = cluster.stdout.readline().strip()
        assert kubeconfig, "the cluster did not start"
        yield kubeconfig
    finally:
        cluster.stdin.close()
        try:
            cluster.wait(timeout=60)
        except subprocess.TimeoutExpired:
            cluster.kill()
            raise
