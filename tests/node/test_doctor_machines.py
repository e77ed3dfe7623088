"""`lastcall doctor` on machines that really forbid something, as root and as an ordinary user."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from tree import cgroups_named
from waiting import PATIENCE, eventually

from lastcall.world.needs import kernel_version

pytestmark = pytest.mark.real_kernel

PROGRAM = Path(__file__).with_name("forbidden_machine.py")


@pytest.fixture(params=ordinary_user.USERS)
def on_machine(request: pytest.FixtureRequest) -> Any:
    prefix = ordinary_user.command_prefix(request.param)

    def on_machine(what: str) -> tuple[int, dict[str, dict[str, str]]]:
        command = [*prefix, sys.executable, str(PROGRAM), what]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180 * PATIENCE, cwd="/", check=False)
        assert done.stderr == ""
        answer = json.loads(done.stdout)
        assert answer["schema"] == "lastcall/doctor/v1"
        found = {need["name"]: need for need in answer["needs"]}
        assert answer["ready"] == (done.returncode == 0) == all(need["status"] != "missing" for need in found.values())
        return done.returncode, found

    return on_machine


def missing(found: dict[str, dict[str, str]]) -> str:
    """The first missing need."""
    return next(name for name, need in found.items() if need["status"] == "missing")


def test_this_machine_is_ready_and_the_probes_leave_nothing_behind(on_machine: Any) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    groups = cgroups_named("*/lastcall-doctor-*")
    status, found = on_machine("nothing forbidden")
    assert status == 0, found
    assert found["user namespaces"]["status"] == "ok"
    assert Path("/proc/self/mountinfo").read_text() == mounts
    left = [group for group in cgroups_named("*/lastcall-doctor-*") if group not in groups]
    eventually(
        lambda: not any(map(os.path.exists, left)), "the groups that were tried are gone"
    )  # others' may be there


@pytest.mark.skipif(
    kernel_version(os.uname().release) < (6, 3), reason="this kernel cannot show other owners of a tmpfs"
)
def test_user_ids_of_pods_are_tried_where_the_child_s_own_proc_is(on_machine: Any) -> None:
    """The child's pid is of a new namespace: in /proc of the machine it is some other process, or none."""
    _, found = on_machine("nothing forbidden")
    assert found["user ids of Pods"]["status"] == "ok", found["user ids of Pods"]


def test_a_filter_that_forbids_host_names_is_found_before_a_cluster_fails_of_it(on_machine: Any) -> None:
    """Podman's default: namespaces can be made, but sethostname is for CAP_SYS_ADMIN of the machine alone."""
    status, found = on_machine("podman's seccomp")
    assert (status, missing(found)) == (1, "host name")
    assert "Operation not permitted" in found["host name"]["found"]


def test_a_limit_of_zero_user_namespaces_is_named_with_its_sysctl(on_machine: Any) -> None:
    status, found = on_machine("no user namespaces")
    assert (status, missing(found)) == (1, "user namespaces")
    assert found["user namespaces"]["found"] == "user.max_user_namespaces=0 forbids them"
    assert "sysctl -w user.max_user_namespaces=15000" in found["user namespaces"]["fix"]
    assert found["overlayfs"]["found"] == "could not be tried, because of the above"


def test_a_limit_of_zero_network_namespaces_is_named_with_its_sysctl(on_machine: Any) -> None:
    status, found = on_machine("no network namespaces")
    assert (status, missing(found)) == (1, "namespaces")
    assert found["namespaces"]["found"] == "user.max_net_namespaces set to 0"
    assert found["overlayfs"]["status"] == "ok", "the rest is still tried"


def test_a_masked_proc_is_named_with_what_hides_it(on_machine: Any) -> None:
    status, found = on_machine("masked proc")
    assert (status, missing(found)) == (1, "mounting /proc")
    assert "/proc/keys" in found["mounting /proc"]["found"]
    assert found["mounting /proc"]["fix"]


def test_docker_s_seccomp_filter_is_found_by_its_answer(on_machine: Any) -> None:
    status, found = on_machine("docker's seccomp")
    assert (status, missing(found)) == (1, "system calls")
    assert "a seccomp filter forbids clone3" in found["system calls"]["found"]


def test_a_filter_that_forbids_mounts_is_found_where_it_hurts_first(on_machine: Any) -> None:
    status, found = on_machine("no mounts")
    assert (status, missing(found)) == (1, "tmpfs mounts")
    assert found["veth links"]["status"] == "ok"
