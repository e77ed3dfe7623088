"""An attribute's length has 16 bits."""

import errno
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.kube.nftables import encode
from lastcall.kube.nftables.objects import AddElements, AddRule, DeleteElements, SetKey, SetValue, Transaction
from lastcall.kube.nftables.statements import daddr_within
from lastcall.world.netlink import MOST_BYTES, NetlinkError, attribute, attributes


def test_a_longest_attribute_is_made_and_a_longer_one_is_an_error_that_every_writer_expects() -> None:
    made = attribute(7, bytes(MOST_BYTES - 4))
    assert struct.unpack_from("=HH", made) == (MOST_BYTES, 7)
    with pytest.raises(NetlinkError) as caught:
        attribute(7, bytes(MOST_BYTES - 3))
    assert isinstance(caught.value, OSError)
    assert caught.value.errno == errno.EMSGSIZE


addresses = st.integers(1, 2**24).map(lambda number: f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")
ports = st.tuples(addresses, st.sampled_from(["TCP", "UDP", "SCTP"]), st.integers(1, 65535))
shapes = st.sampled_from(
    [
        (addresses.map(lambda each: (each,)), st.just(None)),
        (addresses.map(lambda each: (f"{each}-{each}",)), st.just(None)),
        (ports, st.just("jump a-chain-of-a-name-of-forty-characters-aaaa")),
        (st.tuples(ports, st.integers(0, 9)).map(lambda each: (*each[0], each[1])), st.just(("10.0.0.1", 80))),
    ]
)


@settings(max_examples=20, deadline=None)
@given(shapes.flatmap(lambda shape: st.tuples(*shape)), st.integers(1, 4_000))
def test_any_number_of_elements_is_split_into_attributes_that_are_short_enough(
    element: tuple[SetKey, SetValue], count: int
) -> None:
    key, value = element

    def held(number: int, *, added: bool) -> list[int]:
        """The lengths of the attributes with elements."""
        add, delete = AddElements("s", ((key, value),) * number), DeleteElements("s", (key,) * number)
        _, *messages = encode.batch(Transaction((add if added else delete,)), "t")
        return [len(attributes(message.body, 4)[3]) for message in messages]

    for added in (True, False):
        (one,) = held(1, added=added)
        lengths = held(count, added=added)
        assert max(lengths) <= MOST_BYTES - 4
        assert sum(lengths) == count * one


def test_a_rule_that_no_attribute_can_hold_is_refused_before_the_kernel_sees_it() -> None:
    with pytest.raises(NetlinkError):
        encode.batch(Transaction((AddRule("c", (daddr_within("10.0.0.0/25"),) * 700),)), "t")
