"""System calls and files that lead out of a container: what becomes of each attempt.

A default container, one without a seccomp filter, and a privileged one, as every user. What a privileged container may
do is Kubernetes's promise, not a hole; what nobody may do is what the cluster's user namespace withholds.
"""

import os

import pytest
from escaping import attempts, build
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import Capability, LinuxContainerSecurityContext, NamespaceOption, SecurityProfile

pytestmark = [pytest.mark.core, pytest.mark.real_kernel, pytest.mark.proof]

WITHOUT_A_FILTER = {
    "unshare user", "unshare all as root of its own", "keyctl", "add_key", "io_uring", "vsock",
}  # fmt: skip
"""Open to every program of the machine too."""

ROOTS_ALONE = {"write core_pattern", "write swappiness", "write modprobe", "write sysrq-trigger", "write uevent_helper"}
"""Settings of the machine, which a privileged container of root's cluster may write: its root is the machine's."""

PRIVILEGED = WITHOUT_A_FILTER | ROOTS_ALONE | {
    "mount proc", "mount sysfs", "mount tmpfs", "mount cgroup", "mount cgroup2", "mount mqueue", "mount devpts",
    "mount ramfs", "mount overlay", "remount /proc/sys", "remount /sys", "unmount /proc/sys", "unmount /proc/kcore",
    "pivot_root", "unshare mnt", "unshare net", "setns", "sethostname", "add a link",
    "write oom_score_adj of PID 1 below",
}  # fmt: skip
"""In its own namespaces, or in the hierarchies below its own group."""


def context(seccomp: str = "RuntimeDefault", **fields: object) -> LinuxContainerSecurityContext:
    return LinuxContainerSecurityContext(seccomp=SecurityProfile(seccomp), **fields)


def succeeded(said: dict[str, str]) -> set[str]:
    assert len(said) > 50, said
    return {attempt for attempt, answer in said.items() if answer == "OK"}


@inside
async def test_nothing_that_leads_out_succeeds_in_a_default_container(world: ShimWorld) -> None:
    single = os.environ["LASTCALL_TEST_USER"] != "root"
    # With a single user id that is how a program becomes another user; the filter goes along.
    allowed = {"unshare user"} if single else set()
    assert succeeded(await attempts(world, "calls", security_context=context())) <= allowed


@inside
async def test_without_a_filter_a_container_may_what_programs_outside_may(world: ShimWorld) -> None:
    assert succeeded(await attempts(world, "calls", security_context=context("Unconfined"))) <= WITHOUT_A_FILTER


@inside
async def test_a_privileged_container_has_its_own_namespaces_and_the_machine_s_settings_only_from_root(
    world: ShimWorld,
) -> None:
    done = succeeded(await attempts(world, "calls", security_context=context(privileged=True)))
    assert done <= PRIVILEGED
    if os.environ["LASTCALL_TEST_USER"] != "root":
        assert not done & ROOTS_ALONE


@inside
async def test_the_first_process_of_shared_pids_has_nothing_that_a_tracer_could_take(world: ShimWorld) -> None:
    build(world)
    sandbox = await world.sandbox(pid="POD")
    tracer = context(
        "Unconfined", namespace_options=NamespaceOption(pid="POD"), capabilities=Capability(("SYS_PTRACE",))
    )
    container = await world.start(sandbox, "escape", "pause", security_context=tracer)
    output = world.output(await world.ended(container))
    found = dict(line.split(": ", 1) for line in output.splitlines())
    assert len(found) == 4, output
    assert set(found.values()) == {"ENOENT"}, found
