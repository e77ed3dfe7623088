"""The two forms of a stored object: JSON is made for who asks for it, and what nobody asks for costs nothing."""

import gc

import orjson
import pytest

from lastcall.kube.store.memory import MemoryStore
from lastcall.kube.store.value import Decoded, Value

OBJECT = {"kind": "Pod", "metadata": {"name": "p"}}


def test_an_object_is_its_own_decoded_form_until_somebody_asks_for_json() -> None:
    decoded = Decoded(OBJECT)
    value = Value(None, decoded)
    assert value.object is decoded and value.decoded() is decoded
    assert orjson.loads(value.encoded()) == OBJECT
    assert value.object is None, "JSON is what is kept from now on"
    assert value.decoded() is decoded, "and the object as long as somebody has it"
    del decoded
    gc.collect()
    assert value.decoded() is None


def test_json_is_made_once() -> None:
    value = Value(None, Decoded(OBJECT))
    assert value.encoded() is value.encoded()


def test_values_are_equal_when_their_json_is() -> None:
    assert Value(None, Decoded(OBJECT)) == Value(orjson.dumps(OBJECT))
    assert Value(None, Decoded(OBJECT)) != Value(b"{}")


def test_a_size_is_that_of_the_value_before_until_the_json_is_there() -> None:
    first = Value(b"x" * 1000)
    second = Value(None, Decoded(OBJECT), first)
    third = Value(None, Decoded(OBJECT), second)
    assert [(value.size, value.guesses) for value in (first, second, third)] == [(1000, 0), (1000, 1), (1000, 2)]
    size = len(third.encoded())
    assert (third.size, third.guesses) == (size, 0)
    assert Value(None, Decoded(OBJECT), third).size == size


@pytest.mark.parametrize("asked", [True, False])
async def test_the_bytes_of_the_history_are_right_however_late_the_json_is_made(asked: bool) -> None:
    """What a write counted for when it came is what it gives back when it goes."""
    store = MemoryStore(history=10)
    large = Value(b"x" * 1000)
    for number in range(30):
        entry = await store.create(f"k/{number}", lambda _: Value(None, Decoded(OBJECT), large))
        if asked:
            entry.value.encoded()
    assert store._history._size == 10 * 1000
    await store.compact(await store.revision())
    assert store._history._size == 0


async def test_what_the_history_has_forgotten_is_kept_as_json_if_it_is_still_there() -> None:
    store = MemoryStore(history=3)
    like = Value(b"x" * 10)

    def encode(_: int) -> Value:
        return Value(None, Decoded(OBJECT), like)

    stays = await store.create("k/stays", encode)
    replaced = await store.create("k/replaced", encode)
    latest = await store.update("k/replaced", replaced.revision, encode)
    assert stays.value.object is not None
    last = await store.create("k/last", encode)
    assert stays.value.object is None
    assert latest.value.object is not None and last.value.object is not None
    await store.compact(await store.revision())
    assert latest.value.object is None and last.value.object is None
    assert replaced.value.object is None, "a watch can still begin at it"


async def test_what_somebody_of_this_process_follows_is_not_made_json_for_rest() -> None:
    """It is in his cache, decoded; another process's cache is no reason."""
    like = Value(b"x" * 10)

    async def at_rest(prefix: str, *, remote: bool) -> bool:
        store = MemoryStore()
        async with store.watch(prefix, 1, remote=remote):
            entry = await store.create("k/a", lambda _: Value(None, Decoded(OBJECT), like))
            await store.compact(entry.revision)
        return entry.value.object is None

    assert not await at_rest("k/", remote=False)
    assert await at_rest("k/", remote=True)
    assert await at_rest("k/other", remote=False)
    assert await at_rest("other/", remote=False)
