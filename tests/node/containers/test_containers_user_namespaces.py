"""Pods with user ids of their own, on the kernel: who their processes are outside, and what they see inside."""

# ruff: noqa: ASYNC240 (nobody else runs in the loop of a test)

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from kernel_features import needs_mapped_tmpfs
from ordinary_user import MANY_IDS, USERS
from shim_world import STATE, ShimWorld, inside_as

from lastcall.kube.cri.api import (
    Capability,
    IDMapping,
    LinuxContainerSecurityContext,
    Mount,
    NamespaceOption,
    RuntimeServiceError,
    UserNamespace,
)

FIRST, COUNT = 0x7000_0000, 65_536
as_root = inside_as([user for user in USERS if user == "root"])
pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user has no ids to give"),
    needs_mapped_tmpfs,
]


def users(first: int = FIRST, count: int = COUNT) -> UserNamespace:
    mapping = (IDMapping(first, 0, count),)
    return UserNamespace("POD", mapping, mapping)


async def mapped(world: ShimWorld, *command: str, **more: object) -> str:
    """The output of a command in a Pod of its own with `FIRST`."""
    sandbox = await world.sandbox(userns_options=users())
    return await said(world, sandbox, *command, **more)


async def said(world: ShimWorld, sandbox: str, *command: str, name: str = "c", **more: object) -> str:
    container = await world.start(sandbox, *command, name=name, **more)
    status = await world.ended(container)
    output = world.output(status)
    assert status.exit_code == 0, output
    return output


def secured(**more: object) -> LinuxContainerSecurityContext:
    return LinuxContainerSecurityContext(**more)


def pid_of(world: ShimWorld, container: str) -> int:
    return next(each.facts["pid"] for each in world.find("ProcessStarted") if each.facts["containerId"] == container)


@as_root
async def test_root_of_such_a_pod_is_nobody_on_the_machine(world: ShimWorld) -> None:
    sandbox = await world.sandbox(userns_options=users())
    container = await world.start(sandbox, "sh", "-c", "id -u; cat /proc/self/uid_map; exec sleep 1000")
    await world.printed(container, str(FIRST))
    assert world.output(await world.runtime.container_status(container)).split() == ["0", "0", str(FIRST), str(COUNT)]
    process = Path("/proc", str(pid_of(world, container)))
    status = (process / "status").read_text()
    assert f"\nUid:\t{FIRST}\t{FIRST}\t{FIRST}\t{FIRST}\n" in status
    assert f"\nGid:\t{FIRST}\t{FIRST}\t{FIRST}\t{FIRST}\n" in status
    assert process.stat().st_uid == FIRST
    own = os.readlink("/proc/self/ns/user")
    assert os.readlink(process / "ns/user") != own
    await world.runtime.stop_pod_sandbox(sandbox)
    await world.until(lambda: not world.processes())


@as_root
async def test_two_pods_with_different_ranges_are_different_users(world: ShimWorld) -> None:
    pids = []
    for number in range(2):
        sandbox = await world.sandbox(userns_options=users(FIRST + number * COUNT))
        container = await world.start(sandbox, "sleep", "1000", name=f"c{number}")
        pids.append(pid_of(world, container))
    assert [Path("/proc", str(pid)).stat().st_uid for pid in pids] == [FIRST, FIRST + COUNT]
    assert os.readlink(f"/proc/{pids[0]}/ns/user") != os.readlink(f"/proc/{pids[1]}/ns/user")


@as_root
async def test_what_belongs_to_the_machine_cannot_be_written(world: ShimWorld) -> None:
    writes = "if echo core 2>/dev/null > /proc/sys/kernel/core_pattern; then echo written; else echo refused; fi"
    context = secured(masked_paths=(), readonly_paths=())
    output = await mapped(world, "sh", "-c", writes, security_context=context)
    assert output == "refused"


@as_root
async def test_an_image_with_several_owners_shows_them_and_they_can_be_changed(world: ShimWorld) -> None:
    file = world.images.layer / "lower/file"
    os.chown(file, 33, 1001)
    script = "stat -c '%u %g' / /lower/file /bin/busybox /lower; chown 1000:1000 /lower/file; touch /new; "
    script += "stat -c '%u %g' /lower/file /new"
    world.images.busybox_with("chown")
    output = await mapped(world, "sh", "-c", script)
    assert output.splitlines() == ["0 0", "33 1001", "0 0", "0 0", "1000 1000", "0 0"]
    assert (file.stat().st_uid, file.stat().st_gid) == (33, 1001)  # the layer is as it was
    upper = next(Path(STATE, "containers").glob("*/upper"))
    assert ((upper / "new").stat().st_uid, (upper / "lower/file").stat().st_uid) == (FIRST, FIRST + 1000)


@as_root
async def test_a_volume_keeps_the_ids_that_the_pod_writes(world: ShimWorld) -> None:
    """So that another Pod, with another range or none, finds the same owners."""
    volume = Path(STATE, "volume")
    volume.mkdir()
    volume.chmod(0o777)
    mounts = (Mount("/data", str(volume)),)
    await mapped(world, "sh", "-c", "echo 1 > /data/root", mounts=mounts)
    context = secured(run_as_user=1000, run_as_group=3000, supplemental_groups=(2000,))
    shown = await mapped(
        world, "sh", "-c", "echo 2 > /data/user; id -u; id -G; stat -c '%u %g' /data/root /data/user",
        mounts=mounts, security_context=context, name="user",
    )  # fmt: skip
    assert shown.splitlines() == ["1000", "3000 1002 2000", "0 0", "1000 3000"]
    assert [(volume / name).stat().st_uid for name in ("root", "user")] == [0, 1000]
    plain = await said(
        world,
        await world.sandbox(userns_options=UserNamespace()),
        "stat",
        "-c",
        "%u",
        "/data/user",
        mounts=mounts,
        name="plain",
    )
    assert plain == "1000"


@as_root
async def test_programs_that_change_their_user_work(world: ShimWorld) -> None:
    world.images.busybox_with("su", "setpriv")
    shutil.copy(world.images.layer / "bin/busybox", world.images.layer / "bin/setuid-id")
    os.chmod(world.images.layer / "bin/setuid-id", 0o4755)
    output = await mapped(world, "su", "app", "-c", "id -u; id -g")
    assert output.split() == ["1000", "1001"]
    (world.images.layer / "bin/su").unlink()
    (world.images.layer / "bin/su").symlink_to("setuid-id")
    Path(world.images.layer, "etc/passwd").write_text("root::0:0:root:/root:/bin/sh\napp::1000:1001:app:/:/bin/sh\n")
    context = secured(run_as_user=1000)
    output = await mapped(world, "/bin/su", "root", "-c", "id -u", security_context=context, name="setuid")
    assert output == "0"


@as_root
async def test_a_user_id_beyond_the_range_is_the_only_one_of_its_process(world: ShimWorld) -> None:
    output = await mapped(world, "id", "-u", security_context=secured(run_as_user=1_000_680_000))
    assert output == "1000680000"


@as_root
async def test_its_namespaces_are_its_own_to_configure(world: ShimWorld) -> None:
    world.images.busybox_with("ip", "ping", "dd")
    sandbox = await world.sandbox(userns_options=users())
    context = secured(
        capabilities=Capability(add=("NET_ADMIN", "SYS_ADMIN")),
        masked_paths=(),
        readonly_paths=(),
    )
    script = (
        "ip link add dummy0 type dummy 2>/dev/null || ip link set lo mtu 1400; hostname other; "
        "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start; cat /proc/sys/net/ipv4/ip_unprivileged_port_start; "
        "mount -t tmpfs none /tmp && touch /tmp/x && stat -c %u /tmp/x; ping -c 1 127.0.0.1 | grep -c ' 0% packet loss'"
    )
    world.images.busybox_with("grep")
    output = await said(world, sandbox, "sh", "-c", script, security_context=context)
    assert output.splitlines() == ["0", "0", "1"]


@as_root
async def test_sysctls_and_hostname_of_the_sandbox_are_set(world: ShimWorld) -> None:
    world.sandbox_config = replace(
        world.sandbox_config,
        sysctls={"net.ipv4.ip_unprivileged_port_start": "80", "kernel.shm_rmid_forced": "1"},
        namespace_options=NamespaceOption(userns_options=users()),
    )
    sandbox = await world.runtime.run_pod_sandbox(world.sandbox_config)
    files = "/proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced"
    output = await said(world, sandbox, "sh", "-c", f"cat {files}; hostname; touch /dev/shm/x; stat -c %u /dev/shm/x")
    assert output.split() == ["80", "1", "p", "0"]


@as_root
async def test_an_exec_is_in_the_same_user_namespace(world: ShimWorld) -> None:
    sandbox = await world.sandbox(userns_options=users())
    container = await world.start(sandbox, "sleep", "1000")
    inside = "cat /proc/self/uid_map; id -u; readlink /proc/self/ns/user; readlink /proc/1/ns/user; echo x > /made"
    answer = await world.runtime.exec_sync(container, ("sh", "-c", inside), 10)
    assert answer.exit_code == 0, answer
    words = answer.stdout.decode().split()
    assert words[:4] == ["0", str(FIRST), str(COUNT), "0"]
    assert words[4] == words[5]
    upper = next(Path(STATE, "containers").glob("*/upper"))
    assert (upper / "made").stat().st_uid == FIRST


@as_root
async def test_containers_that_share_processes_signal_each_other_and_not_the_pause(world: ShimWorld) -> None:
    world.images.busybox_with("grep")
    sandbox = await world.sandbox(pid="POD", userns_options=users())
    context = secured(namespace_options=NamespaceOption(pid="POD"))
    container = await world.start(sandbox, "sleep", "1000", name="a", security_context=context)
    world.images.busybox_with("awk")
    output = await said(
        world, sandbox, "sh", "-c", "kill $(ps | grep 'sleep 1000' | grep -v grep | awk '{print $1}'); "
        "cat /proc/1/comm; stat -c %u /proc/1; cat /proc/1/environ 2>/dev/null | head -c 1; echo done",
        name="b", security_context=context,
    )  # fmt: skip
    assert (await world.ended(container)).exit_code == 143
    assert output.split()[0] == "pause"
    assert output.endswith("done")


@as_root
async def test_an_ephemeral_container_joins_its_target(world: ShimWorld) -> None:
    sandbox = await world.sandbox(userns_options=users())
    target = await world.start(sandbox, "sleep", "1000", name="a")
    options = NamespaceOption(pid="TARGET", target_id=target)
    output = await said(
        world, sandbox, "sh", "-c", "cat /proc/1/comm; ls /proc/1/root/lower; cat /proc/self/uid_map",
        name="debug", security_context=secured(namespace_options=options, capabilities=Capability(add=("SYS_PTRACE",))),
    )  # fmt: skip
    assert output.split() == ["sleep", "file", "0", str(FIRST), str(COUNT)]


@as_root
async def test_a_privileged_container_that_asked_for_it_may_everything_there_and_nothing_outside(
    world: ShimWorld,
) -> None:
    script = (
        "mount -t tmpfs none /tmp && echo mounted; echo core 2>/dev/null > /proc/sys/kernel/core_pattern || echo no"
    )
    output = await mapped(world, "sh", "-c", script, security_context=secured(privileged=True))
    assert output.split() == ["mounted", "no"]


@as_root
async def test_a_volume_of_the_machine_is_refused_in_runcs_words(world: ShimWorld) -> None:
    sandbox = await world.sandbox(userns_options=users())
    container = await world.create(sandbox, "true", mounts=(Mount("/data", "/etc"),))
    with pytest.raises(RuntimeServiceError) as caught:
        await world.runtime.start_container(container)
    expected = "failed to fulfil mount request: failed to set MOUNT_ATTR_IDMAP on /etc: operation not permitted"
    assert expected in str(caught.value)


@as_root
async def test_a_pod_without_a_range_shares_the_clusters_ids(world: ShimWorld) -> None:
    output = await said(world, await world.sandbox(), "cat", "/proc/self/uid_map")
    assert output.split() == ["0", "0", "4294967295"]


@as_root
async def test_a_terminal_and_input_belong_to_the_user(world: ShimWorld) -> None:
    output = await mapped(
        world, "sh", "-c", "echo to-terminal > /dev/tty; stat -c %u /dev/pts/0; echo again > /dev/stdout",
        tty=True, security_context=secured(run_as_user=1000),
    )  # fmt: skip
    assert [line.strip() for line in output.splitlines()] == ["to-terminal", "1000", "again"]


@as_root
async def test_no_maker_of_namespaces_is_left(world: ShimWorld) -> None:
    sandboxes = [await world.sandbox(userns_options=users(FIRST + number * COUNT)) for number in range(5)]
    children = Path(f"/proc/{world.shim_pid}/task/{world.shim_pid}/children")
    await world.until(lambda: not children.read_text())
    for sandbox in sandboxes:
        await world.runtime.remove_pod_sandbox(sandbox)
    await world.until(lambda: "shm" not in Path("/proc/self/mountinfo").read_text().replace("/dev/shm", ""))


@as_root
async def test_the_range_is_on_record_for_the_next_node_process(world: ShimWorld) -> None:
    sandbox = await world.sandbox(userns_options=users())
    container = await world.start(sandbox, "sleep", "1000")
    await world.runtime.close()
    world.runtime = world.new_runtime()
    await world.runtime.adopt()
    [status] = await world.runtime.list_pod_sandbox()
    assert status.namespace_options.userns_options == users()
    answer = await world.runtime.exec_sync(container, ("cat", "/proc/self/uid_map"), 10)
    assert answer.stdout.split()[1] == str(FIRST).encode()


@as_root
async def test_with_an_unmasked_proc_a_container_can_nest_namespaces(world: ShimWorld) -> None:
    """`procMount: Unmasked`, for which Kubernetes demands `hostUsers: false`."""
    world.images.busybox_with("unshare")
    context = secured(masked_paths=(), readonly_paths=())
    output = await mapped(
        world, "unshare", "-U", "-r", "-p", "-f", "--mount-proc", "sh", "-c", "id -u; exec cat /proc/1/comm",
        security_context=context,
    )  # fmt: skip
    assert output.split() == ["0", "cat"]


@inside_as([MANY_IDS])
async def test_an_ordinary_user_with_enough_subordinate_ids_has_them_too(world: ShimWorld) -> None:
    os.chown(world.images.layer / "lower/file", 33, 33)
    sandbox = await world.sandbox(userns_options=users(COUNT))
    volume = Path(STATE, "volume")
    volume.mkdir(mode=0o777)
    script = "cat /proc/self/uid_map; stat -c %u /lower/file; touch /data/x /y; stat -c %u /data/x /y"
    output = await said(world, sandbox, "sh", "-c", script, mounts=(Mount("/data", str(volume)),))
    assert output.split() == ["0", str(COUNT), str(COUNT), "33", "0", "0"]
    upper = next(Path(STATE, "containers").glob("*/upper"))
    assert ((upper / "y").stat().st_uid, (volume / "x").stat().st_uid) == (COUNT, 0)
