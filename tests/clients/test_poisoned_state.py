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

from lastcall.api.resources import EVENTS, NODES
from lastcall.store.open import open_store
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
