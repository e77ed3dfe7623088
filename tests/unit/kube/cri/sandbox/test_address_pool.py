"""The addresses of a node's Pods."""

from ipaddress import IPv4Address

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from lastcall.kube.cri.sandbox.address_pool import AddressPool, AddressPoolError


def test_the_first_pod_gets_the_address_behind_the_conventional_gateway() -> None:
    assert AddressPool("10.244.0.0/24").allocate() == "10.244.0.2"


def test_a_freed_address_is_the_last_to_be_handed_out_again() -> None:
    pool = AddressPool("10.0.0.0/29")
    first = pool.allocate()
    pool.release(first)
    handed_out = [pool.allocate() for _ in range(5)]
    assert handed_out == ["10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", first]


def test_an_empty_pool_says_which_range_is_used_up() -> None:
    pool = AddressPool("10.0.0.0/29")
    for _ in range(pool.capacity):
        pool.allocate()
    with pytest.raises(AddressPoolError, match=r"no IP addresses available in range set: 10\.0\.0\.2-10\.0\.0\.6"):
        pool.allocate()


def test_an_address_from_before_a_restart_is_not_handed_out() -> None:
    pool = AddressPool("10.0.0.0/29")
    pool.reserve("10.0.0.3")
    pool.reserve("10.0.0.3")
    assert len(pool) == 1
    assert [pool.allocate() for _ in range(4)] == ["10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.2"]


@pytest.mark.parametrize("foreign", ["10.0.0.0", "10.0.0.1", "10.0.0.7", "10.0.1.2", "9.9.9.9", "fd00::2", ""])
def test_foreign_addresses_cannot_be_reserved_and_freeing_them_is_harmless(foreign: str) -> None:
    pool = AddressPool("10.0.0.0/29")
    with pytest.raises(AddressPoolError, match="is not one of"):
        pool.reserve(foreign)
    pool.release(foreign)
    assert len(pool) == 0


@pytest.mark.parametrize("cidr", ["10.0.0.0/30", "10.0.0.0/32", "10.0.0.5/24", "fd00::/64", "nonsense"])
def test_a_network_that_cannot_hold_pods_is_refused(cidr: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        AddressPool(cidr)


class Pools(RuleBasedStateMachine):
    """Whatever the order of Pods coming and going: no address is used twice, none is lost."""

    given = Bundle("given")

    def __init__(self) -> None:
        super().__init__()
        self.pool = AddressPool("10.1.2.0/28")
        self.used: list[str] = []
        self.freed_at: dict[str, int] = {}
        self.allocations = 0

    @rule(target=given)
    def allocate(self) -> str:
        if len(self.used) == self.pool.capacity:
            with pytest.raises(AddressPoolError):
                self.pool.allocate()
            return ""
        address = self.pool.allocate()
        self.allocations += 1
        assert address not in self.used
        assert IPv4Address("10.1.2.2") <= IPv4Address(address) <= IPv4Address("10.1.2.14")
        self.used.append(address)
        return address

    @rule(address=consumes(given), twice=st.booleans())
    def release(self, address: str, twice: bool) -> None:
        if not address or address not in self.used:
            return
        self.used.remove(address)
        for _ in range(1 + twice):
            self.pool.release(address)

    @rule(target=given, offset=st.integers(2, 14))
    def reserve(self, offset: int) -> str:
        address = f"10.1.2.{offset}"
        self.pool.reserve(address)
        if address not in self.used:
            self.used.append(address)
        return address

    @invariant()
    def the_pool_knows_how_many_are_used(self) -> None:
        assert len(self.pool) == len(self.used)


Pools.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestPools = Pools.TestCase
