"""Each application in examples/ does what examples/README.md says of it, on the real kernel."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from staying import Place

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
TRIED_ELSEWHERE = {
    "term-demo.yaml": "tests/node/test_demo_pods_end.py",
    "sigkill-demo.yaml": "tests/node/test_demo_pods_end.py",
    "rollout/naive.yaml": "tests/clients/rollout/test_rollout.py",
    "rollout/polite.yaml": "tests/clients/rollout/test_rollout.py",
}
PYTEST_APP = "pytest-app"
SHORT = {"run": (), "rollout": ("--control", "1s", "--settle", "0.5s")}
_ROW = re.compile(r"^\| (?P<file>\S+\.yaml) \| (?P<lesson>[^|]+) \| `(?P<command>[^`|]+)` \| (?P<expected>[^|]+) \|$")


@dataclass(frozen=True)
class Example:
    """A row of the table. `words` come after the exit status."""

    file: str
    command: str
    status: int
    words: tuple[str, ...]


def table() -> list[Example]:
    found = []
    for line in (EXAMPLES / "README.md").read_text().splitlines():
        if row := _ROW.match(line):
            status, *words = row["expected"].split(" · ")
            found.append(Example(row["file"], row["command"], int(status.removeprefix("exit ")), tuple(words)))
    return found


def test_the_table_has_every_example_once_with_the_command_that_its_comment_has() -> None:
    files = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.yaml"))
    # tests/clients/python/test_pytest_app.py, tests/clients/shown/test_monitoring.py
    files = [each for each in files if not each.startswith((f"{PYTEST_APP}/", "monitoring/"))]
    assert sorted(each.file for each in table()) == files
    for each in table():
        assert f"examples/{each.file}" in each.command
        if "/" in each.file:
            comment = [line for line in (EXAMPLES / each.file).read_text().splitlines() if line.startswith("#")]
            assert f"#   {each.command}" in comment and any(line.startswith("# Expected: ") for line in comment)
    for path in TRIED_ELSEWHERE.values():
        assert (EXAMPLES.parent / path).exists()


def tried(example: Example) -> tuple[dict[str, Any], str]:
    """The document and what was said on stderr, of the command of the table."""
    program, verb, *arguments = shlex.split(example.command)
    assert program == "lastcall"
    there = [str(EXAMPLES / example.file) if word == f"examples/{example.file}" else word for word in arguments]
    with Place(ordinary_user.USERS[-1]) as place:
        result = place.run(verb, *there, *SHORT[verb], "-o", "json", timeout=240)
    assert result.status == example.status, (result.out[-3000:], result.err)
    return json.loads(result.out) if result.out else {}, result.err


def here(verb: str) -> list[Any]:
    rows = [each for each in table() if each.file not in TRIED_ELSEWHERE and each.command.split()[1] == verb]
    return [pytest.param(each, id=each.file) for each in rows]


@pytest.mark.real_kernel
@pytest.mark.parametrize("example", here("run"))
def test_a_pod_ends_as_the_table_says(example: Example) -> None:
    document, said = tried(example)
    pods = document.get("pods") or []
    told = {pod["outcome"] for pod in pods} | {each["id"] for pod in pods for each in pod["findings"]}
    texts = " ".join([said, *(each["text"] for pod in pods for each in pod["findings"])])
    for word in example.words:
        assert word in told or (word not in ("graceful", "killed") and word in texts), (word, told, texts)


@pytest.mark.real_kernel
@pytest.mark.parametrize("example", here("rollout"))
def test_requests_are_lost_as_the_table_says(example: Example) -> None:
    document, _ = tried(example)
    (found,) = document["experiments"]
    verdict, *causes = example.words
    assert found["verdict"] == verdict and found["control"]["lost"] == 0
    assert list(found["byCause"])[:1] == causes, found["byCause"]
    assert found["lost"] == len(found["lostRequests"]) == sum(found["byCause"].values())
    assert bool(found["advice"]) == bool(causes)
    assert found["unaccounted"] == found["withoutOutcome"] == found["answeredUnseen"] == []
    classes = {(each["kind"], each["class"]) for each in found["lostRequests"]}
    moved = {(each["kind"], each["class"]): each["count"] for each in found["moved"]}
    match example.file:
        case "rollout/stream.yaml":
            assert ("stream", "truncated") in classes and not moved
            assert "begun" in {each["application"] for each in found["lostRequests"]}
        case "rollout/websocket.yaml":
            assert classes & {("websocket", "no close frame"), ("websocket", "reset after bytes")} and not moved
            assert any(each["echoed"] for each in found["lostRequests"])
        case "rollout/websocket-polite.yaml":
            assert moved["websocket", "going away"] > 0
        case "rollout/http2.yaml":
            for balance in found["balance"]:  # none where the machine was too busy for a second's requests
                assert balance["kind"] == "http2" and 1 <= balance["connections"] <= 4
                assert sum(balance["requests"].values()) <= found["control"]["total"]
            assert any(each["connectionAge"] > 0.5 for each in found["lostRequests"])
    if example.file == "rollout/stateful-set.yaml":
        ended = [pod for pod in found["pods"] if pod["deleted"] is not None]
        assert [pod["name"] for pod in sorted(ended, key=lambda pod: pod["deleted"])] == ["web-1", "web-0"]
