"""Records that claim to be observed or predicted are found."""

import pytest
from checks.evidence import observes, predicts, record_calls
from checks.source import Source


def test_the_evidence_of_a_record_is_read() -> None:
    text = (
        "self._recorder.record('x')\nrecorder.record('x', evidence='predicted')\n"
        "recorder.record('x', evidence=known)\nbook.record('x')\n"
    )
    assert list(record_calls(Source("a.py", text))) == [(1, "observed"), (2, "predicted"), (3, "")]


@pytest.mark.parametrize(
    ("rule", "word", "call"),
    [
        (observes, "observes", "recorder.record('x')"),
        (observes, "observes", "recorder.record('x', evidence=known)"),
        (predicts, "predicts", "recorder.record('x', evidence='predicted')"),
    ],
)
def test_a_file_that_claims_it_needs_its_marker(find, rule, word: str, call: str) -> None:
    marker = f'"""Doc."""\n\n# check: {word} because it is a test\n\n'
    other = "recorder.record('x', evidence='inferred')\n"
    files = {"a.py": other + call, "idle.py": marker + other, "marked.py": marker + call, "other.py": other}
    assert find(rule, files) == ["a.py:2", "idle.py:3"]
