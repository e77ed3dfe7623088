"""What cannot be started says why in the words of containerd and runc, and leaves nothing behind."""
# ruff: noqa: ASYNC240 - a scenario has its process to itself

from pathlib import Path

import pytest
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import ContainerState, Mount, RuntimeServiceError

PREFIX = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: "
)


async def refused(world: ShimWorld, sandbox: str, *command: str, **more: object) -> str:
    container = await world.create(sandbox, *command, **more)
    with pytest.raises(RuntimeServiceError) as caught:
        await world.runtime.start_container(container)
    assert caught.value.reason == "StartError"
    status = await world.runtime.container_status(container)
    assert (status.state, status.exit_code, status.reason) == (ContainerState.CONTAINER_EXITED, 128, "StartError")
    assert status.message == str(caught.value)
    assert (status.started_at, status.finished_at > 0) == (0, True)
    assert status.message.startswith(PREFIX), status.message
    assert status.message.endswith(": unknown")
    await world.runtime.remove_container(container)
    return status.message[len(PREFIX) : -len(": unknown")]


@pytest.mark.rule("node-semantics 12.4/4")
@inside
async def test_a_missing_command_is_named(world: ShimWorld):
    sandbox = await world.sandbox()
    expected = 'exec: "/no/such/file": stat /no/such/file: no such file or directory'
    assert await refused(world, sandbox, "/no/such/file") == expected
    assert await refused(world, sandbox, "nosuch") == 'exec: "nosuch": executable file not found in $PATH'
    assert await refused(world, sandbox, "") == 'exec: "": executable file not found in $PATH'
    assert await refused(world, sandbox, "/etc") == 'exec: "/etc": is a directory'
    assert await refused(world, sandbox, "/etc/passwd") == 'exec: "/etc/passwd": permission denied'
    assert world.find("ProcessStarted") == []
    assert world.find("ProcessExited") == []
    assert world.processes() == {}


@inside
async def test_the_interpreter_of_the_shim_cannot_be_executed_by_a_magic_link(world: ShimWorld):
    sandbox = await world.sandbox()
    assert await refused(world, sandbox, "/proc/self/exe") == 'exec: "/proc/self/exe": permission denied'
    (world.images.layer / "bin/sneaky").symlink_to("/proc/self/exe")
    assert "permission denied" in await refused(world, sandbox, "/bin/sneaky")


@inside
async def test_a_file_the_kernel_cannot_execute_starts_and_exits_255_like_runc(world: ShimWorld):
    script = world.images.layer / "bin/script"
    script.write_text("#!/no/interpreter\n")
    script.chmod(0o755)
    status, output = await world.run("/bin/script")
    assert (status.exit_code, status.reason) == (255, "Error")
    assert output == "exec /bin/script: no such file or directory"
    noise = world.images.layer / "bin/noise"
    noise.write_bytes(b"\0\1\2\3")
    noise.chmod(0o755)
    status, output = await world.run("noise", name="noise")
    assert (status.exit_code, output) == (255, "exec /bin/noise: exec format error")


@inside
async def test_a_mount_that_cannot_be_made_is_named(world: ShimWorld):
    sandbox = await world.sandbox()
    message = await refused(world, sandbox, "true", mounts=(Mount("/data", "/no/such"),))
    assert message == (
        'error during container init: error mounting "/no/such" to rootfs at "/data": '
        "stat /no/such: no such file or directory"
    )
    message = await refused(world, sandbox, "true", mounts=(Mount("/proc/sys", "/mnt"),))
    assert "inside /proc" in message
    mounting = 'error during container init: error mounting "{}" to rootfs at "{}": '
    message = await refused(world, sandbox, "true", mounts=(Mount("/etc/passwd/x", "/mnt"),))
    assert message == mounting.format("/mnt", "/etc/passwd/x") + "mkdir /etc/passwd/x: not a directory"
    message = await refused(world, sandbox, "true", mounts=(Mount("/etc/passwd", "/mnt"),))
    assert message == mounting.format("/mnt", "/etc/passwd") + "mount /mnt:/etc/passwd: not a directory"
    message = await refused(world, sandbox, "true", mounts=(Mount("/etc", "/etc/hostname"),))
    assert message == mounting.format("/etc/hostname", "/etc") + "mount /etc/hostname:/etc: not a directory"
    beside = Mount("/outer", "/mnt", readonly=True)
    message = await refused(world, sandbox, "true", mounts=(beside, Mount("/outer/inner", "/mnt")))
    assert message == mounting.format("/mnt", "/outer/inner") + "mkdir /outer/inner: read-only file system"


@inside
async def test_a_working_directory_is_made_in_a_root_that_is_read_only_for_the_program(world: ShimWorld):
    from lastcall.kube.cri.api import LinuxContainerSecurityContext

    readonly = LinuxContainerSecurityContext(readonly_rootfs=True)
    status, output = await world.run("sh", "-c", "pwd", working_dir="/no/such/place", security_context=readonly)
    assert (status.exit_code, output) == (0, "/no/such/place")


@inside
async def test_what_a_file_is_that_the_kernel_does_not_execute_is_on_record(world: ShimWorld):
    script = world.images.layer / "bin/script"
    script.write_bytes(b"#!/bin/sh\r\necho hi\r\n")
    script.chmod(0o755)
    status, output = await world.run("/bin/script")
    assert (status.exit_code, output) == (255, "exec /bin/script: no such file or directory")
    (ended,) = world.find("ProcessExited")
    assert ended.facts["notExecuted"] == {
        "path": "/bin/script",
        "error": "no such file or directory",
        "format": "script",
        "interpreter": "/bin/sh",
        "carriageReturn": True,
        "machine": "",
    }


@inside
async def test_an_unknown_user_capability_or_working_directory_is_named(world: ShimWorld):
    from dataclasses import replace

    from lastcall.kube.cri.api import Capability, LinuxContainerSecurityContext

    sandbox = await world.sandbox()
    image = world.images.known["busybox"]
    world.images.known["busybox"] = replace(image, config=replace(image.config, user="ghost"))
    assert await refused(world, sandbox, "true") == "unable to find user ghost: no matching entries in passwd file"
    world.images.known["busybox"] = image
    odd = LinuxContainerSecurityContext(capabilities=Capability(add=("FLY",)))
    assert await refused(world, sandbox, "true", security_context=odd) == "unknown capability 'FLY'"
    message = await refused(world, sandbox, "true", working_dir="/etc/passwd")
    assert message == "error during container init: mkdir /etc/passwd: not a directory"


@inside
async def test_what_the_runtime_refuses_at_once(world: ShimWorld):
    from dataclasses import replace

    from lastcall.kube.cri.sandbox.spec import ImageConfig

    sandbox = await world.sandbox()
    with pytest.raises(RuntimeServiceError) as caught:
        await world.create("nosuch", "true")
    assert caught.value.reason == "NotFound"
    with pytest.raises(RuntimeServiceError, match="unknown signal 'SIGNOPE'"):
        await world.create(sandbox, "true", stop_signal="SIGNOPE")
    image = world.images.known["busybox"]
    world.images.known["busybox"] = replace(image, config=ImageConfig())
    with pytest.raises(RuntimeServiceError, match="no command specified"):
        await world.create(sandbox)
    with pytest.raises(RuntimeServiceError) as caught:
        await world.runtime.container_status("nosuch")
    assert caught.value.reason == "NotFound"


@inside
async def test_a_full_disk_is_an_error_and_not_the_end(world: ShimWorld):
    from lastcall.world import linux

    Path("/mnt/containers").mkdir(exist_ok=True)
    linux.mount("full", "/mnt/containers", "tmpfs", 0, "size=4k,mode=755")
    Path("/mnt/containers/filler").write_bytes(b"x" * 4096)
    sandbox = await world.sandbox()
    with pytest.raises(RuntimeServiceError, match="No space left on device"):
        await world.create(sandbox, "true")
    assert await world.runtime.list_containers() == []
    await world.runtime.stop_pod_sandbox(sandbox)
    linux.umount2("/mnt/containers", linux.MNT_DETACH)


@inside
async def test_a_shim_that_cannot_write_its_records_starts_nothing_and_lives(world: ShimWorld):
    from lastcall.world import linux

    sandbox = await world.sandbox()
    running = await world.start(sandbox, "sh", "-c", "trap 'exit 3' TERM; echo up; while true; do sleep 0.05; done")
    await world.printed(running, "up")
    linux.mount("full", "/mnt/shim/processes", "tmpfs", 0, "size=4k,mode=700")
    Path("/mnt/shim/processes/filler").write_bytes(b"x" * 4096)
    container = await world.create(sandbox, "sleep", "100", name="second")
    with pytest.raises(RuntimeServiceError, match="No space left on device"):
        await world.runtime.start_container(container)
    with pytest.raises(RuntimeServiceError, match="No space left on device"):
        await world.runtime.exec_sync(running, ("true",), 0)
    linux.umount2("/mnt/shim/processes", linux.MNT_DETACH)
    assert sum(command.startswith("sleep 100") for command in world.processes().values()) == 0
    await world.runtime.stop_container(running, 10)
    assert (await world.runtime.container_status(running)).exit_code == 3


@inside
async def test_a_log_that_cannot_be_opened_is_named(world: ShimWorld):
    from dataclasses import replace

    sandbox = await world.sandbox()
    world.sandbox_config = replace(world.sandbox_config, log_directory="/dev/null/logs")
    assert "Not a directory" in await refused(world, sandbox, "true")
