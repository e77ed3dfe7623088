"""Decoded objects are shared by everybody in the process: a test in which somebody changed one fails."""

from collections import deque
from collections.abc import Iterator
from typing import Any
from weakref import ref

import orjson
import pytest

from lastcall.kube.apiserver.registry.objects import ObjectCache
from lastcall.kube.store.value import Decoded


@pytest.fixture(autouse=True)
def shared_objects_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Afterwards, of the last objects that were handed out those that are still there are what they were then."""
    handed_out: deque[tuple[bytes, ref[Any]]] = deque(maxlen=5000)
    remember = ObjectCache.remember

    def remembered(self: ObjectCache, obj: Decoded, size: int) -> Decoded:
        shared = remember(self, obj, size)
        handed_out.append((orjson.dumps(shared), ref(shared)))
        return shared

    monkeypatch.setattr(ObjectCache, "remember", remembered)
    yield
    monkeypatch.undo()
    for value, known in handed_out:
        obj = known()
        assert obj is None or obj == orjson.loads(value), f"somebody changed a shared object: {value[:300].decode()}"
