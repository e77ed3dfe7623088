"""The patterns of tools/plain_english.py find the phrases that they are for, and leave plain sentences alone."""

from pathlib import Path

import plain_english
import pytest


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.py", 'def f():\n    """One.\n\n    Killed for\n    want of memory."""\n', 4),
        ("a.py", "x = (\n    f'{1} waited in '\n    'vain'\n)\n", 2),
        ("a.py", "# Not changed, for it\n# may be shared.\n", 1),
        ("a.md", "# Title\n\nOne line.\nWaited in\nvain.\n", 4),
        ("a.md", "| a | b |\n|---|---|\n| waits in vain | - |\n", 3),
    ],
)
def test_a_sentence_over_several_lines_is_read_as_one(tmp_path: Path, name: str, text: str, line: int) -> None:
    path = tmp_path / name
    path.write_text(text)
    passages = plain_english.passages(path)
    assert [first + after for first, passage in passages for after, *_ in plain_english.hits(passage)] == [line]


@pytest.mark.parametrize(
    "text",
    [
        "waited 120 s in vain",
        "Image X could not be had: Y ran in its place",
        "killed for want of memory",
        "file, field and the way out.",
        "None for what is none.",
        "that is nobody's business",
        "is set once; who deletes it has none",
        "The key is free. Who finds it may take it",
        "Whose rules to follow.",
        "mend that first",
        "None for who is not a node",
        "who may create objects may fill the store",
        "the text is no quantity",
        "endpoints that are no Pods",
        "It waits for ever",
        "the Service is held against the Pods",
        "a server that starts goes on with both",
        "Not changed, for it may be shared",
        "a machine that shall not pull",
        "So long a cluster may take to end.",
        "each user sees only his own",
        "the story tells of Pods",
        "copied as far as it is known",
        "waited 120 s in\nvain",
    ],
)
def test_a_phrase_that_readers_stumbled_over_is_found(text: str) -> None:
    assert list(plain_english.hits(text))


@pytest.mark.parametrize(
    "text",
    [
        "None when there is none.",
        "Connections to the way out of the node",
        "Who manages which fields of an object",
        "whoever deletes it",
        "the port is none of them",
        "there is no Service",
        "it is no longer there",
        "a list of fields, for it and its owner",
        "regardless of who manages the field",
    ],
)
def test_plain_sentences_are_left_alone(text: str) -> None:
    assert not list(plain_english.hits(text))
