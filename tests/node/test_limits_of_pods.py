"""Pods with limits, seccomp profiles and foreign users in a whole cluster, and control groups that outlive nobody."""

import os
import signal
from fnmatch import fnmatch
from pathlib import Path

import ordinary_user
import pytest
from kept_run import API, create, has_cgroups, with_container
from run_command import Lastcall
from staying import Followed
from tree import cgroups_named
from waiting import eventually

pytestmark = pytest.mark.real_kernel


SECCOMP = "grep Seccomp_filters: /proc/self/status; unshare -m true 2>/dev/null && echo namespaces"
LIMITS = {"limits": {"memory": "24Mi", "cpu": "500m"}}
MANIFESTS = [
    with_container("limited", "sleep 100", resources=LIMITS),
    with_container("free", "sleep 100"),
    with_container("quits", "exit 137", resources=LIMITS),
    with_container("drops", "chown 101:101 /tmp && su -s /bin/sh nobody -c 'id -u' 2>&1; sleep 0.1"),
    with_container("confined", SECCOMP, securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
    with_container("silent", SECCOMP),
    with_container("unconfined", SECCOMP, securityContext={"seccompProfile": {"type": "Unconfined"}}),
    with_container("privileged", SECCOMP, securityContext={"privileged": True}),
    with_container("unknown-profile", "true", securityContext={
        "seccompProfile": {"type": "Localhost", "localhostProfile": "lastcall-test/none.json"}
    }),
    with_container("shares-ipc", "echo $(stat -f -c %T /dev/shm) > /dev/shm/lastcall-test; cat /dev/shm/lastcall-test"),
    {**with_container("grouped", "id -G")},
]  # fmt: skip
MANIFESTS[-1]["spec"]["securityContext"] = {"fsGroup": 2000, "supplementalGroups": [3000]}
MANIFESTS[-2]["spec"]["hostIPC"] = True
GREEDY = with_container("greedy", "tail /dev/zero", resources=LIMITS)


@pytest.mark.parametrize("user", ordinary_user.EVERY_USER)
def test_what_a_machine_can_do_of_what_pods_ask_for_is_done_and_the_rest_is_said(user: str) -> None:
    limited, single = has_cgroups(user), user == "ordinary user"
    manifests = [*MANIFESTS, *([GREEDY] if limited else [])]
    arguments = ["run", "-", "--keep", "--after", "0"]
    # Only the Pod that stays is waited for: the others end, or never start.
    with Lastcall(arguments, manifests=[MANIFESTS[1]], user=user) as command:
        command.tree()
        api = API(command)
        for manifest in manifests:
            if manifest["metadata"]["name"] != "free":
                create(api, manifest)
        assert api.terminated("quits")["reason"] == "Error"
        assert api.terminated("quits")["exitCode"] == 137
        if limited:
            assert (api.terminated("greedy")["reason"], api.terminated("greedy")["exitCode"]) == ("OOMKilled", 137)
            assert cgroups_named(f"*/lastcall-*-{command.pid}-*/kubepods/*pod*")
        else:
            assert "are not enforced" in api.warned("limited", "LimitsNotEnforced")
        api.terminated("drops")
        if single:
            assert "only one user id" in api.warned("drops", "SingleUserID")
            assert "groups 3000, 2000" in api.warned("grouped", "GroupsNotMapped")
        else:
            assert api.terminated("grouped")["exitCode"] == 0
            assert {"2000", "3000"} <= set(api.log("grouped").split())
            assert not api.warnings("drops")
        filters = {}
        for name in ("confined", "silent", "unconfined", "privileged"):
            api.terminated(name)
            filters[name], _, more = api.log(name).removeprefix("Seccomp_filters:\t").partition("\n")
            assert (more == "namespaces\n") == (name == "privileged"), "who has CAP_SYS_ADMIN"
        own = 1 if single else 0  # by which the shim answers for root
        profiles = {name: int(count) - own for name, count in filters.items()}
        assert profiles == {"confined": 1, "silent": 1, "unconfined": 0, "privileged": 0}
        assert api.terminated("shares-ipc")["exitCode"] == 0
        assert api.log("shares-ipc") == "tmpfs\n"
        assert not Path("/dev/shm/lastcall-test").exists(), "a node's, not the machine's"
        said = api.warned("unknown-profile", "Failed")
        assert 'cannot load seccomp profile "/var/lib/kubelet/seccomp/lastcall-test/none.json"' in said
        assert "LimitsNotEnforced" not in api.warnings("free")
        command.interrupt()
        command.finish(60)
    assert not cgroups_named(f"*/lastcall-*-{command.pid}-*")


@pytest.mark.skipif(os.getuid() != 0, reason="control groups are root's here")
def test_what_a_killed_cluster_leaves_is_taken_away_by_the_next_start() -> None:
    if not has_cgroups("root"):
        return
    arguments = ["run", "-", "--keep", "--after", "0"]
    with Lastcall(arguments, manifests=[MANIFESTS[0]]) as command:
        tree = command.tree()
        API(command)
        left = f"*/lastcall-*-{command.pid}-*"
        of_systemd = any(fnmatch(path, f"{left}.scope/*") for path in cgroups_named(left))
        # Front, whose groups they are, lives as long as this looks: else another cluster's start takes them away.
        init = Followed([tree.init])
        os.kill(command.pid, signal.SIGSTOP)
        os.kill(tree.init, signal.SIGKILL)
        eventually(lambda: not init.alive(), "init ends")
        init.close()
        if not of_systemd:  # which takes a scope away as soon as nobody is in it
            assert cgroups_named(left), "front, which would take them away, does not run"
        os.kill(command.pid, signal.SIGKILL)
        command.process.wait(60)
        has_cgroups("root")
        assert not cgroups_named(left)
