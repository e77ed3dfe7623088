"""`lastcall up --state DIR`: objects, credentials and addresses outlive `down`, and a version is not misread."""

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import pod
from staying import Followed, Place, whole_tree
from waiting import eventually

pytestmark = [pytest.mark.real_kernel, needs_kubectl]


class KeptPlace(Place):
    """A place with a state directory and a copy of the first kubeconfig."""

    @property
    def state(self) -> Path:
        return self.home / "state/kept"

    @property
    def copy(self) -> str:
        return str(self.home / "tmp/copy")

    def up_kept(self, *arguments: str) -> dict:
        self.kept = [str(self.state), self.copy]
        facts = self.up("--state", str(self.state), *arguments)
        if not os.path.exists(self.copy):
            shutil.copy(facts["kubeconfig"], self.copy)
        return facts

    def restarts(self, name: str) -> int:
        status = json.loads(self.kubectl(self.copy, "get", "pod", name, "-o", "json"))["status"]
        (container,) = status.get("containerStatuses") or [{"ready": False, "restartCount": -1}]
        return container["restartCount"] if container["ready"] else -1


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest) -> Iterator[KeptPlace]:
    with KeptPlace(request.param) as made:
        yield made


@pytest.fixture
def own() -> Iterator[KeptPlace]:
    with KeptPlace(ordinary_user.USERS[-1]) as made:
        yield made


def fill(place: KeptPlace) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod("web")]})
    place.kubectl(place.copy, "create", "--validate=false", "-f", "-", stdin=text)
    place.kubectl(place.copy, "create", "configmap", "settings", "--from-literal=colour=green")
    place.kubectl(place.copy, "wait", "--for=condition=Ready", "--timeout=60s", "pod/web")


def check_filled(place: KeptPlace, restarts: int) -> None:
    assert place.kubectl(place.copy, "get", "cm", "settings", "-o", "jsonpath={.data.colour}") == "green"
    eventually(lambda: place.restarts("web") == restarts, f"the Pod runs again, restarted {restarts} times")


@pytest.mark.parametrize("end", ["down", "kill -9"])
def test_objects_pods_port_and_credentials_are_there_again(place: KeptPlace, end: str) -> None:
    first = place.up_kept()
    fill(place)
    uid = place.kubectl(place.copy, "get", "pod", "web", "-o", "jsonpath={.metadata.uid}")
    assert place.status()["state"] == str(place.state)
    if end == "down":
        place.ok("down")
        assert not list((place.home / "state").glob("lastcall*")), "only the state directory is left"
    else:
        os.kill(first["pid"], signal.SIGKILL)
    second = place.up_kept("--name", "other")
    assert second["server"] == first["server"]
    check_filled(place, 1)
    assert place.kubectl(place.copy, "get", "pod", "web", "-o", "jsonpath={.metadata.uid}") == uid
    terminated = place.kubectl(
        place.copy, "get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].lastState.terminated.reason}"
    )
    assert terminated in ("Unknown", "Error"), "as after a reboot of the node: nobody saw how it ended"
    for path in (place.state, *place.state.rglob("*")):
        assert path.lstat().st_mode & 0o077 == 0, f"{path} is private"
    place.kubectl(place.copy, "delete", "pod", "web")


def test_a_port_that_is_taken_is_said_and_the_new_kubeconfig_works(own: KeptPlace) -> None:
    port = int(own.up_kept()["server"].rsplit(":", 1)[1])
    own.ok("down")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        result = own.run("up", "--detach", "--state", str(own.state))
    assert (
        result.status == 0 and f"port {port} is in use: the API server now listens at https://127.0.0.1:" in result.err
    )
    status = own.status()
    own.watch(status["pid"])
    assert f":{port}" not in status["server"]
    assert "node-1" in own.kubectl(status["kubeconfig"], "get", "nodes")
    own.ok("down")
    assert own.up_kept()["server"] == status["server"], "the new one is kept from now on"


def test_two_clusters_on_one_state_directory_are_refused(own: KeptPlace) -> None:
    own.up_kept()
    result = own.run("up", "--detach", "--name", "two", "--state", str(own.state))
    assert result.status == 2 and f"{own.state} is in use by another cluster" in result.err
    assert own.status()["phase"] == "running"
    assert not (own.home / "state/lastcall/two").exists()


def test_a_relative_directory_is_of_the_directory_the_command_was_started_in(own: KeptPlace) -> None:
    own.kept = [str(own.state)]
    with own.start("up", "--detach", "--state", "kept", cwd=own.home / "state") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    own.watch(own.status()["pid"])
    assert own.status()["state"] == str(own.state)


def test_a_newer_state_is_refused_and_left_as_it_is(own: KeptPlace) -> None:
    own.up_kept()
    own.ok("down")
    version = own.state / "version.json"
    old = version.read_text()
    version.write_text(json.dumps({**json.loads(old), "version": 7, "lastcall": "7.0.0"}))
    for arguments in (["--detach"], []):
        result = own.run("up", *arguments, "--state", str(own.state))
        assert result.status == 2, result.err
        for words in (str(version), "version 7, written by lastcall 7.0.0", "use the newer lastcall"):
            assert words in result.err
    assert json.loads(version.read_text())["version"] == 7
    version.write_text(old)
    own.up_kept()


def test_a_newer_store_is_refused_with_the_store_s_own_words(own: KeptPlace) -> None:
    import sqlite3

    own.up_kept()
    own.ok("down")
    database = sqlite3.connect(own.state / "durable/store.sqlite")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    database.execute(f"PRAGMA user_version = {version + 100}")
    database.commit()
    database.close()
    if own.user == "ordinary user":
        for path in (own.state / "durable").glob("store.sqlite*"):
            os.chown(path, ordinary_user.UID, ordinary_user.UID)
    result = own.run("up", "--detach", "--state", str(own.state))
    assert result.status == 1 and "store.sqlite" in result.err and str(version + 100) in result.err, result.err


@pytest.mark.parametrize(("directory", "words"), [
    ("/proc/nowhere/state", "No such file or directory"), ("/dev/null", "Not a directory"),
    ("/proc/1", "belongs to uid 0|Permission denied|is not empty|Operation not permitted|No such process"),
])  # fmt: skip
def test_a_directory_that_cannot_be_is_refused_with_the_way_out(own: KeptPlace, directory: str, words: str) -> None:
    result = own.run("up", "--detach", "--state", directory)
    assert result.status == 2 and any(word in result.err for word in words.split("|")), result.err
    assert "(--state)" in result.err or "name a directory" in result.err


@pytest.mark.skipif(ordinary_user.USERS != ["root", "ordinary user"], reason="needs root and an ordinary user")
def test_a_directory_of_root_is_refused_to_others() -> None:
    with KeptPlace("ordinary user") as place:
        place.state.mkdir(mode=0o755)
        result = place.run("up", "--detach", "--state", str(place.state))
        assert result.status == 2 and "belongs to uid 0 and this is uid 65534" in result.err
        place.state.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")
def test_a_full_disk_is_said_and_nothing_is_left_behind() -> None:
    fill_it = (
        'mount -t tmpfs -o size=64k,mode=777 full "$0" && head -c 1000000 /dev/zero > "$0/x" 2>/dev/null; exec "$@"'
    )
    with KeptPlace("root") as place:
        place.state.mkdir()
        (place.home / "full").mkdir()
        place.prefix = ["unshare", "--mount", "sh", "-c", fill_it, str(place.home / "full")]
        place.kept = [str(place.state), str(place.home / "full")]
        result = place.run("up", "--detach", "--state", f"{place.home}/full/state")
        assert result.status == 1 and "No space left on device" in result.err, result.err
        place.environment["XDG_STATE_HOME"] = f"{place.home}/full"
        result = place.run("up", "--detach")
        assert result.status == 1 and "No space left on device" in result.err, result.err
        place.prefix = []
        place.environment.pop("XDG_STATE_HOME")


def test_containers_of_a_killed_front_s_cluster_are_gone_before_the_state_is_used_again(own: KeptPlace) -> None:
    facts = own.up_kept()
    fill(own)
    for restarts in (1, 2):
        old = Followed(whole_tree(facts["pid"]))
        assert len(old.alive()) > 5
        os.kill(facts["pid"], signal.SIGKILL)
        facts = own.up_kept()
        assert not old.alive()
        old.close()
        check_filled(own, restarts)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")
def test_a_cluster_starts_on_a_state_whose_disk_others_have_filled_and_objects_can_be_deleted() -> None:
    with KeptPlace("root") as place:
        place.state.mkdir()
        small = place.home / "small"
        small.mkdir()
        place.kept = [str(place.state), str(small)]
        mounting = f"mount -t tmpfs -o size=48m small {small} && echo mounted && exec sleep 600"
        with subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", mounting], stdout=subprocess.PIPE, text=True
        ) as holder:
            try:
                assert holder.stdout is not None
                assert holder.stdout.readline() == "mounted\n"
                place.prefix = ["nsenter", "--mount", "--target", str(holder.pid)]
                config = place.up("--state", f"{small}/state")["kubeconfig"]
                for name in ("one", "two"):
                    place.kubectl(config, "create", "configmap", name)
                place.ok("down")
                for name in ("one", "two"):
                    fill = f"cat /dev/zero >> {small}/others 2>/dev/null; df --output=avail {small} | tail -1"
                    filled = subprocess.run(
                        [*place.prefix, "sh", "-c", fill], capture_output=True, text=True, check=False
                    )
                    assert filled.stdout.strip() == "0"
                    config = place.up("--state", f"{small}/state")["kubeconfig"]
                    place.kubectl(config, "delete", "configmap", name)
                    place.ok("down")
                subprocess.run([*place.prefix, "mount", "-o", "remount,ro", str(small)], check=True)
                refused = place.run("up", "--detach", "--state", f"{small}/state")
                assert refused.status == 1
                assert f"{small}/state/lock: Read-only file system" in refused.err, refused.err
            finally:
                place.prefix = []
                holder.kill()
