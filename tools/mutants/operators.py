"""Decide what can be changed in a node of the syntax tree."""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}

NOT_CHANGED = ("annotation", "returns", "decorator_list", "type_params", "pattern", "format_spec")
"""Fields of nodes without behaviour of their own, or whose change is seldom valid."""

TEXT = 70
"""Longest text of code in a description."""


@dataclass(frozen=True)
class Change:
    """A node's replacement, with what a reader is shown."""

    new: ast.AST
    text: str


def changes(node: ast.AST) -> Iterator[Change]:
    """Yield the changes of one node, in a fixed order. The replacement is a node of its own."""
    match node:
        case ast.Compare():
            for number, operator in enumerate(node.ops):
                for other in COMPARISONS[type(operator)]:
                    new = copy.deepcopy(node)
                    new.ops[number] = other()
                    yield _replaced(node, new)
        case ast.BoolOp():
            opposite: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _replaced(node, ast.BoolOp(opposite, copy.deepcopy(node.values)))
        case ast.UnaryOp(op=ast.Not()):
            yield _replaced(node, copy.deepcopy(node.operand))
        case ast.BinOp() if type(node.op) in ARITHMETIC and not _is_text(node):
            yield _replaced(
                node, ast.BinOp(copy.deepcopy(node.left), ARITHMETIC[type(node.op)](), copy.deepcopy(node.right))
            )
        case ast.Constant(value=bool(value)):
            yield _replaced(node, ast.Constant(not value))
        case ast.Constant(value=int() | float() as value):
            yield from (_replaced(node, ast.Constant(value + step)) for step in (1, -1))
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            new_call = copy.deepcopy(node)
            new_call.func = ast.Name(CALLS[name], ast.Load())
            yield _replaced(node, new_call)
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            new_branch = copy.deepcopy(node)
            new_branch.test = ast.UnaryOp(ast.Not(), new_branch.test)
            yield Change(_at(new_branch, node), f"`if {_text(test)}` → `if not {_text(test)}`")
        case ast.stmt():
            yield from _of_statement(node)


def _of_statement(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and not value.value):
            yield _replaced(node, ast.Return(ast.Constant(None)))
        case ast.AugAssign() if type(node.op) in ARITHMETIC and not _is_text(node):
            new = copy.deepcopy(node)
            new.op = ARITHMETIC[type(node.op)]()
            yield _replaced(node, new)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Delete() | ast.Raise() | ast.Continue() | ast.Break():
            yield _removed(node)
        case ast.Assign(targets=targets) if all(isinstance(each, ast.Attribute | ast.Subscript) for each in targets):
            yield _removed(node)


def _is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Return True for operations on a literal text: their change is a TypeError, which proves nothing."""
    operands = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.value]
    return any(isinstance(each, ast.JoinedStr) or _is_string(each) for each in operands)


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _removed(node: ast.stmt) -> Change:
    return Change(_at(ast.Pass(), node), f"`{_text(node)}` removed")


def in_context(parent: ast.AST, replace: Callable[[ast.AST], None], node: ast.AST, change: Change) -> str:
    """Return the text of a changed constant with the code around it: `0` alone may stand twice in a line."""
    if not isinstance(node, ast.Constant) or isinstance(parent, ast.stmt):
        return change.text
    before = _text(parent, whole=True)
    replace(change.new)
    after = _text(parent, whole=True)
    replace(node)
    return _difference(before, after)


def _replaced(node: ast.AST, new: ast.AST) -> Change:
    return Change(_at(new, node), _difference(_text(node, whole=True), _text(new, whole=True)))


def _difference(before: str, after: str) -> str:
    same = next((n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0)
    return f"`{_around(before, same)}` → `{_around(after, same)}`"


def _around(text: str, place: int) -> str:
    """Return a short text whole, else the part of it around a place."""
    if len(text) <= TEXT:
        return text
    first = max(0, min(place - TEXT // 2, len(text) - TEXT))
    part = text[first : first + TEXT]
    return f"{'…' if first else ''}{part}{'…' if first + TEXT < len(text) else ''}"


def _at(new: ast.AST, node: ast.AST) -> ast.AST:
    return ast.fix_missing_locations(ast.copy_location(new, node))


def _text(node: ast.AST, whole: bool = False) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())
    return text if whole else _around(text, 0)
