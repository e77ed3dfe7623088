"""`--kubernetes-version 1.23,1.36`: each version's run, and what differs."""

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner
from published_schema import documented

from lastcall.cli.commands import cli
from lastcall.cli.run.experiment import run_manifests
from lastcall.endings.story import Budget, ContainerEnding, DecidedBy, Ending, Entry, Exit, PodFacts, Stop
from lastcall.endings.versions import VersionStory, compare, labelled
from lastcall.errors import UserError, WorldError
from lastcall.experiment.run.options import RunOptions
from lastcall.manifests.read import load_manifests
from lastcall.records.record import Record

BOTH = RunOptions(after=0, timeout=5, versions=("1.23", "1.36"))


@pytest.fixture
def run(pod_file, new_cluster):
    """`run({"1.23": {...}}, options)`: each version's cluster is made with its keywords."""

    def run(clusters, options=BOTH):
        made = []

        def make(one):
            assert all(cluster.stopped for cluster in made), "one cluster at a time"
            assert one.versions == ()
            made.append(new_cluster(**clusters.get(one.kubernetes_version, {})))
            return made[-1]

        status = run_manifests(load_manifests([str(pod_file)]), options, make)
        assert [cluster.stopped for cluster in made] == [1, 1]
        return status

    return run


@pytest.mark.loopback
def test_both_versions_are_told_and_the_exit_status_is_the_worse_one(run, capsys):
    assert run({"1.23": {"kill": True}}) == 3
    out, err = capsys.readouterr()
    assert out.count("default/web was killed") == 1
    assert out.count("default/web ended gracefully") == 1
    assert re.search(r"what differs for default/web\n +1\.23 +1\.36\n", out)
    assert re.search(r"the Pod +was killed +ended gracefully", out)
    assert [line for line in err.splitlines() if line.startswith("Kubernetes 1.")] == [
        "Kubernetes 1.23:",
        "Kubernetes 1.36:",
    ]
    assert "SIGTERM → PID 1" in err and "\x1b" not in out
    assert run({}) == 0


@pytest.mark.loopback
@pytest.mark.parametrize(("columns", "side_by_side"), [("80", False), ("140", True)])
def test_a_wide_terminal_has_two_columns_and_a_narrow_one_one_story_under_the_other(
    run, capsys, monkeypatch, columns, side_by_side
):
    monkeypatch.setenv("COLUMNS", columns)
    run({"1.23": {"kill": True}})
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= int(columns)
    assert any("was killed" in line and "ended gracefully" in line and "·" in line for line in out.splitlines()) is (
        side_by_side
    )


@pytest.mark.loopback
def test_json_has_a_document_for_each_version_and_the_differences(run, capsys):
    assert run({"1.36": {"kill": True}}, replace(BOTH, output="json")) == 3
    document = json.loads(capsys.readouterr().out)
    assert (documented(document)["schema"], document["exitStatus"]) == ("lastcall/versions/v1", 3)
    told = [(each["schema"], each["kubernetesVersion"], each["exitStatus"]) for each in document["versions"]]
    assert told == [("lastcall/ending/v1", "1.23", 0), ("lastcall/ending/v1", "1.36", 3)]
    assert {
        "namespace": "default",
        "name": "web",
        "container": None,
        "what": "the Pod",
        "values": {"1.23": "ended gracefully", "1.36": "was killed"},
    } in document["differences"]


@pytest.mark.loopback
@pytest.mark.parametrize("output", ["html", "chrome-trace"])
def test_a_page_and_a_trace_name_the_version_of_each_pod(run, tmp_path, capsys, output):
    file = tmp_path / "story"
    assert run({}, replace(BOTH, output=output, output_file=file)) == 0
    text = file.read_text()
    assert "web (1.23)" in text and "web (1.36)" in text
    assert "what differs for default/web" in capsys.readouterr().out


@pytest.mark.loopback
def test_what_stops_one_version_is_told_beside_the_others_and_is_the_status(run, capsys):
    """Sidecars before 1.29, say: the Pod never becomes Ready."""
    options = replace(BOTH, timeout=0.2)
    assert run({"1.23": {"ready": False}}, options) == 1
    out = capsys.readouterr().out
    assert "Kubernetes 1.23: timed out after 0.2 s (--timeout) waiting for all Pods to become Ready" in out
    assert "default/web ended gracefully" in out
    assert "it did not come to an end" in out


@pytest.mark.loopback
def test_when_no_version_has_anything_to_tell_the_first_error_is_the_command_s(pod_file, new_cluster):
    with pytest.raises(WorldError, match="waiting for all Pods to become Ready"):
        run_manifests(load_manifests([str(pod_file)]), replace(BOTH, timeout=0.1), lambda _: new_cluster(ready=False))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kubernetes-version", "1.23,1.99"], "'1.99' is not one of '1.23', '1.27', '1.36', '1.37'"),
        (["--kubernetes-version", "1.23,1.36", "--keep"], "--keep keeps one cluster running"),
    ],
)
def test_options_that_cannot_be(arguments, words, pod_file):
    ended = CliRunner().invoke(cli, ["run", str(pod_file), *arguments])
    assert ended.exit_code == 2
    assert words in " ".join(ended.output.split())


# -- what differs -----------------------------------------------------------------------------------------------------


def ending(name="web", *, gone=4.0, owner="", code=0, signal=None, **stop):
    ended = Exit(code=code, signal=signal)
    app = ContainerEnding("app", "container", started=True, stop=Stop(**stop), exit=ended)
    decided = DecidedBy("user", "deleted", "it was", owner=owner)
    return Ending(
        PodFacts("u", "default", name), 0, "DeleteAccepted", 0, 4, "graceful", containers=(app,), gone=gone,
        budget=Budget("app", 4, 0, 0, gone, 0, 0), decided_by=decided,
    )  # fmt: skip


def differing(*endings):
    (found,) = compare([VersionStory(str(n), (each,)) for n, each in enumerate(endings)])
    return {each.what: each.values for each in found.differences}


def test_times_within_half_a_second_are_the_same():
    assert differing(ending(gone=4.0, signal_at=0.0), ending(gone=4.4, signal_at=0.3)) == {}
    assert differing(ending(gone=4.0, signal_at=0.0), ending(gone=4.6, signal_at=0.9)) == {
        "gone after": ("4.0 s", "4.6 s"),
        "stop signal at": ("0.0 s", "0.9 s"),
        "budget: drain": ("4.0 s", "4.6 s"),
    }


def test_what_only_one_version_did_is_a_difference():
    found = differing(ending(kill_at=4.0, code=137, signal="SIGKILL", timeout=4.0), ending(timeout=2.0))
    assert found == {
        "ended with": ("exit code 137, by SIGKILL", "exit code 0"),
        "StopContainer timeout": ("4 s", "2 s"),
        "SIGKILL at": ("4.0 s", "-"),
    }


def test_pods_that_an_owner_named_belong_together_by_their_order():
    one = VersionStory("1.23", (ending("web-7d4b9c6f88-abcde".replace("abcde", "bcdfg"), owner="web"), ending("x")))
    two = VersionStory("1.36", (ending("x"), ending("web-5f6d8c9bb4-zzxxw", owner="web")))
    assert [[e.pod.name for e in each.endings] for each in compare([one, two])] == [
        ["web-7d4b9c6f88-bcdfg", "web-5f6d8c9bb4-zzxxw"],
        ["x", "x"],
    ]
    assert [each.pod.name for each in labelled([one, two])][2:] == ["x (1.23)", "x (1.36)"]


def test_user_errors_of_every_version_stay_the_user_s(pod_file, new_cluster):
    def refuse(_):
        raise UserError("no")

    with pytest.raises(UserError):
        run_manifests(load_manifests([str(pod_file)]), BOTH, refuse)


def stepping(kind, **facts):
    record = Record("kubelet-b-1", 0, 0, "kubelet", kind, "u", "app", "", facts, "", "observed")
    return replace(ending(), entries=(Entry(record, 1.0),))


def test_a_step_is_the_same_whatever_its_numbers_and_what_is_said_beside_it():
    stop = stepping("StopRequested", timeoutSeconds=4, floor=False, deductedSeconds=0)
    assert differing(stop, stepping("StopRequested", timeoutSeconds=2, floor=False, deductedSeconds=2)) == {}
    found = differing(stop, ending())
    assert found == {"step StopRequested": ("StopContainer, timeout 4 s", "-")}


def test_no_two_differences_of_a_pod_have_the_same_name():
    def taking(*reasons):
        made = [stepping("PodRejected", reason=each, message="m") for each in reasons]
        return replace(ending(), entries=tuple(entry for each in made for entry in each.entries))

    found = compare([VersionStory("1.23", (taking("A", "B"),)), VersionStory("1.36", (taking("B", "C", "D"),))])
    assert [(each.what, each.values) for each in found[0].differences] == [
        ("step PodRejected", ("rejected: A: m", "rejected: C: m; rejected: D: m"))
    ]
