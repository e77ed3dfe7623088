"""What the tests share: where the manifests are, and the application in a namespace of the test's own."""

from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
MANIFESTS = HERE / "manifests"


def code():
    """The ConfigMap that brings the code into the Pods. An application that is released has an image for that."""
    files = {path.name: path.read_text() for path in (HERE / "app").glob("*.py")}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": files}


@pytest.fixture
def store(lastcall_namespace):
    """A namespace in which the store runs."""
    lastcall_namespace.apply(code(), MANIFESTS / "store.yaml", wait=True)
    return lastcall_namespace


@pytest.fixture
def application(store):
    """A namespace in which the application runs, migrated."""
    store.apply(MANIFESTS / "migration.yaml", wait=True)
    store.apply(MANIFESTS / "server.yaml", wait=True)
    return store
