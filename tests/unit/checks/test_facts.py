"""Facts that are read without their type are found."""

from checks.facts import facts, read_in
from checks.source import Source


def test_each_way_to_read_a_field_is_found() -> None:
    text = (
        "def a(record):\n    facts = record.facts\n    b = record.facts['one']\n"
        "    if 'two' in facts: return facts.get('three', 0)\n    return b.get('other')\n"
    )
    assert sorted(read_in(Source("a.py", text))) == [(3, "'one'"), (4, "'three'"), (4, "'two'")]


def test_a_file_that_reads_them_needs_its_marker(find) -> None:
    marker = '"""Doc."""\n\n# check: reads facts because records of any kind come here\n\n'
    code = "record.facts['one']\n"
    files = {"a.py": code, "b.py": "record.facts_as(kind)['one']\n", "idle.py": marker, "marked.py": marker + code}
    assert find(facts, files) == ["a.py:1", "idle.py:3"]
