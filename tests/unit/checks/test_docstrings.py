"""The rule about docstrings looks at what faces and the Python API offer, and at nothing else."""

import pytest
from checks.docstrings import verbs

FACE = {"p/__init__.py": '"""Doc."""\n', "p/__init__.pyi": "from .a import Thing as Thing\nfrom .a import f as f\n"}


@pytest.mark.parametrize(
    ("text", "found"),
    [("Return it.", []), ("The thing.", ["p/a.py:1"]), ("`x`, or None.", ["p/a.py:1"]), ("Returns it.", ["p/a.py:1"])],
)
def test_a_function_of_a_face_begins_with_a_verb(find, text: str, found: list[str]) -> None:
    assert find(verbs, {**FACE, "p/a.py": f'def f():\n    """{text}"""\n'}) == found


def test_public_methods_of_a_face_s_class_begin_with_a_verb(find) -> None:
    code = (
        'class Thing:\n    """A thing."""\n    def named(self):\n        """Its name."""\n'
        '    async def run(self):\n        """Run it."""\n    def _own(self):\n        """Its own."""\n'
        "    def bare(self): ...\n"
    )
    assert find(verbs, {**FACE, "p/a.py": code}) == ["p/a.py:3"]


def test_what_no_face_offers_may_begin_with_any_word(find) -> None:
    assert find(verbs, {**FACE, "p/a.py": 'def g():\n    """The thing."""\n'}) == []


def test_the_python_api_and_faces_below_one_another_are_looked_at(find) -> None:
    api = "if TYPE_CHECKING:\n    from lastcall.q.b import start\n"
    code = 'def start():\n    """A start."""\n'
    above = {"r/__init__.pyi": "from .s.c import stop as stop\n", "r/s/c.py": 'def stop():\n    """A stop."""\n'}
    assert find(verbs, {"__init__.py": api, "q/b.py": code, **above}) == ["q/b.py:1", "r/s/c.py:1"]
