"""A cluster for each file, both kubectls, and a namespace for each test."""

import re
from collections.abc import Iterator

import pytest
from kept_cluster import kept_cluster, make_images
from kubectls import CURRENT, DEBIAN, Kubectl, find_kubectl


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The admin's, of a cluster on the real kernel with the images of `make_images`."""
    data = tmp_path_factory.mktemp("data")
    make_images(data)
    with kept_cluster(data) as path:
        yield path


@pytest.fixture(scope="module", params=[CURRENT, DEBIAN])
def admin(request: pytest.FixtureRequest, kubeconfig: str, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """kubectl in no particular namespace; its home, with the discovery cache, is kept for all tests."""
    kubectl = Kubectl(request.param, kubeconfig, str(tmp_path_factory.mktemp("home")))
    print(f"{request.param}: {find_kubectl(request.param)} {kubectl.version}")
    return kubectl


@pytest.fixture
def kubectl(admin: Kubectl, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """kubectl in a namespace of the test's own."""
    name = "t-" + re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-50:].strip("-")
    with admin.in_namespace(name) as scoped:
        yield scoped
