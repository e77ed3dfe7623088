"""What a runtime finds of its records, journals and images after any cut or changed byte: the whole or a word of it."""

import json
from pathlib import Path

import pytest
from damage import changed, cut

from lastcall.kube.cri.api import (
    ContainerConfig,
    ContainerMetadata,
    ContainerState,
    PodSandboxConfig,
    PodSandboxMetadata,
    RuntimeServiceError,
)
from lastcall.kube.cri.sandbox.cni.attachments import Attachments
from lastcall.kube.cri.sandbox.cni.conf import NetworkConfiguration
from lastcall.kube.cri.sandbox.cni.rules import Attachment
from lastcall.kube.cri.sandbox.images import ImageStore, build_image
from lastcall.kube.cri.sandbox.images.layout import ImageError
from lastcall.kube.cri.sandbox.object_records import ObjectRecords
from lastcall.kube.cri.sandbox.objects import Container, Sandbox
from lastcall.kube.cri.sandbox.shim.past import read_journals

POD = PodSandboxConfig(PodSandboxMetadata("p", "u", "default", 2))
CONFIG = ContainerConfig(metadata=ContainerMetadata("app", 3), image="busybox:1.36", log_path="app/3.log")


def damaged(data: bytes) -> list[bytes]:
    """Cut after each byte, and changed; what an older version would have written, the text alone, is whole."""
    text = data.partition(b"\n")[0]
    return [each for each in (*cut(data), *changed(data)) if each.rstrip(b"\n") not in (text, data.rstrip(b"\n"))]


def runtime_with_one_container(directory: str) -> None:
    records = ObjectRecords(directory)
    sandbox = Sandbox("s1", POD, 1, ip="10.244.0.2", attached=True)
    container = Container("c1", sandbox, CONFIG, 2, "sha256:1", "/c1", {"logPath": "/log"}, 15)
    container.started_at, container.finished_at, container.exit_code = 3, 4, 7
    records.save_sandbox(sandbox)
    records.save_container(container)
    records.save_status(container)


@pytest.mark.parametrize("name", ["sandbox-s1", "container-c1", "status-c1"])
def test_a_damaged_record_takes_with_it_what_it_stood_for_and_is_told_of(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    runtime_with_one_container(str(tmp_path))
    whole = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for data in damaged(whole[f"{name}.json"]):
        for other, content in whole.items():
            (tmp_path / other).write_bytes(content)
        (tmp_path / f"{name}.json").write_bytes(data)
        caplog.clear()
        records = ObjectRecords(str(tmp_path))
        sandboxes = records.load_sandboxes()
        containers = records.load_containers(sandboxes, "/x")
        assert f"{tmp_path}/{name}.json cannot be read" in caplog.text, data
        assert (tmp_path / f"{name}.json.unreadable").read_bytes() == data
        assert list(sandboxes) == ([] if name == "sandbox-s1" else ["s1"])
        if name == "status-c1":
            # It was started; how it ended only a shim knows, and without one it is Unknown: never begun anew as new.
            assert containers["c1"].state == ContainerState.CONTAINER_UNKNOWN
        else:
            assert containers == {}
    runtime_with_one_container(str(tmp_path))
    records = ObjectRecords(str(tmp_path))
    (container,) = records.load_containers(records.load_sandboxes(), "/x").values()
    assert (container.state, container.exit_code) == (ContainerState.CONTAINER_EXITED, 7)
    assert not list(tmp_path.glob("*.unreadable")), "the next start does away with what was set aside"


def test_a_damaged_attachment_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    network = NetworkConfiguration("net", ("1.1.0",), ({"type": "bridge"},))
    attachment = Attachment("s1", "/netns/s1", network, "1.1.0", (("K8S_POD_NAME", "p"),), {})
    Attachments(str(tmp_path)).save(attachment)
    file = tmp_path / "attachment-s1.json"
    whole = file.read_bytes()
    for data in damaged(whole):
        file.write_bytes(data)
        caplog.clear()
        attachments = Attachments(str(tmp_path))
        attachments.load()
        assert attachments.all() == []
        assert f"{file} cannot be read" in caplog.text
    file.write_bytes(whole)
    attachments = Attachments(str(tmp_path))
    attachments.load()
    assert attachments.all() == [attachment]


def test_a_journal_that_is_cut_off_says_as_much_as_it_has_lines(tmp_path: Path) -> None:
    first = {"pid": 7, "startTime": 9, "podUid": "u", "container": "app", "sandboxId": "s"}
    last = {"exitCode": 137, "signal": "SIGKILL", "finishedAt": 5}
    lines = [json.dumps(each).encode() + b"\n" for each in (first, last)]
    whole = b"".join(lines)
    for data in (*cut(whole), whole):
        (tmp_path / "c1").write_bytes(data)
        (past,) = read_journals(str(tmp_path))
        assert past.pid == (7 if len(data) >= len(lines[0]) - 1 else 0)
        assert past.over == (len(data) >= len(whole) - 1)
        past.ended(1, "", 6)
        (again,) = read_journals(str(tmp_path))
        assert (again.exit_code, again.finished_at) == (1, 6), "what follows a cut line is read"
    for data in changed(whole):
        (tmp_path / "c1").write_bytes(data)
        (past,) = read_journals(str(tmp_path))
        past.lives()


FILES = {"bin/app": (b"#!/bin/sh\n", 0o755)}


async def test_a_damaged_image_is_told_of_by_name_or_is_not_there(tmp_path: Path) -> None:
    build_image(ImageStore(tmp_path / "images", unpacked=tmp_path / "first"), "app:1", FILES)
    files = [file for file in (tmp_path / "images").rglob("*") if file.is_file() and file.stat().st_size]
    assert len(files) >= 5, "index, oci-layout, manifest, config, layer"
    for number, file in enumerate(files):
        whole = file.read_bytes()
        damages = [*cut(whole), *changed(whole)] if len(whole) < 2000 else [*cut(whole[:300]), *changed(whole)][::41]
        for turn, data in enumerate(damages):
            file.write_bytes(data)
            store = ImageStore(tmp_path / "images", unpacked=tmp_path / f"u{number}-{turn}")
            text = ""
            try:
                image = await store.image_status("app:1")
                if image is not None:
                    (lower,) = store.rootfs("app:1").lowerdirs
                    assert (Path(lower) / "bin/app").read_bytes() == FILES["bin/app"][0], (file, data[:80])
            except (ImageError, RuntimeServiceError) as error:
                text = str(error)
            assert not text or "sha256" in text or "index" in text or str(tmp_path) in text, text
        file.write_bytes(whole)


async def test_a_damaged_record_of_an_unpacked_image_has_it_unpacked_again(tmp_path: Path) -> None:
    images, unpacked = tmp_path / "images", tmp_path / "unpacked"
    store = ImageStore(images, unpacked=unpacked)
    build_image(store, "app:1", FILES)
    await store.image_status("app:1")
    store.rootfs("app:1")
    (record,) = unpacked.glob("i*.json")
    whole = record.read_bytes()
    for data in [*cut(whole), *changed(whole)][::3]:
        record.write_bytes(data)
        store = ImageStore(images, unpacked=unpacked)
        assert await store.image_status("app:1") is not None
        (lower,) = store.rootfs("app:1").lowerdirs
        assert (Path(lower) / "bin/app").read_bytes() == FILES["bin/app"][0]
