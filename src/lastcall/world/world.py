"""What a component may use of the world: time, randomness, identities."""

import uuid
from dataclasses import dataclass, field
from random import Random

from lastcall.world.clock import Clock, RealClock


@dataclass(slots=True)
class World:
    """The doors a component is given. Everything random or timed in lastcall goes through one of these.

    `random` decides jitter and generated names, never secrets. With a seeded `Random` and a virtual clock two
    runs are byte-identical.
    """

    clock: Clock = field(default_factory=RealClock)
    random: Random = field(default_factory=Random)

    def new_uid(self) -> str:
        """A UUID version 4 in its text form."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))
