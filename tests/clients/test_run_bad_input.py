"""Bad input and the world's errors, end to end: one clear message each, the right status, nothing left behind."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from pods import container, pod, service
from published_schema import problems
from run_command import InParallel, Lastcall, Result, lastcall
from story import stories

pytestmark = pytest.mark.real_kernel

USER = ordinary_user.USERS[-1]
FORBIDDEN = Path(__file__).parents[1] / "node" / "forbidden_machine.py"


def lines(result: Result) -> list[str]:
    """What lastcall said in the end, without its progress."""
    return [line.removeprefix("lastcall: ") for line in result.err.splitlines() if line.startswith("lastcall: ")]


# -- the user's: nothing is started ---------------------------------------------------------------------------------

BAD_TEXTS = {
    "unreadable YAML": ("kind: Pod\nmetadata: {name: [\n", "<stdin>:3: not readable as YAML"),
    "unknown kind": ("apiVersion: v1\nkind: Pood\nmetadata: {name: a}\n", "<stdin>:2: document 1: kind: 'Pood'"),
    "a CronJob": (
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n",
        "write its spec.jobTemplate as a Job",
    ),
    "unknown field": (
        json.dumps(pod("a", hostNetwrok=True)),
        'spec.hostNetwrok: not a field of Pod: did you mean "hostNetwork"?',
    ),
    "invalid name": (json.dumps(pod("Not_Good")), 'metadata.name: Invalid value: "Not_Good"'),
    "invalid value": (json.dumps(pod("a", restartPolicy="Often")), "spec.restartPolicy: Unsupported value"),
    "wrong type": (json.dumps(pod("a") | {"spec": {"containers": "one"}}), "containers"),
    "two Pods of one name": (
        "---\n".join(json.dumps(pod("same")) + "\n" for _ in range(2)),
        "a second Pod 'same' (the first is at <stdin>:1): give it another name",
    ),
    "no Pod at all": (json.dumps(service("web")), "no Pod in the manifests (only Service)"),
    "nothing": ("", "<stdin>: no object found: the file is empty"),
    "a list that is no list": ("apiVersion: v1\nkind: List\nitems: 3\n", "items: must be a list of objects"),
}


@pytest.mark.core
@pytest.mark.parametrize("what", BAD_TEXTS)
def test_a_bad_manifest_is_status_2_with_place_and_way_out(what: str) -> None:
    text, words = BAD_TEXTS[what]
    result = lastcall(["run", "-"], stdin=text, user=USER)
    assert (result.status, result.out.strip()) == (2, ""), result.err
    assert any(words in line for line in lines(result)), result.err


def test_missing_files_empty_directories_and_a_second_stdin_are_all_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = lastcall(["run", "/no/such/pod.yaml", str(tmp_path / "empty"), "-", "-"], stdin=json.dumps(pod("a")))
    assert result.status == 2
    text = "\n".join(lines(result))
    assert "/no/such/pod.yaml: No such file or directory" in text
    assert "no manifest in this directory: files must end in .yaml, .yml, .json" in text
    assert "- (stdin) is given twice" in text


def test_files_directories_stdin_and_several_documents_make_one_run(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "one.yaml").write_text(
        "---\n".join(json.dumps(each) + "\n" for each in (service("a"), pod("a")))
    )
    (tmp_path / "pods" / "two.json").write_text(json.dumps(pod("b")))
    (tmp_path / "pods" / "notes.txt").write_text("not a manifest")
    (tmp_path / "list.yml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod("c"), pod("d")]}))
    other = pod("e") | {"metadata": {"name": "e", "namespace": "elsewhere"}}
    arguments = ["run", str(tmp_path / "pods"), str(tmp_path / "list.yml"), "-", "--output", "json", "--after", "1"]
    result = lastcall(arguments, manifests=[other])
    assert result.status == 0, result.err
    assert sorted(stories(result.document)) == ["a", "b", "c", "d", "e"]
    assert list(problems(result.document)) == []
    assert "namespace elsewhere created" in result.err
    assert [each["service"] for each in stories(result.document)["a"]["endpoints"]] == ["a", "a"]


# -- the world's: a cluster was started, or could not be ------------------------------------------------------------

NEVER_READY = {"exec": {"command": ["false"]}, "periodSeconds": 1}
FILLS = (
    "touch /data/begun; dd if=/dev/zero of=/data/fill bs=64k 2>&1; echo full; "
    "trap 'echo bye; exit 0' TERM; mv /data/begun /data/up; while true; do echo line; sleep 0.05; done"
)

WORLDS: dict[str, dict[str, Any]] = {
    "missing image": {"manifests": [pod("a", container("app", image="127.0.0.1:9/no-such-image:1"))]},
    "missing image, never pulled": {
        "manifests": [pod("a", container("app", image="no-such-image:1", imagePullPolicy="Never"))]
    },
    "invalid image name": {"manifests": [pod("a", container("app", image="UPPER case:!"))]},
    "image without the command": {"manifests": [pod("a", container("app") | {"command": ["/no/such/program"]})]},
    "never Ready": {
        "arguments": ["--timeout", "6"],
        "manifests": [pod("a", container("app", readinessProbe=NEVER_READY))],
    },
    "crashes": {
        "arguments": ["--timeout", "7"],
        "manifests": [pod("a", container("app", "echo oops; exit 4", readinessProbe=NEVER_READY))],
    },
    "missing ConfigMap": {
        "manifests": [pod("a", container("app", envFrom=[{"configMapRef": {"name": "no"}}]))],
    },
    "finalizer": {
        "arguments": ["--timeout", "6"],
        "manifests": [pod("a", grace=1) | {"metadata": {"name": "a", "finalizers": ["example.com/held"]}}],
    },
    "disk full from the start": {
        "arguments": ["--state-size", "512k", "--timeout", "6"],
        "manifests": [pod("a")],
    },
    "volume filled by the Pod": {
        "arguments": ["--output", "json"],
        "manifests": [
            pod(
                "a",
                container(
                    "app",
                    FILLS,
                    pre_stop="echo hook",
                    volumeMounts=[{"name": "data", "mountPath": "/data"}],
                    readinessProbe={"exec": {"command": ["sh", "-c", "test -e /data/up"]}, "periodSeconds": 1},
                ),
                volumes=[{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}],
            )
        ],
    },
    "forbidden user namespaces": {
        "manifests": [pod("a")],
        "program": (str(FORBIDDEN), "no user namespaces"),
    },
    "forbidden system call": {"manifests": [pod("a")], "program": (str(FORBIDDEN), "docker's seccomp")},
    "masked proc": {"manifests": [pod("a")], "program": (str(FORBIDDEN), "masked proc")},
    "no HOME": {
        "arguments": ["--output", "json"],
        "manifests": [pod("a")],
        "environment": dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR")),
    },
    "HOME is nowhere": {
        "arguments": ["--output", "json"],
        "manifests": [pod("a")],
        "environment": {"HOME": "/dev/null/home", "XDG_DATA_HOME": "/dev/null/data", "TMPDIR": "/dev/null/tmp"},
    },
    "HOME is read-only": {
        "arguments": ["--output", "json"],
        "manifests": [pod("a")],
        "prepare_home": lambda home: [each.chmod(0o555) for each in home.iterdir()],
    },
}  # fmt: skip


def run_in(what: str, user: str) -> Result:
    options = dict(WORLDS[what])
    arguments = options.pop("arguments", [])
    with Lastcall(["run", "-", *arguments], user=user, **options) as command:
        return command.finish(60)


@pytest.fixture(scope="module")
def worlds() -> Iterator[InParallel]:
    jobs = {(what, user): functools.partial(run_in, what, user) for what in WORLDS for user in ordinary_user.USERS}
    running = InParallel(jobs)
    yield running
    running.close()


@pytest.fixture(params=ordinary_user.USERS)
def world(request: pytest.FixtureRequest, worlds: InParallel) -> Any:
    return lambda what: worlds[what, request.param]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("missing image", ["container app: ErrImagePull", "fix: `lastcall image import FILE`"]),
        ("missing image, never pulled", ["ErrImageNeverPull", "imagePullPolicy is Never"]),
        ("invalid image name", ["InvalidImageName", "correct spec.containers[].image"]),
        ("image without the command", ["command: /no/such/program does not exist in the image"]),
        ("never Ready", ["after 6 s (--timeout) waiting for all Pods to become Ready", "Readiness probe failed"]),
        ("crashes", ["after 7 s (--timeout)", "exit code 4"]),
        ("missing ConfigMap", ["CreateContainerConfigError", 'configmap "no" not found', "add ConfigMap no to"]),
        ("disk full from the start", ["No space left on device", "--state-size"]),
    ],
)  # fmt: skip
def test_a_pod_that_cannot_become_ready_says_why_and_what_to_do(what: str, words: list[str], world: Any) -> None:
    result = world(what)
    assert (result.status, result.out.strip()) == (1, ""), result.err
    text = "\n".join(lines(result))
    for word in words:
        assert word in text, text
    assert "default/a is not Ready" in text


def test_a_hopeless_pod_is_not_waited_for(world: Any) -> None:
    for what in ("missing image", "invalid image name", "image without the command", "missing ConfigMap"):
        assert "(--timeout)" not in world(what).err


def test_a_pod_that_a_finalizer_holds_is_told_of_with_its_story(world: Any) -> None:
    result = world("finalizer")
    assert result.status == 1
    assert "is still there" in result.err and "example.com/held" in result.err
    assert "exit code 0 (Completed)" in result.out and "The removal of the object was not seen." in result.out


def test_a_pod_that_fills_its_volume_is_ended_and_told_of_like_any_other(world: Any) -> None:
    result = world("volume filled by the Pod")
    assert result.status == 0, result.err
    (story,) = stories(result.document).values()
    assert story.container["preStop"]["outcome"] == "succeeded"
    assert (story.container["exitCode"], story["output"][-1]["text"]) == (0, "bye")
    assert any("No space left" in record["facts"]["text"] for record in story.records("Output"))


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("forbidden user namespaces", ["user.max_user_namespaces", "sysctl -w user.max_user_namespaces="]),
        ("forbidden system call", ["a seccomp filter forbids clone3"]),
        ("masked proc", ["mounting /proc", "/proc/keys"]),
    ],
)
def test_a_machine_that_forbids_it_is_one_line_with_the_fix(what: str, words: list[str], world: Any) -> None:
    result = world(what)
    assert (result.status, result.out.strip()) == (1, ""), result.err
    *notes, line = lines(result)
    assert all(each.startswith("what containers write counts as their memory") for each in notes), notes
    assert line.startswith("the cluster cannot start: ") and "`lastcall doctor`" in line
    for word in words:
        assert word in line, line


@pytest.mark.parametrize("what", ["no HOME", "HOME is nowhere", "HOME is read-only"])
def test_run_writes_nothing_to_disk_so_it_needs_no_home(what: str, world: Any) -> None:
    result = world(what)
    assert result.status == 0, result.err
    (story,) = stories(result.document).values()
    assert story["outcome"] == "graceful"


@pytest.mark.skipif("ordinary user" not in ordinary_user.USERS, reason="root may write everywhere")
def test_making_an_image_in_a_read_only_place_is_one_line_with_the_fix() -> None:
    result = lastcall(
        ["image", "from-host", "mine:1"],
        user="ordinary user",
        prepare_home=lambda home: [each.chmod(0o555) for each in home.iterdir()],
    )
    assert result.status == 1
    (line,) = lines(result)
    assert "Permission denied" in line
