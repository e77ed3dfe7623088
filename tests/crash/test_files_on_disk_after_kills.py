"""SIGKILL of every process at once: the directory for what containers write goes with the next start, or the doctor."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import ordinary_user
import pytest
from kept_run import with_container
from run_command import Lastcall
from staying import Followed
from waiting import eventually

pytestmark = pytest.mark.real_kernel

WRITES = "mkdir -p /data/a/b; ln -s / /data/l; echo x >/tmp/x; echo x >/data/a/b/c; chmod 0 /data/a; sleep 100"


def victim(user: str) -> dict:
    """Its files belong to another user, where the cluster has more than one."""
    manifest = with_container("writes", WRITES)
    manifest["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    manifest["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    if user != "ordinary user":
        manifest["spec"]["securityContext"] = {"runAsUser": 1234}
    return manifest


@pytest.fixture
def data() -> Iterator[Path]:
    """XDG_DATA_HOME of both commands, for any user."""
    place = Path(tempfile.mkdtemp(prefix="lastcall-test-"))
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


@pytest.mark.parametrize("next_command", [["doctor"], ["run", "-", "--after", "0"]], ids=["doctor", "run"])
@pytest.mark.parametrize("user", ordinary_user.EVERY_USER)
def test_what_a_cluster_whose_every_process_was_killed_left_is_removed(
    user: str, next_command: list[str], data: Path
) -> None:
    ordinary_user.skip_without_newuidmap(user)
    environment: dict[str, str | None] = {"XDG_DATA_HOME": str(data)}
    arguments = ["run", "-", "--after", "300"]
    with Lastcall(arguments, manifests=[victim(user)], user=user, environment=environment) as command:
        tree = command.tree()
        command.wait_for("default/writes is Ready")
        if not (made := list(data.glob("lastcall/scratch/*"))):
            pytest.skip("no directory of this machine can hold files of containers")
        eventually(lambda: list((made[0] / "files").rglob("c")), "the Pod has written")
        init = Followed([tree.init])
        os.kill(command.pid, signal.SIGSTOP)  # else it removes what init left
        os.kill(tree.init, signal.SIGKILL)
        eventually(lambda: not init.alive(), "init ends")
        init.close()
        os.kill(command.pid, signal.SIGKILL)
        command.process.wait(60)
        assert made[0].is_dir()
    manifests = [with_container("next", "true")] if next_command[0] == "run" else None
    with Lastcall(next_command, manifests=manifests, user=user, environment=environment) as command:
        command.finish(60)
    assert list(data.iterdir()) == []


@pytest.mark.parametrize("user", ordinary_user.EVERY_USER)
def test_front_removes_what_a_killed_init_left(user: str, data: Path) -> None:
    ordinary_user.skip_without_newuidmap(user)
    environment: dict[str, str | None] = {"XDG_DATA_HOME": str(data)}
    arguments = ["run", "-", "--after", "300"]
    with Lastcall(arguments, manifests=[victim(user)], user=user, environment=environment) as command:
        tree = command.tree()
        command.wait_for("default/writes is Ready")
        os.kill(tree.init, signal.SIGKILL)
        command.finish(60)
    assert list(data.iterdir()) == []
