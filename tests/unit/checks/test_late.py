"""An import inside a function without its comment is found."""

import pytest
from checks import late
from checks.late import late_imports
from checks.source import Source


def test_an_import_without_a_reason_is_found() -> None:
    text = "def a():\n    import json\n\ndef b():\n    # late: 7 ms of run --help\n    import re\n    import io\n"
    assert [(number, said and said["ms"]) for number, said in late.late(Source("a.py", text))] == [(2, None), (6, "7")]


def test_the_rule_reports_it(find) -> None:
    files = {
        "a.py": "def a():\n    try:\n        import json\n    finally:\n        pass\n",
        "b.py": "def a():\n    # late: loaded by the first question only\n    import json\n",
        "c.py": "import json\nif TYPE_CHECKING:\n    import re\n",
    }
    assert find(late_imports, files) == ["a.py:3"]


def test_only_so_many_save_little(find, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "MOST_SMALL", 1)
    text = "def a():\n    # late: 19 ms of run --help\n    import json\n"
    assert find(late_imports, {"a.py": text, "b.py": text}) == ["b.py:3"]
