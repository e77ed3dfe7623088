"""The state of a rollout comes from another process, and its sentences can still be told in Japanese."""

import json

from lastcall.records.language import translate
from lastcall.records.said import tell
from lastcall.ui.rollout.texts import state_from_wire, state_to_wire

TEXT = tell("a mount at $path", path="/data")


def test_sentences_keep_what_they_were_made_of_and_all_else_is_data() -> None:
    workload = {"sentence": {"template": "$x"}, "kind": "Deployment"}
    search = {
        "sentence": TEXT,
        "done": True,
        "lag": {"disagreements": [TEXT, "plain"], "safe": 1},
        "preStopSleep": None,
    }
    state = {"number": 1, "sentence": TEXT, "phase": "plain", "workload": workload, "search": search}
    back = state_from_wire(json.loads(json.dumps(state_to_wire(state))))
    assert back == state
    japanese = translate(back, "ja")
    assert japanese["sentence"] == japanese["search"]["sentence"] == "/data へのマウント"
    assert japanese["search"]["lag"]["disagreements"] == ["/data へのマウント", "plain"]
    assert japanese["workload"] == workload and japanese["phase"] == "plain"


def test_a_state_without_a_search_is_told_as_it_is() -> None:
    assert state_from_wire(state_to_wire({"search": None, "error": ""})) == {"search": None, "error": ""}
