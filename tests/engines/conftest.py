"""Real components of Kubernetes, once for all tests of this directory."""

from collections.abc import Iterator

import pytest
from engines.api_server import RealAPIServer, real_api_server


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAPIServer]:
    """An API server that tests share: each has namespaces and users of its own."""
    with real_api_server(tmp_path_factory.mktemp("real")) as server:
        yield server
