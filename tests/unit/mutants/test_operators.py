"""What a mutant changes (tools/mutants/operators.py, sites.py)."""

import ast

import pytest
from mutants.operators import changes
from mutants.sites import compiled, mutants, replacements


def texts(code: str) -> list[str]:
    """Return the changes of the first node of a snippet that has some."""
    return next(found for node in ast.walk(ast.parse(code)) if (found := [each.text for each in changes(node)]))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a < b", ["`a < b` → `a <= b`", "`a < b` → `a >= b`"]),
        ("a is None", ["`a is None` → `a is not None`"]),
        ("a in b", ["`a in b` → `a not in b`"]),
        ("a and b and c", ["`a and b and c` → `a or b or c`"]),
        ("not a", ["`not a` → `a`"]),
        ("a + b", ["`a + b` → `a - b`"]),
        ("a | b", ["`a | b` → `a & b`"]),
        ("True", ["`True` → `False`"]),
        ("5", ["`5` → `6`", "`5` → `4`"]),
        ("0.5", ["`0.5` → `1.5`", "`0.5` → `-0.5`"]),
        ("c = min(a, b)", ["`min(a, b)` → `max(a, b)`"]),
        ("log(a)", ["`log(a)` removed"]),
        ("raise A", ["`raise A` removed"]),
        ("self.a = b", ["`self.a = b` removed"]),
        ("a += b", ["`a += b` → `a -= b`"]),
        ("if a: pass", ["`if a` → `if not a`"]),
    ],
)
def test_a_node_is_changed_in_each_way(code: str, expected: list[str]) -> None:
    assert texts(code) == expected


def test_a_long_text_is_shown_around_what_differs() -> None:
    code = "f(" + "argument, " * 20 + ") and " + "f(" + "argument, " * 20 + ") and last"
    (text,) = texts(code)
    before, after = text.split(" → ")
    assert " and " in before and " or " in after and len(text) < 170


def test_a_falsy_return_value_is_not_replaced_by_none() -> None:
    assert texts("def f():\n    return False") == ["`False` → `True`"]


@pytest.mark.parametrize("code", ["a = b", "'a' + b", "f'{a}' + b", "'text'", "None", "a ** b"])
def test_a_change_that_proves_nothing_is_not_made(code: str) -> None:
    assert [each for node in ast.walk(ast.parse(code)) for each in changes(node)] == []


MODULE = '''
"""A module."""
LIMIT = 3

def cached(limit=3):
    """Count."""
    def inner(value: int = 4) -> int:
        if value in (
            1,
        ):
            return limit
        return None
    return inner

class Rules:
    most = 7

    @property
    def left(self):
        return self.most - 1
'''


def test_only_bodies_of_functions_are_mutated() -> None:
    found = mutants(MODULE, "a.py")
    assert {each.function for each in found} == {"cached", "cached.<locals>.inner", "Rules.left"}
    assert {each.change for each in found if each.function == "Rules.left"} == {
        "`return self.most - 1` → `return None`",
        "`self.most - 1` → `self.most + 1`",
        "`self.most - 1` → `self.most - 2`",
        "`self.most - 1` → `self.most - 0`",
    }
    assert not any("3" in each.change or "7" in each.change or "`4`" in each.change for each in found)


def test_a_mutant_is_executed_with_the_lines_of_its_statement_up_to_its_end() -> None:
    (found,) = [each for each in mutants(MODULE, "a.py") if each.change == "`(1,)` → `(2,)`"]
    assert found.lines == (8, 9)


def test_a_nested_function_is_replaced_together_with_the_one_around_it() -> None:
    (found,) = [each for each in mutants(MODULE, "a.py") if "not in" in each.change]
    assert {name for name, _ in replacements(MODULE, "a.py", found.number)} == {"cached", "cached.<locals>.inner"}


def test_a_function_keeps_its_variables_though_the_change_takes_their_use_away() -> None:
    (found,) = [each for each in mutants(MODULE, "a.py") if each.change == "`return limit` → `return None`"]
    codes = {name: code for (name, _), code in replacements(MODULE, "a.py", found.number).items()}
    assert codes["cached.<locals>.inner"].co_freevars == ("limit",)


def test_replaced_code_computes_something_else() -> None:
    (found,) = [each for each in mutants(MODULE, "a.py") if each.change == "`self.most - 1` → `self.most + 1`"]
    (code,) = replacements(MODULE, "a.py", found.number).values()
    names: dict[str, object] = {}
    exec(compile(MODULE, "a.py", "exec"), names)
    rules = names["Rules"]
    rules.left.fget.__code__ = code  # type: ignore[attr-defined]
    assert rules().left == 8  # type: ignore[operator]


def test_without_a_change_the_code_is_that_of_the_module() -> None:
    assert [name for name, _ in compiled(MODULE, "a.py", None)] == ["cached", "cached.<locals>.inner", "Rules.left"]
