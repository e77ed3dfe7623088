"""The rules about the sizes of functions and classes (tools/checks/sizes.py)."""

import pytest
from checks.sizes import MOST_ATTRIBUTES, MOST_LINES, long_functions, many_attributes

LONG = MOST_LINES * "    x = 1\n"
"""With `def` it is one line more than a function may have."""
WITH_ONE_MORE = "    def f(self):\n        with x as self.b:\n            pass\n"


def marked(word: str, name: str) -> str:
    return f'"""Doc."""\n\n# check: {word} {name} because it must\n\n'


def with_attributes(count: int, head: str) -> str:
    return f"{head}\n    def __init__(self):\n" + "".join(f"        self.a{n} = 1\n" for n in range(count))


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("def f():\n" + LONG, [1]),
        ("async def f():\n" + LONG, [1]),
        ("def f():\n" + LONG.removesuffix("    x = 1\n"), []),
        ('def f():\n    """Return.\n\n    More.\n    """\n' + LONG.removesuffix("    x = 1\n"), []),
        ("class C:\n    def f(self):\n" + LONG.replace("    x", "        x"), [2]),
        ("if True:\n    def f():\n" + LONG.replace("    x", "        x"), [2]),
        (marked("long functions", "f") + "def f():\n" + LONG, []),
        (marked("long functions", "C.f") + "class C:\n    def f(self):\n" + LONG.replace("    x", "        x"), []),
        (marked("long functions", "f, g") + "def f():\n" + LONG, [3]),
        (marked("long functions", "f") + "def f():\n    x = 1\n", [3]),
    ],
)
def test_a_function_fits_a_screen(find, code: str, wrong: list[int]) -> None:
    assert find(long_functions, {"a.py": code}) == [f"a.py:{line}" for line in wrong]


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        (with_attributes(MOST_ATTRIBUTES + 1, "class C:"), [1]),
        (with_attributes(MOST_ATTRIBUTES, "class C:"), []),
        (with_attributes(MOST_ATTRIBUTES + 1, "@dataclass(slots=True)\nclass C:"), []),
        (with_attributes(MOST_ATTRIBUTES + 1, "class C(SomeError):"), []),
        (with_attributes(MOST_ATTRIBUTES + 1, "class C(Protocol[T]):"), []),
        (with_attributes(MOST_ATTRIBUTES, "class C:") + WITH_ONE_MORE, [1]),
        (marked("many attributes", "C") + with_attributes(MOST_ATTRIBUTES + 1, "class C:"), []),
        (marked("many attributes", "C") + with_attributes(MOST_ATTRIBUTES, "class C:"), [3]),
    ],
)
def test_a_class_that_is_not_data_has_few_attributes(find, code: str, wrong: list[int]) -> None:
    assert find(many_attributes, {"a.py": code}) == [f"a.py:{line}" for line in wrong]
