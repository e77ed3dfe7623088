"""examples/pytest-app as its README shows it, and the fixtures for other packages' clients."""

import shutil
from pathlib import Path

import ordinary_user
import pytest
from plugin_pytest import IN_HOME, QUIET, pytest_of
from run_command import Lastcall

pytestmark = pytest.mark.real_kernel

EXAMPLE = Path(__file__).parents[3] / "examples" / "pytest-app"
TESTS = 8

CLIENTS = """
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
       "spec": {"terminationGracePeriodSeconds": 1,
                "containers": [{"name": "app", "image": "busybox", "command": ["sleep", "600"]}]}}

def test_kubernetes(lastcall_namespace, lastcall_kubernetes):
    from kubernetes import client
    core = client.CoreV1Api(lastcall_kubernetes)
    core.create_namespaced_pod(lastcall_namespace.namespace, POD)
    lastcall_namespace.wait_ready("web")
    assert core.read_namespaced_pod("web", lastcall_namespace.namespace).status.phase == "Running"

def test_kr8s(lastcall_namespace, lastcall_kr8s):
    from kr8s.objects import Pod
    pod = Pod(POD, api=lastcall_kr8s)
    pod.create()
    pod.wait("condition=Ready", timeout=60)
    assert pod.exec(["echo", "hello"]).stdout == b"hello\\n"
    pod.delete()

def test_lightkube(lastcall_namespace, lastcall_lightkube):
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap
    lastcall_lightkube.create(ConfigMap(metadata=ObjectMeta(name="one"), data={"a": "b"}))
    assert lastcall_namespace.get("configmap/one")["data"] == {"a": "b"}
"""

EVENT_LOOP = """
import lastcall
import pytest

@pytest.mark.asyncio
async def test_in_an_event_loop(lastcall_cluster):
    async with lastcall.AsyncCluster.attach(lastcall_cluster.name) as cluster:
        assert len(await cluster.list("nodes")) == 1
"""


@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_the_sample_applications_tests_pass_with_four_workers(user: str) -> None:
    def prepare(home: Path) -> None:
        shutil.copytree(EXAMPLE, home / "home", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))

    with Lastcall([*QUIET, "-n", "4"], program=("-c", IN_HOME), user=user, prepare_home=prepare) as command:
        result = command.finish(540)
    assert result.status == 0 and f"{TESTS} passed" in result.out, result.out + result.err


def test_clients_of_other_packages_have_a_fixture_each() -> None:
    with pytest_of(CLIENTS) as command:
        result = command.finish(240)
    assert result.status == 0 and "3 passed" in result.out, result.out + result.err


def test_a_test_in_an_event_loop_attaches_to_the_cluster() -> None:
    quiet = [word for word in QUIET if word != "no:asyncio"]
    assert quiet[-1] == "-p"
    with pytest_of(EVENT_LOOP, options=quiet[:-1]) as command:
        result = command.finish(240)
    assert result.status == 0 and "1 passed" in result.out, result.out + result.err
