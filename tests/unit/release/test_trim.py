"""What a module of the wheel is without: comments, and texts that only readers of the source see."""

import pytest
from trim import is_trimmed, trim

SOURCE = '''\
#!/usr/bin/python3
"""The module."""  # check: pure
# ours
MOST = 3  # at once
"""Of each — in seconds."""
TEXT = """# stays

  as it is # here"""


class Kind:
    """What it means."""

    field: int
    """Of one
    kind."""

    def does(self) -> str:
        """Do it."""

        def inner() -> None:
            """Only a text."""

        return "é # no comment"  # noqa
'''

TRIMMED = '''\
#!/usr/bin/python3
"""The module."""

MOST = 3

TEXT = """# stays

  as it is # here"""


class Kind:
    """What it means."""

    field: int



    def does(self) -> str:


        def inner() -> None:
            """Only a text."""

        return "é # no comment"
'''


def test_comments_go_and_texts_of_functions_and_attributes_and_every_statement_keeps_its_line() -> None:
    assert trim(SOURCE, package=True) == TRIMMED


def test_only_a_package_keeps_its_own_text() -> None:
    assert trim(SOURCE) == TRIMMED.replace('"""The module."""', "")
    assert trim('"""Nothing else."""\n') == '"""Nothing else."""\n'


def test_what_is_trimmed_stays_as_it_is() -> None:
    assert trim(TRIMMED, package=True) == TRIMMED


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lastcall/ui/server.py", True),
        ("lastcall/cli/up.py", False),
        ("lastcall/testing/cluster.py", False),
        ("lastcall/testing_more.py", True),
        ("lastcall/ui/assets/ui.js", False),
    ],
)
def test_the_api_and_the_commands_keep_their_texts(name: str, expected: bool) -> None:
    assert is_trimmed(name) is expected
