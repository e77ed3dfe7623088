"""A directory of manifests as it is followed (config/file.go), in virtual time, with files of the test's."""

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lastcall.kube.node.config import PodUpdates
from lastcall.kube.node.static_pods.source import FILE_CHECK_SECONDS, POLL_SECONDS, FileConfig
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def manifest(name: str, image: str = "i:1") -> bytes:
    spec = {"containers": [{"name": "app", "image": image}]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}).encode()


class Directory:
    """Files of a node, which a test changes; what the kubelet was told of them, and of duplicates."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.files: dict[str, bytes | str] = {}
        self.error: OSError | None = None
        self.told: list[tuple[str, str, str]] = []
        self.duplicates: list[str] = []
        self.config = FileConfig(
            self, "node-1", self.take, world=world, on_duplicate=lambda pod, message: self.duplicates.append(message)
        )

    async def read(self) -> dict[str, bytes | str]:
        if self.error is not None:
            raise self.error
        return dict(self.files)

    def take(self, updates: PodUpdates) -> None:
        for operation, pods in updates.pods.items():
            for each in pods:
                self.told.append((operation.name, each["metadata"]["name"], each["spec"]["containers"][0]["image"]))

    def told_since(self) -> list[tuple[str, str, str]]:
        found, self.told = self.told, []
        return found


def with_files(scenario: Callable[[Directory], Awaitable[None]]) -> Directory:
    async def main(world: World) -> Directory:
        directory = Directory(world)
        await scenario(directory)
        return directory

    return run_virtual(main)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]


def test_a_changed_file_is_another_pod_and_an_unchanged_one_is_none() -> None:
    async def scenario(directory: Directory) -> None:
        look = directory.config.look
        directory.files = {"a.yaml": manifest("a"), "b.yaml": manifest("b")}
        assert not directory.config.ready
        await look()
        assert directory.config.ready
        assert directory.told_since() == [("ADD", "a-node-1", "i:1"), ("ADD", "b-node-1", "i:1")]
        await look()
        assert directory.told_since() == []
        directory.files["a.yaml"] = manifest("a", "i:2")
        await look()
        assert directory.told_since() == [("REMOVE", "a-node-1", "i:1"), ("ADD", "a-node-1", "i:2")]
        del directory.files["b.yaml"]
        await look()
        assert directory.told_since() == [("REMOVE", "b-node-1", "i:1")]

    with_files(scenario)


def test_the_directory_is_read_again_and_again_and_the_first_set_may_be_empty() -> None:
    async def main(world: World) -> list[tuple[str, str, str]]:
        directory = Directory(world)
        async with Tasks() as tasks:
            tasks.spawn(directory.config.run(), name="files")
            await directory.config.first_set()
            directory.files["a.yaml"] = manifest("a")
            await world.clock.sleep(POLL_SECONDS - 0.1)
            assert directory.told == []
            await world.clock.sleep(0.2)
            tasks.cancel()
        return directory.told

    assert run_virtual(main) == [("ADD", "a-node-1", "i:1")]


@pytest.mark.parametrize("content", [b"{", "it is not a regular file"])
def test_a_file_that_became_unreadable_keeps_its_pod_for_twenty_seconds(
    content: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(directory: Directory) -> None:
        directory.files["a.yaml"] = manifest("a")
        await directory.config.look()
        directory.files["a.yaml"] = content
        await directory.world.clock.sleep(100)
        await directory.config.look()
        await directory.world.clock.sleep(FILE_CHECK_SECONDS - 1)
        await directory.config.look()
        assert directory.told_since() == [("ADD", "a-node-1", "i:1")]
        await directory.world.clock.sleep(1)
        await directory.config.look()
        assert directory.told_since() == [("REMOVE", "a-node-1", "i:1")]
        await directory.config.look()

    with_files(scenario)
    (error,) = errors(caplog)
    assert error.startswith("static Pods: a.yaml is left out: "), "it is said once"


def test_a_file_that_goes_on_being_broken_in_other_ways_is_broken_since_the_first_time() -> None:
    async def scenario(directory: Directory) -> None:
        directory.files["a.yaml"] = manifest("a")
        await directory.config.look()
        for content in (b"{", b"{{"):
            directory.files["a.yaml"] = content
            await directory.config.look()
            await directory.world.clock.sleep(FILE_CHECK_SECONDS / 2)
        await directory.config.look()
        assert directory.told_since()[-1] == ("REMOVE", "a-node-1", "i:1")

    with_files(scenario)


def test_a_file_that_was_never_good_makes_no_pod_and_is_taken_once_it_is() -> None:
    async def scenario(directory: Directory) -> None:
        directory.files["a.yaml"] = b"{"
        await directory.config.look()
        assert directory.told_since() == [] and directory.config.ready
        directory.files["a.yaml"] = manifest("a")
        await directory.config.look()
        assert directory.told_since() == [("ADD", "a-node-1", "i:1")]

    with_files(scenario)


def test_of_two_files_with_one_name_the_first_counts_and_the_other_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(directory: Directory) -> None:
        directory.files = {"a.yaml": manifest("web"), "b.yaml": manifest("web", "i:2")}
        await directory.config.look()
        await directory.config.look()
        assert directory.told_since() == [("ADD", "web-node-1", "i:1")]

    (message,) = with_files(scenario).duplicates
    assert 'duplicate pod name "web-node-1_default"' in message
    assert errors(caplog) == [message]


def test_a_directory_that_cannot_be_read_changes_nothing_and_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(directory: Directory) -> None:
        directory.files["a.yaml"] = manifest("a")
        await directory.config.look()
        directory.error = OSError(13, "Permission denied")
        await directory.config.look()
        await directory.config.look()
        assert directory.told_since() == [("ADD", "a-node-1", "i:1")]
        directory.error = None
        await directory.config.look()
        directory.error = OSError(13, "Permission denied")
        await directory.config.look()

    with_files(scenario)
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert warnings == ["static Pods: the directory cannot be read: Permission denied"] * 2


def test_a_node_whose_directory_cannot_be_read_at_first_starts_without_static_pods() -> None:
    async def scenario(directory: Directory) -> None:
        directory.error = OSError(13, "Permission denied")
        await directory.config.look()
        assert directory.config.ready and directory.told == []

    with_files(scenario)


def test_a_bug_in_reading_a_file_leaves_the_file_out_and_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from lastcall.kube.node.static_pods import manifest as module

    read = module.read_manifest

    def fails(content: bytes, *, path: str, **more: Any) -> Any:
        if path == "a.yaml":
            raise KeyError("metadata")
        return read(content, path=path, **more)

    monkeypatch.setattr(module, "read_manifest", fails)

    async def scenario(directory: Directory) -> None:
        directory.files = {"a.yaml": manifest("a"), "b.yaml": manifest("b")}
        await directory.config.look()
        assert directory.told_since() == [("ADD", "b-node-1", "i:1")]

    with crash_guard.installed() as faults:
        with_files(scenario)
    assert [(each.component, each.key) for each in faults.all()] == [("kubelet static pods", "a.yaml")]
    assert errors(caplog) == ["static Pods: a.yaml is left out: KeyError: 'metadata'"]
