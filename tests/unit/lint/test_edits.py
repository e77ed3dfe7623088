"""`--fix` edits: what is not touched stays byte for byte, comments too; what cannot be done so is left alone."""

import pytest
import yaml

from lastcall.lint.edits import edited
from lastcall.lint.patching import patched
from lastcall.lint.subject import Op

TEXT = """\
# head
spec:
  grace: 30  # seconds

  list:
    - name: a   # first
      port: 80
      args: [one, "two"]
    # about b
    - name: b
  text: |
    # no comment
    line

  flow: {a: 1, b: [x]}
  last: 'x' # the end

# tail
"""


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ([Op("replace", ("spec", "grace"), 45)], ("grace: 30  # seconds", "grace: 45  # seconds")),
        ([Op("replace", ("spec", "last"), "z")], ("last: 'x' # the end", "last: z # the end")),
        ([Op("replace", ("spec", "last"), "y")], ("last: 'x' # the end", "last: 'y' # the end")),
        ([Op("replace", ("spec", "list", 0, "name"), "80")], ("name: a   # first", "name: '80'   # first")),
        ([Op("replace", ("spec", "list", 0, "args", 1), 3)], ('[one, "two"]', "[one, 3]")),
        ([Op("add", ("spec", "flow", "c"), True)], ("{a: 1, b: [x]}", "{a: 1, b: [x], c: true}")),
        ([Op("remove", ("spec", "flow", "a"))], ("{a: 1, b: [x]}", "{b: [x]}")),
        ([Op("remove", ("spec", "grace"))], ("  grace: 30  # seconds\n", "")),
        ([Op("remove", ("spec", "list", 0, "port"))], ("      port: 80\n", "")),
        ([Op("remove", ("spec", "list", 0, "name"))], ("- name: a   # first\n      port: 80", "- port: 80")),
        ([Op("add", ("spec", "list", 1, "hook"), {"sleep": {"seconds": 5}})],
         ("    - name: b\n", "    - name: b\n      hook:\n        sleep:\n          seconds: 5\n")),
        ([Op("add", ("spec", "more"), 1)], ("last: 'x' # the end\n", "last: 'x' # the end\n  more: 1\n")),
        ([Op("add", ("spec", "list", 2), {"name": "c", "port": 1})],
         ("    - name: b\n", "    - name: b\n    - name: c\n      port: 1\n")),
        ([Op("replace", ("spec", "list", 0, "args"), {"x": 1})], ('args: [one, "two"]', "args:\n        x: 1")),
        ([Op("remove", ("spec", "grace")), Op("add", ("spec", "other"), "1")],
         ("  grace: 30  # seconds\n", "", "the end\n", "the end\n  other: '1'\n")),
    ],
)  # fmt: skip
def test_an_edit_changes_what_it_is_for_and_nothing_else(ops, expected):
    new = edited(TEXT, 1, (), ops)
    wanted = TEXT
    for before, after in zip(expected[::2], expected[1::2], strict=True):
        assert before in wanted
        wanted = wanted.replace(before, after)
    assert new == wanted
    assert yaml.safe_load(new) == patched(yaml.safe_load(TEXT), ops)


def test_lines_end_as_they_did():
    text = "a:\r\n  b: 1\r\n  c: 2\r\n"
    assert edited(text, 1, (), [Op("add", ("a", "d"), {"e": 1})]) == "a:\r\n  b: 1\r\n  c: 2\r\n  d:\r\n    e: 1\r\n"
    assert edited(text, 1, (), [Op("remove", ("a", "b"))]) == "a:\r\n  c: 2\r\n"


def test_a_text_without_a_last_line_break_is_edited():
    assert edited("a: {b: 1}\nc: 2", 1, (), [Op("add", ("d",), 1)]) == "a: {b: 1}\nc: 2\nd: 1"


def test_the_right_document_is_edited():
    text = "a: 1\n---\n# nothing\n---\na: 1  # third\n"
    assert edited(text, 3, (), [Op("replace", ("a",), 2)]) == "a: 1\n---\n# nothing\n---\na: 2  # third\n"


@pytest.mark.parametrize(
    ("text", "ops"),
    [
        ("a: &x {b: 1}\nc: *x\n", [Op("replace", ("c", "b"), 2)]),  # would change a, too
        ("a: &x\n  b: 1\nc:\n  <<: *x\n  d: 1\n", [Op("replace", ("c", "b"), 2)]),
        ("a:\n  b: 1\n", [Op("remove", ("a", "b"))]),  # an empty value is another thing
        ("a: [1, # one\n  2]\n", [Op("remove", ("a", 0))]),  # the comment would go
        ("a: 1\n", [Op("replace", ("b",), 2)]),
        ("a: 1\n", [Op("add", ("b", "c"), 2)]),
    ],
)  # fmt: skip
def test_what_cannot_be_done_without_touching_more_is_left_alone(text, ops):
    assert edited(text, 1, (), ops) is None
