"""A planned expression, and what running it gives."""

from collections.abc import Mapping

from lastcall.kube.cel.running.state import Run, State
from lastcall.kube.cel.values import CostExceeded, EvaluationError
from lastcall.world.dataclass import dataclass

TOO_DEEP = "expression is nested too deep to be evaluated"


@dataclass(slots=True)
class Outcome:
    """The value of an expression, and what it cost."""

    value: object
    cost: int


@dataclass(frozen=True, slots=True)
class Plan:
    run_root: Run
    slots: int

    def run(self, variables: Mapping[str, object], *, limit: int) -> Outcome:
        """Evaluate. Raises EvaluationError in cel-go's words (its `cost` says what was spent), and CostExceeded."""
        state = State(variables, self.slots, limit)
        try:
            value = self.run_root(state)
        except EvaluationError as error:
            if state.cost > limit:
                raise CostExceeded from None
            error.cost = state.cost
            raise error.with_traceback(None) from None
        except RecursionError:
            raise EvaluationError(TOO_DEEP) from None
        if state.cost > limit:
            raise CostExceeded
        return Outcome(value, state.cost)
