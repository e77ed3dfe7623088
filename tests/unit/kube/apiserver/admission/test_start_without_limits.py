"""What no namespace has costs no import, but for two modules that cost 0.3 ms each."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.loopback

PROGRAM = """
import sys
from lastcall.kube.api.resources import CONFIGMAPS, NAMESPACES, PODS, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.controllers import manager
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.virtual import run_virtual

class Records:
    def record(self, *arguments, **more):
        return ""

async def main(world):
    server = APIServer(world=world, store=MemoryStore(), recorder=Records(), config=APIServerConfig())
    await server.bootstrap()
    client = server.client(UserInfo("admin", ("system:masters",)))
    await client.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
    pod = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "a", "image": "x"}]}}
    for _ in range(3):
        await client.create(PODS, pod, "default")
    await client.create(NAMESPACES, {"metadata": {"name": "n", "labels": {"a": "b"}}})

run_virtual(main)
print(*sorted(name for name in sys.modules if name.startswith("lastcall.") and any(
    word in name for word in ("quota", "pod_security.", "validators.limits")
)))
"""


def test_without_quotas_and_labels_their_rules_are_not_imported():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.split() == ["lastcall.kube.controllers.quota", "lastcall.kube.controllers.quota.first_use"]
