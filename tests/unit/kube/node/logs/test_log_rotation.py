"""node-semantics 17.2: a container's log is rotated as the kubelet does it."""

import asyncio
import gzip
import os
from pathlib import Path

import pytest

from lastcall.kube.cri.api import ContainerMetadata, ContainerState, ContainerStatus, RuntimeServiceError
from lastcall.kube.node.logs.rotation import (
    ContainerLogManager,
    ContainerLogPolicy,
    Rotation,
    compress_log,
    parse_log_policy,
    plan_rotation,
)
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual

RUNNING = ContainerState.CONTAINER_RUNNING


@pytest.mark.rule("node-semantics 17.2/rotation")
@pytest.mark.parametrize(
    ("rotated", "max_files", "expected"),
    [
        ([], 5, Rotation((), ())),
        (["l.1"], 5, Rotation((), ("l.1",))),
        (["l.1.gz", "l.2.gz", "l.3"], 5, Rotation((), ("l.3",))),
        (["l.4", "l.3.gz", "l.2.gz", "l.1.gz"], 5, Rotation(("l.1.gz",), ("l.4",))),
        (["l.1.gz", "l.2"], 3, Rotation(("l.1.gz",), ("l.2",))),
        (["l.1"], 2, Rotation(("l.1",), ())),
        # what a compression left that was cut off, before its end and after it
        (["l.1", "l.1.tmp"], 5, Rotation(("l.1.tmp",), ("l.1",))),
        (["l.1", "l.1.gz"], 5, Rotation(("l.1",), ())),
    ],
)
def test_what_a_rotation_removes_and_compresses(rotated, max_files, expected):
    assert plan_rotation(rotated, max_files) == expected


def test_a_compressed_log_takes_the_place_of_the_plain_one(tmp_path):
    (tmp_path / "l").write_bytes(b"text\n" * 1000)
    (tmp_path / "l").chmod(0o640)
    compress_log(f"{tmp_path}/l")
    assert os.listdir(tmp_path) == ["l.gz"]
    assert (tmp_path / "l.gz").stat().st_mode & 0o777 == 0o640
    assert gzip.decompress((tmp_path / "l.gz").read_bytes()) == b"text\n" * 1000


def test_a_link_is_not_compressed(tmp_path):
    (tmp_path / "victim").write_text("secret")
    (tmp_path / "l").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        compress_log(f"{tmp_path}/l")
    assert sorted(os.listdir(tmp_path)) == ["l", "victim"]


@pytest.mark.parametrize(
    ("size", "files", "expected"),
    [("10Mi", 5, (10 << 20, 5)), ("500k", 2, (500_000, 2)), ("-1", 5, (0, 5))],
)
def test_the_kubelet_s_words_for_a_policy(size, files, expected):
    policy = parse_log_policy(size, files)
    assert (policy.max_size, policy.max_files) == expected


@pytest.mark.parametrize(
    ("size", "files", "text"),
    [("0", 5, "containerLogMaxSize: '0'"), ("big", 5, "containerLogMaxSize: 'big'"), ("1Mi", 1, "MaxFiles: 1")],
)
def test_a_bad_policy_is_named(size, files, text):
    with pytest.raises(ValueError, match=text):
        parse_log_policy(size, files)


class Runtime:
    """One container and its log; `broken` is what reopening says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.broken = ""
        self.state = RUNNING
        self.reopened = 0

    def status(self):
        return ContainerStatus("id", ContainerMetadata("c"), "s", self.state, "i", "r", 1, log_path=str(self.path))

    async def list_containers(self):
        return [self.status()]

    async def container_status(self, container_id):
        return self.status()

    async def reopen_container_log(self, container_id):
        if self.broken:
            raise RuntimeServiceError(self.broken)
        self.reopened += 1
        self.path.touch()


async def compress(path):
    compress_log(path)


def run(tmp_path, scenario, **policy):
    """`scenario(world, runtime, manager)` beside a manager that runs; logs are full at 10 bytes."""

    async def main(world):
        runtime = Runtime(tmp_path / "0.log")
        manager = ContainerLogManager(
            world=world,
            runtime=runtime,
            policy=ContainerLogPolicy(**{"max_size": 10, **policy}),
            log_root=str(tmp_path),
            compress=compress,
        )
        async with Tasks() as tasks:
            tasks.spawn(manager.run(), name="logs")
            await world.clock.sleep(1)
            await scenario(world, runtime, manager)
            tasks.cancel()

    run_virtual(main)
    return sorted(os.listdir(tmp_path))


@pytest.mark.rule("node-semantics 17.2/rotation")
def test_the_number_of_files_is_bounded_and_all_but_two_are_compressed(tmp_path):
    async def scenario(world, runtime, manager):
        for number in range(9):
            runtime.path.write_text(f"{number:020}\n")
            await world.clock.sleep(10)

    names = run(tmp_path, scenario)
    assert len(names) == 5
    assert [name.endswith(".gz") for name in names] == [False, True, True, True, False]
    texts = [gzip.decompress((tmp_path / name).read_bytes()) for name in names[1:4]]
    assert [int(text) for text in texts] == [5, 6, 7]
    assert int((tmp_path / names[4]).read_text()) == 8
    assert (tmp_path / names[0]).read_text() == ""


@pytest.mark.rule("node-semantics 17.2/rotation")
def test_a_log_is_looked_at_every_ten_seconds_and_a_small_one_is_left_alone(tmp_path):
    async def scenario(world, runtime, manager):
        runtime.path.write_text("123456789")
        await world.clock.sleep(10)
        assert runtime.reopened == 1  # there was none at first
        runtime.path.write_text("1234567890")
        await world.clock.sleep(8.5)
        assert runtime.reopened == 1
        await world.clock.sleep(1.0)
        assert runtime.reopened == 2

    assert len(run(tmp_path, scenario)) == 2


def test_a_full_log_is_rotated_at_once_but_not_twice_in_a_second(tmp_path):
    async def scenario(world, runtime, manager):
        for _ in range(2):
            runtime.path.write_text("1234567890")
            manager.full("id")
            await asyncio.sleep(0)
        await world.clock.sleep(0.01)
        assert runtime.reopened == 2
        runtime.path.write_text("1234567890")
        manager.full("id")
        await world.clock.sleep(1.2)
        assert runtime.reopened == 3

    names = run(tmp_path, scenario)
    assert len(names) == 3


@pytest.mark.rule("node-semantics 17.2/rotation")
def test_a_log_that_cannot_be_opened_anew_is_put_back_and_tried_again(tmp_path):
    async def scenario(world, runtime, manager):
        runtime.path.write_text("1234567890")
        runtime.broken = "no"
        await world.clock.sleep(10)
        assert (os.listdir(tmp_path), runtime.path.read_text()) == (["0.log"], "1234567890")
        runtime.broken = ""
        await world.clock.sleep(10)

    assert len(run(tmp_path, scenario)) == 2


def test_the_log_of_an_ended_container_is_left_alone(tmp_path):
    async def scenario(world, runtime, manager):
        runtime.path.write_text("1234567890")
        runtime.state = ContainerState.CONTAINER_EXITED
        manager.full("id")
        await world.clock.sleep(20)

    assert run(tmp_path, scenario) == ["0.log"]


def test_without_a_size_nothing_is_rotated(tmp_path):
    async def scenario(world, runtime, manager):
        runtime.path.write_text("1234567890")
        await world.clock.sleep(20)

    assert run(tmp_path, scenario, max_size=0) == ["0.log"]
