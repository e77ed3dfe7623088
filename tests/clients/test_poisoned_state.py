"""A `--state` directory with objects that no server should have taken: it starts, serves and is rid of them."""

import asyncio
import json
from pathlib import Path

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import pod
from poisoned_store import Stored, poisoned, put
from staying import Place
from waiting import eventually

from lastcall.kube.api.resources import EVENTS, NODES
from lastcall.kube.store.open import open_store
from lastcall.kube.store.value import Value
from lastcall.world.world import World

pytestmark = [pytest.mark.real_kernel, needs_kubectl]


async def write_past_everything(store_file: Path) -> list[Stored]:
    world = World()
    objects = await poisoned(world)
    store = await open_store(store_file, world=world)
    await put(store, objects)
    await store.close()
    return objects


def lives_and_ends(place: Place, config: str, name: str) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod(name)]})
    place.kubectl(config, "create", "--validate=false", "-f", "-", stdin=text)
    place.kubectl(config, "wait", "--for=condition=Ready", "--timeout=50s", f"pod/{name}")
    place.kubectl(config, "delete", "pod", name, "--timeout=50s")


def named(each: Stored) -> tuple[str, list[str]]:
    return each.resource.group_resource, ["-n", each.namespace] if each.namespace else []


def test_a_state_with_poisoned_objects_starts_serves_and_lets_them_be_deleted() -> None:
    with Place(ordinary_user.USERS[0]) as place:
        state = place.home / "state/kept"
        place.kept = [str(state)]
        place.up("--state", str(state))
        place.ok("down")
        objects = asyncio.run(write_past_everything(state / "durable/store.sqlite"))
        config = place.up("--state", str(state))["kubeconfig"]
        lives_and_ends(place, config, "first")
        status = place.status()
        faults = [fault for process in status["processes"] for fault in process["faults"]]
        for process in status["processes"]:
            assert process["restarts"] == 0, process
        for fault in faults:
            assert set(fault) == {"component", "key", "count", "error", "at"} and fault["count"] > 0
        shown = place.ok("status")
        assert ("unexpected error" in shown) == bool(faults)
        for each in sorted(objects, key=lambda each: each.resource in (EVENTS, NODES)):
            what, namespace = named(each)
            place.kubectl(config, "delete", what, each.name, *namespace, "--wait=false", "--ignore-not-found")
        for each in objects:
            what, namespace = named(each)

            def is_gone(what: str = what, name: str = each.name, namespace: list[str] = namespace) -> bool:
                return place.kubectl(config, "get", what, name, *namespace, "--ignore-not-found") == ""

            eventually(is_gone, f"{each.key} is gone", 120)
        lives_and_ends(place, config, "last")
        assert all(process["restarts"] == 0 for process in place.status()["processes"])


def test_up_names_what_it_cannot_read_in_a_state_and_how_to_be_rid_of_it() -> None:
    with Place(ordinary_user.USERS[0]) as place:
        state = place.home / "state/kept"
        place.kept = [str(state)]
        config = place.up("--state", str(state))["kubeconfig"]
        text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "blanks"}})
        place.kubectl(config, "create", "-f", "-", stdin=text)
        kept = json.loads(place.kubectl(config, "get", "configmap", "blanks", "-o", "json"))
        place.ok("down")
        rows = {
            "configmaps/default/blanks": json.dumps(kept, indent=3),
            "configmaps/default/torn": json.dumps({**kept, "metadata": {**kept["metadata"], "namespace": "nosuch"}}),
            "services/default/odd": json.dumps({**kept, "kind": "Service"}),
            "nodes/odd": '{"kind":"Node","apiVersion":"v1"}',
            "apiservices/v1.odd": "[]",
            "pods/default/text": "{",
        }
        asyncio.run(write_rows(state / "durable/store.sqlite", rows))
        started = place.run("up", "--detach", "-o", "json", "--state", str(state))
        assert started.status == 0, started.err
        place.watch(json.loads(started.out)["pid"])
        del rows["configmaps/default/blanks"]
        for key in rows:
            assert f"{key}: the stored object is set aside: " in started.err, started.err
        (said,) = [line for line in started.err.splitlines() if "configmaps/default/torn" in line]
        assert said.endswith("Delete it with: kubectl delete configmaps torn -n default")
        assert "configmaps/default/blanks" not in started.err
        (place_of,) = [each for each in place.status()["processes"] if each["role"] == "control-plane"]
        assert {each["key"] for each in place_of["faults"]} == rows.keys()
        assert "blanks" in place.kubectl(config, "get", "configmaps")
        lives_and_ends(place, config, "first")
        for key in rows:
            plural, *_, name = key.split("/")
            namespace = ["-n", "default"] if key.count("/") == 2 else []
            place.kubectl(config, "delete", plural, name, *namespace)
        place.ok("down")
        again = place.run("up", "--detach", "-o", "json", "--state", str(state))
        place.watch(json.loads(again.out)["pid"])
        assert "set aside" not in again.err


async def write_rows(store_file: Path, rows: dict[str, str]) -> None:
    store = await open_store(store_file, world=World())
    for key, text in rows.items():
        there = await store.get(key)

        def encode(revision: int, text: str = text) -> Value:
            return Value(text.encode())

        await (store.create(key, encode) if there is None else store.update(key, there.revision, encode))
    await store.close()
