"""What the checker found out about a tree, by the ids of its nodes: the interpreter needs no more than this."""

from collections.abc import Mapping

from lastcall.kube.cel.ast import Tree
from lastcall.kube.cel.types import Type
from lastcall.kube.cel.values import NOTHING
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """What a name or a call refers to.

    A name (also a dotted one, at the node of its last Select): `name` as it was declared, and `value` for a constant.
    A call: `overloads`, the ids of all overloads that may be meant; one, if the types say which.
    """

    name: str = ""
    overloads: tuple[str, ...] = ()
    value: object = NOTHING


@dataclass(frozen=True, slots=True)
class Checked:
    tree: Tree
    types: Mapping[int, Type]
    references: Mapping[int, Reference]
