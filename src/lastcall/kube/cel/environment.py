"""What expressions of one place may name, and their programs."""

from collections.abc import Mapping, Sequence

from lastcall.kube.cel.bounds import Bounds
from lastcall.kube.cel.checked import Checked
from lastcall.kube.cel.checking.checker import Declarations, check
from lastcall.kube.cel.checking.estimate import Sizes, estimate
from lastcall.kube.cel.errors import ProgramError
from lastcall.kube.cel.libraries.every import KUBERNETES
from lastcall.kube.cel.libraries.library import Estimate, Library
from lastcall.kube.cel.parsing.parser import parse
from lastcall.kube.cel.running.planning import Bindings, bindings_of, plan
from lastcall.kube.cel.running.program import Outcome, Plan
from lastcall.kube.cel.types import Type, TypeProvider
from lastcall.kube.cel.values import EvaluationError
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression."""

    checked: Checked
    plan: Plan
    estimates: Mapping[str, Estimate]

    @property
    def result(self) -> Type:
        """Return the type of what the expression evaluates to."""
        return self.checked.types[self.checked.tree.root.id]

    def estimate(self, sizes: Sizes) -> Bounds:
        """Return the least and the most that it costs, by the sizes of what it may name."""
        return estimate(self.checked, self.estimates, sizes)

    def run(self, variables: Mapping[str, object], *, limit: int) -> Outcome:
        """Return the value and what it cost. Raises EvaluationError, and CostExceeded above `limit`."""
        return self.plan.run(variables, limit=limit)


@dataclass(frozen=True, slots=True)
class _Known:
    """The functions, types and estimates of several libraries."""

    bindings: Bindings
    types: Mapping[str, Type]
    estimates: Mapping[str, Estimate]


_KNOWN: dict[int, _Known] = {}
"""By the identity of a sequence of libraries: there are few, and they live as long as their modules."""


def _known(libraries: Sequence[Library]) -> _Known:
    found = _KNOWN.get(id(libraries))
    if found is None:
        named = {name: type_ for library in libraries for name, type_ in library.types.items()}
        estimates = {id_: each for library in libraries for id_, each in library.estimates.items()}
        found = _KNOWN[id(libraries)] = _Known(bindings_of(libraries), named, estimates)
    return found


class Environment:
    """`provider` knows the object types that variables have. `libraries` is one of the sequences of
    `lastcall.kube.cel.libraries.every`."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        libraries: Sequence[Library] = KUBERNETES,
        provider: TypeProvider | None = None,
    ) -> None:
        known = _known(libraries)
        self._bindings, self._estimates = known.bindings, known.estimates
        self._declarations = Declarations(variables, known.bindings.functions, known.types, provider)

    def check(self, text: str) -> Checked:
        """Return the tree of an expression with its types. Raises CompileError."""
        return check(parse(text), self._declarations)

    def compile(self, text: str) -> Program:
        """Compile an expression. Raises CompileError, and ProgramError for one that cannot run: an invalid pattern."""
        checked = self.check(text)
        try:
            return Program(checked, plan(checked, self._bindings), self._estimates)
        except EvaluationError as error:
            raise ProgramError(f"program instantiation failed: {error}") from None
