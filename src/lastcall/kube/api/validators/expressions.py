"""How a validator asks about expressions in CEL: the API server knows the language, these rules do not.

Source: pkg/apis/admissionregistration/validation/validation.go (what it asks of plugin/cel).
"""

from collections.abc import Sequence
from typing import Protocol

from lastcall.kube.api.field import INTERNAL, OMITTED, FieldError, invalid

INSTANTIATION = "program instantiation failed: "
"""How a problem begins that only shows when the program is made."""


class Scope(Protocol):
    """What expressions of one object may name. Each declared variable may be named by those after it."""

    def variable(self, name: str, text: str) -> str:
        """Return what is wrong with the expression of a variable; "" for nothing. Later ones may name the variable."""

    def problem(
        self,
        text: str,
        returns: Sequence[str],
        *,
        authorizer: bool = True,
        variables: bool = False,
        patch: bool = False,
    ) -> str:
        """Return what is wrong with an expression whose result is to be one of the types `returns`; "" for nothing."""


class Expressions(Protocol):
    """Compiles expressions of admission, and selectors of devices."""

    def selector(self, text: str) -> str:
        """Return what is wrong with a selector of devices; "" for nothing."""

    def scope(self, *, params: bool) -> Scope:
        """Return the scope of expressions; `params`: whether they may name `params`."""


def expression_error(at: str, text: str, problem: str) -> FieldError:
    """Return the error of a field with a CEL expression. (`convertCELErrorToValidationError`)"""
    if problem.startswith(INSTANTIATION):
        return FieldError(INTERNAL, at, OMITTED, problem)
    return invalid(at, text, problem)


class _AnyScope:
    def variable(self, name: str, text: str) -> str:
        return ""

    def problem(
        self,
        text: str,
        returns: Sequence[str],
        *,
        authorizer: bool = True,
        variables: bool = False,
        patch: bool = False,
    ) -> str:
        return ""


class AnyExpressions:
    """Says nothing about any expression: the caller has no compiler at hand."""

    def selector(self, text: str) -> str:
        return ""

    def scope(self, *, params: bool) -> Scope:
        return _AnyScope()


ANY_EXPRESSIONS = AnyExpressions()
