"""What nginx, postgres and redis do when they start, with programs of the test: chown, setgroups, setgid, setuid, exec.

As root every id is there. With a single user id the calls are answered, and a process that asked to be someone else is
that one from its next execve on.
"""

import os
from pathlib import Path

import pytest
from ordinary_user import EVERY_USER, SUBORDINATE
from shim_world import ShimWorld, inside_as

from lastcall.kube.cri.api import (
    MISSING_GROUPS,
    SINGLE_USER_ID,
    USER_IDS_MAPPED,
    Capability,
    LinuxContainerSecurityContext,
    SecurityProfile,
)

pytestmark = pytest.mark.real_kernel


def single(world: ShimWorld) -> bool:
    return sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines()) == 1


ENTRYPOINT = """
set -e
if [ "$(id -u)" = 0 ]; then
  mkdir -p /data
  chown app:app /data
  exec setpriv_ "$0" "$@"
fi
echo "runs as $(id -u):$(id -g), $(stat -c %u /data) owns the data, argument $1"
touch /data/file
stat -c 'file of %u' /data/file
grep CapEff /proc/self/status
"""


@inside_as(EVERY_USER)
async def test_each_kind_of_user_has_the_ids_it_should(world: ShimWorld) -> None:
    status = await world.runtime.status()
    condition = status.find(USER_IDS_MAPPED)
    assert condition is not None
    kind = os.environ["LASTCALL_TEST_USER"]
    if kind == SUBORDINATE:
        assert (condition.status, condition.message) == (True, "65537 user ids")
    elif kind == "ordinary user":
        assert (condition.status, condition.reason) == (False, "SingleUserID")
    else:
        assert condition.status == (not single(world))


def image_with(world: ShimWorld, **files: str) -> None:
    for applet in ["chown", "setpriv", "start-stop-daemon", "su", "grep", "id", "stat"]:
        path = world.images.layer / "bin" / applet
        if not path.is_symlink():
            path.symlink_to("busybox")
    for name, text in files.items():
        path = world.images.layer / "bin" / name
        path.write_text(text)
        path.chmod(0o755)


@inside_as(EVERY_USER)
async def test_an_entrypoint_that_starts_itself_again_as_its_user_gets_there(world: ShimWorld) -> None:
    # `su` changes group and user, then executes: what gosu and su-exec do.
    script = ENTRYPOINT.replace('exec setpriv_ "$0" "$@"', 'exec su app -s /bin/entrypoint -- "$@"')
    image_with(world, entrypoint=f"#!/bin/sh\n{script}")
    status, output = await world.run("/bin/entrypoint", "serve")
    assert status.exit_code == 0, output
    assert "runs as 1000:1001, 1000 owns the data, argument serve" in output
    assert "file of 1000" in output
    assert "CapEff:\t0000000000000000" in output
    told = status.info.get(SINGLE_USER_ID, "").split()
    if single(world):
        assert {"chown", "setgid", "setuid"} <= set(told), told
        calls = [record.facts["call"] for record in world.find("PrivilegeCallAnswered")]
        assert sorted(calls) == sorted(told), "each is told once"
        (asked,) = [r.facts["id"] for r in world.find("PrivilegeCallAnswered") if r.facts["call"] == "setuid"]
        assert asked == 1000
    else:
        assert told == []


C_MASTER = r"""
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (chown("/tmp", 101, 101)) { perror("chown"); return 1; }
    if (argc > 1 && !strcmp(argv[1], "gosu")) {
        gid_t groups[1] = {102};
        if (setgroups(1, groups) || setgid(102) || setuid(101)) { perror("drop"); return 1; }
        execv(argv[2], argv + 2);  /* path and argv[0] are the same string */
        perror("execv");
        return 1;
    }
    if (fork() == 0) {  /* a worker of nginx: no execve after it */
        if (initgroups("app", 101) || setgid(101) || setuid(101)) { perror("worker"); return 1; }
        FILE *file = fopen("/tmp/worker", "w");
        if (!file || fputs("served\n", file) < 0 || fclose(file)) { perror("worker's file"); return 1; }
        printf("worker uid %d\n", (int)getuid());
        return 0;
    }
    int status;
    wait(&status);
    printf("master uid %d, worker %d\n", (int)getuid(), status);
    return status != 0;
}
"""


def compiled(world: ShimWorld) -> None:
    import shutil
    import subprocess

    if shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    source = Path("/mnt/master.c")
    source.write_text(C_MASTER)
    subprocess.run(["gcc", "-static", "-o", str(world.images.layer / "bin/master"), str(source)], check=True)


@inside_as(EVERY_USER)
async def test_a_master_as_root_with_a_worker_that_drops_to_another_user(world: ShimWorld) -> None:
    compiled(world)
    status, output = await world.run("master")
    assert status.exit_code == 0, output
    assert "master uid 0, worker 0" in output
    assert f"worker uid {0 if single(world) else 101}" in output, "without an execve it stays who it is"


@inside_as(EVERY_USER)
async def test_a_program_that_shares_path_and_first_argument_is_not_shown_the_detour(world: ShimWorld) -> None:
    compiled(world)
    image_with(world, whoami_and_args='#!/bin/sh\necho "$(id -u):$(id -g) $0 $1 $PATH_SEEN"\n')
    status, output = await world.run("master", "gosu", "/bin/whoami_and_args", "x", envs=(("PATH_SEEN", "kept"),))
    assert (status.exit_code, output) == (0, "101:102 /bin/whoami_and_args x kept")
    status, output = await world.run("master", "gosu", "/bin/echo", "a", "b", name="d")
    assert (status.exit_code, output) == (0, "a b"), "busybox looks at its first argument"


@inside_as(EVERY_USER)
async def test_children_of_a_process_that_dropped_are_that_user_too(world: ShimWorld) -> None:
    image_with(world, tree='#!/bin/sh\nid -u; sh -c "id -u; sh -c \\"id -u\\""\n')
    compiled(world)
    status, output = await world.run("master", "gosu", "/bin/tree")
    assert (status.exit_code, output.split()) == (0, ["101", "101", "101"])


@inside_as(EVERY_USER)
async def test_a_command_that_does_not_exist_fails_as_ever_after_the_drop(world: ShimWorld) -> None:
    compiled(world)
    status, output = await world.run("master", "gosu", "/bin/none-of-it")
    assert status.exit_code == 1
    assert "execv: No such file or directory" in output


@inside_as(EVERY_USER)
async def test_without_the_capability_a_change_of_owner_or_user_fails(world: ShimWorld) -> None:
    image_with(world)
    nothing = LinuxContainerSecurityContext(capabilities=Capability(drop=("ALL",)))
    for command in ("chown 5 /tmp", "setpriv --nnp su app -c id", "chown 0:0 /tmp && echo own ids need none"):
        status, output = await world.run("sh", "-c", command, name=f"c{len(command)}", security_context=nothing)
        if "own ids" in command:
            assert (status.exit_code, output) == (0, "own ids need none")
        else:
            assert status.exit_code != 0, f"{command}: {output}"
            assert "not permitted" in output, output
    assert not world.find("PrivilegeCallAnswered")


@inside_as(EVERY_USER)
async def test_another_user_than_root_is_answered_by_the_kernel(world: ShimWorld) -> None:
    image_with(world)
    other = LinuxContainerSecurityContext(run_as_user=4711, run_as_group=4712)
    status, output = await world.run("sh", "-c", "id -u; id -g; chown 5 /tmp", security_context=other)
    assert status.exit_code != 0
    assert output.splitlines()[:2] == ["4711", "4712"]
    assert not world.find("PrivilegeCallAnswered")


@inside_as(EVERY_USER)
async def test_groups_that_cannot_be_had_are_named(world: ShimWorld) -> None:
    groups = LinuxContainerSecurityContext(supplemental_groups=(2000, 3000))
    status, output = await world.run("id", "-G", security_context=groups)
    if single(world):
        assert status.info[MISSING_GROUPS] == "2000 3000"
    else:
        assert {"2000", "3000"} <= set(output.split())
        assert MISSING_GROUPS not in status.info


@inside_as(EVERY_USER)
async def test_an_exec_is_answered_as_the_container_is(world: ShimWorld) -> None:
    image_with(world)
    container = await world.start(await world.sandbox(), "sleep", "100")
    answer = await world.runtime.exec_sync(container, ("sh", "-c", "chown 77 /tmp && su app -c 'id -u'"), 60)
    assert (answer.exit_code, answer.stdout) == (0, b"1000\n"), answer
    status = await world.runtime.container_status(container)
    assert (SINGLE_USER_ID in status.info) == single(world)


@inside_as(EVERY_USER)
async def test_an_exec_may_not_signal_a_program_that_has_become_another_user(world: ShimWorld) -> None:
    """kill(2): root without CAP_KILL is like any other user. With a single user id both are the same one."""
    image_with(world)
    context = LinuxContainerSecurityContext(capabilities=Capability(drop=("KILL",)))
    script = "exec su app -s /bin/sh -c 'trap \"exit 0\" TERM; echo up; while true; do sleep 0.05; done'"
    container = await world.start(await world.sandbox(), "sh", "-c", script, security_context=context)
    await world.printed(container, "up")
    answer = await world.runtime.exec_sync(container, ("sh", "-c", "kill -TERM 1; sleep 0.1"), 0)
    if single(world):
        assert (await world.ended(container)).exit_code == 0
        return
    assert (answer.exit_code, answer.stderr) == (0, b"sh: can't kill pid 1: Operation not permitted\n")
    await world.runtime.stop_container(container, 30)
    assert world.find("ProcessStarted")[0].facts["uid"] == 0
    assert world.find("ProcessSignalState")[0].facts["uid"] == 1000


@inside_as(EVERY_USER)
async def test_runtime_default_names_itself_and_forbids_namespaces_and_mounts(world: ShimWorld) -> None:
    image_with(world)
    (world.images.layer / "bin/unshare").symlink_to("busybox")
    profile = LinuxContainerSecurityContext(seccomp=SecurityProfile("RuntimeDefault"))
    script = "grep Seccomp: /proc/self/status; unshare -n true; unshare -m true; ls / >/dev/null && su app -c 'id -u'"
    status, output = await world.run("sh", "-c", script, security_context=profile)
    assert status.exit_code == 0, output
    assert "Seccomp:\t2" in output
    assert output.count("Operation not permitted") == 2, output
    assert "1000" in output.splitlines()
    (started,) = world.find("ProcessStarted")
    assert started.facts["seccomp"] == "RuntimeDefault"


@inside_as(EVERY_USER)
async def test_a_profile_of_the_node_is_applied_and_a_missing_one_named(world: ShimWorld) -> None:
    image_with(world)
    path = Path("/mnt/no-mkdir.json")
    path.write_text(  # noqa: ASYNC240
        '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", '
        '"errnoRet": 28}]}'
    )
    profile = LinuxContainerSecurityContext(seccomp=SecurityProfile("Localhost", str(path)))
    status, output = await world.run("mkdir", "/tmp/x", security_context=profile)
    assert status.exit_code == 1
    assert "No space left on device" in output
    missing = LinuxContainerSecurityContext(seccomp=SecurityProfile("Localhost", "/mnt/none.json"))
    with pytest.raises(Exception, match=r'cannot load seccomp profile "/mnt/none\.json": open .*: no such'):
        await world.start(await world.sandbox(), "true", security_context=missing)
