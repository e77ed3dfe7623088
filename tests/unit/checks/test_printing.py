"""Whatever prints text as it is has a marker that says why."""

import pytest
from checks.printing import printing


@pytest.mark.parametrize(
    "code",
    [
        "print('x')\n",
        "import click\nclick.echo('x')\n",
        "from click import secho\nsecho('x')\n",
        "import click\nclick.prompt('x')\n",
        "import sys\nsys.stdout.write('x')\n",
        "import sys\nsys.stderr.buffer.write(b'x')\n",
        "import sys\nstream = sys.stderr\n",
        "from sys import stdout\nstdout.write('x')\n",
        "import os\nos.write(2, b'x')\n",
        "from rich.console import Console\nConsole().print('x')\n",
        "from rich.text import Text\n",
        "import rich\nrich.text.Text('x')\n",
        "import traceback\ntraceback.print_exc()\n",
    ],
)
def test_a_file_that_prints_without_a_marker_is_found(find, code: str) -> None:
    assert len(find(printing, {"cli/a.py": code})) == 1
    assert find(printing, {"cli/a.py": f'"""A."""\n\n# check: prints because its reader is a program\n\n{code}'}) == []


def test_what_only_looks_at_a_stream_is_no_print(find) -> None:
    code = (
        "import sys\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from rich.console import Console\n"
        "sys.stdout.isatty()\nsys.stdout.flush()\ntakes_escapes(sys.stderr)\nos.write(3, b'x')\n"
    )
    assert find(printing, {"cli/a.py": code}) == []


def test_a_marker_of_a_file_that_prints_nothing_is_found(find) -> None:
    assert find(printing, {"a.py": '"""A."""\n\n# check: prints because it did once\n\nx = 1\n'}) == ["a.py:3"]
