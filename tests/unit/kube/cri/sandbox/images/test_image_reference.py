"""Image names, as Docker and containerd read them."""

import pytest

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.images.reference import parse_reference

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("grafana/grafana:11", "docker.io/grafana/grafana:11"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        ("index.docker.io/library/busybox", "docker.io/library/busybox:latest"),
        ("localhost/app", "localhost/app:latest"),
        ("127.0.0.1:9/missing:1", "127.0.0.1:9/missing:1"),
        ("[::1]:5000/app", "[::1]:5000/app:latest"),
        ("ghcr.io/a/b-c__d.e/f:v1.0_x-Y", "ghcr.io/a/b-c__d.e/f:v1.0_x-Y"),
        ("Registry/app", "Registry/app:latest"),
        (f"busybox@{DIGEST}", f"docker.io/library/busybox@{DIGEST}"),
        (f"busybox:1.36@{DIGEST}", f"docker.io/library/busybox@{DIGEST}"),
    ],
)
def test_a_name_is_completed_with_registry_library_and_tag(name: str, whole: str) -> None:
    assert str(parse_reference(name)) == whole


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Bad Name:1", "invalid reference format: repository name (library/Bad Name) must be lowercase"),
        ("busyBox", "invalid reference format: repository name (library/busyBox) must be lowercase"),
        ("", "invalid reference format"),
        ("a b", "invalid reference format"),
        ("busybox:", "invalid reference format"),
        ("busybox:-x", "invalid reference format"),
        (f"busybox:{'x' * 129}", "invalid reference format"),
        ("busybox\n", "invalid reference format"),
        ("../etc/passwd", "invalid reference format"),
        ("a//b", "invalid reference format"),
        ("https://ghcr.io/a/b", "invalid reference format"),
        ("busybox@sha256:abcd", "invalid reference format"),
        ("busybox@sha256:" + "ab" * 20, "invalid checksum digest length"),
        ("busybox@md5:" + "ab" * 16, "unsupported digest algorithm"),
        ("ab" * 32, f"invalid repository name ({'ab' * 32}), cannot specify 64-byte hexadecimal strings"),
        ("x/" + "a" * 256, "repository name must not be more than 255 characters"),
    ],
)
def test_an_invalid_name_is_refused_with_the_text_kubernetes_shows(name: str, text: str) -> None:
    with pytest.raises(RuntimeServiceError) as refused:
        parse_reference(name)
    assert refused.value.reason == "InvalidImageName"
    assert str(refused.value).endswith(f": {text}")
    assert str(refused.value).startswith("couldn't parse image name ")


@pytest.mark.parametrize(
    ("name", "familiar"),
    [
        ("busybox:1", "busybox"),
        ("a/b", "a/b"),
        ("localhost/busybox", "localhost/busybox"),
        ("quay.io/a/b", "quay.io/a/b"),
    ],
)
def test_the_familiar_name_leaves_the_default_registry_out(name: str, familiar: str) -> None:
    assert parse_reference(name).familiar == familiar
