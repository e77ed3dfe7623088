"""Images out of archives: `docker save` old and new, OCI layouts as directory and tar, gzip, and hostile ones."""

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from oci_registry import DOCKER_MANIFEST, INDEX, MANIFEST, Registry, digest_of, gzipped, tar_of

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.images import MADE_FROM, ImageStore
from lastcall.kube.cri.sandbox.images.from_files import import_images
from lastcall.kube.cri.sandbox.images.layout import ImageError, ImageLayout
from lastcall.kube.cri.sandbox.images.platform import parse_platform, this_machine

NAME = "docker.io/library/app:v1"
FILES = {"bin/app": b"hello"}


@pytest.fixture
def layout(tmp_path: Path) -> ImageLayout:
    return ImageLayout(tmp_path / "images")


def content_of(layout: ImageLayout, name: str = NAME, path: str = "bin/app") -> bytes:
    store = ImageStore(layout.root, unpacked=layout.root.parent / "unpacked")
    return (Path(store.rootfs(name).lowerdirs[0]) / path).read_bytes()


Entry = bytes | tuple[bytes, str]
"""A file's bytes, or (tar type, link target)."""


def archive(entries: dict[str, Entry]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, entry in entries.items():
            info = tarfile.TarInfo(name)
            if isinstance(entry, tuple):
                info.type, info.linkname = entry
                tar.addfile(info)
            else:
                info.size = len(entry)
                tar.addfile(info, io.BytesIO(entry))
    return buffer.getvalue()


def docker_save(*images: tuple[list[str] | None, bytes], linked: bool = False) -> bytes:
    """As `docker save` wrote until 24: `<id>.json`, `<id>/layer.tar`, perhaps a link for a layer that two have."""
    entries: dict[str, Entry] = {}
    manifest = []
    for number, (tags, layer) in enumerate(images):
        config = json.dumps({"os": "linux", "rootfs": {"type": "layers", "diff_ids": [digest_of(layer)]}}).encode()
        name = f"{digest_of(config)[7:]}.json"
        entries[name] = config
        known = next((path for path, data in entries.items() if data == layer), "")
        path = f"{number:064d}/layer.tar"
        entries[path] = (tarfile.SYMTYPE, f"../{known}") if linked and known else layer
        manifest.append({"Config": name, "RepoTags": tags, "Layers": [path]})
    entries["manifest.json"] = json.dumps(manifest).encode()
    return archive(entries)


def oci_layout(registry: Registry, entries: list[dict[str, Any]]) -> dict[str, bytes]:
    files = {f"blobs/sha256/{digest[7:]}": data for digest, data in registry.blobs.items()}
    for (_, key), (data, _) in registry.manifests.items():
        if key.startswith("sha256:"):
            files[f"blobs/sha256/{key[7:]}"] = data
    files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": entries}).encode()
    return files


def entry_of(manifest: bytes, media_type: str = MANIFEST, **annotations: str) -> dict[str, Any]:
    return {
        "mediaType": media_type,
        "digest": digest_of(manifest),
        "size": len(manifest),
        "annotations": {key.replace("_", "."): text for key, text in annotations.items()},
    }


@pytest.fixture
def oci() -> tuple[dict[str, bytes], bytes]:
    """The files of a layout with one image `app:v1`, and its manifest."""
    registry = Registry()
    manifest = registry.manifest([tar_of(FILES)])
    registry.put("app", manifest)
    return oci_layout(registry, [entry_of(manifest, io_containerd_image_name=NAME)]), manifest


@pytest.mark.parametrize("compress", [bytes, gzipped], ids=["plain", "gzip"])
@pytest.mark.parametrize("way", ["file", "stdin"])
def test_a_docker_archive_with_several_images_and_tags(
    layout: ImageLayout, tmp_path: Path, compress: Any, way: str
) -> None:
    other = tar_of({"bin/app": b"other"})
    data = compress(docker_save((["app:v1", "app:latest"], tar_of(FILES)), (["team/b:2"], other)))
    (tmp_path / "saved").write_bytes(data)
    if way == "file":
        told: list[int] = []
        found = import_images(layout, str(tmp_path / "saved"), on_bytes=told.append)
        assert told == sorted(told) and told[-1] > 0
    else:
        found = import_images(layout, "-", stdin=io.BufferedReader(Unseekable(data)))
    assert [one.name for one in found] == [NAME, "docker.io/library/app:latest", "docker.io/team/b:2"]
    assert found[0].digest == found[1].digest != found[2].digest
    assert content_of(layout) == b"hello"
    assert content_of(layout, "team/b:2") == b"other"
    image = ImageStore(layout.root).entries()[0]
    assert image.image.annotations[MADE_FROM].startswith("an archive, ")
    assert image.pulled == ""


class Unseekable(io.RawIOBase):
    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(buffer)


def test_a_layer_that_two_images_share_may_be_a_link(layout: ImageLayout, tmp_path: Path) -> None:
    layer = tar_of(FILES)
    (tmp_path / "saved").write_bytes(docker_save((["a:1"], layer), (["b:1"], layer), linked=True))
    import_images(layout, str(tmp_path / "saved"))
    assert content_of(layout, "b:1") == b"hello"


def test_the_same_archive_gives_the_same_image(layout: ImageLayout, tmp_path: Path) -> None:
    (tmp_path / "saved").write_bytes(docker_save((["app:v1"], tar_of(FILES))))
    assert import_images(layout, str(tmp_path / "saved")) == import_images(layout, str(tmp_path / "saved"))
    assert len(ImageStore(layout.root).entries()) == 1


@pytest.mark.parametrize("form", ["directory", "tar", "tar.gz"])
def test_an_oci_layout(layout: ImageLayout, tmp_path: Path, oci: tuple[dict[str, bytes], bytes], form: str) -> None:
    files, manifest = oci
    place = tmp_path / "layout"
    if form == "directory":
        for name, data in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)
    else:
        data = archive({f"./{name}": data for name, data in files.items()})
        place.write_bytes(gzip.compress(data) if form == "tar.gz" else data)
    (one,) = import_images(layout, str(place))
    assert (one.name, one.digest) == (NAME, digest_of(manifest))
    assert content_of(layout) == b"hello"


def test_of_a_layout_with_several_platforms_only_the_wanted_one_is_needed(layout: ImageLayout, tmp_path: Path) -> None:
    registry = Registry()
    here = this_machine().architecture
    manifests = {
        (name, ""): registry.manifest([tar_of({"bin/app": name.encode()})], platform=(name, ""))
        for name in (here, "riscv64")
    }
    registry.index("app:v1", manifests)
    index = registry.manifests["app", "v1"][0]
    files = oci_layout(registry, [entry_of(index, INDEX, org_opencontainers_image_ref_name="v1")])
    (tmp_path / "both").write_bytes(archive(dict(files)))
    (one,) = import_images(layout, str(tmp_path / "both"), name="app:v1")
    assert (one.digest, content_of(layout)) == (digest_of(index), here.encode())
    (one,) = import_images(layout, str(tmp_path / "both"), name="app:v1", platform=parse_platform("riscv64"))
    assert (one.digest, content_of(layout)) == (digest_of(manifests["riscv64", ""]), b"riscv64")
    with pytest.raises(ImageError, match="no match for platform linux/s390x"):
        import_images(layout, str(tmp_path / "both"), name="app:v1", platform=parse_platform("s390x"))


def test_a_name_is_asked_for_where_the_archive_has_none(layout: ImageLayout, tmp_path: Path) -> None:
    (tmp_path / "saved").write_bytes(docker_save((None, tar_of(FILES))))
    with pytest.raises(ImageError, match="has no name in there; give it one with --name"):
        import_images(layout, str(tmp_path / "saved"))
    (one,) = import_images(layout, str(tmp_path / "saved"), name="mine")
    assert one.name == "docker.io/library/mine:latest"
    (tmp_path / "two").write_bytes(docker_save((["a:1"], tar_of(FILES)), (["b:1"], tar_of({}))))
    with pytest.raises(ImageError, match="several images"):
        import_images(layout, str(tmp_path / "two"), name="mine")
    with pytest.raises(RuntimeServiceError, match="must not have a digest"):
        import_images(layout, str(tmp_path / "two"), name="a@sha256:" + "0" * 64)


def hostile() -> dict[str, tuple[bytes, str]]:
    blob = b'{"layers": [], "config": {}}'
    wrong = {"oci-layout": b"{}", "blobs/sha256/" + "0" * 64: blob}
    entry = {"mediaType": MANIFEST, "digest": "sha256:" + "0" * 64, "size": len(blob)}
    evil: dict[str, Entry] = {"manifest.json": b'[{"Config": "c", "RepoTags": ["a:1"], "Layers": ["l"]}]'}
    config = json.dumps({"rootfs": {"diff_ids": ["sha256:" + "0" * 64]}}).encode()
    return {
        "nothing in it": (archive({"x": b""}), "has no images: neither an OCI layout"),
        "empty": (b"", "is not an archive of images"),
        "text": (b"hello" * 1000, "is not an archive of images"),
        "cut gzip": (gzip.compress(docker_save((["a:1"], tar_of(FILES))))[:-20], "is not an archive of images"),
        "no images": (archive({"manifest.json": b"[]"}), "has no images"),
        "no list": (archive({"manifest.json": b"{}"}), "manifest.json is not a list"),
        "no JSON": (archive({"manifest.json": b"["}), "manifest.json is not JSON"),
        "deep JSON": (archive({"manifest.json": b"[" * 200_000}), "manifest.json is not JSON"),
        "wrong types": (archive({"manifest.json": b'[{"RepoTags": [1], "Layers": []}]'}), "are not texts"),
        "missing config": (archive({**evil}), "lacks c"),
        "missing layer": (archive({**evil, "c": config}), "lacks l"),
        "link out": (archive({**evil, "c": (tarfile.SYMTYPE, "../../../../etc/passwd")}), "lacks c"),
        "absolute link": (archive({**evil, "c": (tarfile.SYMTYPE, "/etc/passwd")}), "lacks c"),
        "hard link out": (archive({**evil, "c": (tarfile.LNKTYPE, "/etc/passwd")}), "lacks c"),
        "link in circles": (archive({**evil, "c": (tarfile.SYMTYPE, "c")}), "c is not a file"),
        "a device": (archive({**evil, "c": (tarfile.CHRTYPE, "")}), "c is not a file"),
        "bad name": (docker_save((["Bad Name"], tar_of({}))), "couldn't parse image name"),
        "config without diff_ids": (archive({**evil, "c": b"{}", "l": b""}), "1 layers but 0 diff_ids"),
        "wrong digest": (
            archive({**wrong, "index.json": json.dumps({"manifests": [entry]}).encode()}),
            "has other bytes than its digest says",
        ),
        "no descriptor": (archive({"oci-layout": b"", "index.json": b'{"manifests": [1]}'}), "not a descriptor"),
    }


@pytest.mark.parametrize("what", hostile())
def test_a_broken_or_hostile_archive_is_told_and_leaves_no_image(
    layout: ImageLayout, tmp_path: Path, what: str
) -> None:
    data, text = hostile()[what]
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(RuntimeServiceError) as caught:
        import_images(layout, str(tmp_path / "file"))
    assert text in str(caught.value)
    assert layout.index() == []


def test_a_directory_s_links_lead_nowhere_outside_of_it(layout: ImageLayout, tmp_path: Path) -> None:
    place = tmp_path / "layout"
    place.mkdir()
    (tmp_path / "secret").write_text('{"rootfs": {}}')
    (place / "manifest.json").write_text('[{"Config": "c", "RepoTags": ["a:1"], "Layers": []}]')
    (place / "c").symlink_to("../secret")
    with pytest.raises(ImageError, match="c points outside of it"):
        import_images(layout, str(place))


def test_a_layer_with_other_bytes_than_its_config_says_is_never_used(layout: ImageLayout, tmp_path: Path) -> None:
    config = json.dumps({"rootfs": {"diff_ids": ["sha256:" + "0" * 64]}}).encode()
    manifest = b'[{"Config": "c", "RepoTags": ["app:v1"], "Layers": ["l"]}]'
    (tmp_path / "saved").write_bytes(archive({"manifest.json": manifest, "c": config, "l": tar_of(FILES)}))
    import_images(layout, str(tmp_path / "saved"))
    with pytest.raises(ImageError, match="the image config says sha256:000"):
        content_of(layout)


def test_an_image_of_another_platform_is_not_taken_by_mistake(layout: ImageLayout, tmp_path: Path) -> None:
    registry = Registry()
    manifest = registry.manifest([tar_of(FILES)], platform=("s390x", ""), media_type=DOCKER_MANIFEST)
    registry.put("app", manifest, DOCKER_MANIFEST)
    entry = entry_of(manifest, DOCKER_MANIFEST, io_containerd_image_name=NAME)
    (tmp_path / "file").write_bytes(archive(dict(oci_layout(registry, [entry]))))
    with pytest.raises(ImageError, match="which is for linux/s390x"):
        import_images(layout, str(tmp_path / "file"))
    assert layout.index() == []
