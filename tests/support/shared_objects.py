"""Decoded objects are shared by everybody in the process: a test in which somebody changed one fails."""

from collections.abc import Iterator

import orjson
import pytest

from lastcall.apiserver.objects import ObjectCache


@pytest.fixture(autouse=True)
def shared_objects_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Afterwards, what every cache of the test still remembers is what its bytes say."""
    caches: list[ObjectCache] = []
    make = ObjectCache.__init__

    def made(self: ObjectCache, size: int = 1024) -> None:
        make(self, size)
        caches.append(self)

    monkeypatch.setattr(ObjectCache, "__init__", made)
    yield
    for cache in caches:
        for value, obj in cache.known():
            assert obj == orjson.loads(value), f"somebody changed a shared object: {value[:300].decode()}"
