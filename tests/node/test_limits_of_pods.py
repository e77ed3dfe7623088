"""Pods with limits, seccomp profiles and foreign users in a whole cluster, and control groups that outlive nobody."""

import base64
import json
import os
import re
import signal
import ssl
import time
import urllib.request
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
import yaml
from pods import pod
from run_command import Lastcall
from staying import Followed, eventually
from tree import cgroups_named

pytestmark = pytest.mark.real_kernel


def has_cgroups(user: str) -> bool:
    """Whether a cluster of this user gets control groups here, as `lastcall doctor` finds it."""
    with Lastcall(["doctor", "--output", "json"], user=user) as command:
        needs = {need["name"]: need for need in json.loads(command.finish(60).out)["needs"]}
    return bool(needs["cgroups"]["status"] == "ok")


class API:
    """GET with the kubeconfig of `run --keep`."""

    def __init__(self, command: Lastcall) -> None:
        line = command.wait_for("The cluster stays up until Ctrl-C").text
        match = re.search(r"--kubeconfig (\S+)", line)
        assert match, line
        config = yaml.safe_load(Path(match[1]).read_text())
        cluster = config["clusters"][0]["cluster"]
        self._server = cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._token = config["users"][0]["user"]["token"]

    def get(self, path: str) -> Any:
        request = urllib.request.Request(self._server + path, headers={"Authorization": f"Bearer {self._token}"})
        with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
            return json.load(answer)

    def warnings(self, name: str) -> dict[str, str]:
        """Reason → message of the Pod's Warning Events."""
        items = self.get("/api/v1/namespaces/default/events")["items"]
        own = [each for each in items if each["involvedObject"]["name"] == name and each["type"] == "Warning"]
        assert len({each["reason"] for each in own}) == len(own), "each once per Pod"
        return {each["reason"]: each["message"] for each in own}

    def warned(self, name: str, reason: str) -> str:
        for _ in range(1200):
            if reason in (found := self.warnings(name)):
                return found[reason]
            time.sleep(0.05)
        raise AssertionError(f"no Event {reason} of {name}: {self.warnings(name)}")

    def terminated(self, name: str) -> dict[str, Any]:
        for _ in range(1200):
            status = self.get(f"/api/v1/namespaces/default/pods/{name}")["status"]
            for container in status.get("containerStatuses") or ():
                if "terminated" in container["state"]:
                    return container["state"]["terminated"]
            time.sleep(0.05)
        raise AssertionError(f"{name} does not end: {status}")

    def log(self, name: str) -> str:
        path = f"{self._server}/api/v1/namespaces/default/pods/{name}/log"
        request = urllib.request.Request(path, headers={"Authorization": f"Bearer {self._token}"})
        with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
            return answer.read().decode()


def with_container(name: str, script: str, **fields: Any) -> dict[str, Any]:
    manifest = pod(name)
    container = manifest["spec"]["containers"][0]
    container.pop("lifecycle", None)
    container |= {"command": ["sh", "-c", script], **fields}
    manifest["spec"] |= {"restartPolicy": "Never"}
    return manifest


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
    {**with_container("grouped", "id -G")},
]  # fmt: skip
MANIFESTS[-1]["spec"]["securityContext"] = {"fsGroup": 2000, "supplementalGroups": [3000]}
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
        said = api.warned("unknown-profile", "Failed")
        assert 'cannot load seccomp profile "/var/lib/kubelet/seccomp/lastcall-test/none.json"' in said
        assert "LimitsNotEnforced" not in api.warnings("free")
        command.interrupt()
        command.finish(60)
    assert not cgroups_named(f"*/lastcall-*-{command.pid}-*")


def create(api: API, manifest: dict[str, Any]) -> None:
    body = json.dumps(manifest).encode()
    headers = {"Authorization": f"Bearer {api._token}", "Content-Type": "application/json"}
    url = f"{api._server}/api/v1/namespaces/default/pods"
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    with urllib.request.urlopen(request, context=api._context, timeout=60) as answer:
        assert answer.status == 201


@pytest.mark.skipif(os.getuid() != 0, reason="control groups are root's here")
def test_what_a_killed_cluster_leaves_is_taken_away_by_the_next_start() -> None:
    if not has_cgroups("root"):
        return
    arguments = ["run", "-", "--keep", "--after", "0"]
    with Lastcall(arguments, manifests=[MANIFESTS[0]]) as command:
        tree = command.tree()
        API(command)
        left = f"*/lastcall-*-{command.pid}-*"
        # Front, whose groups they are, lives as long as this looks: else another cluster's start takes them away.
        init = Followed([tree.init])
        os.kill(command.pid, signal.SIGSTOP)
        os.kill(tree.init, signal.SIGKILL)
        eventually(lambda: not init.alive(), "init ends")
        init.close()
        assert cgroups_named(left), "front, which would take them away, does not run"
        os.kill(command.pid, signal.SIGKILL)
        command.process.wait(60)
        has_cgroups("root")
        assert not cgroups_named(left)
