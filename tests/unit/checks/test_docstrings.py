"""The rule about docstrings looks at public functions and methods, and at nothing else."""

import pytest
from checks.docstrings import verbs


@pytest.mark.parametrize(
    ("text", "found"),
    [("Return it.", []), ("The thing.", ["p/a.py:1"]), ("`x`, or None.", ["p/a.py:1"]), ("Returns it.", ["p/a.py:1"])],
)
def test_a_public_function_begins_with_a_verb(find, text: str, found: list[str]) -> None:
    assert find(verbs, {"p/a.py": f'def f():\n    """{text}"""\n'}) == found


def test_public_methods_of_a_public_class_begin_with_a_verb(find) -> None:
    code = (
        'class Thing:\n    """A thing."""\n    def named(self):\n        """Its name."""\n'
        '    async def run(self):\n        """Run it."""\n    def _own(self):\n        """Its own."""\n'
        "    def bare(self): ...\n"
    )
    assert find(verbs, {"p/a.py": code}) == ["p/a.py:3"]


def test_private_names_and_the_help_of_the_program_may_begin_with_any_word(find) -> None:
    private = 'def _g():\n    """The thing."""\nclass _Own:\n    def f(self):\n        """Its f."""\n'
    program = 'def cli():\n    """Real Pods."""\n'
    assert find(verbs, {"p/a.py": private, "cli/commands.py": program}) == []
