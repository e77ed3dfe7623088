"""The migration Job, before the application and again."""

import json
import urllib.request

import pytest

import lastcall
from conftest import MANIFESTS, code


def test_the_application_is_ready_only_after_the_migration(store):
    store.apply(MANIFESTS / "server.yaml")
    with pytest.raises(lastcall.NotReady, match="server"):
        store.wait_ready("deployment/server", timeout=4)
    store.apply(MANIFESTS / "migration.yaml", wait=True)
    store.wait_ready("deployment/server")
    assert store.logs("job/migrate") == "schema 0 -> 2\n"


def test_a_second_migration_keeps_what_is_there(application):
    url = application.url("svc/store:8080")
    body = json.dumps("good day").encode()
    urllib.request.urlopen(urllib.request.Request(f"{url}/greeting", data=body, method="PUT")).close()
    application.delete("job/migrate")
    application.apply(MANIFESTS / "migration.yaml", wait=True)
    assert application.logs("job/migrate") == "schema 2 -> 2\n"
    assert urllib.request.urlopen(application.url("svc/server:80")).read() == b"good day\n"


def test_a_migration_without_a_store_fails_and_says_why(lastcall_namespace):
    with pytest.raises(lastcall.NotReady, match="there is no Service named store"):
        lastcall_namespace.apply(code(), MANIFESTS / "migration.yaml", wait=True)
