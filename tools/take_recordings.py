"""Take what unit tests need of the recorded requests beside the project (`../shared/golden-api`) into tests/data.

The recordings are large and lie outside the repository; a clone alone must be able to run its tests.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
RECORDINGS = PROJECT.parent / "shared" / "golden-api"
DATA = PROJECT / "tests" / "data"
SEQUENCES = ("managed-fields", "server-side-apply")


def creations() -> Iterator[tuple[str, Any]]:
    """Yield every recorded POST that made an object of a kind of Kubernetes, once per name and kind."""
    for path in sorted((RECORDINGS / "http").glob("*.json")):
        for number, step in enumerate(json.loads(path.read_text()).get("steps", ())):
            body = step["response"].get("body")
            if (
                step["method"] == "POST"
                and step["response"]["status"] == 201
                and isinstance(body, dict)
                and isinstance(step.get("body"), dict)
                and "kind" in body
                and "text" not in step["body"]
                and "protobuf" not in step["body"]
                and body["kind"] not in ("Status", "Table", "Eviction", "Binding")
                and not body["kind"].endswith("Review")
                and not re.search(r"/(token|binding|eviction|status)\b|\.example\.com", step["path"])
            ):
                managers = {"metadata": {"managedFields": body.get("metadata", {}).get("managedFields")}}
                yield f"{path.stem}-{number}", _shortened(step) | {"response": {"status": 201, "body": managers}}


def _shortened(step: Any) -> Any:
    """Return a step with the headers that matter, as the server saw it."""
    headers = {name: value for name, value in step["headers"].items() if name in ("Content-Type", "User-Agent")}
    return {key: step[key] for key in ("method", "path", "body", "response") if key in step} | {"headers": headers}


def sequence(name: str) -> list[Any]:
    """Return the steps of a recorded sequence."""
    return [_shortened(step) for step in json.loads((RECORDINGS / "http" / f"{name}.json").read_text())["steps"]]


def protobuf_bodies() -> Iterator[Any]:
    """Yield the bodies that kubectl sent in protobuf, each with what it says, and the file that has it."""
    for path in sorted([*(RECORDINGS / "kubectl").glob("*.json"), *(RECORDINGS / "http").glob("*.json")]):
        recording = json.loads(path.read_text())
        for request in recording.get("requests") or recording.get("steps") or []:
            body = request.get("body")
            if isinstance(body, dict) and "protobuf" in body and "decoded" in body:
                yield {"file": path.name, "protobuf": body["protobuf"], "decoded": body["decoded"]}


def main() -> None:
    if not RECORDINGS.exists():
        sys.exit(f"{RECORDINGS} is not there.")
    write(
        "managed_fields.json",
        {"sequences": {name: sequence(name) for name in SEQUENCES}, "creations": dict(creations())},
    )
    write("protobuf_bodies.json", list(protobuf_bodies()))


def write(name: str, content: Any) -> None:
    """Write a file of tests/data, a top-level entry a line."""
    DATA.mkdir(exist_ok=True)
    if isinstance(content, list):
        text = "[\n" + ",\n".join(json.dumps(each) for each in content) + "\n]\n"
    else:
        text = "{\n" + ",\n".join(f"{json.dumps(key)}: {_lines(part)}" for key, part in content.items()) + "\n}\n"
    (DATA / name).write_text(text)


def _lines(part: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in part.items()) + "\n}"


if __name__ == "__main__":
    main()
