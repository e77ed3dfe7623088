"""The project's texts are plain English (tools/plain_english.py)."""

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "plain_english.py"
_spec = importlib.util.spec_from_file_location("plain_english", TOOL)
assert _spec and _spec.loader
plain_english = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(plain_english)


def test_code_and_documents_use_none_of_the_patterns() -> None:
    assert plain_english.report() == []
    assert len(list(plain_english.files())) > 500, "the folders are no longer found"


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
    ],
)
def test_plain_sentences_are_left_alone(text: str) -> None:
    assert not list(plain_english.hits(text))
