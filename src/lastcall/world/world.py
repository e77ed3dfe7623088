"""What a component may use of the world: time, randomness, identities."""

from dataclasses import field
from random import Random

from lastcall.world.clock import Clock, RealClock
from lastcall.world.counting import Registry
from lastcall.world.dataclass import dataclass

_UUID_FIXED = 0xF << 76 | 0xC << 60
_UUID_4 = 0x4 << 76 | 0x8 << 60
"""The bits of a UUID that say its version (4) and its variant (RFC 4122)."""


@dataclass(slots=True)
class World:
    """The doors a component is given. Everything random or timed in lastcall goes through one of these.

    `counted` is what `/metrics` exposes.

    `random` decides jitter and generated names, never secrets. With a seeded `Random` and a virtual clock two
    runs are byte-identical.
    """

    clock: Clock = field(default_factory=RealClock)
    random: Random = field(default_factory=Random)
    counted: Registry = field(default_factory=Registry)

    def new_uid(self) -> str:
        """Return a new UUID version 4 in its text form."""
        # As `str(uuid.UUID(int=bits, version=4))`, in a quarter of its time: every request has one.
        bits = self.random.getrandbits(128) & ~_UUID_FIXED | _UUID_4
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
