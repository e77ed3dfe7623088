"""The JSON against its published schema."""

import json
import re
from pathlib import Path

import pytest
from published_schema import PUBLISHED, problems

from lastcall.endings.render.json_v1 import SCHEMA, endings_document
from lastcall.records import kinds as k

DOCS = Path(__file__).parents[4] / "docs"


def document(*endings, status=0, error=""):
    made = endings_document(
        endings, kubernetes_version="1.36", lastcall_version="0.1.0", exit_status=status, error=error
    )
    return json.loads(json.dumps(made, allow_nan=False))


@pytest.mark.parametrize("name", ["graceful", "sigkill-1.36", "sigkill-1.23"])
def test_real_stories_fit_the_published_schema(tapes, name):
    assert list(problems(document(tapes[name]().ending()), PUBLISHED)) == []


def test_a_story_with_everything_missing_fits_the_schema_too(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.add(1.4, "init", k.PROCESS_DIED, role="node-1", pid=4, exitCode=None, signal=9)
    made = document(tape.ending(), new_tape().ending(), status=1, error="node-1 was killed by SIGKILL")
    assert list(problems(made, PUBLISHED)) == []
    assert made["pods"][0]["gone"] is None


def test_the_check_finds_what_does_not_fit(tapes):
    made = document(tapes["graceful"]().ending())
    made["pods"][0]["containers"][0]["exitCode"] = "0"
    made["pods"][0]["surprise"] = 1
    del made["schema"]
    found = "\n".join(problems(made, PUBLISHED))
    assert "exitCode: '0' is no" in found
    assert "surprise: not in the schema" in found
    assert "$.schema: missing" in found


def test_the_document_says_what_it_is_and_times_count_from_the_delete(tapes):
    made = document(tapes["sigkill-1.36"]().ending(), status=3)
    assert made["schema"] == SCHEMA == PUBLISHED["$id"]
    (pod,) = made["pods"]
    accepted = next(r for r in pod["records"] if r["kind"] == k.DELETE_ACCEPTED)
    assert accepted["at"] == 0
    assert accepted["wall"] == pod["deletedAt"]
    assert [r["at"] for r in pod["records"]] == sorted(r["at"] for r in pod["records"])
    assert pod["records"][0]["at"] < 0
    budget = pod["budget"]
    left = budget["grace"] - budget["preStop"] - budget["waiting"] - budget["drain"]
    assert left == pytest.approx(budget["unused"] - budget["overrun"], abs=1e-5)


def test_every_field_of_the_schema_is_described_in_the_document():
    text = (DOCS / "ending-v1.md").read_text()
    for name, definition in {"document": PUBLISHED, **PUBLISHED["$defs"]}.items():
        for field in definition.get("properties", {}):
            assert re.search(rf"\b{field}\b", text), f"{name}.{field} is not described"
