"""A plugin of mypy: `.get("…")` of a key that the TypedDict has not is an error.

mypy itself takes such a `.get` for an `object`, which may be compared and tested, so that a misspelt field in
`pod["spec"].get("restartPolcy") == "Never"` goes unseen. `[]`, writes and literals it checks by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.options import Options
from mypy.plugin import MethodContext, Plugin
from mypy.plugins.default import DefaultPlugin
from mypy.typeops import try_getting_str_literals
from mypy.types import Type, TypedDictType, get_proper_type

Hook = Callable[[MethodContext], Type]


class TypedFields(Plugin):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._default = DefaultPlugin(options)

    def get_method_hook(self, fullname: str) -> Hook | None:
        """Return a hook that goes on from mypy's own: the first plugin with a hook is the only one that is asked."""
        if not fullname.endswith(".get"):
            return None
        default = self._default.get_method_hook(fullname)

        def checked(context: MethodContext) -> Type:
            _check(context)
            return context.default_return_type if default is None else default(context)

        return checked


def _check(context: MethodContext) -> None:
    # The literal `{}` in `pod.get("status") or {}` is a TypedDict without keys.
    objects = get_proper_type(context.type)
    if not isinstance(objects, TypedDictType) or not objects.items or not context.args or not context.args[0]:
        return
    for key in try_getting_str_literals(context.args[0][0], context.arg_types[0][0]) or ():
        if key not in objects.items:
            context.api.fail(f'TypedDict "{objects.fallback.type.name}" has no key "{key}"', context.context)


def plugin(version: str) -> type[Plugin]:
    return TypedFields
