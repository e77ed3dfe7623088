"""`allowPrivilegeEscalation: false` on the real kernel: what a setuid program and one with file capabilities get."""

import os
import struct

import pytest
from escaping import build
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import Capability, LinuxContainerSecurityContext

pytestmark = [pytest.mark.core, pytest.mark.real_kernel, pytest.mark.proof]

APP = 1000
NET_RAW = 1 << 13


async def said(world: ShimWorld, program: str, **fields: object) -> dict[str, str]:
    """What `escape whoami` says when user 1000 executes it."""
    context = LinuxContainerSecurityContext(run_as_user=APP, run_as_group=APP, **fields)
    status, output = await world.run(program, "whoami", name=f"c{len(world.records)}", security_context=context)
    assert status.exit_code == 0, f"{status} {output}"
    return dict(line.split(": ", 1) for line in output.splitlines())


@inside
async def test_a_setuid_program_makes_nobody_root_where_escalation_is_not_allowed(world: ShimWorld) -> None:
    build(world)
    os.chmod(world.images.layer / "bin/escape", 0o4755)
    free = await said(world, "escape")
    bound = await said(world, "escape", no_new_privs=True)
    assert (bound["euid"], bound["NoNewPrivs"]) == (str(APP), "1")
    assert int(bound["CapEff"], 16) == 0
    assert free["NoNewPrivs"] == "0"
    if os.environ["LASTCALL_TEST_USER"] == "root":
        assert free["euid"] == "0", "without it the program would have made it root"


@inside
async def test_file_capabilities_give_nothing_where_escalation_is_not_allowed(world: ShimWorld) -> None:
    build(world)
    path = world.images.layer / "bin/escape"
    # struct vfs_cap_data, revision 2 with the effective bit: CAP_NET_RAW permitted
    try:
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x0200_0001, NET_RAW, 0, 0, 0))
    except PermissionError:
        return  # this user may not give any away
    free = await said(world, "escape")
    bound = await said(world, "escape", no_new_privs=True)
    assert int(bound["CapEff"], 16) == 0
    if os.environ["LASTCALL_TEST_USER"] == "root":
        assert int(free["CapEff"], 16) == NET_RAW


@inside
async def test_a_restricted_container_has_no_capability_at_all(world: ShimWorld) -> None:
    """As the restricted standard wants it; the same on a real node with containerd."""
    build(world)
    found = await said(world, "escape", no_new_privs=True, capabilities=Capability((), ("ALL",)))
    assert {name: int(value, 16) for name, value in found.items() if name.startswith("Cap")} == {
        "CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapBnd": 0, "CapAmb": 0,
    }  # fmt: skip
