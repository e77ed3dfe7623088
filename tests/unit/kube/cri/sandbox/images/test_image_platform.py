"""Which image of an index a machine takes."""

import pytest

from lastcall.kube.cri.sandbox.images.platform import Platform, PlatformError, choose, parse_platform, rank


def entries(*platforms: str) -> list[dict[str, object]]:
    found = []
    for number, text in enumerate(platforms):
        system, architecture, variant = [*text.split("/"), ""][:3]
        found.append({"n": number, "platform": {"os": system, "architecture": architecture, "variant": variant}})
    return found


@pytest.mark.parametrize(
    ("wanted", "offered", "taken"),
    [
        ("linux/amd64", ["linux/arm64", "linux/amd64"], 1),
        ("linux/amd64", ["windows/amd64", "linux/amd64"], 1),
        ("linux/amd64", ["linux/386", "linux/amd64"], 1),
        ("linux/amd64", ["linux/386"], 0),
        ("linux/amd64", ["linux/amd64/v3", "linux/amd64"], 1),
        ("linux/amd64/v3", ["linux/amd64", "linux/amd64/v2", "linux/amd64/v4"], 1),
        ("linux/amd64", ["linux/amd64/v3"], None),
        ("linux/arm64", ["linux/arm64/v8"], 0),
        ("linux/arm64/v8", ["linux/arm64"], 0),
        ("linux/arm/v7", ["linux/arm/v5", "linux/arm/v6", "linux/arm/v7"], 2),
        ("linux/arm/v6", ["linux/arm/v7", "linux/arm/v5"], 1),
        ("linux/arm/v6", ["linux/arm/v7"], None),
        ("linux/arm", ["linux/arm/v6", "linux/arm/v7"], 1),
        ("linux/amd64", ["unknown/unknown", "linux/amd64"], 1),
        ("linux/riscv64", ["linux/amd64"], None),
    ],
)
def test_the_image_that_fits_best_is_taken(wanted: str, offered: list[str], taken: int | None) -> None:
    found = choose(entries(*offered), parse_platform(wanted))
    assert (found and found["n"]) == taken


def test_an_entry_without_a_platform_is_the_last_resort() -> None:
    assert choose([{"digest": "x"}], parse_platform("amd64")) == {"digest": "x"}
    assert choose([{"digest": "x"}, *entries("linux/386")], parse_platform("amd64"))["n"] == 0  # type: ignore[index]
    assert choose(["nonsense", None], parse_platform("amd64")) is None


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        ("linux/arm64/v8", Platform("linux", "arm64")),
        ("aarch64", Platform("linux", "arm64")),
        ("x86_64", Platform("linux", "amd64")),
        ("linux/arm/7", Platform("linux", "arm")),
        ("linux/arm/v6", Platform("linux", "arm", "v6")),
        ("LINUX/AMD64", Platform("linux", "amd64")),
    ],
)
def test_platforms_are_normalised(text: str, platform: Platform) -> None:
    assert parse_platform(text) == platform


@pytest.mark.parametrize("text", ["", "linux/", "a/b/c/d", "windows/amd64", "linux/a b"])
def test_what_is_no_platform_is_refused(text: str) -> None:
    with pytest.raises(PlatformError):
        parse_platform(text)


def test_another_system_never_fits() -> None:
    assert rank(Platform("windows", "amd64"), Platform("linux", "amd64")) is None
