"""`lastcall up`, `down`, `status`, `kubeconfig` and `logs` as the real command, as every user there is."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import container, pod
from published_schema import documented
from staying import Followed, InTerminal, Place, signal_all, whole_tree
from tree import children, processes_in
from waiting import eventually

pytestmark = pytest.mark.real_kernel

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with Place(request.param) as made:
        yield made


@pytest.fixture
def own() -> Iterator[Place]:
    """Of the user that most people are."""
    with Place(ordinary_user.USERS[-1]) as made:
        yield made


def create(place: Place, kubeconfig: str, *manifests: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    place.kubectl(kubeconfig, "create", "--validate=false", "-f", "-", stdin=text)


def ready(place: Place, kubeconfig: str, *names: str) -> None:
    place.kubectl(kubeconfig, "wait", "--for=condition=Ready", "--timeout=60s", *(f"pod/{name}" for name in names))


def await_running(place: Place) -> None:
    """For an `up` in the foreground."""

    def runs() -> bool:
        found = json.loads(place.ok("status", "-o", "json"))["clusters"]
        return bool(found) and found[0]["phase"] == "running"

    eventually(runs, "the cluster runs")


# -- the way of a cluster ---------------------------------------------------------------------------------------------


@pytest.mark.core
@needs_kubectl
def test_up_status_kubectl_logs_down(place: Place) -> None:
    said = place.ok("up", "--detach")
    kubeconfig = place.ok("kubeconfig").strip()
    documented(json.loads(place.ok("status", "-o", "json")))
    status = place.status()
    place.watch(status["pid"])
    tree = Followed(whole_tree(status["pid"]))
    assert kubeconfig == f"{place.home}/state/lastcall/lastcall/kubeconfig"
    assert f"export KUBECONFIG={kubeconfig}\n" in said and status["server"] in said and "lastcall down ends" in said
    assert re.fullmatch(r"https://127\.0\.0\.1:\d+", status["server"])
    assert "node-1" in place.kubectl(kubeconfig, "get", "nodes", "--no-headers")
    create(place, kubeconfig, pod("web"))
    ready(place, kubeconfig, "web")

    status = place.status()
    assert status["phase"] == "running" and status["nodes"][0]["ready"] is True and status["detached"] is True
    assert status["pods"] == {"total": 1, "Running": 1} and status["state"] == ""
    assert [process["role"] for process in status["processes"]] == [
        "front", "init", "control-plane", "shim-1", "node-1",
    ]  # fmt: skip
    assert all(process["pid"] and process["pss"] > 1 << 20 for process in status["processes"])
    assert status["containers"]["processes"] >= 1 and status["pss"] > 50 << 20
    text = place.ok("status")
    assert "lastcall · running since" in text and "node-1      Ready" in text and "Pods        1 (1 Running)" in text

    assert place.ok("kubeconfig", "--print") == Path(kubeconfig).read_text()
    eventually(lambda: "node-1 is Ready" in place.ok("logs", "--role", "front"), "it is logged")
    assert re.search(r"^front +\| .*node-1 is Ready", place.ok("logs"), re.MULTILINE)

    assert place.ok("down") == "cluster lastcall is gone\n"
    assert not tree.alive(), "down returns when all is gone, not before"
    tree.close()
    assert list((place.home / "state").iterdir()) == []
    assert place.ok("down") == "no cluster named 'lastcall' is running\n"
    assert place.ok("down", "--all") == "no cluster is running\n"
    assert place.ok("status") == "no cluster is running: lastcall up starts one\n"


@pytest.mark.core
def test_everything_is_private_whatever_the_umask() -> None:
    for umask in ("000", "777"):
        with Place(ordinary_user.USERS[-1], inner_prefix=["sh", "-c", f'umask {umask}; exec "$@"', "sh"]) as place:
            place.up("--state", f"{place.home}/state/kept")
            place.kept.append(f"{place.home}/state/kept")
            modes = {
                str(path.relative_to(place.home / "state")): path.lstat().st_mode & 0o777
                for path in (place.home / "state").rglob("*")
                if "durable/" not in str(path)
            }
            directories = {"lastcall", "lastcall/lastcall", "kept", "kept/durable"}
            assert {name for name, mode in modes.items() if mode == 0o700} == directories, umask
            assert {mode for name, mode in modes.items() if name not in directories} == {0o600}, (umask, modes)


def test_names_that_are_none_and_clusters_that_are_not_there(own: Place) -> None:
    for command in (["up", "--name", "A b"], ["down", "../x"], ["status", "a/b"], ["logs", "-f", "ä"]):
        result = own.run(*command)
        assert result.status == 2 and "is not a valid cluster name" in result.err, command
    for command in (["status", "no"], ["kubeconfig", "no"], ["logs", "no"]):
        result = own.run(*command)
        assert result.status == 1 and "no cluster named 'no' is running; lastcall up starts one" in result.err, command
    result = own.run("down", "no", "--all")
    assert result.status == 2 and "'no' and --all" in result.err
    assert own.run("logs", "--role", "nobody").status == 2


def test_several_clusters_by_name_and_a_name_only_once(own: Place) -> None:
    first, second = own.up(), own.up("--name", "two", "--kubernetes-version", "1.27")
    assert first["server"] != second["server"] and first["kubeconfig"] != second["kubeconfig"]
    result = own.run("up", "--detach")
    assert result.status == 2
    for words in ("cluster 'lastcall' is already running", f"pid {first['pid']}", "lastcall down lastcall", "--name"):
        assert words in result.err
    assert "there is: lastcall, two" in own.run("kubeconfig", "three").err
    found = documented(json.loads(own.ok("status", "-o", "json-line")))["clusters"]
    assert [each["name"] for each in found] == ["lastcall", "two"]
    assert own.status("two")["kubernetesVersion"] == "1.27"
    own.ok("down", "two")
    assert own.status()["phase"] == "running"
    assert own.ok("down", "--all") == "cluster lastcall is gone\n"


def test_of_several_ups_at_once_one_gets_the_name(own: Place) -> None:
    starts = [own.start("up", "--detach") for _ in range(4)]
    said = [process.communicate(timeout=180) for process in starts]
    assert sorted(process.returncode for process in starts) == [0, 2, 2, 2], said
    own.watch(own.status()["pid"])


@needs_root
@pytest.mark.skipif(len(ordinary_user.USERS) < 2, reason="one user")
def test_two_users_do_not_meet() -> None:
    with Place("root") as theirs, Place("ordinary user") as mine:
        theirs.up()
        facts = mine.up()
        assert [c["pid"] for c in json.loads(mine.ok("status", "-o", "json"))["clusters"]] == [facts["pid"]]
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(f"{facts['directory']}/front.sock")  # root may, and is told
        answer = json.loads(sock.makefile().readline())
        assert answer == {"error": f"this cluster is of uid {ordinary_user.UID}, and you are uid 0"}
        sock.close()
        # One user's command in the other's directory.
        mine.environment["XDG_STATE_HOME"] = str(theirs.home / "state")
        assert "no cluster is running" in mine.ok("status")
        result = mine.run("up", "--detach")
        assert result.status == 1 and "set XDG_STATE_HOME" in result.err
        mine.environment.pop("XDG_STATE_HOME")
        assert theirs.ok("down", "--all") == "cluster lastcall is gone\n"
        assert mine.status()["phase"] == "running"


def test_without_a_home_the_directory_is_in_the_runtime_directory_or_in_tmp(own: Place) -> None:
    if own.user != "ordinary user":
        pytest.skip("this user has a home")
    own.environment |= {"HOME": None, "XDG_STATE_HOME": None, "XDG_RUNTIME_DIR": str(own.home / "run")}
    assert own.up()["kubeconfig"] == f"{own.home}/run/lastcall/lastcall/kubeconfig"
    own.ok("down")
    own.environment |= {"HOME": "/proc", "XDG_RUNTIME_DIR": None}
    fallback = Path(f"/tmp/lastcall-{ordinary_user.UID}")
    if fallback.exists():
        pytest.skip("this user has clusters")
    if not Path("/tmp").stat().st_mode & 0o002:
        result = own.run("up", "--detach")
        assert result.status == 1 and str(fallback) in result.err and "set XDG_STATE_HOME" in result.err
        return
    assert own.up()["kubeconfig"] == f"{fallback}/lastcall/kubeconfig"
    assert fallback.stat().st_mode & 0o777 == 0o700
    own.ok("down")
    assert not fallback.exists()


def test_a_place_that_cannot_be_used_is_said_with_the_way_out(own: Place) -> None:
    for bad in ("/proc/nowhere", "/dev/null"):
        own.environment["XDG_STATE_HOME"] = bad
        result = own.run("up", "--detach")
        assert result.status == 1 and f"{bad}/lastcall" in result.err and "set XDG_STATE_HOME" in result.err
        assert own.run("status").status == 0
    own.environment["XDG_STATE_HOME"] = str(own.home / "state")


def test_a_path_longer_than_a_socket_address(own: Place) -> None:
    deep = own.home / "state" / ("d" * 120)
    own.environment["XDG_STATE_HOME"] = str(deep)
    own.up("--name", "n" * 63)
    assert own.status("n" * 63)["phase"] == "running"
    own.ok("down", "--all")
    deep.rmdir()


def test_a_start_that_takes_too_long_is_an_error_and_leaves_nothing(own: Place) -> None:
    for arguments in (["--detach"], []):
        result = own.run("up", *arguments, "--timeout", "0.001")
        assert result.status == 1 and "node-1 is not Ready within 0.001 s (--timeout)" in result.err
        own.assert_clean()


# -- its end ----------------------------------------------------------------------------------------------------------


def test_in_the_foreground_ctrl_c_ends_it(place: Place) -> None:
    terminal = InTerminal(place, "up", "-o", "json")
    terminal.wait_for("}")
    place.watch(place.status()["pid"])
    assert place.status()["detached"] is False
    terminal.press_ctrl_c()
    assert terminal.wait() == 0
    place.assert_clean()


def test_in_the_foreground_down_ends_it_too(own: Place) -> None:
    with own.start("up") as process:
        await_running(own)
        own.ok("down")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "Ctrl-C ends the cluster" in out and "cluster lastcall is gone" in err


STAGES = [
    (detached, stage)
    for detached in (False, True)
    for stage in ("importing", "cloned", *(() if detached else ("running",)))  # detached, the command has returned
]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(("detached", "stage"), STAGES)
def test_ctrl_c_at_every_stage(own: Place, detached: bool, stage: str, times: int) -> None:
    with own.start("up", *(["--detach"] if detached else [])) as process:
        state = own.home / "state/lastcall/lastcall"
        if stage == "importing":
            eventually(lambda: (state / "lock").exists(), "the name is claimed")
        elif stage == "cloned":
            eventually(lambda: children(_front_of(process.pid, detached)), "there is init")
        else:
            assert process.stdout is not None
            await_running(own)
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(0.003)  # between two keystrokes
        _, err = process.communicate(timeout=60)
    if stage == "running" and (times == 1 or "cluster lastcall is gone" in err):
        # The second one may come after the first has done its work, and after Python has put its handlers away.
        assert process.returncode in ((0,) if times == 1 else (0, -signal.SIGINT)), err
    elif stage != "running" and process.returncode == 0:
        assert not detached, "it came after all had been told"
    else:
        assert process.returncode in (130, -signal.SIGINT) and (
            "Ctrl-C: tearing down the cluster" in err or "stopped at once" in err
        ), err
    eventually(lambda: own.ok("status") == "no cluster is running: lastcall up starts one\n", "all is gone")
    own.assert_clean()


def _front_of(pid: int, detached: bool) -> int:
    return next(iter(children(pid)), 0) if detached else pid


def test_a_closed_terminal_does_not_end_a_detached_cluster(own: Place) -> None:
    terminal = InTerminal(own, "up", "--detach", "-o", "json")
    terminal.wait_for("\n}")
    front = own.status()["pid"]
    own.watch(front)
    assert os.getsid(front) == front
    open_files = {os.readlink(f"/proc/{front}/fd/{fd}") for fd in (0, 1, 2)}
    assert open_files == {"/dev/null", f"{own.home}/state/lastcall/lastcall/front.log"}
    terminal.close()
    assert terminal.wait() in (0, -signal.SIGHUP)
    os.kill(front, signal.SIGHUP)
    time.sleep(0.2)  # a signal that ended it would have done so by now
    assert own.status()["pid"] == front


def test_a_closed_terminal_ends_a_cluster_in_the_foreground_in_order(place: Place) -> None:
    terminal = InTerminal(place, "up", "-o", "json")
    terminal.wait_for("\n}")
    place.watch(place.status()["pid"])
    terminal.close()
    assert terminal.wait() == 0
    place.assert_clean()


def test_sigterm_ends_a_detached_cluster_in_order(own: Place) -> None:
    front = own.up()["pid"]
    os.kill(front, signal.SIGTERM)
    eventually(lambda: not Path(f"/proc/{front}").exists(), "front has ended")
    own.assert_clean()


@pytest.mark.core
def test_a_killed_front_takes_all_with_it_and_the_next_command_clears_up(place: Place) -> None:
    front = place.up()["pid"]
    os.kill(front, signal.SIGKILL)
    eventually(lambda: not processes_in(place.namespaces[0]), "the kernel has ended the tree")
    result = place.run("status")
    assert result.status == 0 and "no cluster is running" in result.out
    assert f"pid {front} ended without being asked to" in result.err
    assert f"{front}" not in place.run("status").err, "that is told once"
    place.assert_clean()
    again = place.up()["pid"]
    os.kill(again, signal.SIGKILL)
    place.up()  # at once: the last of the old tree may still be ending


def test_a_killed_init_is_told_and_not_left(own: Place) -> None:
    facts = own.up()
    os.kill(own.pids()["init"], signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{facts['pid']}").exists(), "front has ended")
    result = own.run("status", "lastcall")
    assert result.status == 1 and "init was killed by SIGKILL" in result.err, result.err
    own.assert_clean()
    with own.start("up") as process:
        await_running(own)
        os.kill(own.pids()["init"], signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "the cluster's init was killed by SIGKILL" in err


def test_a_front_that_is_stopped_is_said_so_and_down_ends_it_all_the_same(own: Place) -> None:
    front = own.up()["pid"]
    tree = Followed(whole_tree(front))
    os.kill(front, signal.SIGSTOP)
    result = own.run("status", "lastcall")
    assert result.status == 1 and f"its front process (pid {front}) stopped?" in result.err
    assert own.ok("down", "--timeout", "0.5") == "cluster lastcall is gone (killed: it took more than 0.5 s)\n"
    assert not tree.alive()
    tree.close()


def test_down_while_it_starts_ends_it(own: Place) -> None:
    with own.start("up", "--detach") as process:
        eventually(lambda: (own.home / "state/lastcall/lastcall/lock").exists(), "the name is claimed")
        said = own.ok("down")
        _, err = process.communicate(timeout=60)
    assert said in ("cluster lastcall is gone\n", "no cluster named 'lastcall' is running\n")
    if process.returncode:
        assert "was stopped (lastcall down) before its node was Ready" in err
    own.ok("down")


# -- while it stays ---------------------------------------------------------------------------------------------------


@pytest.mark.core
@needs_kubectl
def test_roles_that_die_are_started_again_shown_and_logged(place: Place) -> None:
    facts = place.up()
    create(place, facts["kubeconfig"], pod("web"))
    ready(place, facts["kubeconfig"], "web")
    for role in ("control-plane", "node-1", "shim-1"):
        pid = place.pids()[role]
        os.kill(pid, signal.SIGKILL)
        eventually(lambda role=role, pid=pid: place.pids()[role] not in (pid, None), f"{role} runs again")
        eventually(lambda: place.status()["nodes"][0]["ready"], "the node is Ready")
    status = place.status()
    assert status["pid"] == facts["pid"] and status["phase"] == "running"
    shown = {p["role"]: (p["restarts"], p.get("lastDeath")) for p in status["processes"]}
    killed = (1, "killed by SIGKILL")
    assert shown == {
        "front": (0, None), "init": (0, None), "control-plane": killed, "shim-1": killed, "node-1": killed,
    }  # fmt: skip
    log = place.ok("logs", "--role", "front")
    assert log.count("killed by SIGKILL; it is started again") == 3 and log.count(" runs again ") == 3
    eventually(
        lambda: "1/1" in place.kubectl(facts["kubeconfig"], "get", "pods", "web", "--no-headers"), "the Pod runs again"
    )
    assert "1 (killed by SIGKILL, " in place.ok("status")


@needs_kubectl
def test_a_laptop_that_sleeps_wakes_up_with_the_same_pods(own: Place) -> None:
    """The whole tree stands still, containers too, for longer than probes, leases' writes and watches like."""
    facts = own.up()
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 1}
    create(own, facts["kubeconfig"], pod("web", container("app", livenessProbe=probe, readinessProbe=probe)))
    ready(own, facts["kubeconfig"], "web")
    before = json.loads(own.kubectl(facts["kubeconfig"], "get", "pod", "web", "-o", "json"))["status"]
    pids = whole_tree(facts["pid"])
    signal_all(pids, signal.SIGSTOP)
    time.sleep(7)  # longer than the Lease and the probes wait
    signal_all([pid for pid in pids if pid in whole_tree(facts["pid"])][::-1], signal.SIGCONT)
    awake = lambda: own.run("status", "lastcall").status == 0 and own.status()["nodes"][0]["ready"]  # noqa: E731
    eventually(awake, "the node is Ready")
    create(own, facts["kubeconfig"], pod("after"))
    ready(own, facts["kubeconfig"], "web", "after")
    after = json.loads(own.kubectl(facts["kubeconfig"], "get", "pod", "web", "-o", "json"))["status"]
    for status in (before, after):
        assert [(c["restartCount"], c["ready"]) for c in status["containerStatuses"]] == [(0, True)]
    assert before["containerStatuses"][0]["containerID"] == after["containerStatuses"][0]["containerID"]
    assert [process["restarts"] for process in own.status()["processes"]] == [0] * 5
    own.kubectl(facts["kubeconfig"], "delete", "pod", "web", "after")


def test_logs_are_followed_until_the_cluster_ends(own: Place) -> None:
    own.up()
    with own.start("logs", "-f", "--role", "front") as process:
        assert process.stdout is not None
        assert "node-1 is Ready" in process.stdout.readline()
        os.kill(own.pids()["node-1"], signal.SIGKILL)
        assert "node-1 killed by SIGKILL" in process.stdout.readline()
        own.ok("down")
        assert process.wait(60) == 0


READ_RECORDS = """
import asyncio, sys
from lastcall.kube.cluster.control.socket import ControlClient
async def main():
    seen = [record async for record in await ControlClient().records(pod_uid=sys.argv[1])]
    print(sorted({record.kind for record in seen}), {record.pod_uid for record in seen} == {sys.argv[1]})
asyncio.run(main())
"""


@needs_kubectl
def test_the_records_of_a_pod_that_ended_are_kept(own: Place) -> None:
    facts = own.up()
    create(own, facts["kubeconfig"], pod("web"))
    ready(own, facts["kubeconfig"], "web")
    uid = own.kubectl(facts["kubeconfig"], "get", "pod", "web", "-o", "jsonpath={.metadata.uid}")
    own.kubectl(facts["kubeconfig"], "delete", "pod", "web")
    command = own.command()
    command[command.index("-m") :] = ["-c", READ_RECORDS, uid]
    said = eventually(
        lambda: (out := subprocess.run(command, capture_output=True, text=True, cwd="/").stdout)
        and "ObjectRemoved" in out and "ProcessExited" in out and out,
        "the records tell of the end",
    )  # fmt: skip
    assert "SignalSent" in said and said.endswith("True\n")


def test_status_imports_neither_asyncio_nor_what_a_cluster_needs() -> None:
    code = (
        "import sys; from lastcall.cli.commands import invoke; invoke(['status']); "
        "print(sorted(m for m in sys.modules if m.split('.')[0] in "
        "('asyncio', 'aiohttp', 'rich', 'yaml', 'orjson', 'uvloop', 'cryptography', 'ssl')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "XDG_STATE_HOME": "/nonexistent"},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
