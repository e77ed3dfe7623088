"""Policies with their bindings, read once for as long as nobody changes them."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.apiserver.proxying.webhooks.matching import Everyone, Remembered, Wanted
from lastcall.world.dataclass import dataclass

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding. `wanted`: None where all that the policy wants is bound."""

    binding: Object
    wanted: Wanted | None


class Hook(Generic[P]):
    """A policy that is bound, with its bindings by name. `fails`: an error of it refuses the write."""

    __slots__ = ("_make", "_programs", "bound", "fails", "policy", "wanted")

    def __init__(self, policy: Object, bound: Sequence[Bound], make: Callable[[Object], P]) -> None:
        self.policy, self.bound = policy, bound
        self.wanted = Wanted(policy["spec"].get("matchConstraints") or {})
        self.fails = policy["spec"].get("failurePolicy") != "Ignore"
        self._make = make
        self._programs: P | None = None

    @property
    def programs(self) -> P:
        """Return its expressions, compiled when they are first needed."""
        if self._programs is None:
            self._programs = self._make(self.policy["spec"])
        return self._programs

    def take(self, before: "Hook[P]") -> None:
        """Take the programs of the same policy, if its spec is the same."""
        meta, was = self.policy["metadata"], before.policy["metadata"]
        if (meta.get("uid"), meta.get("generation")) == (was.get("uid"), was.get("generation")):
            self._programs = before._programs


class Configured(Generic[P]):
    """`make` compiles the expressions of a policy's spec."""

    def __init__(self, make: Callable[[Object], P]) -> None:
        self._make = make
        self._known = Remembered(self._read)
        self._before: dict[str, Hook[P]] = {}

    def of(self, policies: Sequence[Object], bindings: Sequence[Object]) -> Everyone[Hook[P]]:
        """Return each policy that is bound, by name."""
        return self._known.of(policies, bindings)

    def _read(self, policies: Sequence[Object], bindings: Sequence[Object]) -> Everyone[Hook[P]]:
        bound: dict[str, list[Bound]] = {}
        for binding in sorted(bindings, key=name_of):
            wanted = binding["spec"].get("matchResources")
            found = Bound(binding, None if wanted is None else Wanted(wanted))
            bound.setdefault(binding["spec"].get("policyName") or "", []).append(found)
        hooks: dict[str, Hook[P]] = {}
        for policy in sorted(policies, key=name_of):
            name = name_of(policy)
            if name not in bound:
                continue
            hooks[name] = Hook(policy, bound[name], self._make)
            if name in self._before:
                hooks[name].take(self._before[name])
        self._before = hooks
        return Everyone(hooks.values())
