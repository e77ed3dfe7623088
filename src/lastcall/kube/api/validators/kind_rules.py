"""What is asked of objects of one kind."""

from collections.abc import Callable
from typing import NamedTuple

from lastcall.kube.api.field import FieldError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import Check, is_dns1123_subdomain
from lastcall.kube.api.validators.expressions import Expressions

Rule = Callable[[Object], list[FieldError]]
ExpressionRule = Callable[[Object, Expressions], list[FieldError]]
UpdateRule = Callable[[Object, Object], list[FieldError]]


def nothing(obj: Object) -> list[FieldError]:
    return []


def no_change(new: Object, old: Object) -> list[FieldError]:
    return []


class KindRules(NamedTuple):
    """`obj` holds for the object alone, `update` for a change of it; `subresources` replace both for their name.

    `then` is what a change is asked after the object was checked.
    """

    name: Check = is_dns1123_subdomain
    obj: Rule = nothing
    create: Rule | None = None
    """Instead of `obj` for a new one; a change is asked neither."""
    fresh: Rule | None = None
    """Instead of `obj` for a new one; a change is asked `obj`."""
    update: UpdateRule = no_change
    subresources: tuple[tuple[str, UpdateRule], ...] = ()
    then: UpdateRule = no_change
    change_first: bool = False
    """Whether a change's metadata is looked at before the object, for a kind with no `update`."""
    change: UpdateRule | None = None
    """Instead of `obj`, `update` and `then`, for a kind of which a change is asked all that in an order of its own."""
    expressions: ExpressionRule | None = None
    """Instead of `obj`, for a kind with expressions."""
    created: ExpressionRule | None = None
    """Besides `create`, for a kind whose expressions are looked at when an object is made."""
    name_of: Callable[[Object], Check] | None = None
    """Instead of `name`, for a kind whose name says what is in it."""

    def check(self, obj: Object, expressions: Expressions) -> list[FieldError]:
        return self.obj(obj) if self.expressions is None else self.expressions(obj, expressions)
