"""What `wait_for` waits for, in the words of kubectl wait."""

from typing import Any

import pytest

from lastcall.errors import UserError
from lastcall.experiment.ready.condition import parse_condition


def boat(status: Any = None, generation: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": "one", "generation": generation}, **({} if status is None else {"status": status})}


def conditions(status: str, **more: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status, **more}]}


@pytest.mark.parametrize(
    ("words", "obj", "missing"),
    [
        ("create", None, "it does not exist"),
        ("create", boat(), ""),
        ("delete", boat(), "it exists"),
        ("delete", None, ""),
        ("condition=Ready", None, "it does not exist"),
        ("condition=Ready", boat(), "it has no condition Ready"),
        ("condition=Ready", boat("sinking"), "it has no condition Ready"),
        ("condition=Ready", boat(conditions("False")), "its condition Ready is False"),
        ("condition=ready", boat(conditions("True")), ""),
        ("condition=Ready=false", boat(conditions("False")), ""),
        ("condition=Ready", boat(conditions("True", observedGeneration=1), 2), "its controller has not seen its new"),
        (
            "condition=Ready",
            boat({**conditions("True"), "observedGeneration": 1}, 2),
            "its controller has not seen its",
        ),
        ("jsonpath={.status.pod}", boat(), ".status.pod is not set"),
        ("jsonpath={.status.pod}", boat({"pod": "w"}), ""),
        ("jsonpath={.status.pod}=w", boat({"pod": "v"}), ".status.pod is 'v'"),
        ("jsonpath={.status.pod}=w", boat({"pod": "w"}), ""),
        ("jsonpath=.status.pod=w", boat({"pod": "w"}), ""),
        ("jsonpath=status.ready=true", boat({"ready": True}), ""),
        ("jsonpath={.status.sails}=2", boat({"sails": 2}), ""),
        ("jsonpath={.status.pod}=a=b", boat({"pod": "a=b"}), ""),
        ('jsonpath={.status.conditions[?(@.type=="Ready")].status}=True', boat(conditions("True")), ""),
    ],
)
def test_a_condition_says_what_is_missing(words: str, obj: Any, missing: str) -> None:
    found = parse_condition(words)(obj)
    assert found.startswith(missing) and bool(found) == bool(missing), found


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Ready",
        "condition",
        "condition=",
        "jsonpath",
        "jsonpath=",
        "jsonpath={.a",
        "jsonpath={.a}b",
        "jsonpath={.a}=",
    ],
)
def test_words_that_kubectl_would_not_take_are_refused(words: str) -> None:
    with pytest.raises(UserError, match="write"):
        parse_condition(words)
