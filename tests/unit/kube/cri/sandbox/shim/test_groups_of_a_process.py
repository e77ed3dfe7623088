"""The supplementary groups of a container's process: of its user in the image, and what the Pod asks for."""

import pytest

from lastcall.kube.cri.api import ContainerConfig, ContainerMetadata, LinuxContainerSecurityContext
from lastcall.kube.cri.sandbox.shim import identity
from lastcall.kube.node.runtime.container_config import security_context

FILES = {
    "/etc/passwd": [["root", "x", "0", "0", "", "/root", ""], ["app", "x", "1000", "1001", "", "/home/app", ""]],
    "/etc/group": [["wheel", "x", "10", "root,app"], ["extra", "x", "50000", "app"]],
}


@pytest.mark.parametrize(("strict", "groups"), [(False, [1001, 10, 50000, 7]), (True, [1001, 7])])
def test_with_policy_strict_the_groups_of_the_image_do_not_count(
    strict: bool, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "_entries", lambda path, size: FILES[path])
    user = {"uid": 1000, "gid": None, "name": "", "groups": [7], "strictGroups": strict}
    assert identity.resolve(user).groups == groups


def test_the_policy_is_the_pod_s() -> None:
    assert ContainerConfig(ContainerMetadata("a"), "i").security_context.supplemental_groups_policy == "Merge"
    pod = {"spec": {"securityContext": {"supplementalGroupsPolicy": "Strict"}}}
    made: LinuxContainerSecurityContext = security_context(pod, {"name": "a"})
    assert made.supplemental_groups_policy == "Strict"
