"""The image store: names, substitutes, layouts of other tools, broken images."""

import asyncio
import json
import os
import platform
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lastcall.kube.cri.api import SUBSTITUTE_FOR, RuntimeServiceError
from lastcall.kube.cri.sandbox.images import ImageError, ImageStore, build_image, default_root
from lastcall.kube.cri.sandbox.images.build import HOST_BINDS, MADE_FROM, ImageContent, write_image
from lastcall.kube.cri.sandbox.images.from_host import BINDABLE, host_directories, is_static
from lastcall.kube.cri.sandbox.images.layout import IMAGE_NAME, MANIFEST, Descriptor
from lastcall.kube.cri.sandbox.spec import ImageConfig

FILES = {
    "bin/app": (b"#!/bin/sh\n", 0o755),
    "etc": (b"", stat.S_IFDIR | 0o755),
    "sh": (b"bin/app", stat.S_IFLNK | 0o777),
}
CONFIG = ImageConfig(("/bin/app",), ("serve",), ("A=1",), "/srv", "1000:1000", "SIGQUIT")


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "images", unpacked=tmp_path / "unpacked")


async def test_a_built_image_is_found_by_any_of_its_names_and_has_its_config(store: ImageStore) -> None:
    built = build_image(store, "app:1", FILES, CONFIG)
    digest = built.repo_digests[0]
    for name in ("app:1", "docker.io/library/app:1", "docker.io/app:1", digest, built.id, built.id[7:]):
        assert await store.image_status(name) == built
        assert await store.pull_image(name) == built.id
    assert built.repo_tags == ("docker.io/library/app:1",)
    assert built.user == "1000:1000"
    (on_node,) = await store.list_images()
    assert (on_node.id, on_node.repo_tags, on_node.pinned) == (built.id, built.repo_tags, False)
    assert store.images() == [built]
    assert await store.image_status("app:2") is None
    root = store.rootfs("app:1")
    assert root.config == CONFIG
    assert root.image_ref == built.id
    (lower,) = root.lowerdirs
    assert stat.S_IMODE(os.stat(f"{lower}/bin/app").st_mode) == 0o755
    assert os.readlink(f"{lower}/sh") == "bin/app"


async def test_the_same_files_give_the_same_image_and_share_one_unpacked_layer(store: ImageStore) -> None:
    one, two = build_image(store, "one", FILES), build_image(store, "two", FILES)
    assert one.id == two.id
    assert one.repo_tags + two.repo_tags != ()
    build_image(store, "three", FILES, CONFIG)
    assert store.rootfs("one").lowerdirs == store.rootfs("two").lowerdirs == store.rootfs("three").lowerdirs


async def test_a_name_moves_to_the_newer_image_and_goes_with_remove(store: ImageStore) -> None:
    build_image(store, "app", FILES)
    newer = build_image(store, "app", {"other": (b"x", 0o644)})
    assert await store.image_status("app:latest") == newer
    assert store.remove("app") is True
    assert store.remove("app") is False
    assert store.images() == []
    assert os.listdir(store.layout.root / "blobs" / "sha256") == [], "nobody needs the blobs any more"


async def test_removing_one_name_keeps_the_other(store: ImageStore) -> None:
    build_image(store, "one", FILES)
    build_image(store, "two", FILES)
    store.remove("one")
    assert await store.image_status("one") is None
    found = await store.image_status("two")
    assert found is not None
    assert found.repo_tags == ("docker.io/library/two:latest",)
    assert store.rootfs("two").lowerdirs


async def test_an_image_that_is_not_there_is_not_found(store: ImageStore) -> None:
    with pytest.raises(RuntimeServiceError, match=r"docker.io/library/nginx:1.*not in the image store") as failed:
        await store.pull_image("nginx:1")
    assert failed.value.reason == "ImageNotFound"
    assert 'failed to pull and unpack image "docker.io/library/nginx:1": ' in str(failed.value)
    with pytest.raises(RuntimeServiceError) as missing:
        store.rootfs("nginx:1")
    assert missing.value.reason == "ImageNotFound"


@pytest.mark.parametrize("call", ["image_status", "pull_image", "remove_image"])
async def test_an_invalid_name_is_refused_by_every_verb(store: ImageStore, call: str) -> None:
    with pytest.raises(RuntimeServiceError) as refused:
        await getattr(store, call)("Bad Name:1")
    assert refused.value.reason == "InvalidImageName"


async def test_a_substitute_names_what_it_stands_for_and_stays_off_the_disk(tmp_path: Path) -> None:
    made = []

    def make() -> ImageContent:
        made.append(1)
        return ImageContent(FILES, CONFIG, {MADE_FROM: "the host's things"})

    store = ImageStore(tmp_path / "images", unpacked=tmp_path / "unpacked", substitutes={"busybox": make})
    found = await store.image_status("busybox:1.36")
    assert found is not None
    assert found.annotations == {SUBSTITUTE_FOR: "busybox:1.36", MADE_FROM: "the host's things"}
    assert found.repo_tags == ("localhost/from-host/busybox:latest",)
    other = await store.image_status("docker.io/library/busybox")
    assert other is not None
    assert other.annotations[SUBSTITUTE_FOR] == "docker.io/library/busybox"
    assert store.rootfs("busybox:1.36").config == CONFIG
    assert store.rootfs(found.id).config == CONFIG
    assert await store.pull_image("busybox:1.36") == found.id
    assert len(made) == 1
    assert await store.image_status("quay.io/busybox:1") is None
    assert await store.image_status("nginx") is None
    assert store.images() == []
    assert not (tmp_path / "images").exists()


async def test_the_substitute_of_python_names_the_version_that_it_is(tmp_path: Path) -> None:
    substitutes = {"python": lambda: ImageContent(FILES, CONFIG, {MADE_FROM: "the host's Python"})}
    store = ImageStore(tmp_path / "images", unpacked=tmp_path / "unpacked", substitutes=substitutes)
    found = await store.image_status("python:3.99-slim")
    assert found is not None
    assert found.repo_tags == (f"localhost/from-host/python:{platform.python_version()}",)
    assert await store.image_status("python:2") == replace(
        found, annotations={**found.annotations, SUBSTITUTE_FOR: "python:2"}
    )


async def test_an_image_of_the_asked_name_is_preferred_to_the_substitute(tmp_path: Path) -> None:
    store = ImageStore(
        tmp_path / "images", unpacked=tmp_path / "unpacked", substitutes={"busybox": lambda: ImageContent({})}
    )
    await store.image_status("busybox:1.36")
    real = build_image(store, "busybox:1.36", FILES)
    assert await store.image_status("busybox:1.36") == real
    elsewhere = await store.image_status("busybox:1.35")
    assert elsewhere is not None
    assert SUBSTITUTE_FOR in elsewhere.annotations


async def test_another_process_s_images_are_seen_at_once(tmp_path: Path, store: ImageStore) -> None:
    assert store.images() == []
    build_image(ImageStore(store.layout.root, unpacked=tmp_path / "other"), "app", FILES)
    assert [image.repo_tags for image in store.images()] == [("docker.io/library/app:latest",)]


async def test_a_blob_with_other_bytes_than_its_digest_is_not_used(store: ImageStore) -> None:
    build_image(store, "good", {"x": (b"good", 0o644)})
    built = build_image(store, "app", FILES)
    store.layout.blob_path(built.id).write_bytes(b"{}")
    again = ImageStore(store.layout.root, unpacked=store._unpacked)
    with pytest.raises(ImageError, match="other bytes than its digest says"):
        await again.image_status("app")
    assert await again.image_status("good") is not None, "a broken image does not hide the others"
    assert again.remove("app") is True
    assert await again.image_status("app") is None


async def test_a_tampered_layer_is_refused_and_leaves_nothing_unpacked(store: ImageStore) -> None:
    build_image(store, "app", FILES)
    layer = max((store.layout.root / "blobs/sha256").iterdir(), key=lambda path: path.stat().st_size)
    layer.write_bytes(layer.read_bytes().replace(b"#!/bin/sh", b"#!/bad/sh"))
    with pytest.raises(ImageError, match="other bytes"):
        await store.image_status("app")
    assert os.listdir(store._unpacked) == []


def test_host_directories_are_bound_only_from_the_short_list(store: ImageStore) -> None:
    content = ImageContent(FILES, annotations={HOST_BINDS: "/usr:/home:/etc:/root/.ssh:/usr/../etc"})
    write_image(store.layout, "docker.io/library/app:latest", content)
    assert [(bind.host_path, bind.readonly) for bind in store.rootfs("app").binds] == [("/usr", True)]


def test_the_image_of_the_host_s_directories_binds_directories_and_keeps_links() -> None:
    content = host_directories()
    binds = content.annotations[HOST_BINDS].split(":")
    assert "/usr" in binds
    assert set(binds) <= set(BINDABLE)
    assert "bound read-only" in content.annotations[MADE_FROM]
    for path in ("/bin", "/lib"):
        data, mode = content.files[path[1:]]
        assert stat.S_ISLNK(mode) == os.path.islink(path)
        assert not os.path.islink(path) or data == os.readlink(path).encode()


def test_a_directory_of_the_host_is_copied_with_links_and_modes(tmp_path: Path, store: ImageStore) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "tool").write_bytes(b"tool")
    (source / "deep" / "tool").chmod(0o750)
    (source / "link").symlink_to("/etc/passwd")
    build_image(store, "app", {"opt": (source, 0o755), "tool": (source / "deep/tool", 0o755)})
    (lower,) = store.rootfs("app").lowerdirs
    assert Path(lower, "opt/deep/tool").read_bytes() == b"tool"
    assert stat.S_IMODE(os.stat(f"{lower}/opt/deep/tool").st_mode) == 0o750
    assert os.readlink(f"{lower}/opt/link") == "/etc/passwd"


def test_a_missing_source_is_named(store: ImageStore) -> None:
    with pytest.raises(ImageError, match="cannot read /nonexistent/x, which is to become bin/x"):
        build_image(store, "app", {"bin/x": ("/nonexistent/x", 0o755)})


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImageError, match="cannot write to the image store"):
        build_image(ImageStore(tmp_path / "file" / "images", unpacked=tmp_path), "app", FILES)


def test_an_unreadable_index_is_a_clear_error(store: ImageStore) -> None:
    store.layout.root.mkdir()
    for text in ("{", "[]", '{"manifests": 1}', '{"manifests": [{"digest": "../../etc/passwd"}]}'):
        (store.layout.root / "index.json").write_text(text)
        with pytest.raises(ImageError):
            ImageStore(store.layout.root, unpacked=store._unpacked).images()


async def test_a_multi_platform_index_gives_this_machine_s_image(store: ImageStore) -> None:
    built = build_image(store, "app", FILES)
    index_path = store.layout.root / "index.json"
    entry = json.loads(index_path.read_text())["manifests"][0]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    media_type = "application/vnd.oci.image.index.v1+json"
    ours = {key: entry[key] for key in ("mediaType", "digest", "size")} | {
        "platform": {"os": "linux", "architecture": machine}
    }
    other = ours | {"digest": "sha256:" + "0" * 64, "platform": {"os": "windows", "architecture": machine}}
    both = store.layout.add_document(media_type, {"manifests": [other, ours]})
    index_path.write_text(json.dumps({"manifests": [both.render() | {"annotations": {IMAGE_NAME: "multi:1"}}]}))
    found = await ImageStore(store.layout.root, unpacked=store._unpacked).image_status("multi:1")
    assert found is not None
    assert found.id == built.id


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        ({"XDG_DATA_HOME": "/data", "HOME": "/home/me"}, "/data/lastcall/images"),
        ({"HOME": "/home/me"}, "/home/me/.local/share/lastcall/images"),
        ({"XDG_DATA_HOME": "relative", "HOME": "/home/me"}, "/home/me/.local/share/lastcall/images"),
    ],
)
def test_images_are_kept_where_the_xdg_specification_says(
    environment: dict[str, str], root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert str(default_root(environment)) == root


def test_under_sudo_root_does_not_keep_images_in_the_user_s_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "stat", lambda path: os.stat_result((0o40700, 1, 1, 2, owner, owner, 0, 0, 0, 0)))
    owner = 0
    assert str(default_root({"HOME": str(tmp_path)})).startswith(str(tmp_path))
    owner = 1000
    assert not str(default_root({"HOME": str(tmp_path)})).startswith(str(tmp_path))


def test_static_programs_are_told_from_dynamic_ones_and_from_junk(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"\x7fELF")
    assert not is_static(str(tmp_path / "junk"))
    assert not is_static("/nonexistent")
    assert not is_static("/bin/sh") or b"/ld-" not in Path("/bin/sh").read_bytes()[:4096]
    program = bytearray(b"\x7fELF\x02\x01\x01" + bytes(9) + bytes(48) + bytes(56))
    program[32], program[54], program[56] = 64, 56, 1
    program[64] = 1  # PT_LOAD
    (tmp_path / "static").write_bytes(program)
    assert is_static(str(tmp_path / "static"))
    program[64] = 3  # PT_INTERP
    (tmp_path / "dynamic").write_bytes(program)
    assert not is_static(str(tmp_path / "dynamic"))


async def test_a_removal_meanwhile_does_not_take_a_new_image_s_blobs_away(
    store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two commands at once: the blobs of an image are there before its name is."""
    build_image(store, "old", {"x": (b"old", 0o644)})
    half, go_on = threading.Event(), threading.Event()
    put = store.layout.put

    def slow_put(name: str, descriptor: Descriptor) -> None:
        half.set()
        go_on.wait(0.3)  # the removal must wait for us, so this ends by its time-out
        put(name, descriptor)

    monkeypatch.setattr(store.layout, "put", slow_put)
    building = asyncio.create_task(asyncio.to_thread(build_image, store, "new", FILES))
    await asyncio.to_thread(half.wait, 10)
    other = ImageStore(store.layout.root, unpacked=store._unpacked)
    await asyncio.to_thread(other.remove, "old")
    go_on.set()
    await building
    found = await other.image_status("new")
    assert found is not None
    assert other.rootfs("new").lowerdirs


async def test_what_a_killed_command_left_half_written_goes_with_the_next_removal(store: ImageStore) -> None:
    build_image(store, "app", FILES)
    left = store.layout.root / "blobs/sha256/.new-killed"
    left.write_bytes(b"half")
    store.remove("app")
    assert not left.exists()


def layers(store: ImageStore) -> list[str]:
    return sorted(name for name in os.listdir(store._unpacked) if name[0] in "lm.")


async def test_an_image_that_is_collected_leaves_the_node_and_stays_in_the_users_layout(store: ImageStore) -> None:
    """Layers that another image has stay as well."""
    one = build_image(store, "one", FILES)
    build_image(store, "two", FILES, CONFIG)
    build_image(store, "three", {"big": (b"x" * 100_000, 0o644)})
    for name in ("one", "two", "three"):
        await store.image_status(name)
    on_node = {image.repo_tags[0]: image for image in await store.list_images()}
    assert len(on_node) == 3
    assert on_node["docker.io/library/three:latest"].size >= 100_000
    shared, own = layers(store), store.rootfs("three").lowerdirs[0]
    await store.remove_image(on_node["docker.io/library/three:latest"].id)
    assert layers(store) == [name for name in shared if name != os.path.basename(own)]
    await store.remove_image("one")
    await store.remove_image("one")
    assert store.rootfs("two").lowerdirs
    await store.remove_image("docker.io/library/two:latest")
    assert (layers(store), await store.list_images()) == ([], [])
    assert len(store.images()) == 3
    assert await store.image_status("one") == one  # and it is unpacked again
    assert [image.id for image in await store.list_images()] == [one.id]


async def test_the_next_node_process_knows_what_is_unpacked_and_sweeps_what_is_half(store: ImageStore) -> None:
    built = build_image(store, "app", FILES)
    await store.image_status("app")
    whole = layers(store)
    for name in (".unpacking-x", ".removing-y", f"l{'0' * 32}"):
        (store._unpacked / name / "deep").mkdir(parents=True)
    store.remove("app")  # its name may go meanwhile
    again = ImageStore(store.layout.root, unpacked=store._unpacked)
    assert [image.id for image in await again.list_images()] == [built.id]
    assert layers(again) == whole
    await again.remove_image(built.id)
    assert layers(again) == []


async def test_what_stands_in_for_an_image_is_pinned(tmp_path: Path) -> None:
    store = ImageStore(
        tmp_path / "images", unpacked=tmp_path / "unpacked", substitutes={"busybox": lambda: ImageContent(FILES)}
    )
    await store.image_status("busybox")
    assert [image.pinned for image in await store.list_images()] == [True]


async def test_an_image_unpacked_under_two_manifests_is_listed_once(store: ImageStore) -> None:
    made = write_image(store.layout, "docker.io/library/app:1", ImageContent(FILES, CONFIG))
    manifest = {**store.layout.manifest(made)[1], "annotations": {"by": "a registry"}}
    store.layout.put("docker.io/library/a:2", store.layout.add_document(MANIFEST, manifest))
    for name in ("app:1", "a:2"):
        assert await store.image_status(name) is not None
    (listed,) = await store.list_images()
    assert sorted(listed.repo_tags) == ["docker.io/library/a:2", "docker.io/library/app:1"]
    assert len(listed.repo_digests) == 2
    await store.remove_image(listed.id)
    assert await store.list_images() == []
