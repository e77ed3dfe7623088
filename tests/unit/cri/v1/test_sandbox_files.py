"""What a container finds in /etc when no kubelet mounts anything there."""

import pytest

from lastcall.cluster.runtime.pod_files import PodFilesOnDisk, resolv_conf
from lastcall.cri.api import DNSConfig, PodSandboxConfig, PodSandboxMetadata, RuntimeServiceError


def test_resolv_conf_says_what_the_sandbox_says():
    dns = DNSConfig(("10.0.0.10",), ("a.local", "b.local"), ("ndots:5",))
    assert resolv_conf(dns, "x") == "search a.local b.local\nnameserver 10.0.0.10\noptions ndots:5\n"
    assert resolv_conf(DNSConfig(), "nameserver 1.2.3.4\n") == "nameserver 1.2.3.4\n"


async def test_files_are_made_once_and_go_with_the_sandbox(tmp_path):
    files = PodFilesOnDisk(str(tmp_path))
    config = PodSandboxConfig(PodSandboxMetadata("web", "u", "x"), hostname="web")
    mounts = {each.container_path: each.host_path for each in await files.mounts("a" * 64, config)}
    assert sorted(mounts) == ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"]
    assert (tmp_path / "sandboxes" / ("a" * 64) / "hostname").read_text() == "web\n"
    await files.remove("a" * 64)
    assert not list((tmp_path / "sandboxes").iterdir())


async def test_files_of_a_sandbox_that_is_forgotten_go_with_the_next_start(tmp_path):
    files = PodFilesOnDisk(str(tmp_path))
    await files.keep_only(())
    config = PodSandboxConfig(PodSandboxMetadata("web", "u", "x"))
    for each in ("a", "b"):
        await files.mounts(each * 64, config)
    await files.keep_only({"a" * 64})
    assert [each.name for each in (tmp_path / "sandboxes").iterdir()] == ["a" * 64]


async def test_an_id_that_is_a_path_is_refused(tmp_path):
    config = PodSandboxConfig(PodSandboxMetadata("web", "u", "x"))
    with pytest.raises(RuntimeServiceError, match="is not the id"):
        await PodFilesOnDisk(str(tmp_path)).mounts("../../etc", config)
