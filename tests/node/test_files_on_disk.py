"""What containers write is on disk, as on a node: no memory of theirs, unless a volume has the medium Memory."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from kept_run import API, create, has_cgroups, with_container
from run_command import Lastcall

pytestmark = pytest.mark.real_kernel

LIMITS = {"limits": {"memory": "64Mi"}}
WRITE = "dd if=/dev/zero of={}/file bs=1048576 count=120 2>/dev/null && wc -c < {}/file"
WRITTEN = f"{120 << 20}\n"


def writes(name: str, place: str, volume: dict[str, Any] | None = None) -> dict[str, Any]:
    """A Pod that writes more than its memory limit below `place`."""
    manifest = with_container(name, WRITE.format(place, place), resources=LIMITS)
    if volume is not None:
        manifest["spec"]["volumes"] = [{"name": "data", **volume}]
        manifest["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": place}]
    return manifest


def files_are_on_disk(user: str) -> bool:
    """As `lastcall doctor` finds it."""
    with Lastcall(["doctor", "--output", "json"], user=user) as command:
        needs = {need["name"]: need for need in json.loads(command.finish(60).out)["needs"]}
    return bool(needs["files of containers"]["status"] == "ok")


@pytest.mark.parametrize("user", ordinary_user.EVERY_USER)
def test_files_of_containers_are_no_memory_of_theirs(user: str) -> None:
    ordinary_user.skip_without_newuidmap(user)
    if not files_are_on_disk(user):
        pytest.skip("no directory of this machine can hold files of containers")
    limited = has_cgroups(user)
    with Lastcall(
        ["run", "-", "--keep", "--after", "0"], manifests=[with_container("stays", "sleep 100")], user=user
    ) as command:
        tree = command.tree()
        api = API(command)
        create(api, writes("layer", "/tmp"))
        create(api, writes("volume", "/data", {"emptyDir": {}}))
        create(api, writes("memory", "/data", {"emptyDir": {"medium": "Memory"}}))
        for name in ("layer", "volume"):
            assert (api.terminated(name)["exitCode"], api.log(name)) == (0, WRITTEN), name
        ended = api.terminated("memory")
        assert (ended["reason"], ended["exitCode"]) == (("OOMKilled", 137) if limited else ("Completed", 0))
        inside = Path(f"/proc/{tree.roles['init']}/root/lastcall")
        in_memory = os.stat(inside).st_dev
        for name in ("containers", "empty-dirs"):
            assert os.stat(inside / name).st_dev != in_memory, name
        ready = inside / "containers" / "ready"
        flags = subprocess.run(["lsattr", "-d", ready], capture_output=True, text=True).stdout.split()
        assert not flags or "T" in flags[0], flags  # a file system has the flag, or none at all
        command.interrupt()
        command.finish(60)
