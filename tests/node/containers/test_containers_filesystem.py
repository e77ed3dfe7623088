"""What a container sees and what it cannot touch."""
# ruff: noqa: ASYNC240, RUF059 - a scenario has its process to itself

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import Capability, LinuxContainerSecurityContext, Mount, RuntimeServiceError
from lastcall.kube.cri.sandbox.spec import RootFilesystem
from lastcall.world import linux

DEFAULT_MASK = 0x00000000A80425FB
"""docker's and containerd's 14 capabilities."""


def status_field(text: str, name: str) -> str:
    return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(f"{name}:"))


@inside
async def test_the_container_has_its_own_root_and_cannot_see_the_node(world: ShimWorld):
    script = "ls /; echo --; while read a b c; do echo $b; done < /proc/mounts; echo --; echo $$; ls /mnt 2>&1"
    _, output = await world.run("sh", "-c", script)
    root, mounts, rest = output.split("--\n")
    assert root.split() == ["bin", "dev", "etc", "lower", "proc", "sys", "tmp"]
    assert not [mount for mount in mounts.split() if "mnt" in mount or "work" in mount]
    assert rest.splitlines()[0] == "1"
    assert "No such file" in rest


@inside
async def test_what_is_written_goes_to_the_upper_layer_and_not_into_the_image(world: ShimWorld):
    script = """
    cat lower/file; echo new > /lower/file; rm -r /lower; mkdir /lower; echo [$(ls /lower)]
    rm /etc/group; ls /etc
    """
    status, output = await world.run("sh", "-c", script)
    assert (status.exit_code, output) == (0, "from the image\n[]\npasswd")
    assert Path(world.images.layer, "lower/file").read_text() == "from the image\n"


@inside
async def test_a_read_only_root_file_system_cannot_be_written_to(world: ShimWorld):
    script = "touch /x; echo $?; touch /lower/x; echo $?; touch /data/x; echo $?"
    Path("/mnt/data").mkdir()
    context = LinuxContainerSecurityContext(readonly_rootfs=True)
    mounts = (Mount("/data", "/mnt/data"),)
    status, _ = await world.run("sh", "-c", script, security_context=context, mounts=mounts)
    assert world.output(status, "stdout").split() == ["1", "1", "0"]


@inside
async def test_binds_files_and_directories_read_only_with_everything_below(world: ShimWorld):
    for name in ("data", "data/inner", "other"):
        Path("/mnt", name).mkdir()
    linux.mount("inner", "/mnt/data/inner", "tmpfs", 0, "size=1m")
    Path("/mnt/hosts").write_text("127.0.0.1 localhost\n")
    Path("/mnt/termination").touch()
    mounts = (
        Mount("/ro/deep", "/mnt/data", readonly=True),
        Mount("/ro/deep/inner2", "/mnt/other"),
        Mount("/rw", "/mnt/data"),
        Mount("/etc/hosts", "/mnt/hosts"),
        Mount("/dev/termination-log", "/mnt/termination"),
    )
    Path("/mnt/data/inner2").mkdir()
    script = """
    for place in /ro/deep /ro/deep/inner /ro/deep/inner2 /rw /rw/inner; do
      touch $place/probe 2>/dev/null && echo $place yes || echo $place no
    done
    cat /etc/hosts; echo the end > /dev/termination-log
    """
    status, output = await world.run("sh", "-c", script, mounts=mounts)
    assert output.splitlines() == [
        "/ro/deep no",
        "/ro/deep/inner no",
        "/ro/deep/inner2 yes",
        "/rw yes",
        "/rw/inner yes",
        "127.0.0.1 localhost",
    ]
    assert Path("/mnt/termination").read_text() == "the end\n"
    assert Path("/mnt/other/probe").exists() and Path("/mnt/data/inner/probe").exists()


@inside
async def test_hostile_links_in_the_image_lead_nowhere_outside(world: ShimWorld):
    layer = world.images.layer
    Path("/mnt/victim").mkdir()
    Path("/mnt/source").mkdir()
    (layer / "escape").symlink_to("/mnt/victim")
    (layer / "up").symlink_to("../../../../../../mnt/victim")
    (layer / "loop").symlink_to("loop")
    (layer / "magic").symlink_to("/proc/self/root/mnt/victim")
    mounts = (Mount("/escape/a", "/mnt/source"), Mount("/up/b", "/mnt/source"), Mount("/../../c", "/mnt/source"))
    status, output = await world.run("sh", "-c", "ls -d /mnt/victim/a /mnt/victim/b /c", mounts=mounts)
    assert sorted(output.splitlines()) == ["/c", "/mnt/victim/a", "/mnt/victim/b"]
    assert list(Path("/mnt/victim").iterdir()) == []
    for target in ("/loop/x", "/magic/x"):
        container = await world.create(await world.sandbox(), "true", mounts=(Mount(target, "/mnt/source"),))
        with pytest.raises(RuntimeServiceError, match="too many levels of symbolic links"):
            await world.runtime.start_container(container)


@inside
async def test_dev_has_the_usual_devices_and_nothing_of_the_machine(world: ShimWorld):
    script = """
    ls /dev; echo x > /dev/null && head -c 3 /dev/zero | tr '\\0' z; echo
    echo to stderr > /dev/stderr; echo shared > /dev/shm/x; stat -c %a /dev/shm
    head -c 1 /dev/urandom > /dev/null && echo random
    readlink /dev/ptmx; test -e /dev/pts/ptmx && echo pts
    """
    status, _ = await world.run("sh", "-c", script)
    output = world.output(status, "stdout").splitlines()
    names = [
        "fd",
        "full",
        "mqueue",
        "null",
        "ptmx",
        "pts",
        "random",
        "shm",
        "stderr",
        "stdin",
        "stdout",
        "tty",
        "urandom",
        "zero",
    ]
    assert output[:14] == names
    assert output[14:] == ["zzz", "1777", "random", "pts/ptmx", "pts"]
    assert world.output(status, "stderr") == "to stderr"


@inside
async def test_containers_of_a_pod_share_dev_shm_hostname_and_network_and_not_their_processes(world: ShimWorld):
    sandbox = await world.sandbox()
    first = await world.start(sandbox, "sh", "-c", "echo hi > /dev/shm/x; echo up; sleep 100", name="a")
    await world.printed(first, "up")
    second = await world.start(
        sandbox,
        "sh",
        "-c",
        "cat /dev/shm/x; hostname; readlink /proc/self/ns/net; ps | grep -c sleep; echo done",
        name="b",
    )
    output = world.output(await world.ended(second)).splitlines()
    assert output[:2] == ["hi", "p"]
    net = await world.runtime.exec_sync(first, ("readlink", "/proc/self/ns/net"), 0)
    assert output[2] == net.stdout.decode().strip()
    other = await world.sandbox()
    third = await world.start(other, "sh", "-c", "ls /dev/shm; readlink /proc/self/ns/net", name="c")
    (line,) = world.output(await world.ended(third)).splitlines()
    assert line.startswith("net:") and line != output[2]


@inside
async def test_the_kernel_s_secrets_are_masked_and_its_switches_read_only(world: ShimWorld):
    script = """
    echo x 2>/dev/null > /proc/sys/kernel/domainname && echo sysctl || echo no sysctl
    echo x 2>/dev/null > /proc/sysrq-trigger && echo sysrq || echo no sysrq
    for path in /proc/keys /proc/timer_list /proc/kcore; do
      test -e $path && head -c 1 $path | head -c 1; done; echo [masked]
    ls /sys/firmware /proc/acpi /proc/scsi 2>/dev/null | grep -v : | tr -d '\\n'; echo [empty]
    touch /sys/x 2>/dev/null && echo sys || echo no sys
    mount -t tmpfs x /tmp 2>/dev/null && echo mounted || echo no mount
    """
    status, _ = await world.run("sh", "-c", script)
    lines = world.output(status, "stdout").splitlines()
    assert lines == ["no sysctl", "no sysrq", "[masked]", "[empty]", "no sys", "no mount"]


@inside
async def test_capabilities_are_the_default_fourteen_with_add_and_drop(world: ShimWorld):
    cases = (
        (LinuxContainerSecurityContext(), DEFAULT_MASK),
        (LinuxContainerSecurityContext(capabilities=Capability(drop=("ALL",))), 0),
        (LinuxContainerSecurityContext(capabilities=Capability(add=("NET_BIND_SERVICE",), drop=("ALL",))), 1 << 10),
        (
            LinuxContainerSecurityContext(capabilities=Capability(add=("CAP_NET_ADMIN",), drop=("KILL",))),
            DEFAULT_MASK | 1 << 12 ^ 0,
        ),
        (LinuxContainerSecurityContext(privileged=True), (1 << 41) - 1),
    )
    for number, (context, mask) in enumerate(cases):
        if context.capabilities.drop == ("KILL",):
            mask &= ~(1 << 5)
        status, output = await world.run("cat", "/proc/self/status", name=f"c{number}", security_context=context)
        for field in ("CapEff", "CapPrm", "CapBnd"):
            assert int(status_field(output, field), 16) == mask, (context, field, output)
        for field in ("CapInh", "CapAmb"):
            assert int(status_field(output, field), 16) == 0
        assert int(status_field(output, "SigIgn"), 16) == 0
        assert int(status_field(output, "SigBlk"), 16) == 0


@inside
async def test_the_user_comes_from_the_image_or_the_security_context(world: ShimWorld):
    image = world.images.known["busybox"]

    async def who(name: str, user: str, **context: object) -> list[str]:
        world.images.known["busybox"] = replace(image, config=replace(image.config, user=user))
        security = LinuxContainerSecurityContext(**context)
        status, output = await world.run("sh", "-c", "id -u; id -g; echo $HOME", name=name, security_context=security)
        assert status.exit_code == 0
        return output.splitlines()

    assert await who("a", "") == ["0", "0", "/root"]
    assert await who("b", "app") == ["1000", "1001", "/home/app"]
    assert await who("c", "1000") == ["1000", "1001", "/home/app"]
    assert await who("d", "4711:12") == ["4711", "12", "/"]
    assert await who("e", "app:root") == ["1000", "0", "/home/app"]
    assert await who("f", "app", run_as_user=0) == ["0", "0", "/root"]
    assert await who("g", "", run_as_user=65534, run_as_group=7) == ["65534", "7", "/"]
    assert await who("h", "", run_as_user=0, run_as_group=7) == ["0", "7", "/root"]


@inside
async def test_an_ordinary_user_in_the_container_writes_what_it_owns(world: ShimWorld):
    Path("/mnt/volume").mkdir(mode=0o777)
    Path("/mnt/volume").chmod(0o777)
    context = LinuxContainerSecurityContext(run_as_user=1000, run_as_group=1000)
    script = """
    touch /data/x && stat -c %u:%g /data/x
    while read a b; do case $a in CapEff:) echo $b;; esac; done < /proc/self/status
    """
    status, output = await world.run(
        "sh", "-c", script, security_context=context, mounts=(Mount("/data", "/mnt/volume"),)
    )
    assert output.splitlines() == ["1000:1000", "0000000000000000"]


@inside
async def test_nothing_of_the_shim_is_open_in_a_container(world: ShimWorld):
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sh", "-c", "ls /proc/self/fd; readlink /proc/self/fd/0; echo up; sleep 100")
    await world.printed(container, "up")
    # ls itself has opened the directory as its fourth
    assert world.output(await world.runtime.container_status(container)).split()[:5] == [
        "0",
        "1",
        "2",
        "3",
        "/dev/null",
    ]
    answer = await world.runtime.exec_sync(container, ("ls", "/proc/self/fd"), 0)
    assert answer.stdout.split() == [b"0", b"1", b"2", b"3"]


@inside
async def test_env_working_directory_and_oom_score_are_the_container_s(world: ShimWorld):
    from lastcall.kube.cri.api import LinuxContainerResources

    image = world.images.known["busybox"]
    config = replace(image.config, env=("A=image", "B=image", "C=a=b"), working_dir="/made/here")
    world.images.known["busybox"] = replace(image, config=config)
    status, output = await world.run(
        "sh",
        "-c",
        "echo $A $B $C $D; pwd; cat /proc/self/oom_score_adj; echo $PATH",
        envs=(("A", "pod"), ("D", "two words")),
        resources=LinuxContainerResources(oom_score_adj=900),
    )
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert output.splitlines() == ["pod image a=b two words", "/made/here", "900", path]


@inside
async def test_the_image_s_binds_are_mounted_before_the_pod_s(world: ShimWorld):
    Path("/mnt/tools").mkdir()
    Path("/mnt/tools/tool").write_text("tool\n")
    Path("/mnt/mine").write_text("mine\n")
    image = world.images.known["busybox"]
    world.images.known["busybox"] = replace(image, binds=(Mount("/tools", "/mnt/tools", readonly=True),))
    mounts = (Mount("/tools/tool", "/mnt/mine"),)
    _, output = await world.run("sh", "-c", "cat /tools/tool; touch /tools/x 2>/dev/null || echo ro", mounts=mounts)
    assert output.splitlines() == ["mine", "ro"]


@inside
async def test_many_layers_fit_into_one_page_of_options(world: ShimWorld):
    base = Path("/mnt/images-with-a-rather-long-name-so-that-the-options-get-long" + "x" * 60)
    layers = []
    for number in range(100):
        layer = base / f"layer,{number}:of\\it"
        (layer / "parts").mkdir(parents=True)
        (layer / "parts" / str(number)).touch()
        layers.append(str(layer))
    image = world.images.known["busybox"]
    world.images.known["busybox"] = replace(image, lowerdirs=(*layers, *image.lowerdirs))
    _, output = await world.run("ls", "/parts")
    assert len(output.split()) == 100


@inside
async def test_before_linux_5_12_a_read_only_bind_is_remounted_mount_by_mount(world: ShimWorld):
    import errno
    import os

    from lastcall.kube.cri.sandbox.shim.rootfs.confined import Root
    from lastcall.kube.cri.sandbox.shim.rootfs.volumes import bind_mount

    for name in ("root", "data", "data/in ner"):
        Path("/mnt", name).mkdir()
    linux.mount("inner", "/mnt/data/in ner", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "size=1m")

    def not_there(*arguments: object) -> None:
        raise OSError(errno.ENOSYS, "mount_setattr")

    real, linux.mount_setattr = linux.mount_setattr, not_there
    try:
        root = Root(os.open("/mnt/root", os.O_PATH | os.O_DIRECTORY))
        bind_mount(root, {"source": "/mnt/data", "target": "/a", "readonly": True}, 0)
    finally:
        linux.mount_setattr = real
    for path in ("/mnt/root/a", "/mnt/root/a/in ner"):
        assert os.statvfs(path).f_flag & os.ST_RDONLY
    for path in ("/mnt/data", "/mnt/data/in ner"):
        assert not os.statvfs(path).f_flag & os.ST_RDONLY


@inside
async def test_an_image_volume_shows_a_path_that_its_layers_have_together_and_no_other(world: ShimWorld):
    upper, lower = Path("/mnt/layers/upper"), Path("/mnt/layers/lower")
    for directory in (upper / "etc", lower / "etc", lower / "data", lower / "gone"):
        directory.mkdir(parents=True)
    (lower / "data/file").write_text("of the lower layer\n")
    (upper / "etc/link").symlink_to("../data")
    os.mknod(upper / "gone", stat.S_IFCHR, os.makedev(0, 0))
    world.images.known["data"] = RootFilesystem((str(upper), str(lower)))
    mounts = (Mount("/volume", "", readonly=True, image="data", image_sub_path="etc/link"),)
    _, output = await world.run("sh", "-c", "cat /volume/file; touch /volume/x 2>/dev/null || echo ro", mounts=mounts)
    assert output.splitlines() == ["of the lower layer", "ro"]
    for path in ("gone", "data/none"):
        mounts = (Mount("/volume", "", readonly=True, image="data", image_sub_path=path),)
        with pytest.raises(RuntimeServiceError, match=f"its path '{path}' does not exist"):
            await world.create(await world.sandbox(), "true", mounts=mounts)
