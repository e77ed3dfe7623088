"""What expressions of one place may name, and their programs."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from lastcall.cel.checking.checker import Checked, Declarations, check
from lastcall.cel.libraries.every import KUBERNETES
from lastcall.cel.libraries.library import Library, merged
from lastcall.cel.parsing.parser import parse
from lastcall.cel.types import Function, Type, TypeProvider


class Environment:
    """`provider` knows the object types that variables have."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        libraries: Sequence[Library] = KUBERNETES,
        provider: TypeProvider | None = None,
    ) -> None:
        functions, named = _declared(tuple(id(each) for each in libraries), _Libraries(libraries))
        self._declarations = Declarations(variables, functions, named, provider)
        self._libraries = libraries

    def check(self, text: str) -> Checked:
        """Raises CompileError."""
        return check(parse(text), self._declarations)
