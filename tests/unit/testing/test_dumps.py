"""What a failed test's report says of a namespace obeys nobody who wrote a part of it."""

from collections.abc import AsyncIterator
from typing import Any

from fake_api import FakeAPI
from foreign_text import FRAGMENTS, harm_in

from lastcall.experiment.ready import Objects
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS, EVENTS, PODS, Resource
from lastcall.testing.dump import dump
from lastcall.world.world import World

BOATS = Resource("example.com", "v1", "boats", "Boat", namespaced=True)
DEFINITION = {
    "metadata": {"name": "boats.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "kind": "Boat"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
}


class Logging(FakeAPI):
    """A cluster whose containers print `printed`."""

    printed = ""

    async def pod_log(self, namespace: str, name: str, container: str, **options: Any) -> AsyncIterator[bytes]:
        yield f"a\n{self.printed}\n".encode("utf-8", "replace")


async def test_the_dump_of_a_namespace_obeys_no_name_reason_or_message() -> None:
    world = World()
    api = Logging(world)
    api.put(CUSTOMRESOURCEDEFINITIONS, DEFINITION)
    for number, text in enumerate(each for each in FRAGMENTS if each != "\ud800"):  # which no API server stores
        api.printed = text
        waiting: dict[str, Any] = {"name": text, "state": {"waiting": {"reason": text, "message": text}}}
        status = {"phase": text, "reason": text, "message": text, "containerStatuses": [waiting]}
        spec = {"containers": [{"name": text}]}
        api.put(PODS, {"metadata": {"name": f"{number}{text}", "namespace": "shop"}, "spec": spec, "status": status})
        event = {"type": text, "reason": text, "message": text, "involvedObject": {"kind": text, "name": text}}
        api.put(EVENTS, {"metadata": {"name": str(number), "namespace": "shop"}, **event})
        condition = dict.fromkeys(("type", "status", "reason", "message"), text)
        own = {"name": f"{number}", "namespace": "shop", "finalizers": [text]}
        api.put(BOATS, {"metadata": own, "status": {text: text, "conditions": [condition]}})
        told = await dump(Objects(api, world.clock), "shop")  # type: ignore[arg-type]
        assert harm_in(told) == "", text
        assert "    | a" in told and "Events:" in told and "  finalizers: " in told
        for resource in (PODS, EVENTS, BOATS):
            for each in api.of(resource):
                api.remove(resource, each["metadata"]["name"], "shop")
